"""Design matrices of regressions: coded predictors, outcomes, and chances of their reports."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survey.errors import ChannelError, CountsError
from survey.estimator.core.arguments import LARGEST_N, LARGEST_NUMBER, CodeChannel, within_reach
from survey.mechanism import SubsetSelection, WeightTable
from survey.mechanism.channel import Booleans, Floats, Integers
from survey.mechanism.joint_response import marginal_response


class ByGroup(NamedTuple):
    """Channels of one question if groups of devices differ: person i has `channels[group[i]]`.

    `group` has shape (n,), whole numbers from 0. None among the channels means a group that
    answered without randomization. All channels have the same truths; their reports may be of
    different kinds. Valid if the groups differ in their channel and not in their answers. If
    assignment depends on the answer, the group belongs among the predictors.

    100 of 400 people answer yes without randomization, 150 of 400 by Warner's cards; both mean 1 in
    4:

    >>> from survey.estimator import regression
    >>> from survey.mechanism.randomized_response import warner
    >>> by_group = ByGroup([None, warner("3/4")], np.repeat([0, 1], 400))
    >>> reports = np.repeat([0, 1, 0, 1], [300, 100, 250, 150])
    >>> regression(reports, by_group).estimate.round(4).tolist()  # ln(1/3)
    [-1.0986]
    """

    channels: Sequence[CodeChannel | None]
    group: ArrayLike


def chances(reports: ArrayLike, channel_of: CodeChannel | ByGroup, name: str) -> Floats:
    """Return P(report | truth) of each report, shape (n, truths); errors contain `name`."""
    codes = whole_codes(reports, name)
    if isinstance(channel_of, ByGroup):
        channels, group = list(channel_of.channels), _groups(channel_of, len(codes), name)
    else:
        channels, group = [channel_of], np.zeros(len(codes), dtype=np.int64)
    matrices = _matrices(channels, name)
    sizes = np.array([M.shape[1] for M in matrices])[group]
    if (codes >= sizes).any():
        report = int(np.argmax(codes >= sizes))
        raise CountsError(f"{name}: report {report} is {codes[report]}, above {sizes[report] - 1}")
    occurring = np.unique(group).tolist()
    _check_identified([channels[g] for g in occurring], [matrices[g] for g in occurring], name)
    probabilities = np.empty((len(codes), len(matrices[0])))
    for g in occurring:
        probabilities[group == g] = matrices[g][:, codes[group == g]].T
    return probabilities


def whole_codes(values: ArrayLike, name: str, item: str = "report") -> Integers:
    """Return codes of shape (n,), n > 0, checked to be whole numbers from 0."""
    codes: NDArray[Any] = np.asarray(values)
    if codes.ndim != 1:
        raise CountsError(f"{name}: {item}s must have shape (n,), not {codes.shape}")
    if codes.size == 0:
        raise CountsError(f"{name}: n = 0, there are no {item}s")
    if codes.dtype.kind not in "iufb":
        raise CountsError(f"{name}: {item}s must be whole numbers, not {codes.dtype}")
    right = (codes >= 0) & (codes <= LARGEST_N) & (codes == np.floor(codes))
    if not right.all():
        place = int(np.argmin(right))
        raise CountsError(f"{name}: {item} {place} is {codes[place]}, not a whole number from 0")
    return codes.astype(np.int64)


def _groups(by_group: ByGroup, n: int, name: str) -> Integers:
    group = whole_codes(by_group.group, name, "group")
    if len(group) != n:
        raise CountsError(
            f"{name}: each report must have a group (found {len(group)} groups for {n} reports)"
        )
    if (group >= len(by_group.channels)).any():
        position = int(np.argmax(group >= len(by_group.channels)))
        raise CountsError(
            f"{name}: group {position} is {group[position]}, but there are "
            f"{len(by_group.channels)} channels"
        )
    return group


def _matrices(channels: list[CodeChannel | None], name: str) -> list[Floats]:
    """Return one matrix M[truth, report] per channel, the identity for None."""
    for channel in channels:
        if channel is not None and not isinstance(channel, CodeChannel):
            raise ChannelError(
                f"{name}: a {getattr(channel, 'kind', channel)} does not report a single option"
            )
        if isinstance(channel, SubsetSelection) and channel.d > 1:
            raise ChannelError(f"{name}: d = {channel.d}; a regression needs reports of one option")
    matrices = [None if channel is None else channel.matrix for channel in channels]
    truths = sorted({len(M) for M in matrices if M is not None})
    if len(truths) != 1:
        raise ChannelError(
            f"{name}: its channels have {truths} truths; all must have the same number, and at "
            "least one must randomize"
        )
    return [np.eye(truths[0]) if M is None else M for M in matrices]


def _check_identified(
    channels: list[CodeChannel | None], matrices: list[Floats], name: str
) -> None:
    """Raise ChannelError unless the matrices side by side have as many ranks as truths.

    The channels then determine all shares. A table alone may have a lower rank, if the channel of
    another group determines the remainder.
    """
    if any(not isinstance(channel, WeightTable) for channel in channels):
        return
    if np.linalg.matrix_rank(np.hstack(matrices)) < len(matrices[0]):
        raise ChannelError(f"{name}: different shares give the same reports through this channel")


MAX_WORK = 2 * 10**7
"""People x combinations of the randomized predictors' truths x outcomes; 160 MB per array."""

