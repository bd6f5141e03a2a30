"""Checks of whole reports: only the codes depend on the answers, exactly as promised."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice, pairwise, product
from typing import Any, Literal

from survey.audit.channels import (
    Truth,
    distribution,
    draws_below,
    sequences,
    smaller_bits,
    smaller_table,
    spread,
)
from survey.audit.harness import Check, Node
from survey.audit.respondents import (
    Answers,
    Form,
    answers_of,
    is_number,
    patterns,
    questions,
    truths,
)
from survey.mechanism import AnyChannel, BitVector, SubsetSelection, WeightTable, channel_from_json
from survey.questionnaire.canonical import canonical_json
from survey.questionnaire.definition import report_body

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


NAME = "questions drawn"
ENUMERATED = 100_000
"""Most sequences of draws that are all run; of more, each draw is moved alone."""

MOVED, PLACES = 24, 3
"""Of many draws: how many are moved through all their values, among how many of the others."""


def choose(
    groups: Sequence[Sequence[str]], draw: int, below: Callable[[int], int]
) -> frozenset[str]:
    """The questions of `draw` groups: a partial Fisher-Yates shuffle, one draw per group.

    >>> sorted(choose([["a"], ["b"], ["c", "d"]], 1, lambda n: n - 1))
    ['c', 'd']
    """
    deck = list(groups)
    for i in range(draw):
        j = i + below(len(deck) - i)
        deck[i], deck[j] = deck[j], deck[i]
    return frozenset(name for group in deck[:draw] for name in group)


def drawn_questions(node: Node, form: Form) -> list[Check]:
    """The survey's own groups, all of them; none where everybody is asked everything."""
    if form["sampling"] is None:
        return []
    groups, draw = form["sampling"]["groups"], form["sampling"]["draw"]
    below = [len(groups) - i for i in range(draw)]
    run = _all_draws if math.prod(below) <= ENUMERATED else _single_draws
    return [run(node, groups, below)]


def _all_draws(node: Node, groups: Sequence[Sequence[str]], below: Sequence[int]) -> Check:
    """Every sequence of draws."""
    answer = node.ask(drawn=[{}])["drawn"][0]
    seen: dict[frozenset[str], int] = {}
    for drawn, count in answer["outcomes"].items():
        asked = frozenset(json.loads(drawn))
        seen[asked] = seen.get(asked, 0) + count
    draw = len(below)
    every = [
        frozenset(name for group in some for name in group) for some in combinations(groups, draw)
    ]
    ok = answer["ranges"] == below and seen == dict.fromkeys(every, math.factorial(draw))
    detail = f"every draw of {draw} of {len(groups)} groups: {len(every)} choices, equally likely"
    return _check(ok, detail)


def _single_draws(node: Node, groups: Sequence[Sequence[str]], below: Sequence[int]) -> Check:
    """Each draw through all its values, the others held still at few places."""
    asked = [{"draws": draws} for draws in _lines(below)]
    ok = all(
        answer["ranges"] == below and _is_promised(answer, groups, request["draws"])
        for request, answer in zip(asked, node.ask(drawnBy=asked)["drawnBy"], strict=True)
    )
    moved = len(spread(len(below), MOVED))
    detail = (
        f"{len(below)} of {len(groups)} groups: {moved} of {len(below)} draws through every value, "
        f"{len(asked):,} choices as a shuffle makes them"
    )
    return _check(ok, detail)


