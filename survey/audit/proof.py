"""Prove by enumeration, and check with the real generator, that the client keeps its promise."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from survey.audit.alone import check_alone, lines
from survey.audit.check import Check
from survey.audit.empirical import Counts, asked_samples, check_samples
from survey.audit.exact import distribution, draws_below, sequences, shown, truths_of
from survey.audit.node import Node
from survey.audit.people import whole_surveys
from survey.audit.rows import asked_rows, check_rows
from survey.audit.siblings import fits, sibling
from survey.audit.whole import drawn_questions, enumerated_pairs
from survey.mechanism import AnyChannel, WeightTable
from survey.mechanism.weights import WORD_TOTAL
from survey.questionnaire.definition import Definition


class Auditor:
    """Runs the client's files, exactly as they are served, under Node."""

    def __init__(self, files: Mapping[str, bytes], node: str | None = None) -> None:
        self._node = Node(files, node)

    def enumeration(self, channels: Iterable[AnyChannel]) -> list[Check]:
        """Every sequence of draws of each channel; of one too large, a smaller one's and more."""
        real = list(channels)
        done = [channel if fits(channel) else sibling(channel) for channel in real]
        asked = [{"channel": c.to_json(), "truths": truths_of(c)} for c in done]
        tables = self._node.ask(enumerate=asked)["enumerate"]
        checks = [_enumerated(*each) for each in zip(real, done, tables, strict=True)]
        large = [channel for channel in real if not fits(channel)]
        return [*checks, *self._alone(large)]

    def _alone(self, channels: Iterable[AnyChannel]) -> list[Check]:
        """Each draw of the real channels alone; of weight tables also every row."""
        checks = []
        for channel in channels:
            chosen = lines(channel)
            asked = [line.asked(channel) for line in chosen]
            checks.append(check_alone(channel, chosen, self._node.ask(alone=asked)["alone"]))
            if isinstance(channel, WeightTable):
                rows = self._node.ask(rows=[asked_rows(channel)])["rows"][0]
                checks.append(check_rows(channel, rows))
        return checks

    def ratios(self, channels: Iterable[AnyChannel]) -> Check:
        """Whether the client shows, and holds against its ceilings, the epsilon of each channel."""
        real = list(channels)
        seen = self._node.ask(ratios=[channel.to_json() for channel in real])["ratios"]
        name = "e^epsilon as the pages show it"
        for channel, (most, least) in zip(real, seen, strict=True):
            if Fraction(int(most), int(least)) != channel.ratio:
                detail = f"{shown(channel)}: {most}/{least} is not {channel.ratio}"
                return Check("channels", name, False, detail)
        return Check("channels", name, True, f"the same fraction for all {len(real)} channels")

    def acceptance(self, definition: Definition) -> Check:
        """Whether a device takes the survey: its form, its hash, the ceilings built in."""
        text = definition.canonical.decode("utf-8")
        (answer,) = self._node.ask(accept=[text])["accept"]
        ok = answer == {"id": definition.sha256}
        detail = f"definition {definition.sha256[:16]} is taken" if ok else str(answer)
        return Check("channels", "the survey as devices read it", ok, detail)

    def reports(self, definition: Definition) -> list[Check]:
        """Whole reports: of two questions at a time every one, of all questions some."""
        form = json.loads(definition.canonical)
        return [
            *enumerated_pairs(self._node, form),
            *drawn_questions(self._node, form),
            whole_surveys(self._node, form, definition.sha256),
        ]

    def words(self, channels: Iterable[AnyChannel]) -> Check:
        """How the generator's words become draws: rejection at the one exact limit, then mod."""
        asked = [
            {"n": n, "word": word, "next": 5}
            for n in sorted({total for channel in channels for total in draws_below(channel)})
            for word in _edge_words(n)
        ]
        drawn = self._node.ask(words=asked)["words"]
        for question, answer in zip(asked, drawn, strict=True):
            n, word = question["n"], question["word"]
            used = word if word < _limit(n) else question["next"]
            if answer != {"value": used % n, "filled": 1}:
                detail = f"word {word} below {n}: {answer}"
                return Check("generator", "words to draws", False, detail)
        detail = f"{len(asked):,} words at the edges of every range"
        return Check("generator", "words to draws", True, detail)

    def sampling(self, channels: Iterable[AnyChannel], n: int) -> list[Check]:
        """n perturbations of up to eight truths of each channel, with the device's generator."""
        real = list(channels)
        seen = self._node.ask(sample=[asked_samples(channel, n) for channel in real])["sample"]
        return [check_samples(*each, n) for each in zip(real, seen, strict=True)]


def _limit(n: int) -> int:
    """The first of the 2^32 words that is rejected, so that every residue has equally many."""
    return int(WORD_TOTAL - WORD_TOTAL % n)


def _edge_words(n: int) -> list[int]:
    edges = {0, n - 1, n, n + 1, _limit(n) - 1, _limit(n), WORD_TOTAL - 1}
    return sorted(word for word in edges if 0 <= word < WORD_TOTAL)


def _enumerated(real: AnyChannel, done: AnyChannel, rows: Sequence[dict[str, Any]]) -> Check:
    wrong = _wrong(done, rows)
    what = "every draw" if done == real else f"every draw of the same code with {shown(done)}"
    detail = f"{what}: {sequences(done) * len(rows):,} perturbations, all exact"
    return Check("channels", f"enumeration of {shown(real)}", not wrong, wrong or detail)


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