COLLINEAR = 1e-9
"""A column is redundant if the others explain all but this fraction of its size."""


class Randomized(NamedTuple):
    """A predictor that was randomized: its reports, shape (n,), and its channel or channels.

    Each truth except `baseline` has a coefficient, `name=truth`, relative to the baseline.
    """

    name: str
    reports: ArrayLike
    channel: CodeChannel | ByGroup
    baseline: int = 0


class JointlyRandomized(NamedTuple):
    """Questions whose answers were randomized as one, and their channel over all combinations.

    `places` are 0 for the outcome and i for the i-th of `randomized`. The `channel` of each of them
    is its part of this one (`survey.mechanism.joint_response`).
    """

    channel: SubsetSelection
    places: Sequence[int]


@dataclass(frozen=True, eq=False)
class Design:
    """All inputs of the likelihood: n rows, U combinations of randomized truths, T outcomes.

    outcome     (n, T): P(report | outcome t), the baseline's first
    randomized  (n, U): P(reports | combination u); ones with U = 1 without any
    open        (n, m): 1, then the predictors without randomization, standardized
    dummies     (U, r): which truths of the randomized predictors combination u has
    prior       (n, g): predictors of the combination: those of `open`, or 1 alone
    weights     (n,), above 0: of all people of a row together
    times       (n,), above 0: number of people that a row represents
    names       of the m + r coefficients of each outcome
    answers     (T - 1,): the outcomes that have coefficients, in order
    centre      (m,): means subtracted from the open columns
    scale       (m,): deviations by which they were divided
    together    (n, U, T): P(all reports | combination u, outcome t) with joint responses; None if
                it is the product of `randomized` and `outcome`
    """

    outcome: Floats
    randomized: Floats
    open: Floats
    dummies: Floats
    prior: Floats
    weights: Floats
    times: Floats
    names: tuple[str, ...]
    answers: tuple[int, ...]
    centre: Floats
    scale: Floats
    together: Floats | None = None

    @cached_property
    def log_chances(self) -> Floats:
        """Return log P(all reports | combination u, outcome t), shape (n, U, T).

        -inf for truths that an exact answer excludes.
        """
        with np.errstate(divide="ignore"):
            if self.together is not None:
                return np.asarray(np.log(self.together))
            return np.asarray(np.log(self.randomized)[:, :, None] + np.log(self.outcome)[:, None])

    @property
    def n(self) -> int:
        """Return the number of rows."""
        return len(self.open)

    @property
    def people(self) -> int:
        """Return the number of people that the rows represent."""
        return round(float(self.times.sum()))

    @property
    def outcomes(self) -> int:
        """Return T, the number of categories of the outcome."""
        return int(self.outcome.shape[1])

    @property
    def combinations(self) -> int:
        """Return U, the number of combinations of the randomized predictors' truths."""
        return int(self.randomized.shape[1])


