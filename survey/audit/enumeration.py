"""Run every sequence of draws of a channel, or vary one draw at a time if there are too many.

A single draw below n splits [0, n) at its boundaries into pieces with one report each. Between
two boundaries the code is monotone (a comparison, a division, a scan of partial sums), so both
ends of every piece determine it. Where time allows, every value of the draw is run instead.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from typing import Any

from survey.audit.channels import (
    Truth,
    can_enumerate,
    describe,
    distribution,
    draws_below,
    sequences,
    sibling,
    some_truths,
    spread,
    truths_of,
    work,
)
from survey.audit.node import Check, Node
from survey.audit.random_generator import ALPHA, Counts, check_samples, check_words, sample_request
from survey.mechanism import AnyChannel, BitVector, HalfSpace, SubsetSelection, WeightTable
from survey.questionnaire.definition import Definition

BOUNDARY_WORK = 160_000_000
"""Maximum `work` for both ends of the pieces of one channel."""

RANGE_WORK = 40_000_000
"""Maximum `work` for whole ranges of the draws of one channel."""

DRAWS, TRUTHS, POSITIONS = 24, 6, 3
"""For a channel of many draws: how many vary, for how many truths, beside how many others."""

MINIMUM_PIECES = 4


@dataclass(frozen=True)
class Sweep:
    """One draw that varies, while the truth and all other draws stay the same."""

    truth: Truth
    draws: tuple[int, ...]
    at: int
    boundaries: tuple[int, ...]
    """The first value of each piece, beginning with 0; a selection if there are too many."""
    is_complete: bool
    """Whether `boundaries` holds all of them."""
    every_value: bool = False
    """Whether every value is run, not only both ends of every piece."""

    def ends(self, n: int) -> list[int]:
        """Return both ends of every piece of [0, n)."""
        ends = {*self.boundaries, *(boundary - 1 for boundary in self.boundaries), n - 1}
        return sorted(value for value in ends if 0 <= value < n)

    def request(self, channel: AnyChannel) -> dict[str, Any]:
        """Return the request to the client, without the channel."""
        n = draws_below(channel)[self.at]
        return {
            "truth": self.truth,
            "draws": self.draws,
            "at": self.at,
            "values": n if self.every_value else self.ends(n),
        }


class Auditor:
    """Checks channels by running the client's modules, with the bytes that are served, under Node.

    With a definition, the client first reads it as a device does, and the checks use the channels
    that result from this reading instead of copies.
    """

    def __init__(
        self,
        files: Mapping[str, bytes],
        node: str | None = None,
        definition: Definition | None = None,
    ) -> None:
        self._node = Node(files, node, definition.canonical if definition else None)
        questions = reversed(definition.questions) if definition else ()
        self._questions = {question.device_channel: question.id for question in questions}

    def _reference(self, channel: AnyChannel) -> dict[str, Any]:
        """Name a channel of the definition by its question; send any other channel as JSON."""
        if channel in self._questions:
            return {"question": self._questions[channel]}
        return {"channel": channel.to_json()}

    def enumeration(self, channels: Iterable[AnyChannel]) -> list[Check]:
        """Check every sequence of draws of each channel.

        For a channel that is too large, check a smaller sibling and each draw of the channel.
        """
        originals = list(channels)
        substitutes = [c if can_enumerate(c) else sibling(c) for c in originals]
        requests = [{**self._reference(c), "truths": truths_of(c)} for c in substitutes]
        tables = self._node.ask(enumerate=requests)["enumerate"]
        checks = [
            _check_enumeration(original, substitute, table)
            for original, substitute, table in zip(originals, substitutes, tables, strict=True)
        ]
        return [*checks, *self._single_draws([c for c in originals if not can_enumerate(c)])]

    def _single_draws(self, channels: Sequence[AnyChannel]) -> Iterator[Check]:
        """Vary one draw of large channels at a time, and check every row of weight tables."""
        for channel in channels:
            plan = sweeps(channel)
            requests = [{**self._reference(channel), **sweep.request(channel)} for sweep in plan]
            yield check_sweeps(channel, plan, self._node.ask(sweeps=requests)["sweeps"])
        tables = [channel for channel in channels if isinstance(channel, WeightTable)]
        rows = [{**self._reference(table), "truths": list(range(table.truths))} for table in tables]
        for table, hashes in zip(tables, self._node.ask(rows=rows)["rows"], strict=True):
            yield check_rows(table, hashes)

    def ratios(self, channels: Iterable[AnyChannel]) -> Check:
        """Check the e^epsilon that the client shows and compares with its maximums."""
        originals = list(channels)
        answers = self._node.ask(ratios=[self._reference(c) for c in originals])["ratios"]
        mismatches = [
            f"{describe(channel)}: {high}/{low} is not {channel.ratio}"
            for channel, (high, low) in zip(originals, answers, strict=True)
            if Fraction(int(high), int(low)) != channel.ratio
        ]
        detail = f"the same fraction for all {len(originals)} channels"
        return Check(
            "channels", "e^epsilon of each channel", not mismatches, [*mismatches, detail][0]
        )

    def words(self, channels: Iterable[AnyChannel], seed: int) -> Check:
        """Check how the generator's words become the draws of these channels."""
        ranges = {n for channel in channels for n in draws_below(channel)}
        return check_words(self._node, ranges, seed)

    def sampling(self, channels: Iterable[AnyChannel], n: int) -> list[Check]:
        """Check n perturbations of up to eight truths per channel with the real generator."""
        originals = list(channels)
        requests = [{**self._reference(c), **sample_request(c, n)} for c in originals]
        answers = self._node.ask(sample=requests)["sample"]
        alpha = ALPHA / 2 / max(len(originals), 1)
        return [
            check_samples(channel, tables, n, alpha)
            for channel, tables in zip(originals, answers, strict=True)
        ]


