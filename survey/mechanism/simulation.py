"""Simulated respondents: true answers drawn from given shares, in chunks of constant memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import ChannelError
from survey.mechanism.channel import CHUNK, Channel, Floats, Integers

CELLS = 16 * CHUNK
"""Maximum number of report bits in memory at once; wide reports come in smaller chunks."""


def truths(shares: Sequence[float], n: int, rng: np.random.Generator) -> Iterator[Integers]:
    """Draw n true answers with the given shares (positive, sum 1), chunk by chunk.

    >>> sum(len(chunk) for chunk in truths([0.2, 0.8], 100_000, np.random.default_rng(1)))
    100000
    """
    weights = _normalize(shares)
    for start in range(0, n, CHUNK):
        yield rng.choice(len(weights), size=min(CHUNK, n - start), p=weights)


def population(
    channel: Channel,
    shares: Sequence[float],
    n: int,
    rng: np.random.Generator,
    answers: ArrayLike | None = None,
) -> Integers:
    """Simulate n respondents and return the counts of their reports, as `channel.count` does.

    A share `shares[i]` of the population has the truth `answers[i]`, by default option i; for a
    bit vector a truth is a row of ticks. Memory does not grow with n.

    >>> from survey.mechanism import grr
    >>> population(grr(2, "3/4"), [0.2, 0.8], 1_000_000, np.random.default_rng(1)).sum()
    np.int64(1000000)
    """
    weights = _normalize(shares)
    truths = np.arange(len(weights)) if answers is None else np.asarray(answers)
    if len(truths) != len(weights):
        raise ChannelError(f"{len(weights)} shares need as many answers, not {len(truths)}")
    counts = np.zeros(channel.counted, dtype=np.int64)
    size = max(1, min(CHUNK, CELLS // max(channel.report_bits, 1)))
    for start in range(0, n, size):
        # Counts do not depend on the order of people, so the number of people with each truth is
        # enough; it has the same distribution as one truth drawn per person.
        people = rng.multinomial(min(size, n - start), weights)
        reports = channel.perturb(np.repeat(truths, people, axis=0), rng)
        if channel.report_bits:
            counts += np.sum(reports, axis=0, dtype=np.int64)
        else:
            counts += np.bincount(reports, minlength=channel.counted)
    return counts


def _normalize(shares: Sequence[float]) -> Floats:
    weights = np.asarray(shares, dtype=np.float64)
    if weights.min() < 0 or abs(weights.sum() - 1) > 1e-9:
        raise ChannelError(f"shares must be at least 0 and add up to 1, not {weights.sum():g}")
    # numpy's multinomial needs a sum of 1 to the last digits.
    normalized: Floats = weights / weights.sum()
    return normalized
