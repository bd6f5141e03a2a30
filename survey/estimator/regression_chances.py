"""P(the report that came | truth) of every person, whichever channel each one's device ran."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survey.errors import ChannelError, CountsError
from survey.estimator.counts import LARGEST_N
from survey.mechanism import SubsetSelection, WeightTable

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Through = SubsetSelection | WeightTable
"""Channels with one chance for each report."""


class ByGroup(NamedTuple):
    """Channels of one question whose devices differed: person i ran `channels[group[i]]`.

    `group` has shape (n,), whole numbers from 0; None among the channels is a group that answered
    openly. All channels have the same truths; their reports may be of different kinds. Valid when
    the groups differ in what they were promised and not in how they answer: where assignment went
    with the answer, the group belongs among the predictors.

    100 of 400 people say yes openly, 150 of 400 by Warner's cards; both mean 1 in 4:

    >>> from survey.estimator.regression import regression
    >>> from survey.mechanism.classical import warner
    >>> asked = ByGroup([None, warner("3/4")], np.repeat([0, 1], 400))
    >>> reports = np.repeat([0, 1, 0, 1], [300, 100, 250, 150])
    >>> regression(reports, asked).estimate.round(4).tolist()  # ln(1/3)
    [-1.0986]
    """

    channels: Sequence[Through | None]
    group: ArrayLike


def chances(reports: ArrayLike, ran: Through | ByGroup, what: str) -> Floats:
    """P(the report that came | truth), shape (n, truths); `what` is named in errors."""
    codes = whole(reports, what)
    if isinstance(ran, ByGroup):
        channels, group = list(ran.channels), _groups(ran, len(codes), what)
    else:
        channels, group = [ran], np.zeros(len(codes), dtype=np.int64)
    matrices = _matrices(channels, what)
    _check_reports(codes, np.array([M.shape[1] for M in matrices])[group], what)
    there = np.unique(group).tolist()
    _check_told_apart([channels[g] for g in there], [matrices[g] for g in there], what)
    found = np.empty((len(codes), len(matrices[0])))
    for g in there:
        found[group == g] = matrices[g][:, codes[group == g]].T
    return found


def whole(values: ArrayLike, what: str, each: str = "report") -> Integers:
    """Codes of shape (n,), n > 0, checked to be whole numbers from 0."""
    codes: NDArray[Any] = np.asarray(values)
    if codes.ndim != 1:
        raise CountsError(f"{what}: {each}s must have shape (n,), not {codes.shape}")
    if codes.size == 0:
        raise CountsError(f"{what}: n = 0, there are no {each}s")
    if codes.dtype.kind not in "iufb":
        raise CountsError(f"{what}: {each}s must be whole numbers, not {codes.dtype}")
    right = (codes >= 0) & (codes <= LARGEST_N) & (codes == np.floor(codes))
    if not right.all():
        place = int(np.argmin(right))
        raise CountsError(f"{what}: {each} {place} is {codes[place]}, not a whole number from 0")
    return codes.astype(np.int64)


def _groups(ran: ByGroup, n: int, what: str) -> Integers:
    group = whole(ran.group, what, "group")
    if len(group) != n:
        raise CountsError(f"{what}: {len(group)} groups for {n} reports")
    if (group >= len(ran.channels)).any():
        place = int(np.argmax(group >= len(ran.channels)))
        raise CountsError(
            f"{what}: group {place} is {group[place]}, but there are {len(ran.channels)} channels"
        )
    return group


def _matrices(channels: list[Through | None], what: str) -> list[Floats]:
    """One matrix M[truth, report] per channel, the identity where it is None."""
    for channel in channels:
        if channel is not None and not isinstance(channel, SubsetSelection | WeightTable):
            raise ChannelError(f"{what}: a {getattr(channel, 'kind', channel)} is no single report")
        if isinstance(channel, SubsetSelection) and channel.d > 1:
            raise ChannelError(f"{what}: d = {channel.d}; a regression needs reports of one option")
    matrices = [None if channel is None else channel.matrix for channel in channels]
    truths = sorted({len(M) for M in matrices if M is not None})
    if len(truths) != 1:
        raise ChannelError(
            f"{what}: its channels have {truths} truths; all must have the same number, and one at "
            "least must randomize"
        )
    return [np.eye(truths[0]) if M is None else M for M in matrices]


def _check_reports(codes: Integers, sizes: Integers, what: str) -> None:
    if (codes >= sizes).any():
        place = int(np.argmax(codes >= sizes))
        raise CountsError(f"{what}: report {place} is {codes[place]}, above {sizes[place] - 1}")


def _check_told_apart(channels: list[Through | None], matrices: list[Floats], what: str) -> None:
    """Shares are determined if the channels' matrices side by side have as many ranks as truths.

    A table alone may have fewer: what it leaves open, another group's can tell.
    """
    if any(not isinstance(channel, WeightTable) for channel in channels):
        return
    if np.linalg.matrix_rank(np.hstack(matrices)) < len(matrices[0]):
        raise ChannelError(f"{what}: different shares give the same reports through this channel")
