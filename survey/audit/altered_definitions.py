"""Checks of how the client reads a definition: what it accepts, rejects and shows."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from survey.audit.channels import spread
from survey.audit.node import Check, Node
from survey.audit.respondents import Form, all_answers, questions
from survey.audit.whole_reports import without_translations
from survey.mechanism import AnyChannel, HalfSpace, SubsetSelection, channel_from_json
from survey.mechanism.joint_response import JointChannel, marginal_response
from survey.questionnaire.canonical import canonical_json
from survey.questionnaire.definition import MAX_REPORT_BYTES, Definition
from survey.questionnaire.kinds.choice import SingleChoice
from survey.questionnaire.kinds.multiple_choice import MultipleChoice
from survey.questionnaire.privacy_loss import (
    STRONG_UP_TO,
    WEAK_QUESTION_ABOVE,
    WEAK_REPORT_ABOVE,
    labels,
    odds_in_words,
    report_strength,
    strength,
    strengths,
    topic_bounds,
)

Reason = Literal["", "too_weak", "malformed", "other_definition", "damaged_link"]

WEAK = 2**18
"""T/L exceeds e^12 = 162,754.79, while every total stays below 2^32."""

WEAKENED_QUESTIONS = 8
"""Maximum number of questions whose channel is weakened, one at a time."""

ODDS = [
    limit + step
    for limit in (STRONG_UP_TO, WEAK_QUESTION_ABOVE, WEAK_REPORT_ABOVE)
    for step in (-1, 0, 1)
]
"""Odds factors at the limits between strong, moderate and weak protection."""

PREFIX, OLD_PREFIX = 32, 16
"""Minimum number of hexadecimal digits of the hash in a link, and in one to an old definition."""


@dataclass(frozen=True)
class Attempt:
    """A definition served under a link, and why the device rejects it, "" if it accepts it."""

    name: str
    canonical: str
    reason: Reason
    prefix: str = ""


def attempts(definition: Definition, form: Form) -> list[Attempt]:
    """Return the survey with other links, weaker channels and other keys, then small surveys."""
    return [
        *_links(definition),
        *_weakened(form),
        *_unknown_contents(form),
        *(_attempt(name, form, content, reason) for name, content, reason in _at_maximums()),
        *(_attempt(name, form, content, reason) for name, content, reason in _integers()),
    ]


def _links(definition: Definition) -> Iterator[Attempt]:
    text, sha256 = definition.canonical.decode("utf-8"), definition.sha256
    wrong_start = f"{(int(sha256[0], 16) + 1) % 16:x}{sha256[1:]}"
    wrong_end = f"{sha256[:-1]}{(int(sha256[-1], 16) + 1) % 16:x}"
    yield Attempt("the start of its hash in the link", text, "", sha256[:PREFIX])
    yield Attempt("its whole hash in the link", text, "", sha256)
    for prefix in (wrong_start[:PREFIX], wrong_end, sha256[: OLD_PREFIX - 1], "0" * PREFIX):
        yield Attempt("another hash in the link", text, "other_definition", prefix)
    form = json.loads(text)
    old = canonical_json({**form, "format": 1}).decode("utf-8")
    start = hashlib.sha256(old.encode("utf-8")).hexdigest()[:OLD_PREFIX]
    yield Attempt("the start of an old definition's hash", old, "", start)
    if form["format"] > 1:
        for length in (OLD_PREFIX, PREFIX - 1):
            yield Attempt("too few digits of its hash", text, "damaged_link", sha256[:length])
    yield Attempt("one byte more", f"{text} ", "other_definition", sha256[:PREFIX])


def _weakened(form: Form) -> Iterator[Attempt]:
    """Weaken one question at a time, whatever its kind of channel."""
    all_questions = questions(form)
    for at in spread(len(all_questions), WEAKENED_QUESTIONS):
        name = all_questions[at]["id"]
        # All questions of a joint response must agree about it.
        weakened = all_questions[at].get("joint", {"questions": [name]})["questions"]
        if matrix := all_questions[at].get("matrix"):
            # All rows of a matrix must have the same channel.
            rows = (q for q in all_questions if q.get("matrix", {}).get("id") == matrix["id"])
            weakened = [row["id"] for row in rows]
        pages = [
            page
            | {"questions": [_weak(q) if q["id"] in weakened else q for q in page["questions"]]}
            for page in form["pages"]
        ]
        text = canonical_json({**form, "pages": pages}).decode("utf-8")
        yield Attempt(f"{name} above the maximum", text, "too_weak")


def _weak(question: Form) -> Form:
    channel = question["channel"]
    if "joint" in question:
        joint = _weak_joint(channel_from_json(question["joint"]["channel"]))
        part = marginal_response(joint, channel["k"])
        joint_form = {**question["joint"], "channel": joint.to_json()}
        return {**question, "channel": part.to_json(), "joint": joint_form}
    if channel["kind"] == "weight_table":
        return {**question, "channel": {**channel, "table": _weak_table(channel["table"])}}
    weights = ("near", "far") if channel["kind"] == HalfSpace.kind else ("T", "L")
    return {**question, "channel": {**channel, weights[0]: WEAK, weights[1]: 1}}


def _weak_joint(joint: AnyChannel) -> JointChannel:
    """Return the channel with p above .99 of each question: only right answers are near."""
    if isinstance(joint, HalfSpace):
        return replace(joint, agreements=joint.m, near=WEAK, far=1)
    assert isinstance(joint, SubsetSelection)  # noqa: S101  see the definition's format
    return replace(joint, T=WEAK, L=1)


def _weak_table(table: Form) -> Form:
    """Return the same shape with a large weight for the likeliest reports and 1 for all others."""
    match table["name"]:
        case "mixture":
            parts = {part: _weak_table(table[part]) for part in ("first", "second")}
            return {**table, **parts, "a": 1, "b": 1}
        case "by_distance":
            return {**table, "weights": [WEAK, *[1] * (len(table["weights"]) - 1)]}
        case "explicit":
            rows, k = len(table["table"]), len(table["table"][0])
            weights = [[WEAK if j == i % k else 1 for j in range(k)] for i in range(rows)]
            return {**table, "table": weights}
    return {**table, "T": WEAK, "L": 1}


def _unknown_contents(form: Form) -> Iterator[Attempt]:
    """Add one thing that the client does not know or must not accept."""
    first = form["pages"][0]
    question = first["questions"][0]
    unknown: Mapping[str, Mapping[str, Any]] = {
        "an unknown key": {**form, "trace": True},
        "an unknown key of a page": _with_first(form, {**first, "trace": True}),
        "an unknown key of a question": _with_question(form, {**question, "trace": True}),
        "an unknown kind of channel": _with_question(
            form, {**question, "channel": {"kind": "none"}}
        ),
        "reports above 8 KB": {**form, "report_bytes": MAX_REPORT_BYTES + 1},
        "another format": {**form, "format": form["format"] + 1},
    }
    for name, content in unknown.items():
        yield Attempt(name, canonical_json(dict(content)).decode("utf-8"), "malformed")


def _with_first(form: Form, page: Form) -> Form:
    return {**form, "pages": [page, *form["pages"][1:]]}


def _with_question(form: Form, question: Form) -> Form:
    first = form["pages"][0]
    return _with_first(form, {**first, "questions": [question, *first["questions"][1:]]})


def _attempt(name: str, form: Form, content: list[Form], reason: Reason) -> Attempt:
    """Return a survey with these questions and all other properties of the real one."""
    numbered = [{**question, "id": f"q{i}"} for i, question in enumerate(content)]
    pages = [{"title": "", "questions": [question]} for question in numbered]
    content_form = {**without_translations(form), "pages": pages, "sampling": None}
    return Attempt(name, canonical_json(content_form).decode("utf-8"), reason)


EPSILON_12 = (162_754_791, 162_754_792)
"""Weights of the truth on both sides of epsilon 12, if each other report has the weight 1,000."""


def _at_maximums() -> Iterator[tuple[str, list[Form], Reason]]:
    """Yield definitions at and above each maximum: p = .99, epsilon 12 per question, 20 in total.

    e^12 = 162,754.79..., e^20 = 485,165,195.4..., 3^18 = 387,420,489.
    """
    coin, strong, weak = choice(2, 3, 1), *(choice(2000, T, 1000) for T in EPSILON_12)
    pairs: Mapping[str, tuple[list[Form], list[Form]]] = {
        "p": ([choice(2, 99, 1)], [choice(2, 99 * 10**7 + 1, 10**7)]),
        "p of a bit": ([ticks(99, 1)], [ticks(100, 1)]),
        "p of a table": ([coins([99, 1], [1, 99])], [coins([199, 1], [1, 199])]),
        "p of a half-space": ([half_space(3, 3, 393, 7)], [half_space(3, 3, 394, 7)]),
        "epsilon of a half-space": (
            [half_space(32, 27, 46_011, 5_000)],
            [half_space(32, 27, 46_012, 5_000)],
        ),
        "epsilon": ([strong], [weak]),
        "epsilon of the second question": ([coin, strong], [coin, weak]),
        "epsilon of all": ([coin] * 18, [coin] * 19),
    }
    for name, (allowed, too_weak) in pairs.items():
        yield f"{name} at the maximum", allowed, ""
        yield f"{name} above the maximum", too_weak, "too_weak"


def _integers() -> Iterator[tuple[str, list[Form], Reason]]:
    """Yield weights that are zero, equal, reversed, of unequal sums, or too large for one word."""
    half = 2**31
    yield "a total of 2^32", [choice(2, half + 1, half - 1)], ""
    yield "a total above 2^32", [choice(2, half + 2, half - 1)], "malformed"
    yield "L = 0", [choice(2, 3, 0)], "malformed"
    yield "T = L", [choice(2, 3, 3)], "malformed"
    yield "T < L", [choice(2, 1, 3)], "malformed"
    yield "L = 0 of a bit", [ticks(3, 0)], "malformed"
    yield "far = 0 in a half-space", [half_space(3, 2, 3, 0)], "malformed"
    yield "near reports as likely as others", [half_space(3, 2, 3, 3)], "malformed"
    yield "near reports with too few right bits", [half_space(4, 2, 9, 1)], "malformed"
    yield "a half-space of 33 bits", [half_space(33, 27, 9, 1)], "malformed"
    yield "rows of equal sum", [coins([30, 20], [20, 30])], ""
    yield "rows of unequal sum", [coins([30, 20], [20, 31])], "malformed"
    yield "a zero in a table", [coins([4, 0], [1, 3])], "malformed"
    yield "a fraction", [{**choice(2, 3, 1), "channel": _set(2, "3", 1)}], "malformed"
    yield (
        "fewer options than the channel",
        [{**choice(2, 3, 1), "channel": _set(3, 3, 1)}],
        "malformed",
    )


def choice(k: int, T: int, L: int) -> Form:
    """Return a single choice over k options with generalized randomized response."""
    return _question(SingleChoice.type, k, _set(k, T, L))


def ticks(T: int, L: int) -> Form:
    """Return a multiple choice of at most one of two ordinary options, or one exclusive option."""
    channel = {"kind": "bit_vector", "m": 3, "s": 1, "alone": 1, "sampled": 3, "T": T, "L": L}
    return {**_question(MultipleChoice.type, 3, channel), "alone": 1, "max_ticks": 1}


def half_space(m: int, agreements: int, near: int, far: int) -> Form:
    """Return a multiple choice of at most one of m - 1 ordinary options in a half-space."""
    channel = {"kind": "half_space", "m": m, "s": 1, "alone": 1}
    channel |= {"agreements": agreements, "near": near, "far": far}
    return {**_question(MultipleChoice.type, m, channel), "alone": 1, "max_ticks": 1}


def coins(*rows: list[int]) -> Form:
    """Return a single choice with an explicit table."""
    table = {"name": "explicit", "table": list(rows)}
    channel = {"kind": "weight_table", "table": table, "no_answers": 0}
    return _question(SingleChoice.type, len(rows), channel)


def _set(k: int, T: int | str, L: int) -> Form:
    return {"kind": "subset_selection", "k": k, "d": 1, "T": T, "L": L}


def _question(kind: str, options: int, channel: Form) -> Form:
    return {
        "type": kind,
        "text": "",
        "help": "",
        "options": [{"id": f"o{i}", "label": ""} for i in range(options)],
        **dict.fromkeys(("grid", "ask_if")),
        **dict.fromkeys(("max_ticks", "alone"), 0),
        **dict.fromkeys(("opt_out", "not_applicable", "mechanism"), ""),
        "stated": {},
        "channel": channel,
    }


GROUP = "definition"


def check_accepted(node: Node, definition: Definition) -> Check:
    """Check that the survey on a device is, byte for byte, the published one."""
    text = definition.canonical.decode("utf-8")
    (answer,) = node.ask(accept=[{"canonical": text}])["accept"]
    ok = answer == {"id": definition.sha256, "canonical": text}
    detail = f"definition {definition.sha256[:16]}, all {len(definition.canonical):,} bytes"
    if "refused" in answer:
        detail = f"rejected: {answer['refused']}"
    elif not ok:
        detail = "the questions, channels or texts on the device differ from the published ones"
    return Check(GROUP, "the survey that the device runs", ok, detail)


def check_rejected(node: Node, definition: Definition, form: Form) -> Check:
    """Check that the device accepts what is just allowed and rejects what is just not."""
    name = "definitions that the device rejects"
    all_attempts = attempts(definition, form)
    requests = [{"canonical": a.canonical, "prefix": a.prefix} for a in all_attempts]
    for attempt, answer in zip(all_attempts, node.ask(accept=requests)["accept"], strict=True):
        if answer.get("refused", "") != attempt.reason:
            result = f"rejected as {answer['refused']}" if "refused" in answer else "accepted"
            expected = f"rejected as {attempt.reason}" if attempt.reason else "accepted"
            detail = f"{attempt.name}: {result}, expected to be {expected}"
            return Check(GROUP, name, False, detail)
    n_accepted = sum(not attempt.reason for attempt in all_attempts)
    n_rejected = len(all_attempts) - n_accepted
    detail = f"{n_rejected} definitions rejected, {n_accepted} just allowed accepted"
    return Check(GROUP, name, True, detail)


def check_rejected_samples(node: Node, form: Form) -> Check:
    """Check that the device makes no report of questions that the survey would not sample."""
    answers = all_answers(form, random.Random(0))  # noqa: S311  one simulated respondent
    samples = list(_invalid_samples(form))
    requests = [
        {
            "answers": answers,
            "draws": [],
            "idBytes": [0] * 16,
            "circumstances": {"stratum": "", "invitation": "", "drawn": sample},
        }
        for sample in samples
    ]
    outcomes = node.ask(respondents=requests)["respondents"]
    ok = all(outcome == {"refused": "RangeError"} for outcome in outcomes)
    detail = f"{len(samples)} invalid samples of questions are rejected"
    name = "invalid samples of questions"
    return Check(GROUP, name, ok, detail if ok else "the device makes a report of one of them")


def _invalid_samples(form: Form) -> Iterator[list[str] | None]:
    names = [question["id"] for question in questions(form)]
    if form["sampling"] is None:
        yield from ([], names[:1], names)
        return
    groups, draw = form["sampling"]["groups"], form["sampling"]["draw"]
    for choice in (groups[: draw - 1], groups[: draw + 1], groups):
        yield [name for group in choice for name in group]
    sample = [name for group in groups[:draw] for name in group]
    yield from (None, [*sample[1:], "unknown"], [*sample, sample[0]], [*sample, groups[draw][0]])


def check_label(node: Node, definition: Definition) -> Check:
    """Check that the label shows the server's figures for every question and for all together."""
    (answer,) = node.ask(label=[{"odds": ODDS}])["label"]
    expected = {name: asdict(label) for name, label in labels(definition).items()}
    high, low = map(int, answer["total"]["ratio"])
    mismatches = [n for n, figures in expected.items() if answer["questions"].get(n) != figures]
    topics = {topic: asdict(bounds) for topic, bounds in topic_bounds(definition).items()}
    mismatches += [f"topic {name}" for name in topics if answer["topics"].get(name) != topics[name]]
    total = (Fraction(high, low), answer["total"]["odds"])
    if total != (definition.ratio, odds_in_words(definition.ratio)):
        mismatches.append("all questions together")
    mismatches += [f"the grade of {name}" for name in _wrong_grades(definition, answer["grades"])]
    detail = (
        f"frequencies, bounds and grades of {len(expected)} questions and of a whole report, "
        f"which changes the odds by a factor of at most {answer['total']['odds']}"
    )
    failure = f"the server computes other figures for {', '.join(mismatches[:3])}"
    return Check(GROUP, "figures of the label", not mismatches, failure if mismatches else detail)


def _wrong_grades(definition: Definition, grades: Mapping[str, Any]) -> list[str]:
    """Return what the device grades otherwise than the server: strong, moderate or weak."""
    expected = {
        "each question": strengths(definition),
        "a whole report": report_strength(definition),
        "a factor": [strength(Fraction(n)) for n in ODDS],
        "several factors together": [n > WEAK_REPORT_ABOVE for n in ODDS],
    }
    pairs = zip(expected, ("questions", "report", "odds", "together"), strict=True)
    return [name for name, key in pairs if grades[key] != expected[name]]
