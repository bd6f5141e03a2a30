"""Conditional shares P(a | b) from a cross-tab, refused where b is not clearly there at all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from survey.errors import NoBaseError
from survey.estimator.core.arguments import checked_arguments, checked_level, checked_whole
from survey.estimator.core.ratio import RATIOS, Moments, ratio_interval
from survey.estimator.core.result import Result
from survey.estimator.tables.axes import Axis, along, axis
from survey.estimator.tables.crosstab import Crosstab
from survey.mechanism.arrays import Booleans, Floats, Integers


@dataclass(frozen=True, eq=False, repr=False)
class Conditional(Result):
    """Estimated shares of one question's answers among those who gave another's; shape (a, b).

    estimate     P(a | b), a ratio of two linear estimates; may lie outside [0, 1]
    std_error    by the delta method, never below what randomization alone gives
    conf_low     ends of Fieller's interval, in [0, 1], never of zero width
    conf_high
    options      the answers b, shape (b,)
    n            reports, of whatever answer
    level        asked coverage of each interval
    method       "fieller"
    """

    estimate: Floats
    std_error: Floats
    conf_low: Floats
    conf_high: Floats
    options: Integers
    n: int
    level: float
    method: str

    @property
    def index_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Row: the answer; column: the place in `options` of the answer it is conditional on."""
        return ("share_of", "given")


@checked_arguments
def conditional(
    result: Crosstab,
    given: int,
    *,
    of: int | None = None,
    options: list[int] | None = None,
    level: float | None = None,
) -> Conditional:
    """Estimate P(answer a to question `of` | answer b to question `given`).

    `result` is a cross-tab; `given` and `of` are places of its questions (`of` may be left out of
    a table of two). `options` are the answers b that are asked about: all unless given. Always
    the linear estimates are divided, whatever the method of the cross-tab was.

    Fieller's interval inverts a test of E[(g_a - r) h_b] = 0, so it is right also where the
    ratio's distribution is skewed; its variance is at least what randomization alone gives at
    that r. Coverage at .95, simulated (tests/estimator/tables): at least .93.

    Raises NoBaseError where P(b) is not clearly above 0, that is where it is less than a
    half width: then the reports say nothing about those people alone, and no interval shorter
    than [0, 1] covers. ValueError for questions or options that are not there.
    Sources: Fieller 1954; Newcombe 1998.

    >>> from survey.estimator import crosstab
    >>> from survey.mechanism import grr
    >>> table = crosstab([[3000, 2000], [2000, 3000]], [grr(2, "3/4"), grr(2, "3/4")])
    >>> conditional(table, given=1).estimate.round(2).tolist()
    [[0.9, 0.1], [0.1, 0.9]]
    """
    level = result.level if level is None else level
    checked_level(level)
    of = _other_question(len(result.made_from.channels), given, of)
    channels, counts = result.marginal_counts((of, given))
    rows, columns = (axis(channel) for channel in channels)
    f = counts / result.n
    asked = _checked_options(options, len(columns.means))
    moments = _Means(rows, columns, f)
    shares, squares = moments.single[asked], moments.square[asked]
    clear = clearly_there(shares, squares, result.n, level)
    if not clear.all():
        missing = [b for b, there in zip(asked, clear, strict=True) if not there]
        raise NoBaseError(
            f"P(question {given} = {missing}) is not clearly above 0 with n = {result.n}: shares "
            "among those people cannot be told; ask about other options"
        )
    ratios = [[moments.ratio(a, b, result.n, level) for b in asked] for a in range(moments.truths)]
    # Ratios are those of 2 a - b, in [-1, 1].
    values = np.array(ratios, dtype=np.float64)
    return Conditional(
        estimate=(values[..., 0] + 1) / 2,
        std_error=values[..., 1] / 2,
        conf_low=np.clip((values[..., 2] + 1) / 2, 0.0, 1.0),
        conf_high=np.clip((values[..., 3] + 1) / 2, 0.0, 1.0),
        options=np.array(asked, dtype=np.int64),
        n=result.n,
        level=level,
        method="fieller",
    )


