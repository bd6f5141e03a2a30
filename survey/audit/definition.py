"""Checks of how the client reads a definition: what it accepts, rejects and shows."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal

from survey.audit.channels import spread
from survey.audit.harness import Check, Node
from survey.audit.respondents import Form, questions, random_answer
from survey.questionnaire.canonical import canonical_json
from survey.questionnaire.definition import MAX_REPORT_BYTES, Definition
from survey.questionnaire.label import labels, odds_in_words

Reason = Literal["", "too_weak", "malformed", "other_definition"]

WEAK = 2**18
"""T/L above e^12 = 162,754.79, and small enough for every total to stay below 2^32."""

QUESTIONS = 8
"""Of how many of the survey's questions the channel is made too weak, one at a time."""

PREFIX = 16
"""Hex digits of the hash that a link must name at least."""


@dataclass(frozen=True)
class Attempt:
    """What is served to a device under a link, and why it refuses: "" when it must not."""

    name: str
    canonical: str
    reason: Reason
    prefix: str = ""


def attempts(definition: Definition, form: Form) -> list[Attempt]:
    """The survey under other links, with weaker channels and other keys; then small ones."""
    return [
        *_links(definition),
        *_weakened(form),
        *_changed(form),
        *(_attempt(name, form, asked, reason) for name, asked, reason in _ceilings()),
        *(_attempt(name, form, asked, reason) for name, asked, reason in _integers()),
    ]


def _links(definition: Definition) -> Iterator[Attempt]:
    text, sha256 = definition.canonical.decode("utf-8"), definition.sha256
    other = f"{(int(sha256[0], 16) + 1) % 16:x}{sha256[1:]}"
    last = f"{sha256[:-1]}{(int(sha256[-1], 16) + 1) % 16:x}"
    yield Attempt("the start of its hash in the link", text, "", sha256[:PREFIX])
    yield Attempt("its whole hash in the link", text, "", sha256)
    for prefix in (other[:PREFIX], last, sha256[: PREFIX - 1], "0" * PREFIX):
        yield Attempt("another hash in the link", text, "other_definition", prefix)
    yield Attempt("one byte more", f"{text} ", "other_definition", sha256[:PREFIX])


def _weakened(form: Form) -> Iterator[Attempt]:
    """Each question in turn with the weakest integers, whichever it is and whatever its kind."""
    every = questions(form)
    for at in spread(len(every), QUESTIONS):
        chosen = every[at]["id"]
        pages = [
            {**page, "questions": [_weak(q) if q["id"] == chosen else q for q in page["questions"]]}
            for page in form["pages"]
        ]
        text = canonical_json({**form, "pages": pages}).decode("utf-8")
        yield Attempt(f"{chosen} above the ceilings", text, "too_weak")


def _weak(question: Form) -> Form:
    channel = question["channel"]
    if channel["kind"] == "weight_table":
        return {**question, "channel": {**channel, "table": _weak_table(channel["table"])}}
    return {**question, "channel": {**channel, "T": WEAK, "L": 1}}


def _weak_table(table: Form) -> Form:
    """The same shape, with T for what is likeliest and 1 for the rest."""
    match table["name"]:
        case "mixture":
            parts = {part: _weak_table(table[part]) for part in ("first", "second")}
            return {**table, **parts, "a": 1, "b": 1}
        case "by_distance":
            return {**table, "weights": [WEAK, *[1] * (len(table["weights"]) - 1)]}
        case "explicit":
            k = len(table["table"][0])
            rows = [
                [WEAK if j == i % k else 1 for j in range(k)] for i in range(len(table["table"]))
            ]
            return {**table, "table": rows}
    return {**table, "T": WEAK, "L": 1}


