"""Prove by enumeration, and check with the real generator, that channels run as promised."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from survey.audit.alone import check_alone, lines
from survey.audit.check import Check
from survey.audit.empirical import ALPHA, Counts, asked_samples, check_samples
from survey.audit.exact import distribution, draws_below, sequences, shown, truths_of
from survey.audit.node import Node
from survey.audit.rows import check_rows
from survey.audit.siblings import fits, sibling
from survey.audit.words import check_words
from survey.mechanism import AnyChannel, WeightTable
from survey.questionnaire.definition import Definition


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
