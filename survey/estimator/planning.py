"""Planning a survey: how many reports, which margin, which epsilon; any one from the other two."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal

from survey.errors import DesignError
from survey.estimator.arguments import checked_arguments
from survey.estimator.counts import LARGEST_N
from survey.estimator.intervals import ReportChances
from survey.estimator.planned import (
    LARGEST_EPSILON,
    SMALLEST_EPSILON,
    Question,
    checked_margin,
    checked_n,
    planned,
    rounded,
)
from survey.estimator.result import Result

HALVINGS = 60


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Result):
    """What a survey of n reports can say about one share.

    possible          whether any number of reports (any epsilon) gives the margin asked for
    n                 reports; where it is not possible, the population or the n asked for
    margin            the margin of error at n: z times the standard error, in shares
    sampling          its part if answers were given openly
    randomization     its part if everybody were asked; the squares add up
    epsilon, p, q     of generalized randomized response, or of the channel given
    share             the true share planned for; 1/2 is the worst case when k = 2
    population        N, None for very many
    level             of the interval whose half-width the margin is
    note              one sentence: what is needed, or why it is not possible and what is
    """

    possible: bool
    n: int
    margin: float
    sampling: float
    randomization: float
    epsilon: float
    p: float
    q: float
    share: float
    population: int | None
    level: float
    note: str


@checked_arguments
def required_n(
    margin: float,
    *,
    epsilon: float | None = None,
    channel: ReportChances | None = None,
    k: int = 2,
    share: float = 0.5,
    level: float = 0.95,
    population: int | None = None,
) -> Plan:
    """How many reports give a margin of error: half an interval's width, in shares.

    For generalized randomized response of k options with `epsilon` (a real number: p =
    e^epsilon/(e^epsilon + k - 1); a device's integers come within 10^-4 of it), or for any
    `channel` with p and q. `share` is the true share of the option planned for. Of `population`
    people, drawn at random, no more can answer than there are, and the randomization part gets no
    finite-population correction: where even all of them are too few the result has `possible`
    False and says the smallest margin there is.

    A normal approximation: good where n times the rarer of q and 1-p is above about 10.
    Source: Warner 1965 for the variance; Cochran 1977, section 4.4, for N.

    Raises DesignError for values no survey can have, saying the nearest allowed one.

    >>> required_n(.03, epsilon=1).n, required_n(.03, epsilon=1, population=5000).n
    (4997, 4118)
    >>> required_n(.03, epsilon=1, population=2000).note
    'not possible at this epsilon; the smallest possible margin is 0.0421'
    """
    question = planned(epsilon, channel, k, share, level, population)
    n = question.reports(checked_margin(margin))
    if n > LARGEST_N:
        raise DesignError(f"margin = {margin:g} would need {n:.3g} reports: ask for a larger one")
    if population is not None and n > population:
        least = question.margin(population)[0]
        note = f"not possible at this epsilon; the smallest possible margin is {_at_least(least)}"
        return _plan(question, population, note, possible=False)
    return _plan(question, n, f"{n:,} reports are needed")


@checked_arguments
def margin_of(
    n: int,
    *,
    epsilon: float | None = None,
    channel: ReportChances | None = None,
    k: int = 2,
    share: float = 0.5,
    level: float = 0.95,
    population: int | None = None,
) -> Plan:
    """The margin of error that n reports give; everything else as in `required_n`.

    >>> round(margin_of(4997, epsilon=1).margin, 4)
    0.03
    """
    question = planned(epsilon, channel, k, share, level, population)
    checked_n(n, population)
    margin = question.margin(n)[0]
    return _plan(question, n, f"{n:,} reports give a margin of {_said(margin)}")


@checked_arguments
def required_epsilon(
    n: int,
    margin: float,
    *,
    k: int = 2,
    share: float = 0.5,
    level: float = 0.95,
    population: int | None = None,
) -> Plan:
    """The smallest epsilon at which n reports give the margin; the others as in `required_n`.

    Found by halving, for the margin falls as epsilon grows. Not possible where even at epsilon 12
    it is larger: sampling alone, or the randomization that is left.

    >>> round(required_epsilon(4997, .03).epsilon, 3)
    1.0
    >>> required_epsilon(500, .03).note
    'not possible with 500 reports at any epsilon; the smallest possible margin is 0.0439'
    """
    checked_margin(margin)

    def at(epsilon: float) -> Question:
        return planned(epsilon, None, k, share, level, population)

    strongest = at(LARGEST_EPSILON)
    checked_n(n, population)
    if (least := strongest.margin(n)[0]) > margin:
        note = (
            f"not possible with {n:,} reports at any epsilon; "
            f"the smallest possible margin is {_at_least(least)}"
        )
        return _plan(strongest, n, note, possible=False)
    low, high = SMALLEST_EPSILON, LARGEST_EPSILON
    if at(low).margin(n)[0] <= margin:
        high = low
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if at(middle).margin(n)[0] <= margin else (middle, high)
    return _plan(at(high), n, f"epsilon {high:.4g} is needed")


def _said(margin: float) -> str:
    return rounded(margin, decimals=4, digits=3)


def _at_least(margin: float) -> str:
    """Rounded up: a margin that is said to be possible must be."""
    last = Decimal(1).scaleb(-len(_said(margin).partition(".")[2]))
    return f"{Decimal(margin).quantize(last, ROUND_CEILING):,}"


def _plan(question: Question, n: int, note: str, *, possible: bool = True) -> Plan:
    margin, sampling, randomization = question.margin(n)
    return Plan(
        possible=possible,
        n=n,
        margin=margin,
        sampling=sampling,
        randomization=randomization,
        epsilon=question.epsilon,
        p=question.chances.p,
        q=question.chances.q,
        share=question.share,
        population=question.population,
        level=question.level,
        note=note,
    )