def make_design(
    reports: ArrayLike,
    channel: CodeChannel | ByGroup | None,
    predictors: ArrayLike | None,
    names: Sequence[str] | None,
    randomized: Sequence[Randomized],
    weights: ArrayLike | None,
    *,
    prior_on_open: bool,
    times: ArrayLike | None = None,
    baseline: int = 0,
    joint: Sequence[JointlyRandomized] = (),
) -> Design:
    """Check all arguments and return the design; see `regression` for the errors."""
    outcome = _outcome(reports, channel)
    n = len(outcome)
    order = _order(outcome.shape[1], baseline, "the outcome")
    open_, labels = _open_columns(predictors, names, n)
    probabilities = _randomized_chances(randomized, n)
    sizes = [matrix.shape[1] for matrix in probabilities]
    combinations, outcomes = int(np.prod(sizes, dtype=np.int64)), outcome.shape[1]
    if n * combinations * outcomes > MAX_WORK:
        raise CountsError(
            f"{n:,} people x {combinations:,} combinations of randomized predictors x "
            f"{outcomes} outcomes is above {MAX_WORK:,}: use fewer of them"
        )
    standard, centre, scale = _standardized(open_, labels)
    orders = [
        _order(k, predictor.baseline, f"predictor {predictor.name!r}")
        for predictor, k in zip(randomized, sizes, strict=True)
    ]
    truths = [
        f"{predictor.name}={t}"
        for predictor, truth_order in zip(randomized, orders, strict=True)
        for t in truth_order[1:]
    ]
    people = _checked_weights(times, n, "times")
    ordered = [
        matrix[:, truth_order] for matrix, truth_order in zip(probabilities, orders, strict=True)
    ]
    together = None
    if joint:
        _check_jointly_randomized(joint, channel, randomized)
        codes = [whole_codes(values, "") for values in (reports, *(r.reports for r in randomized))]
        agreement = [
            column[:, None] == np.array(truth_order)
            for column, truth_order in zip(codes, [order, *orders], strict=True)
        ]
        together = _chances_together([outcome[:, order], *ordered], agreement, joint)
    return Design(
        together=together,
        outcome=outcome[:, order],
        randomized=_joint(ordered, n),
        open=standard,
        dummies=_dummies(sizes),
        prior=standard if prior_on_open else np.ones((n, 1)),
        weights=people * _checked_weights(weights, n, "weights"),
        times=people,
        names=(*labels, *truths),
        answers=tuple(order[1:]),
        centre=centre,
        scale=scale,
    )


def _randomized_chances(randomized: Sequence[Randomized], n: int) -> list[Floats]:
    """Return P(report | truth) of each randomized predictor, shapes (n, truths)."""
    probabilities = [
        chances(predictor.reports, predictor.channel, f"predictor {predictor.name!r}")
        for predictor in randomized
    ]
    for predictor, matrix in zip(randomized, probabilities, strict=True):
        if len(matrix) != n:
            raise CountsError(
                f"predictor {predictor.name!r} has {len(matrix)} reports for {n} people"
            )
    return probabilities


def _outcome(reports: ArrayLike, channel: CodeChannel | ByGroup | None) -> Floats:
    if channel is not None:
        return chances(reports, channel, "the outcome")
    codes = whole_codes(reports, "the outcome")
    k = int(codes.max()) + 1
    if k < 2:
        raise CountsError("the outcome is 0 for everybody, so there is nothing to explain")
    if len(codes) * k > MAX_WORK:
        raise CountsError(
            f"the outcome: {len(codes):,} people x {k:,} answers is above {MAX_WORK:,}; "
            "check that its codes are 0, 1, 2, ..."
        )
    return np.asarray(codes[:, None] == np.arange(k), dtype=np.float64)


def _open_columns(
    predictors: ArrayLike | None, names: Sequence[str] | None, n: int
) -> tuple[Floats, list[str]]:
    """Return 1 and the predictors without randomization, shape (n, m), with their names."""
    columns = np.empty((n, 0)) if predictors is None else np.asarray(predictors, dtype=np.float64)
    columns = columns[:, None] if columns.ndim == 1 else columns
    if columns.ndim != 2 or len(columns) != n:
        raise CountsError(f"predictors of shape {columns.shape} must have shape ({n}, columns)")
    if not within_reach(columns).all():
        row, column = np.argwhere(~within_reach(columns))[0]
        raise CountsError(
            f"predictors[{row}, {column}] = {columns[row, column]}: must be a finite number of "
            f"at most {LARGEST_NUMBER:g}; leave out people with missing values"
        )
    labels = [f"x{place}" for place in range(columns.shape[1])] if names is None else list(names)
    if len(labels) != columns.shape[1]:
        raise ValueError(f"{len(labels)} names for {columns.shape[1]} predictors")
    return np.column_stack([np.ones(n), columns]), ["intercept", *labels]


def _standardized(columns: Floats, labels: list[str]) -> tuple[Floats, Floats, Floats]:
    """Return columns with mean 0 and deviation 1, except the first; reject redundant columns."""
    centre, scale = columns.mean(axis=0), columns.std(axis=0)
    centre[0], scale[0] = 0.0, 1.0
    constant = scale <= COLLINEAR * np.maximum(np.abs(centre), 1e-300)
    if constant.any():
        raise CountsError(
            f"predictor {labels[int(np.argmax(constant))]!r} is the same for everybody"
        )
    standard = (columns - centre) / scale
    # |R_jj| is the size of column j after removing the columns before it.
    remainder = np.abs(np.diagonal(np.linalg.qr(standard, mode="r")))
    if len(remainder) < len(labels) or remainder.min() <= COLLINEAR * np.sqrt(len(columns)):
        column = int(np.argmin(remainder)) if len(remainder) == len(labels) else len(labels) - 1
        raise CountsError(f"predictor {labels[column]!r} is a combination of the others")
    return standard, centre, scale


