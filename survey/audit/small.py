"""Surveys of two questions made from a real one, small enough to run every draw of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from survey.audit.exact import sequences
from survey.audit.siblings import smaller_bits, smaller_table
from survey.audit.truths import Form, answers_of, is_number, patterns, questions
from survey.mechanism import BitVector, SubsetSelection, WeightTable, channel_from_json

LIMIT = 120_000
"""Most reports that one pair of questions is enumerated with."""

Size = Literal["real", "small", "tiny"]
SIZES: Sequence[tuple[Size, Size]] = [
    ("real", "real"),
    ("small", "small"),
    ("small", "tiny"),
    ("tiny", "small"),
    ("tiny", "tiny"),
]

MANY_ANSWERS = 200


@dataclass(frozen=True)
class Pair:
    """A survey of two questions: its form, and of which sizes they are."""

    form: Form
    sizes: tuple[Size, Size]

    @property
    def name(self) -> str:
        """Both ids."""
        return " + ".join(question["id"] for question in questions(self.form))


def pairs(form: Form) -> Iterator[Pair]:
    """Each question with the next, the last with the first, and with the one it depends on."""
    asked = questions(form)
    if len(asked) == 1:
        yield pair(form, asked[0], {**asked[0], "id": f"{asked[0]['id']}_again", "ask_if": None})
        return
    beside = [*pairwise(asked), (asked[-1], asked[0])]
    for one, other in beside:
        yield pair(form, one, other)
    known = {question["id"]: question for question in asked}
    for question in asked:
        if question["ask_if"] and (known[question["ask_if"]["question"]], question) not in beside:
            yield pair(form, known[question["ask_if"]["question"]], question)


def pair(form: Form, one: Form, other: Form) -> Pair:
    """The largest survey of these two that can be enumerated."""
    for sizes in SIZES:
        if "real" in sizes and not (_is_countable(one) and _is_countable(other)):
            continue
        both = [resized(each, size) for each, size in zip((one, other), sizes, strict=True)]
        if _reports(both[0]) * _reports(both[1]) <= LIMIT:
            break
    pages = [{"title": "", "questions": [each]} for each in _linked(*both)]
    return Pair({**form, "pages": pages, "sampling": None}, sizes)


def _is_countable(question: Form) -> bool:
    """Whether its answers can be listed: of a thousand options there are 2^1000 sets."""
    is_multiple = question["type"] == "multiple_choice"
    return not is_multiple or len(question["options"]) <= 8


def _reports(question: Form) -> int:
    return len(answers_of(question)) * sequences(channel_from_json(question["channel"]))


def _linked(one: Form, other: Form) -> tuple[Form, Form]:
    """Both without conditions, save that the second may depend on the first."""
    condition = other["ask_if"]
    if condition is None or condition["question"] != one["id"]:
        return {**one, "ask_if": None}, {**other, "ask_if": None}
    left = [option["id"] for option in one["options"]]
    kept = [option for option in condition["options"] if option in left] or left[:1]
    # With all options among them nobody would ever be passed over.
    kept = kept if len(kept) < len(left) else kept[:1]
    return {**one, "ask_if": None}, {**other, "ask_if": {**condition, "options": kept}}


def resized(question: Form, size: Size) -> Form:
    """The question as it is, or with few ordinary options and small weights."""
    match size:
        case "real":
            return question
        case "small":
            return _smaller(question, ordinary=3 if is_number(question) else 2, T=3)
        case "tiny":
            return _smaller(question, ordinary=2 if is_number(question) else 1, T=2)


def _smaller(question: Form, ordinary: int, T: int) -> Form:
    if is_number(question):
        return _smaller_grid(question, ordinary)
    if question["type"] == "multiple_choice":
        return _smaller_multiple(question, ordinary, T)
    return _smaller_choice(question, max(ordinary, 2), T)


def _smaller_grid(question: Form, points: int) -> Form:
    table = channel_from_json(question["channel"])
    assert isinstance(table, WeightTable)  # noqa: S101  see the definition's format
    points = min(points, question["grid"]["points"])
    channel = smaller_table(table, points)
    grid = {**question["grid"], "points": points}
    return {**question, "grid": grid, "channel": channel.to_json()}


def _smaller_multiple(question: Form, ordinary: int, T: int) -> Form:
    channel = channel_from_json(question["channel"])
    together = len(question["options"]) - question["alone"]
    free = min(ordinary, together)
    options = [*question["options"][:free], *question["options"][together:]]
    most = min(question["max_ticks"], free)
    form: dict[str, Any] = {**question, "options": options, "max_ticks": most}
    if isinstance(channel, BitVector):
        return {**form, "channel": smaller_bits(channel, free, T, sampled=ordinary).to_json()}
    return {**form, "channel": SubsetSelection(len(patterns(form)), 1, T, 1).to_json()}


def _smaller_choice(question: Form, ordinary: int, T: int) -> Form:
    channel = channel_from_json(question["channel"])
    apart = {question["opt_out"], question["not_applicable"]}
    plain = [option for option in question["options"] if option["id"] not in apart]
    kept = [option for option in question["options"] if option["id"] in apart]
    if isinstance(channel, SubsetSelection) and channel.d > 1:
        ordinary = 3
    plain = plain[:ordinary]
    options = [*plain, *kept]
    # The points of a scale are its ordinary options.
    grid = question["grid"] and {**question["grid"], "points": len(plain)}
    if isinstance(channel, WeightTable):
        smaller = smaller_table(channel, len(options) - channel.no_answers).to_json()
    else:
        assert isinstance(channel, SubsetSelection)  # noqa: S101  see the definition's format
        k = len(options)
        smaller = SubsetSelection(k, min(channel.d, k - 1), T, 1).to_json()
    return {**question, "options": options, "grid": grid, "channel": smaller}
