"""Whole reports: nothing but the codes may depend on an answer, and they only as promised."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product
from typing import Any

from survey.audit.check import Check
from survey.audit.exact import Truth, distribution, draws_below, sequences
from survey.audit.node import Node
from survey.audit.small import Pair, pairs, resized
from survey.audit.truths import Answers, Form, answers_of, questions, truths
from survey.mechanism import AnyChannel, channel_from_json
from survey.questionnaire.definition import canonical_json, report_body

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
        yield from _enumerated(node, part, form)


def _enumerated(node: Node, part: Sequence[Pair], form: Form) -> Iterator[Check]:
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