def _changed(form: Form) -> Iterator[Attempt]:
    """The survey with one thing that the client cannot know or must not take."""
    first = form["pages"][0]
    asked = first["questions"][0]
    unknown: Mapping[str, Mapping[str, Any]] = {
        "an unknown key": {**form, "trace": True},
        "an unknown key of a page": _with_first(form, {**first, "trace": True}),
        "an unknown key of a question": _with_question(form, {**asked, "trace": True}),
        "an unknown kind of channel": _with_question(form, {**asked, "channel": {"kind": "none"}}),
        "reports above 8 KB": {**form, "report_bytes": MAX_REPORT_BYTES + 1},
        "another format": {**form, "format": form["format"] + 1},
    }
    for name, changed in unknown.items():
        yield Attempt(name, canonical_json(dict(changed)).decode("utf-8"), "malformed")


def _with_first(form: Form, page: Form) -> Form:
    return {**form, "pages": [page, *form["pages"][1:]]}


def _with_question(form: Form, question: Form) -> Form:
    first = form["pages"][0]
    return _with_first(form, {**first, "questions": [question, *first["questions"][1:]]})


def _attempt(name: str, form: Form, asked: list[Form], reason: Reason) -> Attempt:
    """A survey of these questions alone, in the frame of the real one."""
    named = [{**question, "id": f"q{i}"} for i, question in enumerate(asked)]
    pages = [{"title": "", "questions": [question]} for question in named]
    text = canonical_json({**form, "pages": pages, "sampling": None}).decode("utf-8")
    return Attempt(name, text, reason)


def _ceilings() -> Iterator[tuple[str, list[Form], Reason]]:
    """Both sides of p = .99, of epsilon 12 per question and of 20 together.

    e^12 = 162,754.79..., e^20 = 485,165,195.4..., 3^18 = 387,420,489.
    """
    coin = choice(2, 3, 1)
    pairs: Mapping[str, tuple[list[Form], list[Form]]] = {
        "p": ([choice(2, 99, 1)], [choice(2, 99 * 10**7 + 1, 10**7)]),
        "p of a bit": ([ticks(99, 1)], [ticks(100, 1)]),
        "p of a table": ([coins([99, 1], [1, 99])], [coins([199, 1], [1, 199])]),
        "epsilon": ([choice(2000, 162_754_791, 1000)], [choice(2000, 162_754_792, 1000)]),
        "epsilon of all": ([coin] * 18, [coin] * 19),
    }
    for name, (taken, refused) in pairs.items():
        yield f"{name} at the ceiling", taken, ""
        yield f"{name} above the ceiling", refused, "too_weak"


def _integers() -> Iterator[tuple[str, list[Form], Reason]]:
    """Weights that are none, equal, turned round, unequal in sum, or too many for one word."""
    half = 2**31
    yield "a total of 2^32", [choice(2, half + 1, half - 1)], ""
    yield "a total above 2^32", [choice(2, half + 2, half - 1)], "malformed"
    yield "L = 0", [choice(2, 3, 0)], "malformed"
    yield "T = L", [choice(2, 3, 3)], "malformed"
    yield "T < L", [choice(2, 1, 3)], "malformed"
    yield "L = 0 of a bit", [ticks(3, 0)], "malformed"
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
    """A single choice over k options by generalized randomized response."""
    return _question("single_choice", k, _set(k, T, L))


def ticks(T: int, L: int) -> Form:
    """A multiple choice of at most one of two options, or of one that stands alone."""
    channel = {"kind": "bit_vector", "m": 3, "s": 1, "alone": 1, "sampled": 3, "T": T, "L": L}
    return {**_question("multiple_choice", 3, channel), "alone": 1, "max_ticks": 1}


def coins(*rows: list[int]) -> Form:
    """A single choice by an explicit table."""
    table = {"name": "explicit", "table": list(rows)}
    channel = {"kind": "weight_table", "table": table, "no_answers": 0}
    return _question("single_choice", len(rows), channel)


def _set(k: int, T: int | str, L: int) -> Form:
    return {"kind": "subset_selection", "k": k, "d": 1, "T": T, "L": L}


def _question(kind: str, options: int, channel: Form) -> Form:
    return {
        "type": kind,
        "text": "",
        "help": "",
        "options": [{"id": f"o{i}", "label": ""} for i in range(options)],
        "grid": None,
        "max_ticks": 0,
        "alone": 0,
        "opt_out": "",
        "not_applicable": "",
        "ask_if": None,
        "mechanism": "",
        "stated": {},
        "channel": channel,
    }


