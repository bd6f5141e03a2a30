"""Prove by enumeration, and check with the real generator, that the client keeps its promise."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from scipy.special import betaincinv

from survey.audit.exact import (
    AnyChannel,
    Truth,
    distribution,
    draws_below,
    sequences,
    truths_of,
)
from survey.errors import SurveyError
from survey.mechanism import BitVector, SubsetSelection, WeightTable
from survey.mechanism.weights import WORD_TOTAL

ENUMERATED = 5_000_000
"""Most sequences of draws, over all truths, that one channel is enumerated with."""

ALPHA = 1e-6
"""Chance of a false alarm of one channel's empirical check, over all its cells."""

SCRIPT = Path(__file__).with_name("run.mjs")
TRUTHS_SAMPLED = 8

Counts = Mapping[str, int]


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: what, whether it holds, and what was seen."""

    name: str
    ok: bool
    detail: str


class Auditor:
    """Runs the client's files, exactly as they are served, under Node."""

    def __init__(self, files: Mapping[str, bytes], node: str | None = None) -> None:
        self._files = files
        found = node or shutil.which("node")
        if found is None:
            raise SurveyError("survey audit runs the client under Node: install Node 20 or newer")
        self._node = found

    def enumeration(self, channels: Iterable[AnyChannel]) -> list[Check]:
        """Every sequence of draws of each channel, or of a smaller one of the same code."""
        real = list(channels)
        done = [channel if _fits(channel) else sibling(channel) for channel in real]
        asked = [{"channel": c.to_json(), "truths": truths_of(c)} for c in done]
        tables = self._run(enumerate=asked)["enumerated"]
        return [_enumerated(*each) for each in zip(real, done, tables, strict=True)]

    def words(self, channels: Iterable[AnyChannel]) -> Check:
        """How the generator's words become draws: rejection at the one exact limit, then mod."""
        asked = [
            {"n": n, "word": word, "next": 5}
            for n in sorted({total for channel in channels for total in draws_below(channel)})
            for word in _edge_words(n)
        ]
        drawn = self._run(words=asked)["drawn"]
        for question, answer in zip(asked, drawn, strict=True):
            n, word = question["n"], question["word"]
            used = word if word < _limit(n) else question["next"]
            if answer != {"drawn": used % n, "filled": 1}:
                return Check("words to draws", False, f"word {word} below {n}: {answer}")
        return Check("words to draws", True, f"{len(asked)} words at the edges of every range")

    def sampling(self, channels: Iterable[AnyChannel], n: int) -> list[Check]:
        """n perturbations of up to eight truths of each channel, with the device's generator."""
        real = list(channels)
        truths = [truths_of(channel)[:TRUTHS_SAMPLED] for channel in real]
        asked = [
            {"channel": channel.to_json(), "truths": some, "n": n}
            for channel, some in zip(real, truths, strict=True)
        ]
        seen = self._run(sample=asked)["sampled"]
        return [_sampled(*each, n) for each in zip(real, truths, seen, strict=True)]

    def _run(self, **question: Any) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            for name, content in {**self._files, "package.json": b'{"type":"module"}'}.items():
                (Path(folder) / name).write_bytes(content)
            run = subprocess.run(  # noqa: S603  our own script and the client under audit
                [self._node, str(SCRIPT)],
                input=json.dumps({"client": folder, **question}),
                capture_output=True,
                text=True,
                check=False,
            )
        if run.returncode:
            last = (run.stderr.strip().splitlines() or ["no message"])[-1]
            raise SurveyError(f"the client does not run under Node: {last}")
        answer: dict[str, Any] = json.loads(run.stdout)
        return answer


def _limit(n: int) -> int:
    """The first of the 2^32 words that is rejected, so that every residue has equally many."""
    return int(WORD_TOTAL - WORD_TOTAL % n)


def _edge_words(n: int) -> list[int]:
    edges = {0, n - 1, n, n + 1, _limit(n) - 1, _limit(n), WORD_TOTAL - 1}
    return sorted(word for word in edges if 0 <= word < WORD_TOTAL)


def _fits(channel: AnyChannel) -> bool:
    if isinstance(channel, BitVector) and channel.m > 16:
        return False
    return sequences(channel) * len(truths_of(channel)) <= ENUMERATED