def _check_enumeration(
    original: AnyChannel, substitute: AnyChannel, rows: Sequence[dict[str, Any]]
) -> Check:
    mismatch = _enumeration_mismatch(substitute, rows)
    is_original = substitute == original
    scope = (
        "every draw" if is_original else f"every draw of the same code with {describe(substitute)}"
    )
    detail = f"{scope}: {sequences(substitute) * len(rows):,} perturbations, all exact"
    name = f"enumeration of {'' if is_original else 'a smaller sibling of '}{describe(original)}"
    return Check("channels", name, not mismatch, mismatch or detail)


def _enumeration_mismatch(channel: AnyChannel, rows: Sequence[dict[str, Any]]) -> str:
    """Return the first difference from the channel's integers, or ""."""
    for truth, row in zip(truths_of(channel), rows, strict=True):
        if row["ranges"] != draws_below(channel):
            return "the draws depend on the truth or on earlier draws"
        total = sum(row["reports"].values())
        shares = {code: Fraction(n, total) for code, n in row["reports"].items()}
        if shares != distribution(channel, truth):
            return f"truth {truth}: the table differs from the integers"
    ratio = _largest_ratio([row["reports"] for row in rows])
    return "" if ratio == channel.ratio else f"e^epsilon is {ratio}, expected {channel.ratio}"


def _largest_ratio(tables: Sequence[Counts]) -> Fraction:
    """Return the largest ratio of two truths' counts of a report; all truths have equal totals."""
    codes = set().union(*tables)
    counts = [[table.get(code, 0) for table in tables] for code in codes]
    if any(min(column) == 0 for column in counts):
        return Fraction(10**18)  # Some truth never gives this report, so the report excludes it.
    return max(Fraction(max(column), min(column)) for column in counts)


