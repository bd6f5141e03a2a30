"""Designs of regressions: coded predictors and outcomes, with the chances of their reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survey.errors import ChannelError, CountsError
from survey.estimator.core.arguments import LARGEST_N, LARGEST_NUMBER, within_reach
from survey.mechanism import SubsetSelection, WeightTable
from survey.mechanism.arrays import Floats, Integers

Through = SubsetSelection | WeightTable
"""Channels with one chance for each report."""


class ByGroup(NamedTuple):
    """Channels of one question whose devices differed: person i ran `channels[group[i]]`.

    `group` has shape (n,), whole numbers from 0; None among the channels is a group that answered
    openly. All channels have the same truths; their reports may be of different kinds. Valid when
    the groups differ in what they were promised and not in how they answer: where assignment went
    with the answer, the group belongs among the predictors.

    100 of 400 people say yes openly, 150 of 400 by Warner's cards; both mean 1 in 4:

    >>> from survey.estimator import regression
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


LARGEST_WORK = 2 * 10**7
"""People x combinations of the randomized predictors' truths x outcomes; 160 MB per array."""

COLLINEAR = 1e-9
"""A column that the others explain to within this part of its size says nothing of its own."""


class Randomized(NamedTuple):
    """A predictor that was itself randomized: its reports, shape (n,), and its channel or channels.

    Truth `baseline` is what the others are held against; each has a coefficient, `name=truth`.
    """

    name: str
    reports: ArrayLike
    channel: Through | ByGroup
    baseline: int = 0


@dataclass(frozen=True, eq=False)
class Design:
    """Everything the likelihood needs. n rows, U combinations of randomized truths, T outcomes.

    outcome     (n, T): P(the report that came | outcome t), the baseline's first
    hidden      (n, U): P(the reports that came | combination u); ones with U = 1 without any
    open        (n, m): 1, then the open predictors, standardized
    dummies     (U, r): which truths of the randomized predictors combination u has
    prior       (n, g): predictors of the combination: those of `open`, or 1 alone
    weights     (n,), above 0: of all people of a row together
    times       (n,), above 0: how many people a row stands for
    names       of the m + r coefficients of each outcome
    answers     (T - 1,): the outcomes that have coefficients, in order
    centre      (m,) and
    scale       (m,): what was taken from the open columns, and what they were divided by
    """

    outcome: Floats
    hidden: Floats
    open: Floats
    dummies: Floats
    prior: Floats
    weights: Floats
    times: Floats
    names: tuple[str, ...]
    answers: tuple[int, ...]
    centre: Floats
    scale: Floats

    @cached_property
    def log_outcome(self) -> Floats:
        """log of `outcome`; -inf where an outcome that was answered openly was another one."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.outcome))

    @cached_property
    def log_hidden(self) -> Floats:
        """log of `hidden`; -inf where a predictor of a group that answered openly was another."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.hidden))

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.open)

    @property
    def people(self) -> int:
        """How many people the rows stand for."""
        return round(float(self.times.sum()))

    @property
    def outcomes(self) -> int:
        """T, categories of the outcome."""
        return int(self.outcome.shape[1])

    @property
    def combinations(self) -> int:
        """U, combinations of the randomized predictors' truths."""
        return int(self.hidden.shape[1])