def sibling(channel: AnyChannel) -> AnyChannel:
    """A channel of the same kind with so small integers that it can be enumerated."""
    if isinstance(channel, BitVector):
        m = min(channel.m, 5)
        return BitVector(m, min(channel.s, m), 3, 1)
    if isinstance(channel, SubsetSelection):
        k = min(channel.k, 6)
        return SubsetSelection(k, min(channel.d, k - 1), 3, 1)
    raise SurveyError(
        f"a table with a total of {channel.total:,} is too large to be enumerated; "
        "publish it with smaller integers"
    )


def _enumerated(real: AnyChannel, done: AnyChannel, rows: Sequence[dict[str, Any]]) -> Check:
    name = f"enumeration of {_shown(real)}"
    if len({row["draws"] for row in rows} | {"not constant"}) != 2:
        return Check(name, False, "the draws depend on the truth or on what was drawn")
    for truth, row in zip(truths_of(done), rows, strict=True):
        total = sum(row["reports"].values())
        seen = {code: Fraction(n, total) for code, n in row["reports"].items()}
        if seen != distribution(done, truth):
            return Check(name, False, f"truth {truth}: the table differs from the integers")
    ratio = _largest_ratio([row["reports"] for row in rows])
    if ratio != done.ratio:
        return Check(name, False, f"e^epsilon is {ratio}, not the promised {done.ratio}")
    what = "every draw" if done == real else f"every draw of the same code with {_shown(done)}"
    return Check(name, True, f"{what}: {sequences(done) * len(rows):,} perturbations, all exact")


def _largest_ratio(tables: Sequence[Counts]) -> Fraction:
    """max over reports of the largest to the smallest count; all truths have equal totals."""
    codes = set().union(*tables)
    counts = [[table.get(code, 0) for table in tables] for code in codes]
    if any(min(column) == 0 for column in counts):
        return Fraction(10**18)  # a report that some truth never gives proves something
    return max(Fraction(max(column), min(column)) for column in counts)


def _sampled(channel: AnyChannel, truths: Sequence[Truth], seen: Sequence[Counts], n: int) -> Check:
    name = f"real generator, {_shown(channel)}"
    expected = [distribution(channel, truth) for truth in truths]
    alpha = ALPHA / sum(map(len, expected))
    for truth, table, promised in zip(truths, seen, expected, strict=True):
        for code, probability in promised.items():
            low, high = clopper_pearson(table.get(code, 0), n, alpha)
            if not low <= float(probability) <= high:
                return Check(
                    name, False, f"truth {truth}, report {code}: {table.get(code, 0):,} of {n:,}, "
                    f"expected {float(probability) * n:,.0f}"
                )  # fmt: skip
        if unknown := set(table) - set(promised):
            return Check(name, False, f"truth {truth}: unknown report {min(unknown)}")
    bound = epsilon_bound(seen, n, alpha)
    ok = bound <= channel.epsilon
    return Check(name, ok, f"{n:,} for each of {len(truths)} truths: epsilon is at least "
                 f"{bound:.3f}, promised {channel.epsilon:.3f}")  # fmt: skip


def epsilon_bound(tables: Sequence[Counts], n: int, alpha: float) -> float:
    """What the samples prove epsilon to be at least (Clopper-Pearson, one-sided each)."""
    largest = 0.0
    for code in set().union(*tables):
        bounds = [clopper_pearson(table.get(code, 0), n, alpha) for table in tables]
        most, least = max(low for low, _ in bounds), min(high for _, high in bounds)
        if most > 0:
            largest = max(largest, math.log(most / least))
    return largest


def clopper_pearson(c: int, n: int, alpha: float) -> tuple[float, float]:
    """The exact interval for c successes of n at level 1 - alpha (Clopper and Pearson 1934)."""
    low = 0.0 if c == 0 else float(betaincinv(c, n - c + 1, alpha / 2))
    high = 1.0 if c == n else float(betaincinv(c + 1, n - c, 1 - alpha / 2))
    return low, high


def _shown(channel: AnyChannel) -> str:
    if isinstance(channel, WeightTable):
        return f"weight_table {channel.shape.name}, total {channel.total:,}"
    form = channel.to_json()
    integers = ", ".join(f"{name}={value}" for name, value in form.items() if name != "kind")
    return f"{form['kind']} {integers}"