class _Means:
    """Means of g_a h_b, h_b and their products over the reports, and the least they scatter."""

    def __init__(self, rows: Axis, columns: Axis, f: Floats) -> None:
        margin = f.sum(axis=0) / rows.each
        self.truths = len(rows.means)
        self.joint = along(f, [rows.means, columns.means])
        self.single = columns.means @ margin
        # E[g^2 h^2], E[g h^2] and E[h^2].
        self.both = along(f, [rows.squares, columns.squares])
        self.half = along(f, [rows.means, columns.squares])
        self.square = columns.squares @ margin
        self.rows, self.columns = rows, columns

    def ratio(self, a: int, b: int, n: int, level: float) -> tuple[float, float, float, float]:
        """Ratio of 2 g_a h_b - h_b to h_b."""
        found = ratio_interval(self._moments(a, b, n), self._floor(a, b), 0.0, n, level)
        return float(found.estimate), float(found.std_error), float(found.low), float(found.high)

    def _moments(self, a: int, b: int, n: int) -> Moments:
        A, B = 2 * self.joint[a, b] - self.single[b], self.single[b]
        aa = 4 * self.both[a, b] - 4 * self.half[a, b] + self.square[b]
        ab = 2 * self.half[a, b] - self.square[b]
        unbiased = n / max(n - 1, 1)
        return Moments(
            A,
            B,
            unbiased * (aa - A**2),
            unbiased * (ab - A * B),
            unbiased * (self.square[b] - B**2),
        )

    def _floor(self, a: int, b: int) -> Floats:
        """The least E[(2 g_a - 1 - r)^2 h_b^2] among people of whom P(b) is as estimated.

        It is s (x w_aa + (1-x) min w_ia) + (1-s) min w_ij, s = P(b), x = (1+r)/2 = P(a | b), with
        w_ij = E[(2 g_a - 1 - r)^2 | i] E[h_b^2 | j].
        """
        t = 1 + RATIOS[:, None]
        # E[g_a | i] = [i = a].
        mean = np.eye(self.truths)[a]
        w = 4 * self.rows.by_truth[a] - 4 * t * mean + t**2
        own, other = w[:, a], np.delete(w, a, axis=1).min(axis=1)
        there = self.columns.by_truth[b, b]
        apart = np.delete(self.columns.by_truth[b], b).min()
        s, x = min(max(float(self.single[b]), 0.0), 1.0), (1 + RATIOS) / 2
        least = s * there * (x * own + (1 - x) * other)
        return np.asarray(least + (1 - s) * apart * np.minimum(own, other))


def clearly_there(share: Floats, square: Floats, n: int, level: float) -> Booleans:
    """Whether P(b) is further above 0 than half its interval is wide (Fieller's condition).

    `share` is the mean of h_b over the reports and `square` that of h_b^2.
    """
    from scipy.special import stdtrit

    if n < 2:
        return np.zeros(share.shape, dtype=np.bool_)
    variance = np.maximum(square - share**2, 0.0) / (n - 1)
    # Fieller's interval is bounded when B > t SE(B).
    t = float(stdtrit(n - 1, (1 + level) / 2))
    return np.asarray(t * np.sqrt(variance) < share)


def _other_question(questions: int, given: int, of: int | None) -> int:
    places = range(questions)
    given = checked_whole(given, "given", ValueError)
    of = None if of is None else checked_whole(of, "of", ValueError)
    if of is None and questions == 2 and given in places:
        return 1 - given
    if given not in places or of is None or of not in places or of == given:
        raise ValueError(
            f"given = {given}, of = {of}: two different questions of 0 to {places[-1]}"
        )
    return of


def _checked_options(options: list[int] | None, truths: int) -> list[int]:
    if options is None:
        return list(range(truths))
    asked = [checked_whole(option, "an option", ValueError) for option in options]
    if not asked or not all(0 <= option < truths for option in asked):
        raise ValueError(f"options {options}: at least one of 0 to {truths - 1}")
    return asked