GROUP = "definition"


def accepted(node: Node, definition: Definition) -> Check:
    """Whether the survey that a device ends up with is, byte for byte, the one published."""
    text = definition.canonical.decode("utf-8")
    (answer,) = node.ask(accept=[{"canonical": text}])["accept"]
    ok = answer == {"id": definition.sha256, "canonical": text}
    detail = f"definition {definition.sha256[:16]}, all {len(definition.canonical):,} bytes of it"
    return Check(GROUP, "the survey that the device runs", ok, detail if ok else _other(answer))


def _other(answer: dict[str, Any]) -> str:
    if "refused" in answer:
        return f"refused: {answer['refused']}"
    return "the device ends up with other questions, channels or texts than were published"


def refused(node: Node, definition: Definition, form: Form) -> Check:
    """Whether the device takes what is just allowed, and refuses by name what is just not."""
    every = attempts(definition, form)
    asked = [{"canonical": each.canonical, "prefix": each.prefix} for each in every]
    for each, answer in zip(every, node.ask(accept=asked)["accept"], strict=True):
        if answer.get("refused", "") != each.reason:
            return Check(GROUP, "what the device refuses", False, _wrong(each, answer))
    taken = sum(not each.reason for each in every)
    detail = f"{len(every) - taken} definitions refused, {taken} on the allowed side taken"
    return Check(GROUP, "what the device refuses", True, detail)


def _wrong(each: Attempt, answer: dict[str, Any]) -> str:
    said = f"refused as {answer['refused']}" if "refused" in answer else "taken"
    return f"{each.name}: {said}, must be {f'refused as {each.reason}' if each.reason else 'taken'}"


def refused_draws(node: Node, form: Form) -> Check:
    """Whether no report is made of other questions than the survey draws for one person."""
    rng = random.Random(0)  # noqa: S311  one invented person
    given = {question["id"]: random_answer(question, rng) for question in questions(form)}
    answers = {name: answer for name, answer in given.items() if answer is not None}
    wrong = list(_wrong_draws(form))
    asked = [
        {
            "answers": answers,
            "draws": [],
            "idBytes": [0] * 16,
            "circumstances": {"stratum": "", "invitation": "", "drawn": drawn},
        }
        for drawn in wrong
    ]
    seen = node.ask(people=asked)["people"]
    ok = all(answer == {"refused": "RangeError"} for answer in seen)
    detail = f"{len(wrong)} choices of questions that the survey does not draw are refused"
    name = "other questions than are drawn"
    return Check(GROUP, name, ok, detail if ok else "a report is made of them")


def _wrong_draws(form: Form) -> Iterator[list[str] | None]:
    names = [question["id"] for question in questions(form)]
    if form["sampling"] is None:
        yield from ([], names[:1], names)
        return
    groups, draw = form["sampling"]["groups"], form["sampling"]["draw"]
    for some in (groups[: draw - 1], groups[: draw + 1], groups):
        yield [name for group in some for name in group]
    drawn = [name for group in groups[:draw] for name in group]
    yield from (None, [*drawn[1:], "unknown"], [*drawn, drawn[0]], [*drawn, groups[draw][0]])


def labelled(node: Node, definition: Definition) -> Check:
    """Whether the label says of every question what the server computes, and of all together."""
    (seen,) = node.ask(label=[{}])["label"]
    promised = {name: asdict(each) for name, each in labels(definition).items()}
    most, least = map(int, seen["total"]["ratio"])
    wrong = [name for name, figures in promised.items() if seen["questions"].get(name) != figures]
    total = (Fraction(most, least), seen["total"]["odds"])
    if total != (definition.ratio, odds_in_words(definition.ratio)):
        wrong.append("all questions together")
    detail = f"frequencies and bounds of {len(promised)} questions, and of all together"
    failed = f"other figures than the server's for {', '.join(wrong[:3])}"
    return Check(GROUP, "the label's figures", not wrong, failed if wrong else detail)
