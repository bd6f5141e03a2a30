"""The audit catches each broken client, which is the shipped one with one text replaced."""

from __future__ import annotations

import pytest

from survey.audit.enumeration import Auditor
from survey.audit.node import Node
from survey.audit.respondents import check_respondents
from survey.audit.summary import run_checks
from survey.respond.client import source_files
from tests import surveys
from tests.audit.mutants import BROKEN_CHANNELS, BROKEN_READING, BROKEN_VISITS, Mutant
from tests.conftest import long_unless

FILES = source_files()
SAMPLES = 20_000

CODE = "truth === undefined ? null : perturb(channel, truth, uniformBelow)"
FIRST = "// All truths are known before the first draw"
PADDED = "padded(definition, encodeBase64url(idBytes), codes, circumstances)"
CHOSEN = "isShown && isAnswered(answers, id) ? answers[id] : untouched"

BROKEN_REPORTS = {
    "a draw used for two questions": Mutant(
        "report.js",
        FIRST,
        "const draw = uniformBelow; let kept; uniformBelow = (n) => (kept ??= draw(n)) % n; //",
        "choices",
    ),
    "a draw used for two questions beside one that is thrown away": Mutant(
        "report.js",
        FIRST,
        "const draw = uniformBelow; let kept; "
        "uniformBelow = (n) => { const u = draw(n); kept ??= u; return kept % n; }; //",
        "routed",
    ),
    "the id made from an answer": Mutant(
        "report.js",
        PADDED,
        PADDED.replace("idBytes", "idBytes.map((b, i) => b + (i ? 0 : +[...truths.values()][0]))"),
        "choices",
    ),
    "the padding as long as the answer": Mutant(
        "report.js",
        PADDED,
        PADDED.replace(
            "definition,",
            "{ ...definition, report_bytes: definition.report_bytes + +!truths.get('works') },",
        ),
        "routed",
    ),
    "the padding made of the answer": Mutant(
        "report.js",
        PADDED,
        f"{PADDED}.replace('...', truths.get('works') ? '..,' : '...')",
        "routed",
    ),
    "codes in an order that follows the answer": Mutant(
        "report.js",
        PADDED,
        PADDED.replace("codes", "truths.get('works') === 0 ? codes : codes.reverse()"),
        "routed",
    ),
    "questions perturbed in an order that follows the answer": Mutant(
        "report.js",
        "const codes = questions(definition).map(",
        "const codes = (truths.get('works') ? (all) => all.reverse() : (all) => all)"
        "(questions(definition)).map(",
        "routed",
    ),
    "a code that is true instead of 1": Mutant(
        "report.js",
        CODE,
        f"((code) => (code === 1 && truth === 0 ? true : code))({CODE})",
        "choices",
    ),
    "the number of answers in a field of the report": Mutant(
        "report.js",
        PADDED,
        PADDED.replace(
            "circumstances", "{ ...circumstances, stratum: `${Object.keys(answers).length}` }"
        ),
        "choices",
    ),
    "a question that was left out is not perturbed": Mutant(
        "report.js",
        CODE,
        CODE.replace("null :", "null : answers[id] === undefined ? truth :"),
        "choices",
    ),
    "a question that was left out makes draws and is sent as it is": Mutant(
        "report.js",
        CODE,
        f"((code) => (code === null || id in answers ? code : truth))({CODE})",
        "routed",
    ),
    "only the third question in the clear": Mutant(
        "report.js",
        ".map(({ id, channel }) => {",
        ".map(({ id, channel }, i) => { if (i === 2) return [...truths.values()][2];",
        "choices",
    ),
    "draws of the first two questions used for the third": Mutant(
        "report.js",
        FIRST,
        "const draw = uniformBelow; const kept = []; uniformBelow = (n) => { "
        "const u = draw(n); kept.push(u); return kept.length > 5 ? kept[0] % n : u; }; //",
        "choices",
    ),
    # Skip logic and drawn questions
    "a hidden question is not perturbed but constant": Mutant(
        "report.js",
        CODE,
        CODE.replace("null :", "null : id === 'nights' && answers.works === 1 ? truth :"),
        "routed",
    ),
    "a hidden question is null": Mutant(
        "report.js",
        CODE,
        CODE.replace("? null", "|| (id === 'nights' && answers.works === 1) ? null"),
        "routed",
    ),
    "a hidden question makes draws and is constant": Mutant(
        "report.js",
        CODE,
        f"((code) => (id === 'nights' && answers.works === 1 ? truth : code))({CODE})",
        "routed",
    ),
    "a hidden question keeps what was answered before": Mutant(
        "answers.js", CHOSEN, CHOSEN.removeprefix("isShown && "), "routed"
    ),
    "a hidden question counts as left out": Mutant(
        "answers.js", "isShown ? optOut : notApplicable", "optOut", "routed"
    ),
    "a question that was not drawn has a code": Mutant(
        "report.js", CODE, CODE.replace("? null", "? 0"), "drawn"
    ),
    "a question that was not drawn makes draws": Mutant(
        "report.js", CODE, CODE.replace("? null", "? (uniformBelow(2), null)"), "drawn"
    ),
    "the first questions are drawn more often": Mutant(
        "report.js",
        "drawSome(sampling.groups, sampling.draw, uniformBelow)",
        "drawSome(sampling.groups, sampling.draw, (n) => Math.max(uniformBelow(n) - 1, 0))",
        "drawn",
    ),
}

