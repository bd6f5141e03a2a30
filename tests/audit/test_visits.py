"""Simulated visits fill in every type of question, and detect a page that reveals an answer."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from survey.audit import visits
from survey.audit.bundled_modules import unbundle
from survey.audit.node import Node
from survey.audit.visits import check_visits, with_translations
from survey.questionnaire.canonical import canonical_json, read_definition
from survey.respond.client import Client, source_files
from tests import surveys

SURVEYS = {
    "ranking": surveys.RANKING,
    "matrix": surveys.MATRIX,
    "earlier answers in texts": surveys.PIPED,
    "sliders": surveys.SLIDER,
    "months and years": surveys.DATES,
}
UNTRANSLATED = ("matrix", "earlier answers in texts")
TRANSLATED = (
    *(surveys.MATRIX, surveys.PIPED, surveys.SLIDER),
    surveys.CHOICES.replace('title = "', 'title.es = "Elegir"\ntitle.en = "', 1),
)
VISITS = 1

FOUND = re.compile(
    r'name === "([\w-]+)"'  # a view
    r'|\.has\("(data-[\w-]+)"\)'  # a question, or an option of a ranking
    r'|"class"\)[^=;]*=== "([\w ]+)"|includes\("([\w-]+)"\)'  # a button, or its section
    r'|\? "([\w ]+)" : "([\w ]+)";'  # one of two buttons
)
"""The names by which the simulated respondent finds parts of the page."""

ANSWERED = "parts.context.onAnswer("
"""The line of the client that runs when a ranking changes."""

LEAK = 'if (options[0] === 0) history.replaceState(null, "", "#");'


def untranslated(definition):
    form = json.loads(definition.canonical)
    form.pop("translations", None)
    return read_definition(canonical_json(form))


def outcomes(node, files, definition):
    """Return the outcome of each group, for only some of its visits."""
    modules = unbundle(files)
    return [*check_visits(Node(modules, node), modules, definition, seed=1, most=VISITS)]


def shape(texts):
    """Return the keys and the lengths of the lists in a translation."""
    if isinstance(texts, dict):
        return {name: shape(text) for name, text in texts.items()}
    return [shape(text) for text in texts] if isinstance(texts, list) else ""


def test_artificial_translations_have_all_texts_that_published_ones_have():
    for text in TRANSLATED:
        definition = surveys.publish(text)
        form = json.loads(untranslated(definition).canonical)
        artificial = with_translations(form, definition.languages)["translations"]
        published = json.loads(definition.canonical)["translations"]
        assert published
        assert shape(artificial) == shape(published), definition.title


def test_the_client_names_every_part_that_the_simulated_respondent_looks_for():
    script = Path(visits.__file__).with_name("device.js").read_text()
    respondent = script.partition("const viewName")[2].partition("const markup")[0]
    names = {name for match in FOUND.findall(respondent) for name in match if name}
    assert {"add-up", "review", "memory", "link", "button second", "data-option"} <= names
    texts = b" ".join(source_files().values()).decode()
    assert [name for name in sorted(names) if not re.search(rf'[" ]{name}"', texts)] == []


@pytest.mark.web
@pytest.mark.parametrize("name", SURVEYS)
def test_the_genuine_client_passes_with_every_type(node, name):
    checks = outcomes(node, Client.load().files, surveys.publish(SURVEYS[name]))
    assert len(checks) >= 12
    assert [check.detail for check in checks if not check.ok] == []


@pytest.mark.web
@pytest.mark.parametrize("name", UNTRANSLATED)
def test_the_genuine_client_passes_with_artificial_translations(node, name):
    definition = untranslated(surveys.publish(SURVEYS[name]))
    checks = outcomes(node, Client.load().files, definition)
    assert [check.detail for check in checks if not check.ok] == []


@pytest.mark.web
@pytest.mark.security
def test_a_page_whose_address_reveals_the_first_place_is_rejected(node):
    sources = source_files()
    altered = sources["field-ranking.js"].replace(ANSWERED.encode(), f"{LEAK}{ANSWERED}".encode())
    assert altered != sources["field-ranking.js"]
    client = Client.from_sources({**sources, "field-ranking.js": altered})
    checks = outcomes(node, client.files, surveys.publish(surveys.RANKING))
    failed = [check.detail for check in checks if not check.ok]
    assert failed
    assert all(detail.startswith("address ") for detail in failed), failed
