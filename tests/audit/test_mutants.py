"""The audit detects every mutant of the shipped client."""

from __future__ import annotations

import pytest

from survey.audit.enumeration import Auditor
from survey.audit.node import Node
from survey.audit.respondents import check_respondents
from survey.audit.summary import run_checks, run_client
from survey.respond.client import Client, source_files
from tests import surveys
from tests.audit.mutants import BROKEN_CHANNELS, BROKEN_READING, BROKEN_VISITS, Mutant
from tests.conftest import long_unless

FILES = source_files()
SAMPLES = 20_000

PERTURBED_CODE = "truth === undefined ? null : perturb(channel, truth, uniformBelow)"
FIRST_DRAW = "// All truths are known before the first draw"
PADDED_REPORT = "padded(definition, encodeBase64url(idBytes), codes, circumstances)"
CHOSEN_ANSWER = "isShown && isAnswered(answers, id) ? answers[id] : untouched"

BROKEN_REPORTS = {
    "a draw used for two questions": Mutant(
        "report.js",
        FIRST_DRAW,
        "const draw = uniformBelow; let kept; uniformBelow = (n) => (kept ??= draw(n)) % n; //",
        "choices",
    ),
    "a draw used for two questions and another one discarded": Mutant(
        "report.js",
        FIRST_DRAW,
        "const draw = uniformBelow; let kept; "
        "uniformBelow = (n) => { const u = draw(n); kept ??= u; return kept % n; }; //",
        "routed",
    ),
    "the id made from an answer": Mutant(
        "report.js",
        PADDED_REPORT,
        PADDED_REPORT.replace(
            "idBytes", "idBytes.map((b, i) => b + (i ? 0 : +[...truths.values()][0]))"
        ),
        "choices",
    ),
    "the length of the padding depends on the answer": Mutant(
        "report.js",
        PADDED_REPORT,
        PADDED_REPORT.replace(
            "definition,",
            "{ ...definition, report_bytes: definition.report_bytes + +!truths.get('works') },",
        ),
        "routed",
    ),
    "the padding depends on the answer": Mutant(
        "report.js",
        PADDED_REPORT,
        f"{PADDED_REPORT}.replace('...', truths.get('works') ? '..,' : '...')",
        "routed",
    ),
    "codes in an order that follows the answer": Mutant(
        "report.js",
        PADDED_REPORT,
        PADDED_REPORT.replace("codes", "truths.get('works') === 0 ? codes : codes.reverse()"),
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
        PERTURBED_CODE,
        f"((code) => (code === 1 && truth === 0 ? true : code))({PERTURBED_CODE})",
        "choices",
    ),
    "the number of answers in a field of the report": Mutant(
        "report.js",
        PADDED_REPORT,
        PADDED_REPORT.replace(
            "circumstances", "{ ...circumstances, stratum: `${Object.keys(answers).length}` }"
        ),
        "choices",
    ),
    "an unanswered question is not perturbed": Mutant(
        "report.js",
        PERTURBED_CODE,
        PERTURBED_CODE.replace("null :", "null : answers[id] === undefined ? truth :"),
        "choices",
    ),
    "an unanswered question makes draws but is not perturbed": Mutant(
        "report.js",
        PERTURBED_CODE,
        f"((code) => (code === null || id in answers ? code : truth))({PERTURBED_CODE})",
        "routed",
    ),
    "the third question without randomization": Mutant(
        "report.js",
        ".map(({ id, channel, joint }) => {",
        ".map(({ id, channel, joint }, i) => { if (i === 2) return [...truths.values()][2];",
        "choices",
    ),
    "draws of the first two questions used for the third": Mutant(
        "report.js",
        FIRST_DRAW,
        "const draw = uniformBelow; const kept = []; uniformBelow = (n) => { "
        "const u = draw(n); kept.push(u); return kept.length > 5 ? kept[0] % n : u; }; //",
        "choices",
    ),
    # Skip logic and sampled questions
    "a hidden question is not perturbed but constant": Mutant(
        "report.js",
        PERTURBED_CODE,
        PERTURBED_CODE.replace("null :", "null : id === 'nights' && answers.works === 1 ? truth :"),
        "routed",
    ),
    "a hidden question is null": Mutant(
        "report.js",
        PERTURBED_CODE,
        PERTURBED_CODE.replace("? null", "|| (id === 'nights' && answers.works === 1) ? null"),
        "routed",
    ),
    "a hidden question makes draws and is constant": Mutant(
        "report.js",
        PERTURBED_CODE,
        f"((code) => (id === 'nights' && answers.works === 1 ? truth : code))({PERTURBED_CODE})",
        "routed",
    ),
    "a hidden question keeps its earlier answer": Mutant(
        "answers.js", CHOSEN_ANSWER, CHOSEN_ANSWER.removeprefix("isShown && "), "routed"
    ),
    "a hidden question counts as unanswered": Mutant(
        "answers.js", "isShown ? optOut : notApplicable", "optOut", "routed"
    ),
    "an unsampled question has a code": Mutant(
        "report.js", PERTURBED_CODE, PERTURBED_CODE.replace("? null", "? 0"), "drawn"
    ),
    "an unsampled question makes draws": Mutant(
        "report.js",
        PERTURBED_CODE,
        PERTURBED_CODE.replace("? null", "? (uniformBelow(2), null)"),
        "drawn",
    ),
    "the first questions are sampled more often": Mutant(
        "report.js",
        "drawSome(sampling.groups, sampling.draw, uniformBelow)",
        "drawSome(sampling.groups, sampling.draw, (n) => Math.max(uniformBelow(n) - 1, 0))",
        "drawn",
    ),
}

