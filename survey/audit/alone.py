"""Each draw of a channel alone, the others held still: for channels too large to enumerate.

A draw below n splits [0, n) at its cuts into pieces of one report each. Between two cuts the code
is monotone (a comparison, a division, a scan of partial sums), so both ends of every piece
determine it; where time allows every value is run and nothing is assumed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from survey.audit.check import Check
from survey.audit.exact import (
    Truth,
    draws_below,
    shown,
    some_truths,
    spread,
    work,
)
from survey.mechanism import AnyChannel, BitVector, SubsetSelection, WeightTable

ENDS = 160_000_000
"""Most units of `work` for both ends of the pieces of one channel."""

EVERY = 40_000_000
"""Most units of `work` for whole ranges of its draws."""

DRAWS, TRUTHS, PLACES = 24, 6, 3
"""Of a channel of many draws: how many are moved, for how many truths, among which others."""

FEWEST = 4


@dataclass(frozen=True)
class Line:
    """One draw that moves: of which truth, among which other draws, through which values."""

    truth: Truth
    draws: tuple[int, ...]
    at: int
    cuts: tuple[int, ...]
    """Where pieces begin, the first at 0; not all of them where they are too many."""
    is_whole: bool
    """Whether these are all cuts."""
    every: bool = False
    """Whether every value is run, not only both ends of every piece."""

    def ends(self, n: int) -> list[int]:
        """Both ends of every piece of [0, n)."""
        ends = {*self.cuts, *(cut - 1 for cut in self.cuts), n - 1}
        return sorted(value for value in ends if 0 <= value < n)

    def asked(self, channel: AnyChannel) -> dict[str, Any]:
        """The question to the client, save which channel it is."""
        n = draws_below(channel)[self.at]
        return {
            "truth": self.truth,
            "draws": self.draws,
            "at": self.at,
            "values": n if self.every else self.ends(n),
        }


def lines(channel: AnyChannel) -> list[Line]:
    """The lines to run, as many and as fine as time allows."""
    below = draws_below(channel)
    calls = ENDS // work(channel)
    wanted = list(_wanted(channel, below, calls))
    most = max(calls // (2 * len(wanted)), FEWEST)
    chosen = [_line(channel, truth, draws, at, most) for truth, draws, at in wanted]
    return list(_widened(chosen, below, EVERY // work(channel)))


def _wanted(
    channel: AnyChannel, below: Sequence[int], calls: int
) -> Iterator[tuple[Truth, tuple[int, ...], int]]:
    """All truths of a channel of one draw; else some truths, draws and places of the others."""
    if len(below) == 1:
        for truth in some_truths(channel, max(calls // (2 * FEWEST), 2)):
            yield truth, (0,), 0
        return
    for place in range(PLACES):
        others = tuple(place * (n - 1) // (PLACES - 1) for n in below)
        for at in spread(len(below), DRAWS):
            for truth in some_truths(channel, TRUTHS):
                yield truth, others, at


def _line(channel: AnyChannel, truth: Truth, draws: tuple[int, ...], at: int, most: int) -> Line:
    cuts = _cuts(channel, truth, at)
    kept = tuple(cuts[i] for i in spread(len(cuts), most))
    return Line(truth, draws, at, kept, is_whole=len(kept) == len(cuts))


def _cuts(channel: AnyChannel, truth: Truth, at: int) -> Sequence[int]:
    """Where the report of draw number `at` changes."""
    n = draws_below(channel)[at]
    match channel:
        case WeightTable():
            assert isinstance(truth, int)  # noqa: S101  see `truths_of`
            return [0, *accumulate(int(weight) for weight in channel.weights[truth][:-1])]
        case SubsetSelection(d=1):
            return [0, *range(channel.T, n, channel.L)]
        case SubsetSelection():
            return [0, channel.d * channel.T] if at == channel.d else range(n)
        case BitVector():
            picks = channel.sampled if channel.is_sampled else 0
            return range(n) if at < picks else [0, channel.T]


def _widened(chosen: Sequence[Line], below: Sequence[int], calls: int) -> Iterator[Line]:
    """The same lines, each draw once through all its values as far as time allows."""
    done: set[int] = set()
    for line in chosen:
        n = below[line.at]
        every = line.is_whole and line.at not in done and n <= calls
        if every:
            done.add(line.at)
            calls -= n
        yield replace(line, every=every)


def check_alone(
    channel: AnyChannel, chosen: Sequence[Line], seen: Sequence[dict[str, Any]]
) -> Check:
    """Hold what the client answered against the channel's own description."""
    below = draws_below(channel)
    name = f"each draw alone of {shown(channel)}"
    for line, answer in zip(chosen, seen, strict=True):
        where = f"truth {line.truth}, draw {line.at + 1} of {len(below)}"
        if answer["ranges"] != [",".join(map(str, below))]:
            return Check("channels", name, False, f"{where}: other draws than promised")
        if answer["reports"] != _promised(channel, line, below[line.at]):
            return Check("channels", name, False, f"{where}: other reports than promised")
    return Check("channels", name, True, _detail(channel, chosen, below))


def _promised(channel: AnyChannel, line: Line, n: int) -> list[list[int | str]]:
    """[value, report] for the values asked, or where each new report begins."""
    reports: list[list[int | str]] = []
    for value in line.cuts if line.every else line.ends(n):
        draws = iter([*line.draws[: line.at], value, *line.draws[line.at + 1 :]])
        report = _run(channel, line.truth, draws)
        if not line.every or not reports or reports[-1][1] != report:
            reports.append([value, report])
    return reports


def _run(channel: AnyChannel, truth: Any, draws: Iterator[int]) -> int | str:
    return channel.perturb_one(truth, lambda _: next(draws))


def _detail(channel: AnyChannel, chosen: Sequence[Line], below: Sequence[int]) -> str:
    ends = [line.ends(below[line.at]) for line in chosen]
    every = {line.at for line in chosen if line.every}
    runs = sum(
        below[line.at] if line.every else len(each) for line, each in zip(chosen, ends, strict=True)
    )
    which = "every" if all(line.is_whole for line in chosen) else "some"
    truths = len({line.truth for line in chosen})
    return (
        f"{len({line.at for line in chosen})} of {len(below)} draws, both sides of {which} boundary"
        f"{f', {len(every)} through every value' if every else ''}; "
        f"{truths:,} of {_counted(channel.truths)} truths: "
        f"{runs:,} perturbations with the real integers"
    )


def _counted(n: int) -> str:
    return f"{n:,}" if n < 10**9 else "more than 10^9"