def _order(truths: int, baseline: int, name: str) -> list[int]:
    """Return all truths, the baseline first."""
    if not 0 <= baseline < truths:
        raise ValueError(f"{name}: baseline {baseline} is not one of its {truths} truths")
    return [baseline, *(t for t in range(truths) if t != baseline)]


def _checked_weights(weights: ArrayLike | None, n: int, name: str) -> Floats:
    if weights is None:
        return np.ones(n)
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (n,):
        raise CountsError(f"{name} of shape {w.shape} must have shape ({n},)")
    wrong = ~(within_reach(w) & (w > 0))
    if wrong.any():
        position = int(np.argmax(wrong))
        raise CountsError(f"{name}[{position}] = {w[position]}: each must be above 0 and finite")
    return np.asarray(w)


def _check_jointly_randomized(
    joint: Sequence[JointlyRandomized],
    channel: CodeChannel | ByGroup | None,
    randomized: Sequence[Randomized],
) -> None:
    """Raise ChannelError unless each joint channel has the channels of its questions as parts."""
    channels = [channel, *(predictor.channel for predictor in randomized)]
    places = [place for group in joint for place in group.places]
    if len(set(places)) < len(places) or not set(places) <= set(range(len(channels))):
        raise ChannelError(
            f"places {places} of joint responses must be different numbers from 0 to "
            f"{len(channels) - 1}"
        )
    for group in joint:
        parts = [channels[place] for place in group.places]
        sizes = [part.k if isinstance(part, SubsetSelection) else 0 for part in parts]
        if math.prod(sizes) != group.channel.k or group.channel.d > 1:
            raise ChannelError(
                f"a joint channel of {group.channel.k} combinations, d = {group.channel.d}, does "
                f"not belong to questions of {sizes} options"
            )
        for part, size in zip(parts, sizes, strict=True):
            expected = marginal_response(group.channel, size)
            if isinstance(part, SubsetSelection) and part.ratio != expected.ratio:
                raise ChannelError(f"{part} is no part of the joint channel {group.channel}")


def _chances_together(
    probabilities: list[Floats], agreement: list[Booleans], joint: Sequence[JointlyRandomized]
) -> Floats:
    """Return P(all reports | combination u, outcome t), shape (n, U, T); the outcome comes first.

    A joint response has the probability q + (p-q) [every report is the truth].
    """
    n = len(probabilities[0])
    sizes = [matrix.shape[1] for matrix in probabilities]

    def along_axis(matrix: Floats | Booleans, place: int) -> NDArray[Any]:
        # The axes are people, predictors in their order, and the outcome.
        axes = [1] * len(sizes)
        axes[place - 1] = sizes[place]
        return np.asarray(matrix).reshape(n, *axes)

    chances_of_all = np.ones((n, *sizes[1:], sizes[0]))
    for place in set(range(len(sizes))) - {place for group in joint for place in group.places}:
        chances_of_all = chances_of_all * along_axis(probabilities[place], place)
    for channel, places in joint:
        agrees = reduce(np.multiply, [along_axis(agreement[place], place) for place in places])
        chances_of_all = chances_of_all * (channel.q + (channel.p - channel.q) * agrees)
    return np.asarray(chances_of_all.reshape(n, -1, sizes[0]))


def _joint(probabilities: list[Floats], n: int) -> Floats:
    """Return P(all reports | combination), shape (n, U); the last predictor changes fastest."""
    start = np.ones((n, 1))
    return np.asarray(
        reduce(lambda a, b: (a[:, :, None] * b[:, None, :]).reshape(n, -1), probabilities, start)
    )


def _dummies(sizes: list[int]) -> Floats:
    """Return 1 where combination u has that truth of that predictor, without the first truths."""
    combinations = int(np.prod(sizes, dtype=np.int64))
    truths = np.indices(sizes).reshape(len(sizes), combinations)
    columns = [row == t for row, k in zip(truths, sizes, strict=True) for t in range(1, k)]
    return np.array(columns, dtype=np.float64).reshape(len(columns), combinations).T
