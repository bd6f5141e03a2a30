"""Each question type has one class; other code calls it instead of comparing type names."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest

from survey.errors import DesignError
from survey.questionnaire.canonical import freeze
from survey.questionnaire.drafts.conversion import with_standard_privacy
from survey.questionnaire.kinds import DEFAULT_KIND, KINDS, kind_of
from survey.questionnaire.loading import load
from survey.settings import Caps
from tests.conftest import ROOT
from tests.surveys import EVERY_DESIGN, EVERY_TYPE, RANKING, SKIPS, publish

NAMING = {
    "README.md",
    "client_js/README.md",
    "client_js/src/definition-channels.js",
    "client_js/src/field.js",
    "client_js/src/privacy-loss.js",
    "client_js/src/privacy-label.js",
    "client_js/src/report.js",
    "client_js/src/definition-structure.js",
    "client_js/src/answers.js",
}
"""Files outside `kinds/`, tests, translations and the demo that name a type of question."""

QUOTED = re.compile(
    r"""["'`](yes_no|single_choice|multiple_choice)["'`]"""
    r"""|\btype ?[!=]==? ?["'`](scale|number|date)["'`]"""
)
"""The name of a type; a name that is also an everyday word counts where a type is compared."""

KINDS_FOLDER = ROOT / "survey/questionnaire/kinds"
IMPORTS_FOLDER = ROOT / "survey/questionnaire/imports"


def sources() -> list[Path]:
    files = [ROOT / "README.md", ROOT / "client_js/README.md"]
    files += (ROOT / "client_js/src").glob("*.js")
    for ending in ("py", "html", "js"):
        files += (ROOT / "survey").rglob(f"*.{ending}")
    return [file for file in files if KINDS_FOLDER not in file.parents]


def compares_a_type(node: ast.AST) -> bool:
    """Tell whether a comparison has a `type` on one side and the name of a type on the other."""
    if not isinstance(node, ast.Compare):
        return False
    sides = [node.left, *node.comparators]
    names = {
        constant.value
        for side in sides
        for constant in ast.walk(side)
        if isinstance(constant, ast.Constant) and isinstance(constant.value, str)
    }
    is_type = any(
        (isinstance(part, ast.Attribute) and part.attr == "type")
        or (isinstance(part, ast.Constant) and part.value == "type")
        for side in sides
        for part in ast.walk(side)
    )
    return is_type and bool(names & set(KINDS))


def test_at_most_nine_files_outside_kinds_name_a_question_type():
    # An import names the types of both tools; CONTRIBUTING has a step for all of them.
    naming = {
        str(file.relative_to(ROOT))
        for file in sources()
        if IMPORTS_FOLDER not in file.parents and QUOTED.search(file.read_text(encoding="utf-8"))
    }
    assert len(NAMING) <= 9
    assert naming <= NAMING, "ask question.kind, or add the file to CONTRIBUTING and to this list"


@pytest.mark.web
@pytest.mark.slow
def test_no_python_code_outside_kinds_compares_a_question_type_with_a_name():
    for file in sources():
        if file.suffix == ".py":
            tree = ast.parse(file.read_text(encoding="utf-8"))
            lines = [node.lineno for node in ast.walk(tree) if compares_a_type(node)]
            assert not lines, f"{file.relative_to(ROOT)}: ask question.kind in lines {lines}"


def test_no_template_compares_a_question_type_with_a_name():
    comparison = re.compile(rf"type[a-z.]* (==|!=|in|not in) \(?\"({'|'.join(KINDS)})\"")
    for file in (ROOT / "survey/templates").rglob("*.html"):
        assert not comparison.search(file.read_text(encoding="utf-8")), file


def test_every_kind_has_the_name_under_which_it_is_registered():
    assert {name: kind.type for name, kind in KINDS.items()} == {name: name for name in KINDS}
    assert all(kind.label for kind in KINDS.values())
    assert all(kind.mechanism in kind.mechanisms for kind in KINDS.values())
    assert DEFAULT_KIND in KINDS.values()


def test_the_client_lists_every_type():
    source = (ROOT / "client_js/src/answers.js").read_text(encoding="utf-8")
    lists = re.findall(r"export const (?:CHOICES|TYPES) = \[(.*?)\]", source, re.S)
    listed = set(re.findall(r'"(\w+)"', " ".join(lists)))
    assert listed == set(KINDS), "correct CHOICES or TYPES in client_js/src/answers.js"


def test_the_clients_documentation_lists_every_type():
    text = (ROOT / "client_js/README.md").read_text(encoding="utf-8")
    table = text.split("| type |")[1].split("\n\n")[0]
    column = " ".join(row.split("|")[1] for row in table.splitlines()[1:])
    documented = set(re.findall(r"`(\w+)`", column))
    assert documented == set(KINDS), "correct the table of types in client_js/README.md"


def test_the_shared_surveys_have_questions_of_every_type():
    every_type = [EVERY_TYPE, SKIPS, RANKING]
    for name, texts in (("EVERY_DESIGN", [EVERY_DESIGN]), ("EVERY_TYPE", every_type)):
        types = {question.type for text in texts for question in publish(text).questions}
        assert types == set(KINDS), f"add a question of each type to {name} in tests/surveys.py"


def test_answers_of_a_kind_are_numbers_sets_orders_or_single_options():
    for kind in KINDS.values():
        flags = [kind.is_numeric, kind.is_multiple, kind.is_ranking, kind.is_single]
        assert flags.count(True) == 1, kind.type


def test_a_question_of_an_unknown_type_has_a_kind_without_a_name():
    for form in ({}, {"type": "essay"}, {"type": None}, {"type": ["yes_no"]}):
        assert kind_of(form).type == "", form
        assert kind_of(form).fields == (), form


def test_the_standard_privacy_of_yes_or_no_has_an_odds_factor_of_three():
    assert with_standard_privacy({"type": "yes_no"})["truth_probability"] == "3/5"


def test_simulated_answers_of_every_kind_are_truths_of_its_channel():
    rng = np.random.default_rng(1)
    for question in freeze(load(EVERY_DESIGN, "every.toml", Caps()), 1).questions:
        kind = question.kind
        shares = kind.default_shares(question)
        assert len(shares) == len(kind.share_names(question)) == len(kind.share_labels(question))
        for answer in kind.draw_answers(question, shares, 200, rng):
            truth = question.truth(answer)
            question.encode(question.channel.perturb_one(truth, lambda n: n - 1))


def test_the_shares_of_single_choices_are_scaled_to_a_sum_of_one():
    questions = freeze(load(EVERY_DESIGN, "every.toml", Caps()), 1).questions
    single = next(question for question in questions if question.kind.is_single)
    assert sum(single.kind.normalize_shares(single, [30, 10, 10])) == pytest.approx(1)
    with pytest.raises(DesignError, match="at least one share must be above 0"):
        single.kind.normalize_shares(single, [0, 0, 0])