def _lines(below: Sequence[int]) -> Iterator[list[int]]:
    for place in range(PLACES):
        others = [place * (n - 1) // (PLACES - 1) for n in below]
        for at in spread(len(below), MOVED):
            for value in range(below[at]):
                yield [*others[:at], value, *others[at + 1 :]]


def _is_promised(
    answer: dict[str, Any], groups: Sequence[Sequence[str]], draws: Sequence[int]
) -> bool:
    given = iter(draws)
    promised = choose(groups, len(draws), lambda _: next(given))
    return len(answer["questions"]) == len(promised) and promised == set(answer["questions"])


def _check(ok: bool, detail: str) -> Check:
    return Check("whole reports", NAME, ok, detail if ok else "not as equally likely choices are")


GROUP = "whole reports"

ID_BYTES = tuple(range(3, 256, 16))
REPORT_ID = "AxMjM0NTY3ODk6Ozw9Pj8w"
"""These 16 bytes in base64url."""

Codes = tuple[int | str | None, ...]

TOGETHER = 20
"""Pairs that one run of Node answers."""


@dataclass(frozen=True)
class Case:
    """A pair of questions under one way of asking: all, or some drawn at random."""

    pair: Pair
    drawn: tuple[str, ...] | None

    @cached_property
    def form(self) -> Form:
        """The definition as the device has it; where some are drawn, a third is never asked."""
        if self.drawn is None:
            return self.pair.form
        asked = questions(self.pair.form)
        spare = {**resized(asked[0], "tiny"), "id": "never_drawn", "ask_if": None}
        ids = [question["id"] for question in asked]
        together = any(question["ask_if"] for question in asked)
        groups = [*([ids] if together else [[name] for name in ids]), [spare["id"]]]
        sampling = {"draw": 1 if together else len(self.drawn), "groups": groups}
        pages = [*self.pair.form["pages"], {"title": "", "questions": [spare]}]
        return {**self.pair.form, "pages": pages, "sampling": sampling}

    @cached_property
    def canonical(self) -> bytes:
        """What a device would be served."""
        return canonical_json(dict(self.form))

    def answers(self) -> list[dict[str, Any]]:
        """Every pair of answers, a question that is left out lacking."""
        asked = questions(self.pair.form)
        given = product(*(answers_of(question) for question in asked))
        names = [question["id"] for question in asked]
        return [
            {name: each for name, each in zip(names, both, strict=True) if each is not None}
            for both in given
        ]

    def channels(self) -> dict[str, AnyChannel]:
        """The channels of the questions that are asked, in the order of their codes."""
        return {
            question["id"]: channel_from_json(question["channel"])
            for question in questions(self.form)
            if self.drawn is None or question["id"] in self.drawn
        }

    def request(self) -> dict[str, Any]:
        """The question to the client."""
        return {
            "canonical": self.canonical.decode("utf-8"),
            "answers": self.answers(),
            "idBytes": ID_BYTES,
            "circumstances": {"stratum": "", "invitation": "", "drawn": self.drawn},
        }


def enumerated_pairs(node: Node, form: Form) -> Iterator[Check]:
    """Every report of two questions at a time, whatever is answered and drawn."""
    made = list(pairs(form))
    parts = [made[start : start + TOGETHER] for start in range(0, len(made), TOGETHER)]
    for part in parts:
        yield from _enumerate_pairs(node, part, form)


def _enumerate_pairs(node: Node, part: Sequence[Pair], form: Form) -> Iterator[Check]:
    is_sampled = form["sampling"] is not None
    cases = [list(_cases(pair, is_sampled=is_sampled)) for pair in part]
    seen = iter(node.ask(reports=[each.request() for some in cases for each in some])["reports"])
    for pair, some in zip(part, cases, strict=True):
        answers = list(islice(seen, len(some)))
        wrong = [_wrong(case, answer) for case, answer in zip(some, answers, strict=True)]
        found = next((each for each in wrong if each), "")
        yield Check(GROUP, pair.name, not found, found or _detail(pair, answers))


def _cases(pair: Pair, *, is_sampled: bool) -> Iterator[Case]:
    """Both questions asked; where questions are drawn also each of them alone."""
    if not is_sampled:
        yield Case(pair, None)
        return
    asked = questions(pair.form)
    names = tuple(question["id"] for question in asked)
    yield Case(pair, names)
    if not any(question["ask_if"] for question in asked):
        yield from (Case(pair, (name,)) for name in names)


def _detail(pair: Pair, answers: Sequence[Mapping[str, Any]]) -> str:
    sizes = {
        ("real", "real"): "every draw of both channels",
        ("small", "small"): "every draw of small channels of the same kinds",
    }
    tables = [table for answer in answers for table in answer["tables"]]
    runs = sum(count for table in tables for _, count in table["counts"])
    drawn = ", asked together and each alone" if len(answers) > 1 else ""
    hidden = ", the second also when it is passed over" if _is_conditional(pair) else ""
    how = sizes.get(pair.sizes, "every draw of very small channels of the same kinds")
    return (
        f"{how}{drawn}{hidden}: {runs:,} reports, all bytes but the codes alike, "
        "the codes independent and exact"
    )


def _is_conditional(pair: Pair) -> bool:
    return any(question["ask_if"] for question in questions(pair.form))


def _wrong(case: Case, answer: Mapping[str, Any]) -> str:
    """What is not as promised, "" when all is."""
    bodies = [_read(body) for body in answer["bodies"]]
    if misshapen := _misshapen(case, answer["bodies"], bodies):
        return misshapen
    channels = case.channels()
    ranges = [n for channel in channels.values() for n in draws_below(channel)]
    for given, table in zip(case.answers(), answer["tables"], strict=True):
        if table["ranges"] != ranges:
            return f"answers {given}: the draws are other than the channels'"
        seen = {bodies[at]: count for at, count in table["counts"]}
        if seen != _promised(case, given):
            return f"answers {given}: the two codes have another distribution than promised"
    return ""


def _read(body: str) -> Codes:
    """The codes of a report; none when what stands there are no codes."""
    try:
        codes = tuple(json.loads(body)["codes"])
    except (ValueError, KeyError, TypeError):
        return ()
    # True would pass for the code 1 further on.
    return codes if all(type(code) in (int, str, type(None)) for code in codes) else ()


def _misshapen(case: Case, bodies: Sequence[str], codes: Sequence[Codes]) -> str:
    definition_id = hashlib.sha256(case.canonical).hexdigest()
    for body, read in zip(bodies, codes, strict=True):
        length = case.form["report_bytes"]
        if body.encode() != report_body(definition_id, REPORT_ID, read, length=length):
            return f"a report is not the bytes that its codes make: {body[:240]}"
    return ""


def _promised(case: Case, answers: Answers) -> dict[Codes, int]:
    """How many sequences of draws give each pair of codes: the product of the channels' tables."""
    found = truths(case.form, answers, case.drawn)
    channels = case.channels()
    tables: list[dict[int | str | None, int]] = [
        _counts(channels[question["id"]], found[question["id"]])
        if question["id"] in found
        else {None: 1}
        for question in questions(case.form)
    ]
    return {
        tuple(code for code, _ in cells): math.prod(count for _, count in cells)
        for cells in product(*(table.items() for table in tables))
    }


def _counts(channel: AnyChannel, truth: Truth) -> dict[int | str | None, int]:
    total = sequences(channel)
    is_index = isinstance(channel.longest_code, int)
    return {
        int(code) if is_index else code: int(share * total)
        for code, share in distribution(channel, truth).items()
    }
