"""Design matrices of regressions: coded predictors, outcomes, and chances of their reports."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
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


class Devices(NamedTuple):
    """The devices of one question: matrices P(report | truth), and the matrix of each person.

    `order` are the truths, the baseline first; rows of the matrices are in this order. `group` has
    shape (n,).
    """

    matrices: list[Floats]
    group: Integers
    order: list[int]

    def chances(self, codes: Integers) -> Floats:
        """Return P(report | truth) of each person's report, shape (n, truths)."""
        probabilities = np.empty((len(codes), len(self.order)))
        for g in np.unique(self.group).tolist():
            probabilities[self.group == g] = self.matrices[g][:, codes[self.group == g]].T
        return probabilities


def _devices(
    codes: Integers, channel_of: CodeChannel | ByGroup, baseline: int, name: str
) -> Devices:
    """Return the devices that sent these reports; errors contain `name`."""
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
    order = baseline_first(len(matrices[0]), baseline, name)
    return Devices([M[order] for M in matrices], group, order)


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
    """Questions whose answers were randomized jointly, and their channel over all combinations.

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
    devices     those of the outcome, then of each randomized predictor
    joint       responses that answer several of these questions
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
    together: Floats | None
    devices: tuple[Devices, ...]
    joint: Sequence[JointlyRandomized]

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
    def is_randomized(self) -> bool:
        """Return whether a device randomized the outcome or a predictor."""
        return any(
            not np.array_equal(matrix, np.eye(len(matrix))[part.order])
            for part in self.devices
            for matrix in part.matrices
        )

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
    codes = [whole_codes(reports, "the outcome")]
    devices = [_outcome_devices(codes[0], channel, baseline)]
    n, outcomes = len(codes[0]), len(devices[0].order)
    open_, labels = open_columns(predictors, names, n)
    for predictor in randomized:
        name = f"predictor {predictor.name!r}"
        codes.append(whole_codes(predictor.reports, name))
        devices.append(_devices(codes[-1], predictor.channel, predictor.baseline, name))
        if len(codes[-1]) != n:
            raise CountsError(f"{name} has {len(codes[-1])} reports for {n} people")
    sizes = [len(part.order) for part in devices[1:]]
    combinations = int(np.prod(sizes, dtype=np.int64))
    if n * combinations * outcomes > MAX_WORK:
        raise CountsError(
            f"{n:,} people x {combinations:,} combinations of randomized predictors x "
            f"{outcomes} outcomes is above {MAX_WORK:,}: use fewer of them"
        )
    standard, centre, scale = _standardized(open_, labels)
    truths = [
        f"{predictor.name}={t}"
        for predictor, part in zip(randomized, devices[1:], strict=True)
        for t in part.order[1:]
    ]
    people = _checked_weights(times, n, "times")
    _check_jointly_randomized(joint, channel, randomized)
    outcome, of_combination, together = _chances(devices, codes, joint)
    return Design(
        outcome=outcome,
        randomized=of_combination,
        together=together,
        open=standard,
        dummies=_dummies(sizes),
        prior=standard if prior_on_open else np.ones((n, 1)),
        weights=people * _checked_weights(weights, n, "weights"),
        times=people,
        names=(*labels, *truths),
        answers=tuple(devices[0].order[1:]),
        centre=centre,
        scale=scale,
        devices=tuple(devices),
        joint=joint,
    )


def _outcome_devices(
    codes: Integers, channel: CodeChannel | ByGroup | None, baseline: int
) -> Devices:
    if channel is not None:
        return _devices(codes, channel, baseline, "the outcome")
    k = int(codes.max()) + 1
    if k < 2:
        raise CountsError("the outcome is 0 for everybody, so there is nothing to explain")
    if len(codes) * k > MAX_WORK:
        raise CountsError(
            f"the outcome: {len(codes):,} people x {k:,} answers is above {MAX_WORK:,}; "
            "check that its codes are 0, 1, 2, ..."
        )
    order = baseline_first(k, baseline, "the outcome")
    return Devices([np.eye(k)[order]], np.zeros(len(codes), dtype=np.int64), order)


def _chances(
    devices: Sequence[Devices], codes: Sequence[Integers], joint: Sequence[JointlyRandomized]
) -> tuple[Floats, Floats, Floats | None]:
    """Return `outcome`, `randomized` and `together` of a design with these reports."""
    chances = [part.chances(column) for part, column in zip(devices, codes, strict=True)]
    together = None
    if joint:
        agreement = [
            column[:, None] == np.array(part.order)
            for part, column in zip(devices, codes, strict=True)
        ]
        together = _chances_together(chances, agreement, joint)
    return chances[0], _joint(chances[1:], len(codes[0])), together


def possible_reports(design: Design) -> Design:
    """Return a design with a row for every combination of reports that people could send.

    People with equal predictors and devices share their rows; `times` is their number. With the
    probability of each row, an expectation over all reports is a sum over rows.

    Raises CountsError if the rows are too many.
    """
    groups = np.stack([part.group for part in design.devices], axis=1)
    rows = np.concatenate([design.open, groups], axis=1)
    distinct, people = np.unique(rows, axis=0, return_inverse=True)
    times = np.bincount(people.ravel(), design.times)
    m = design.open.shape[1]
    groups = distinct[:, m:].astype(np.int64)
    members, reports = [], []
    for combination in np.unique(groups, axis=0):
        same = np.flatnonzero((groups == combination).all(axis=1))
        sizes = [
            part.matrices[g].shape[1] for part, g in zip(design.devices, combination, strict=True)
        ]
        n_rows = len(same) * math.prod(sizes)
        if n_rows * design.combinations * design.outcomes > MAX_WORK:
            raise CountsError(
                f"{len(same):,} different people x {math.prod(sizes):,} possible reports is too "
                "much for a penalty: use fewer predictors, or round their values"
            )
        members.append(np.repeat(same, math.prod(sizes)))
        reports.append(np.tile(np.indices(sizes).reshape(len(sizes), -1), len(same)))
    member, codes = np.concatenate(members), np.concatenate(reports, axis=1)
    devices = [
        part._replace(group=column)
        for part, column in zip(design.devices, groups[member].T, strict=True)
    ]
    outcome, randomized, together = _chances(devices, list(codes), design.joint)
    chances = randomized[:, :, None] * outcome[:, None, :] if together is None else together
    is_possible = chances.max(axis=(1, 2)) > 0
    open_ = distinct[member[is_possible], :m]
    return replace(
        design,
        outcome=outcome[is_possible],
        randomized=randomized[is_possible],
        together=None if together is None else together[is_possible],
        open=open_,
        prior=open_ if design.prior.shape[1] == m else np.ones((len(open_), 1)),
        weights=times[member[is_possible]],
        times=times[member[is_possible]],
    )


def open_columns(
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


def baseline_first(truths: int, baseline: int, name: str) -> list[int]:
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