def sweeps(channel: AnyChannel) -> list[Sweep]:
    """Plan the sweeps of a channel: as many and as fine as time allows."""
    below = draws_below(channel)
    calls = BOUNDARY_WORK // work(channel)
    places = list(_places(channel, below, calls))
    limit = max(calls // (2 * len(places)), MINIMUM_PIECES)
    plan = []
    for truth, draws, at in places:
        boundaries = _boundaries(channel, truth, at)
        selection = tuple(boundaries[i] for i in spread(len(boundaries), limit))
        is_complete = len(selection) == len(boundaries)
        plan.append(Sweep(truth, draws, at, selection, is_complete=is_complete))
    return list(_with_every_value(plan, below, RANGE_WORK // work(channel)))


def _places(
    channel: AnyChannel, below: Sequence[int], calls: int
) -> Iterator[tuple[Truth, tuple[int, ...], int]]:
    """Yield (truth, draws, position): for a single draw many truths, otherwise a selection."""
    if len(below) == 1:
        for truth in some_truths(channel, max(calls // (2 * MINIMUM_PIECES), 2)):
            yield truth, (0,), 0
        return
    for position in range(POSITIONS):
        draws = tuple(position * (n - 1) // (POSITIONS - 1) for n in below)
        for at in spread(len(below), DRAWS):
            for truth in some_truths(channel, TRUTHS):
                yield truth, draws, at


def _boundaries(channel: AnyChannel, truth: Truth, at: int) -> Sequence[int]:
    """Return the values at which the report changes as draw number `at` varies."""
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
        case HalfSpace():
            # Each value of the other two draws is another vector.
            return [0, channel.near] if at == 0 else range(n)


def _with_every_value(plan: Sequence[Sweep], below: Sequence[int], calls: int) -> Iterator[Sweep]:
    """Extend one sweep of each draw to all its values, as far as time allows."""
    complete: set[int] = set()
    for sweep in plan:
        n = below[sweep.at]
        every_value = sweep.is_complete and sweep.at not in complete and n <= calls
        if every_value:
            complete.add(sweep.at)
            calls -= n
        yield replace(sweep, every_value=every_value)


def check_sweeps(
    channel: AnyChannel, plan: Sequence[Sweep], answers: Sequence[dict[str, Any]]
) -> Check:
    """Compare the client's reports of each sweep with those of the same integers in Python."""
    below = draws_below(channel)
    name = f"each draw of {describe(channel)}"
    for sweep, answer in zip(plan, answers, strict=True):
        place = f"truth {sweep.truth}, draw {sweep.at + 1} of {len(below)}"
        if answer["ranges"] != [",".join(map(str, below))]:
            return Check("channels", name, False, f"{place}: the draws have other ranges")
        if answer["reports"] != _sweep_reports(channel, sweep, below[sweep.at]):
            return Check("channels", name, False, f"{place}: the reports differ")
    return Check("channels", name, True, _sweep_summary(channel, plan, below))


def _sweep_reports(channel: AnyChannel, sweep: Sweep, n: int) -> list[list[int | str]]:
    """Return [value, report] for both ends of each piece, or for the first value of each piece."""
    reports: list[list[int | str]] = []
    for value in sweep.boundaries if sweep.every_value else sweep.ends(n):
        draws = iter([*sweep.draws[: sweep.at], value, *sweep.draws[sweep.at + 1 :]])
        report = _run(channel, sweep.truth, draws)
        if not sweep.every_value or not reports or reports[-1][1] != report:
            reports.append([value, report])
    return reports


def _run(channel: AnyChannel, truth: Any, draws: Iterator[int]) -> int | str:
    return channel.perturb_one(truth, lambda _: next(draws))


def _sweep_summary(channel: AnyChannel, plan: Sequence[Sweep], below: Sequence[int]) -> str:
    full_ranges = {sweep.at for sweep in plan if sweep.every_value}
    runs = sum(
        below[sweep.at] if sweep.every_value else len(sweep.ends(below[sweep.at])) for sweep in plan
    )
    boundaries = "every boundary" if all(sweep.is_complete for sweep in plan) else "some boundaries"
    truths = len({sweep.truth for sweep in plan})
    n_truths = f"{channel.truths:,}" if channel.truths < 10**9 else "more than 10^9"
    return (
        f"{len({sweep.at for sweep in plan})} of {len(below)} draws, both sides of {boundaries}"
        f"{f', {len(full_ranges)} through every value' if full_ranges else ''}; "
        f"{truths:,} of {n_truths} truths: "
        f"{runs:,} perturbations with the real integers"
    )


def check_rows(table: WeightTable, hashes: Sequence[str]) -> Check:
    """Compare the SHA-256 of each row of weights, written as numbers with commas."""
    name = f"rows of {describe(table)}"
    texts = [",".join(map(str, row)).encode("ascii") for row in table.weights.tolist()]
    expected = [hashlib.sha256(text).hexdigest() for text in texts]
    mismatches = [truth for truth, digest in enumerate(expected) if hashes[truth] != digest]
    if mismatches:
        return Check("channels", name, False, f"truth {mismatches[0]}: the client's row differs")
    return Check("channels", name, True, f"all {table.truths * table.reports:,} weights are equal")
