"""Run every sequence of draws of a channel, or every draw by itself where there are too many."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from typing import Any

from survey.audit.channels import (
    Truth,
    distribution,
    draws_below,
    fits,
    sequences,
    shown,
    sibling,
    some_truths,
    spread,
    truths_of,
    work,
)
from survey.audit.harness import Check, Node
from survey.audit.sampling import ALPHA, Counts, asked_samples, check_samples, check_words
from survey.mechanism import AnyChannel, BitVector, SubsetSelection, WeightTable
from survey.questionnaire.definition import Definition

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


def check_rows(table: WeightTable, seen: Sequence[str]) -> Check:
    """Compare the SHA-256 of each row's weights, written with commas."""
    name = f"rows of {shown(table)}"
    promised = [_digest(row) for row in table.weights.tolist()]
    wrong = [truth for truth, row in enumerate(promised) if seen[truth] != row]
    if wrong:
        return Check("channels", name, False, f"truth {wrong[0]}: the client makes another row")
    return Check("channels", name, True, f"all {table.truths * table.reports:,} weights are equal")


def _digest(row: Sequence[int]) -> str:
    return hashlib.sha256(",".join(map(str, row)).encode("ascii")).hexdigest()


class Auditor:
    """Runs the client's files, exactly as they are served, under Node.

    With a definition the client first reads it as a device does; what is asked about its channels
    is then answered by the objects that came out of that reading, not by copies.
    """

    def __init__(
        self,
        files: Mapping[str, bytes],
        node: str | None = None,
        definition: Definition | None = None,
    ) -> None:
        self._node = Node(files, node, definition.canonical if definition else None)
        asked = reversed(definition.questions) if definition else ()
        self._questions = {question.channel: question.id for question in asked}

    def _named(self, channel: AnyChannel) -> dict[str, Any]:
        """The device's own channel, by its question; a channel that is no survey's as JSON."""
        if channel in self._questions:
            return {"question": self._questions[channel]}
        return {"channel": channel.to_json()}

    def enumeration(self, channels: Iterable[AnyChannel]) -> list[Check]:
        """Every sequence of draws of each channel; of one too large, a smaller one's and more."""
        real = list(channels)
        done = [channel if fits(channel) else sibling(channel) for channel in real]
        asked = [{**self._named(c), "truths": truths_of(c)} for c in done]
        tables = self._node.ask(enumerate=asked)["enumerate"]
        checks = [_enumerated(*each) for each in zip(real, done, tables, strict=True)]
        large = [channel for channel in real if not fits(channel)]
        return [*checks, *self._alone(large)]

    def _alone(self, channels: Sequence[AnyChannel]) -> Iterator[Check]:
        """Each draw of the real channels alone; of weight tables also every row."""
        for channel in channels:
            chosen = lines(channel)
            asked = [{**self._named(channel), **line.asked(channel)} for line in chosen]
            yield check_alone(channel, chosen, self._node.ask(alone=asked)["alone"])
        tables = [channel for channel in channels if isinstance(channel, WeightTable)]
        rows = [{**self._named(table), "truths": list(range(table.truths))} for table in tables]
        for table, seen in zip(tables, self._node.ask(rows=rows)["rows"], strict=True):
            yield check_rows(table, seen)

    def ratios(self, channels: Iterable[AnyChannel]) -> Check:
        """Whether the client shows, and holds against its ceilings, the epsilon of each channel."""
        real = list(channels)
        seen = self._node.ask(ratios=[self._named(channel) for channel in real])["ratios"]
        name = "e^epsilon of each channel by itself"
        for channel, (most, least) in zip(real, seen, strict=True):
            if Fraction(int(most), int(least)) != channel.ratio:
                detail = f"{shown(channel)}: {most}/{least} is not {channel.ratio}"
                return Check("channels", name, False, detail)
        return Check("channels", name, True, f"the same fraction for all {len(real)} channels")

    def words(self, channels: Iterable[AnyChannel]) -> Check:
        """How the generator's words become the draws of these channels."""
        return check_words(self._node, {n for each in channels for n in draws_below(each)})

    def sampling(self, channels: Iterable[AnyChannel], n: int) -> list[Check]:
        """n perturbations of up to eight truths of each channel, with the device's generator."""
        real = list(channels)
        asked = [{**self._named(channel), **asked_samples(channel, n)} for channel in real]
        seen = self._node.ask(sample=asked)["sample"]
        each_alpha = ALPHA / 2 / max(len(real), 1)
        return [check_samples(*each, n, each_alpha) for each in zip(real, seen, strict=True)]


def _enumerated(real: AnyChannel, done: AnyChannel, rows: Sequence[dict[str, Any]]) -> Check:
    wrong = _wrong(done, rows)
    is_real = done == real
    what = "every draw" if is_real else f"every draw of the same code with {shown(done)}"
    detail = f"{what}: {sequences(done) * len(rows):,} perturbations, all exact"
    name = f"enumeration {'of' if is_real else 'of a smaller sibling of'} {shown(real)}"
    return Check("channels", name, not wrong, wrong or detail)


def _wrong(channel: AnyChannel, rows: Sequence[dict[str, Any]]) -> str:
    """What is not as promised, "" when all is."""
    for truth, row in zip(truths_of(channel), rows, strict=True):
        if row["ranges"] != draws_below(channel):
            return "the draws depend on the truth or on what was drawn"
        total = sum(row["reports"].values())
        seen = {code: Fraction(n, total) for code, n in row["reports"].items()}
        if seen != distribution(channel, truth):
            return f"truth {truth}: the table differs from the integers"
    ratio = _largest_ratio([row["reports"] for row in rows])
    return "" if ratio == channel.ratio else f"e^epsilon is {ratio}, promised is {channel.ratio}"


def _largest_ratio(tables: Sequence[Counts]) -> Fraction:
    """max over reports of the largest to the smallest count; all truths have equal totals."""
    codes = set().union(*tables)
    counts = [[table.get(code, 0) for table in tables] for code in codes]
    if any(min(column) == 0 for column in counts):
        return Fraction(10**18)  # a report that some truth never gives proves something
    return max(Fraction(max(column), min(column)) for column in counts)
