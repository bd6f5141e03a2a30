"""Who is asked what: every choice of groups equally likely, whatever there is to answer."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

from survey.audit.check import Check
from survey.audit.exact import spread
from survey.audit.node import Node
from survey.audit.truths import Form

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
    run = _enumerated if math.prod(below) <= ENUMERATED else _alone
    return [run(node, groups, below)]


def _enumerated(node: Node, groups: Sequence[Sequence[str]], below: Sequence[int]) -> Check:
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


def _alone(node: Node, groups: Sequence[Sequence[str]], below: Sequence[int]) -> Check:
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