def make_design(
    reports: ArrayLike,
    channel: Through | ByGroup | None,
    predictors: ArrayLike | None,
    names: Sequence[str] | None,
    randomized: Sequence[Randomized],
    weights: ArrayLike | None,
    *,
    prior_on_open: bool,
    times: ArrayLike | None = None,
    baseline: int = 0,
) -> Design:
    """Check everything and put it together; see `regression` for what is refused."""
    outcome = _outcome(reports, channel)
    n = len(outcome)
    order = _order(outcome.shape[1], baseline, "the outcome")
    open_, labels = _open_columns(predictors, names, n)
    hidden = _hidden(randomized, n)
    sizes = [theirs.shape[1] for theirs in hidden]
    _check_work(n, sizes, outcome.shape[1])
    standard, centre, scale = _standardized(open_, labels)
    orders = [
        _order(k, one.baseline, f"predictor {one.name!r}")
        for one, k in zip(randomized, sizes, strict=True)
    ]
    truths = [f"{one.name}={t}" for one, of in zip(randomized, orders, strict=True) for t in of[1:]]
    people = _checked_weights(times, n, "times")
    return Design(
        outcome=outcome[:, order],
        hidden=_joint([theirs[:, of] for theirs, of in zip(hidden, orders, strict=True)], n),
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


def _hidden(randomized: Sequence[Randomized], n: int) -> list[Floats]:
    """P(report | truth) of each randomized predictor, shapes (n, truths of it)."""
    hidden = [chances(one.reports, one.channel, f"predictor {one.name!r}") for one in randomized]
    for one, theirs in zip(randomized, hidden, strict=True):
        if len(theirs) != n:
            raise CountsError(f"predictor {one.name!r} has {len(theirs)} reports for {n} people")
    return hidden


def _check_work(n: int, sizes: Sequence[int], outcomes: int) -> None:
    """Refuse what would take more memory and time than anybody has."""
    combinations = int(np.prod(sizes, dtype=np.int64))
    if n * combinations * outcomes > LARGEST_WORK:
        raise CountsError(
            f"{n:,} people x {combinations:,} combinations of randomized predictors x "
            f"{outcomes} outcomes is above {LARGEST_WORK:,}: use fewer of them"
        )


def _outcome(reports: ArrayLike, channel: Through | ByGroup | None) -> Floats:
    if channel is not None:
        return chances(reports, channel, "the outcome")
    codes = whole(reports, "the outcome")
    k = int(codes.max()) + 1
    if k < 2:
        raise CountsError("the outcome was 0 for everybody: there is nothing to explain")
    if len(codes) * k > LARGEST_WORK:
        raise CountsError(
            f"the outcome: {len(codes):,} people x {k:,} answers is above {LARGEST_WORK:,}; "
            "are its codes 0, 1, 2, ...?"
        )
    return np.asarray(codes[:, None] == np.arange(k), dtype=np.float64)


def _open_columns(
    predictors: ArrayLike | None, names: Sequence[str] | None, n: int
) -> tuple[Floats, list[str]]:
    """1 and the open predictors, shape (n, m), with their names."""
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
        raise ValueError(f"{len(labels)} names for {columns.shape[1]} open predictors")
    return np.column_stack([np.ones(n), columns]), ["intercept", *labels]


def _standardized(columns: Floats, labels: list[str]) -> tuple[Floats, Floats, Floats]:
    """Columns with mean 0 and deviation 1, the first as it is; refuses constant and collinear."""
    centre, scale = columns.mean(axis=0), columns.std(axis=0)
    centre[0], scale[0] = 0.0, 1.0
    constant = scale <= COLLINEAR * np.maximum(np.abs(centre), 1e-300)
    if constant.any():
        raise CountsError(
            f"predictor {labels[int(np.argmax(constant))]!r} is the same for everybody"
        )
    standard = (columns - centre) / scale
    # |R_jj| is what is left of column j without those before it.
    left = np.abs(np.diagonal(np.linalg.qr(standard, mode="r")))
    if len(left) < len(labels) or left.min() <= COLLINEAR * np.sqrt(len(columns)):
        place = int(np.argmin(left)) if len(left) == len(labels) else len(labels) - 1
        raise CountsError(f"predictor {labels[place]!r} is a combination of the others")
    return standard, centre, scale


def _order(truths: int, baseline: int, what: str) -> list[int]:
    """All truths, the baseline first."""
    if not 0 <= baseline < truths:
        raise ValueError(f"{what}: baseline {baseline} is not one of its {truths} truths")
    return [baseline, *(t for t in range(truths) if t != baseline)]


def _checked_weights(weights: ArrayLike | None, n: int, what: str) -> Floats:
    if weights is None:
        return np.ones(n)
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (n,):
        raise CountsError(f"{what} of shape {w.shape} must have shape ({n},)")
    wrong = ~(within_reach(w) & (w > 0))
    if wrong.any():
        place = int(np.argmax(wrong))
        raise CountsError(f"{what}[{place}] = {w[place]}: each must be above 0 and finite")
    return np.asarray(w)


def _joint(hidden: list[Floats], n: int) -> Floats:
    """P(all reports | combination), the last predictor's truth changing fastest, shape (n, U)."""
    start = np.ones((n, 1))
    return np.asarray(
        reduce(lambda a, b: (a[:, :, None] * b[:, None, :]).reshape(n, -1), hidden, start)
    )


def _dummies(sizes: list[int]) -> Floats:
    """1 where combination u has that truth of that predictor, the first truths left out."""
    combinations = int(np.prod(sizes, dtype=np.int64))
    truths = np.indices(sizes).reshape(len(sizes), combinations)
    columns = [held == t for held, k in zip(truths, sizes, strict=True) for t in range(1, k)]
    return np.array(columns, dtype=np.float64).reshape(len(columns), combinations).T
