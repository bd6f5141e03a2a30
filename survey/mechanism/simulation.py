"""Simulated respondents: true answers drawn from given shares, in chunks of constant memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import ChannelError
from survey.mechanism.arrays import AnyIntegers, Floats, Integers
from survey.mechanism.channel import Channel

CHUNK = 65_536

CELLS = 16 * CHUNK
"""Most bits of reports held at once: wide reports come in smaller chunks."""


def truths(shares: Sequence[float], n: int, rng: np.random.Generator) -> Iterator[Integers]:
    """Draw n true answers with the given shares (positive, sum 1), chunk by chunk.

    >>> sum(len(chunk) for chunk in truths([0.2, 0.8], 100_000, np.random.default_rng(1)))
    100000
    """
    weights = _checked(shares)
    for start in range(0, n, CHUNK):
        yield rng.choice(len(weights), size=min(CHUNK, n - start), p=weights)


def population(
    channel: Channel,
    shares: Sequence[float],
    n: int,
    rng: np.random.Generator,
    answers: ArrayLike | None = None,
) -> Integers:
    """Let n people answer through a channel; the counts are those of `channel.count`.

    A share `shares[i]` of the population has the truth `answers[i]`: the option i unless given,
    for a bit vector a row of ticks. Takes the same memory whatever n is.

    >>> from survey.mechanism import grr
    >>> population(grr(2, "3/4"), [0.2, 0.8], 1_000_000, np.random.default_rng(1)).sum()
    np.int64(1000000)
    """
    weights = _checked(shares)
    known = np.arange(len(weights)) if answers is None else np.asarray(answers)
    if len(known) != len(weights):
        raise ChannelError(f"{len(weights)} shares need as many answers, not {len(known)}")
    counts = np.zeros(channel.counted, dtype=np.int64)
    size = _chunk_of(channel)
    for start in range(0, n, size):
        # Counts do not depend on the order of people: how many hold each truth is enough, and has
        # the same law as a truth drawn for each.
        held = rng.multinomial(min(size, n - start), weights)
        counts += _counted(channel.perturb(np.repeat(known, held, axis=0), rng), channel.counted)
    return counts


def _checked(shares: Sequence[float]) -> Floats:
    weights = np.asarray(shares, dtype=np.float64)
    if weights.min() < 0 or abs(weights.sum() - 1) > 1e-9:
        raise ChannelError(f"shares must be at least 0 and add up to 1, not {weights.sum():g}")
    # numpy's multinomial wants a sum of 1 to the last digits.
    normalized: Floats = weights / weights.sum()
    return normalized


def _chunk_of(channel: Channel) -> int:
    """People per chunk: as many as an index each takes, fewer where a report is a row of bits."""
    width = 1 if isinstance(channel.longest_code, int) else channel.counted
    return max(1, min(CHUNK, CELLS // width))


def _counted(reports: AnyIntegers, counted: int) -> Integers:
    """Indices, shape (n,), or bits, shape (n, counted), as counts."""
    if reports.ndim == 1:
        return np.bincount(reports, minlength=counted).astype(np.int64)
    supported: Integers = np.sum(reports, axis=0, dtype=np.int64)
    return supported