MUTANTS = {**BROKEN_CHANNELS, **BROKEN_READING, **BROKEN_REPORTS, **BROKEN_VISITS}
SOME = [*MUTANTS][::6]
"""Broken clients of every run; the others are for the long one."""
SURVEYS = {**surveys.EVERY_CHANNEL, **surveys.SAMPLING, "alone": surveys.ALONE}


def test_every_mutant_breaks_a_line_that_the_client_has():
    """Most of them are tried before a release only, and would be found stale there."""
    assert not [
        name for name, (file, old, *_) in MUTANTS.items() if old not in FILES[file].decode()
    ]


@pytest.mark.security
@pytest.mark.parametrize("mutant", long_unless(SOME, MUTANTS))
def test_every_broken_client_is_caught(node, mutant):
    name, old, new, survey = MUTANTS[mutant]
    source = FILES[name].decode()
    assert source.count(old) >= 1, f"{mutant}: the client no longer has {old!r}"
    broken = {**FILES, name: source.replace(old, new, 1).encode()}
    definition = surveys.publish(SURVEYS[survey])
    assert not all(check.ok for check in run_checks(broken, definition, SAMPLES, node)), mutant


@pytest.mark.security
@pytest.mark.parametrize(
    "mutant", ["channels mixed up when they are shared", "a hundred times the weight of the truth"]
)
def test_channels_are_enumerated_as_the_device_read_them(node, mutant):
    name, old, new, survey = BROKEN_READING[mutant]
    broken = {**FILES, name: FILES[name].decode().replace(old, new, 1).encode()}
    definition = surveys.publish(SURVEYS[survey])
    auditor = Auditor(broken, node, definition)
    channels = [question.channel for question in definition.questions]
    assert not all(check.ok for check in auditor.enumeration(channels))
    assert not all(check.ok for check in auditor.sampling(channels, SAMPLES))
    assert not check_respondents(Node(broken, node, definition.canonical), definition).ok


@pytest.mark.long
@pytest.mark.security
def test_the_surveys_made_for_broken_clients_pass_with_the_shipped_one(node):
    for survey in surveys.SAMPLING.values():
        for check in run_checks(FILES, surveys.publish(survey), 1_000, node):
            assert check.ok, check


def test_the_mutants_are_at_least_twelve_and_all_different():
    assert len({(each.file, each.old, each.new) for each in MUTANTS.values()}) == len(MUTANTS) > 12
