"""Published surveys must stay readable forever: their canonical bytes and reports are pinned.

`published_bytes.json` holds definition files with the SHA-256 of their canonical JSON, and the
SHA-256 of reports that the client and the Python simulation make of them with seeded generators.
Never regenerate a hash to make a test pass: a changed hash breaks every published survey.
"""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from survey.collect.simulation import randomized_codes, simulate_respondents
from survey.questionnaire.canonical import freeze, question_form, read_definition
from survey.questionnaire.definition import Definition, report_body
from survey.questionnaire.designs import DESIGNS
from survey.questionnaire.kinds import KINDS
from survey.questionnaire.loading import load
from survey.settings import Caps

FOLDER = Path(__file__).parent
PINNED: dict[str, Any] = json.loads((FOLDER / "published_bytes.json").read_text("utf-8"))
RESPONDENTS = 12
SEED = 20261123
SHARED = "kiosk = true\n"


@cache
def definitions() -> tuple[Definition, ...]:
    """Return every pinned definition, frozen anew."""
    return tuple(frozen(entry) for entry in PINNED["definitions"])


def frozen(entry: dict[str, Any]) -> Definition:
    """Publish a pinned file under its original limits."""
    question, whole = map(Decimal, entry["caps"])
    source = entry["source"]
    # Invitations to shared devices were allowed when some of the files were published.
    is_shared = SHARED in source and 'access = "invitation"' in source
    source = source.replace(SHARED, "") if is_shared else source
    name, caps = f"pinned.{entry['format']}", Caps(question=question, survey=whole)
    survey = load(source.encode(), name, caps)
    shared = survey.model_copy(update={"kiosk": survey.kiosk or is_shared})
    now = freeze(shared.translated(survey.translations), 1)
    # The formats differ in their number only.
    return read_definition(now.canonical.replace(b'"format":2', b'"format":1', 1))


def surveys_with_reports() -> list[tuple[dict[str, Any], Definition]]:
    """Return the definitions whose reports are pinned too."""
    pairs = zip(PINNED["definitions"], definitions(), strict=True)
    return [(entry, definition) for entry, definition in pairs if "client" in entry]


def answers_of(definition: Definition) -> list[dict[str, Any]]:
    """Draw the same true answers on every machine; every question has one."""
    rng = np.random.default_rng(SEED)
    rows = simulate_respondents(definition, RESPONDENTS, {}, rng)
    ids = [question.id for question in definition.questions]
    return [
        {name: answer for name, answer in zip(ids, row, strict=True) if answer is not None}
        for row in rows
    ]


def simulated_hash(definition: Definition) -> str:
    """Hash the reports that Python makes of the same answers."""
    source = random.Random(SEED)
    bodies = []
    for row in answers_of(definition):
        answers = [row.get(question.id) for question in definition.questions]
        codes = randomized_codes(definition.questions, answers, source.randrange)
        length = definition.report_bytes
        bodies.append(report_body(definition.sha256, "0" * 22, codes, length=length))
    return hashlib.sha256(b"".join(bodies)).hexdigest()


def client_hashes(node: str, surveys: list[Definition]) -> list[str]:
    """Hash the reports that the shipped client makes of the same answers."""
    forms = []
    for definition in surveys:
        # The client draws questions itself, so it needs an answer to each of them.
        fallback = {question.id: 0 for question in definition.questions if not question.alone}
        fallback |= {question.id: [0] for question in definition.questions if question.alone}
        answers = [{**fallback, **row} for row in answers_of(definition)]
        forms.append({"definition": definition.canonical.decode(), "answers": answers})
    run = subprocess.run(
        [node, str(FOLDER / "seeded_reports.mjs")],
        input=json.dumps(forms),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    hashes: list[str] = json.loads(run.stdout)
    return hashes


def different(pairs: Iterator[tuple[dict[str, Any], str, str]]) -> list[str]:
    return [
        f"{now} instead of {pinned}:\n{entry['source'][:200]}"
        for entry, pinned, now in pairs
        if pinned != now
    ]


@pytest.mark.slow
def test_every_pinned_definition_keeps_its_canonical_bytes():
    pairs = zip(PINNED["definitions"], definitions(), strict=True)
    changed = different(
        (entry, entry["canonical"], definition.sha256) for entry, definition in pairs
    )
    assert not changed, "the canonical JSON of these definitions changed:\n" + "\n---\n".join(
        changed
    )


@pytest.mark.slow
def test_every_pinned_definition_loads_unchanged():
    for definition in definitions():
        assert read_definition(definition.canonical) == definition


@pytest.mark.slow
def test_pinned_definitions_cover_every_type_and_mechanism():
    questions = [question for definition in definitions() for question in definition.questions]
    types = {question.type for question in questions}
    assert types == set(KINDS), "append a definition with each type to published_bytes.json"
    with_reports = {
        q.mechanism for _, definition in surveys_with_reports() for q in definition.questions
    }
    assert with_reports == set(DESIGNS)
    assert any(definition.is_sampled for _, definition in surveys_with_reports())
    assert any(len(definition.languages) > 1 for definition in definitions())


@pytest.mark.slow
def test_a_seeded_simulation_makes_the_pinned_reports():
    changed = different(
        (entry, entry["simulated"], simulated_hash(definition))
        for entry, definition in surveys_with_reports()
    )
    assert not changed, "the simulated reports of these definitions changed:\n" + "\n---\n".join(
        changed
    )


@pytest.mark.slow
def test_a_seeded_client_makes_the_pinned_reports(node):
    surveys = surveys_with_reports()
    hashes = client_hashes(node, [definition for _, definition in surveys])
    pairs = zip(surveys, hashes, strict=True)
    changed = different((entry, entry["client"], now) for (entry, _), now in pairs)
    assert not changed, "the client's reports of these definitions changed:\n" + "\n---\n".join(
        changed
    )


@pytest.mark.slow
def test_renaming_a_key_of_the_canonical_json_changes_every_hash(monkeypatch):
    """The tests above can fail: this renames one key of every question."""
    write_form = question_form

    def renamed(question: Any) -> dict[str, Any]:
        form = write_form(question)
        return {**form, "hint": form["help"]}

    monkeypatch.setattr("survey.questionnaire.canonical.question_form", renamed)
    for entry in PINNED["definitions"]:
        assert frozen(entry).sha256 != entry["canonical"], entry["source"]
