"""Simulated respondents: true answers drawn from given shares, in chunks of constant memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from survey.errors import ChannelError

CHUNK = 65_536


def truths(
    shares: Sequence[float], n: int, rng: np.random.Generator
) -> Iterator[NDArray[np.int64]]:
    """Draw n true answers with the given shares (positive, sum 1), chunk by chunk.

    >>> sum(len(chunk) for chunk in truths([0.2, 0.8], 100_000, np.random.default_rng(1)))
    100000
    """
    weights = np.asarray(shares, dtype=np.float64)
    if weights.min() < 0 or abs(weights.sum() - 1) > 1e-9:
        raise ChannelError(f"shares must be at least 0 and add up to 1, not {weights.sum():g}")
    for start in range(0, n, CHUNK):
        yield rng.choice(len(weights), size=min(CHUNK, n - start), p=weights)
