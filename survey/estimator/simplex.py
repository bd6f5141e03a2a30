"""Shares that must not be negative and add up to one: the nearest to an estimate."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survey.estimator.arguments import checked_arguments


@checked_arguments
def norm_sub(estimate: ArrayLike) -> NDArray[np.float64]:
    """The shares nearest to an estimate, by least squares: shape (k,), none negative, sum 1.

    max(pi_j - delta, 0) with the delta that makes the sum 1 ("norm-sub"). For display where there
    is no mle, as for reported sets (d > 1). Not a default: near the edges it is biased towards the
    inside, as every estimate that is a share must be, and its error is no longer known; what is
    added, differenced or exported is the linear estimate.
    Source: Wang, Lopuhaa-Zwakenberg, Li, Skoric, Li 2020, doi 10.14722/ndss.2020.24157.

    Raises ValueError unless all numbers are finite and there is at least one.

    >>> norm_sub([0.7, 0.4, -0.1]).round(4).tolist()
    [0.65, 0.35, 0.0]
    """
    pi = np.asarray(estimate, dtype=np.float64)
    if pi.ndim != 1 or not pi.size or not np.isfinite(pi).all():
        raise ValueError("an estimate must be finite numbers of shape (k,), k at least 1")
    largest_first: NDArray[np.float64] = np.sort(pi)[::-1]
    # With the s largest kept, delta = (their sum - 1)/s.
    delta = (np.cumsum(largest_first) - 1) / np.arange(1, pi.size + 1)
    kept = max(int(np.count_nonzero(largest_first > delta)), 1)
    shares = np.asarray(np.maximum(pi - delta[kept - 1], 0.0))
    total = float(shares.sum())
    # Rounding takes the sum away where numbers are huge.
    return np.asarray(shares / total if total > 0 else np.eye(pi.size)[np.argmax(pi)])