MUTANTS = {**BROKEN_CHANNELS, **BROKEN_READING, **BROKEN_REPORTS, **BROKEN_VISITS}
EVERY_RUN = [*MUTANTS][::6]
"""The mutants of every run; the others run in the lane `long`."""
SURVEYS = {**surveys.EVERY_CHANNEL, **surveys.SAMPLING, "alone": surveys.ALONE}


def test_every_mutant_replaces_text_that_the_client_contains():
    """Most mutants run only in the lane `long`, which would find an outdated one late."""
    assert not [
        name for name, (file, old, *_) in MUTANTS.items() if old not in FILES[file].decode()
    ]


@pytest.mark.web
@pytest.mark.security
@pytest.mark.parametrize("mutant", long_unless(EVERY_RUN, MUTANTS))
def test_every_broken_client_is_detected(node, mutant):
    name, old, new, survey = MUTANTS[mutant]
    source = FILES[name].decode()
    assert source.count(old) >= 1, f"{mutant}: the client no longer has {old!r}"
    files = {**FILES, name: source.replace(old, new, 1).encode()}
    definition = surveys.publish(SURVEYS[survey])
    assert not all(check.ok for check in run_client(files, definition, SAMPLES, node)), mutant


@pytest.mark.security
@pytest.mark.parametrize(
    "mutant", ["channels mixed up when they are shared", "a hundred times the weight of the truth"]
)
def test_the_audit_enumerates_the_channels_that_the_device_has_read(node, mutant):
    name, old, new, survey = BROKEN_READING[mutant]
    files = {**FILES, name: FILES[name].decode().replace(old, new, 1).encode()}
    definition = surveys.publish(SURVEYS[survey])
    auditor = Auditor(files, node, definition)
    channels = [question.channel for question in definition.questions]
    assert not all(check.ok for check in auditor.enumeration(channels))
    assert not all(check.ok for check in auditor.sampling(channels, SAMPLES))
    assert not check_respondents(Node(files, node, definition.canonical), definition, 1).ok


@pytest.mark.long
@pytest.mark.security
def test_the_shipped_client_passes_with_the_surveys_made_for_mutants(node):
    for survey in surveys.SAMPLING.values():
        for check in run_checks(Client.load().files, surveys.publish(survey), 1_000, node):
            assert check.ok, check


def test_the_mutants_are_at_least_twelve_and_all_different():
    replacements = {(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS.values()}
    assert len(replacements) == len(MUTANTS) > 12
