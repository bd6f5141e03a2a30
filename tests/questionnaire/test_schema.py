"""The JSON Schema accepts every definition that the server accepts, and explains every key."""

from __future__ import annotations

import json
import re
from datetime import date
from decimal import Decimal

import pytest
from jsonschema import Draft202012Validator

from survey.errors import DefinitionError
from survey.questionnaire.kinds import WRITTEN_KINDS
from survey.questionnaire.loading import load, parse
from survey.questionnaire.schema import definition_schema
from survey.settings import Caps
from tests import surveys
from tests.conftest import ROOT, SMALL

VALIDATOR = Draft202012Validator(definition_schema())
FILES = {
    name: text
    for name, text in vars(surveys).items()
    if name.isupper() and name[0] != "_" and isinstance(text, str) and "slug = " in text
}
PAGES = [ROOT / "README.md", *sorted((ROOT / "survey/handbook").rglob("*.md"))]
EXAMPLES = [
    example
    for page in PAGES
    for example in re.findall(r"```toml\n(slug = .*?)```", page.read_text(), re.DOTALL)
]


def as_json(value):
    """Return what a JSON file has instead of TOML's dates and exact decimals."""
    if isinstance(value, dict):
        return {key: as_json(part) for key, part in value.items()}
    if isinstance(value, list):
        return [as_json(part) for part in value]
    if isinstance(value, Decimal):
        return float(value)
    return value.isoformat() if isinstance(value, date) else value


def mistakes(text):
    form = as_json(parse(text.encode(), "s.toml"))
    return [error.message for error in VALIDATOR.iter_errors(form)]


def test_the_schema_is_valid_json_schema():
    Draft202012Validator.check_schema(definition_schema())
    assert json.loads(json.dumps(definition_schema())) == definition_schema()


@pytest.mark.parametrize("name", FILES)
def test_every_survey_of_the_tests_fits_the_schema(name):
    assert mistakes(FILES[name]) == []


def test_every_example_of_the_readme_fits_the_schema():
    assert len(EXAMPLES) >= 3
    assert [mistakes(text) for text in EXAMPLES] == [[]] * len(EXAMPLES)


@pytest.mark.parametrize(
    "change",
    [
        ("epsilon", "epsilom"),
        ('type = "yes_no"', 'type = "free_text"'),
        ('id = "fell_asleep"', "id = 7"),
        ('slug = "small"', 'slug = "Small Survey"'),
        ('slug = "small"\n', ""),
        ("[[pages]]", 'kiosk = "yes"\n[[pages]]'),
    ],
    ids=" ".join,
)
def test_a_mistake_in_a_key_a_type_or_a_name_is_found_by_the_schema_and_the_server(change):
    text = SMALL.replace("truth_probability", "epsilon").replace("3/4", "0.8").replace(*change, 1)
    assert text != SMALL
    assert mistakes(text)
    with pytest.raises(DefinitionError):
        load(text.encode(), "s.toml", Caps())


def test_every_key_is_explained_and_every_type_is_offered():
    parts = [definition_schema(), *definition_schema()["$defs"].values()]
    keys = {key: part for each in parts for key, part in each["properties"].items()}
    unexplained = {key for key, part in keys.items() if "description" not in part}
    assert unexplained == {"type"}
    text = json.dumps(definition_schema())
    assert all(f'"{name}"' in text for name in WRITTEN_KINDS)


def test_a_json_file_may_name_its_schema():
    form = {**as_json(parse(SMALL.encode(), "s.toml")), "$schema": "survey.schema.json"}
    assert list(VALIDATOR.iter_errors(form)) == []
    assert load(json.dumps(form).encode(), "s.json", Caps()).slug == "small"
