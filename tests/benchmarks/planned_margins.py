"""Compare planned margins with those of simulated surveys, for every question type and mechanism.

    python -m tests.benchmarks.planned_margins [--full | --short] [WORDS]

Each row plans one statistic of one question and simulates surveys of it, whose intervals come from
the code of the results page: the share of an option, a mean or mean rank, or the widest cell of a
histogram. Shares of a ranking are those of first places. If
the question has "prefer not to say", they are those among the people who answered. In some rows
each respondent is asked 1 of 4 questions. The target is a ratio of planned to simulated margin from
.95 to 1.05. The baseline is the plan of the first version: z standard errors among all people, for
a mean without the spread of the answers. WORDS limit the table to questions with these words in
their names.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from survey.estimator.core.intervals import normal_quantile
from survey.estimator.numbers.mean import Mean, worst_variance
from survey.estimator.planning.expected_margin import PLANNED_NO_ANSWER
from survey.mechanism import WeightTable
from survey.mechanism.channel import Floats, Integers
from survey.mechanism.simulation import population
from survey.questionnaire.kinds import PublishedQuestion, Question
from survey.questionnaire.privacy_loss import frequencies
from survey.results.estimates.compute import (
    estimate_question,
    histogram_cells,
    question_mean,
)
from survey.results.plan.compute import (
    histogram_margin,
    mean_margin,
    share_margin,
    to_published,
    value_range,
)
from survey.results.plan.sentences import ALL, Responses
from survey.results.question_statistics import opt_outs
from survey.results.request import IntervalOptions
from survey.settings import Caps
from tests.benchmarks.short import benchmark_parser, reduced, require_range

LOWEST, HIGHEST = 0.95, 1.05
SIZES = (200, 2000)
FULL_SIZES = (50, 200, 1000, 5000)
ROUNDS, FULL_ROUNDS = 200, 2000
MIN_ROUNDS = 16
PRECISION = 0.005
"""Simulation ends when the standard error of the mean half width is below this fraction of it."""

QUARTER = Fraction(1, 4)
"""Share of respondents who are asked a question, in rows with sampled questions."""


def options(n: int) -> list[dict[str, str]]:
    return [{"id": f"o{i}", "label": f"Option {i}"} for i in range(n)]


CHOICE = {"type": "single_choice", "options": options(5)}
SCALE = {"type": "scale", "low": 1, "high": 7}
TICKS = {"type": "multiple_choice", "options": options(4), "none_of_these": "None"}
NUMBER = {"type": "number", "low": "0", "high": "20"}
UTILITY = {"parameters": {"utility": (-np.abs(np.subtract.outer(range(7), range(7)))).tolist()}}

FORCED = {"truth": "1/2", "forced": ["1/2", "1/8", "1/8", "1/8", "1/8"]}

RANKING = {"type": "ranking", "options": options(5)}

SHARES, CELLS = ("share .5", "share .1"), ("mean", "widest cell")

QUESTIONS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "yes/no, grr": ({"type": "yes_no"}, (*SHARES, "share .01")),
    "yes/no, two coins": (
        {"type": "yes_no", "mechanism": "two_coins", "parameters": {"truth": "1/2", "yes": "1/3"}},
        SHARES,
    ),
    "choice of 5, grr": (CHOICE, (*SHARES, "share .01")),
    "choice of 5, forced response": (
        {**CHOICE, "mechanism": "forced_response", "parameters": FORCED},
        SHARES,
    ),
    "choice of 20, best": (
        {"type": "single_choice", "options": options(20), "mechanism": "best"},
        SHARES,
    ),
    "scale, grr": (SCALE, (*SHARES, "mean")),
    "scale, best": ({**SCALE, "mechanism": "best"}, SHARES),
    **{
        f"scale, {name}": ({**SCALE, "mechanism": name}, (*SHARES, "mean"))
        for name in ("geometric", "laplace", "square_wave")
    },
    "scale, exponential": ({**SCALE, "mechanism": "exponential", **UTILITY}, (*SHARES, "mean")),
    "scale, gaussian": (
        {**SCALE, "mechanism": "gaussian", "parameters": {"sigma": "2"}},
        (*SHARES, "mean"),
    ),
    **{
        f"ticks, {name}": ({**TICKS, "mechanism": name}, SHARES)
        for name in ("bits", "sampled_options", "half_space", "subsets")
    },
    **{
        f"number, {name}": ({**NUMBER, "mechanism": name}, statistics)
        for name, statistics in {
            "geometric": CELLS,
            "laplace": CELLS,
            "square_wave": CELLS,
            "one_bit": ("mean",),
            "piecewise": CELLS,
            "hybrid": CELLS,
            "optimal_piecewise": CELLS,
        }.items()
    },
    "number, gaussian": (
        {**NUMBER, "mechanism": "gaussian", "parameters": {"sigma": "8"}},
        CELLS,
    ),
    "date, hybrid": (
        {"type": "date", "low": "2020-01-01", "high": "2020-01-31", "mechanism": "hybrid"},
        ("mean",),
    ),
    "ranking of 3": ({**RANKING, "options": options(3)}, (*SHARES, "mean")),
    "ranking of 5": (RANKING, (*SHARES, "mean")),
}
"""The questions with the statistics that the results show of them."""

SAMPLED = ("yes/no, grr", "choice of 5, grr", "number, hybrid")
LARGE, LARGE_ROUNDS = 20_000, 4
"""Surveys that show which option or cell has the widest interval."""

EPSILONS = (0.8, 3)
FULL_EPSILONS = (0.5, 1, 2, 4, 8)

SHORT = {
    "QUESTIONS": {name: QUESTIONS[name] for name in ("yes/no, grr",)},
    "SIZES": (2000,),
    "EPSILONS": (3,),
    "ROUNDS": MIN_ROUNDS,
    "LARGE_ROUNDS": 1,
}
PLAUSIBLE = (0.7, 1.4)
"""Plausible ratios of a planned to a simulated margin; a ratio outside means a fault."""


@dataclass(frozen=True)
class Case:
    """One statistic of one question, with n responses of which a part includes the question."""

    name: str
    question: PublishedQuestion
    statistic: str
    n: int
    asked: Fraction = ALL

    @property
    def share(self) -> float:
        return float(self.statistic.removeprefix("share "))

    @property
    def reports(self) -> int:
        """The number of reports to plan with, as the builder computes it."""
        return Responses(self.n, self.asked).to_question

    @property
    def planned(self) -> float:
        if self.statistic == "mean":
            return mean_margin(self.question, self.reports)
        if self.statistic == "widest cell":
            return histogram_margin(self.question, self.reports)
        return share_margin(self.question, self.reports, self.share)

    @property
    def baseline(self) -> float:
        """The margin that the first version planned; nan for what it did not plan."""
        if self.statistic == "widest cell":
            return math.nan
        if self.question.kind.is_ranking:
            return math.nan
        if self.statistic == "mean":
            channel = self.question.channel
            if not isinstance(channel, WeightTable):
                return math.nan
            scale = normal_quantile(0.95) * value_range(self.question) / 2
            return scale * math.sqrt(worst_variance(channel) / self.reports)
        return first_share_margin(self.question, self.reports, self.share)


def first_share_margin(question: PublishedQuestion, n: int, share: float) -> float:
    """Return the planned margin of a share in the first version."""
    channel, z = question.channel, normal_quantile(0.95)
    if isinstance(channel, WeightTable):
        P = channel.matrix
        shares = np.full(channel.truths, (1 - share) / (channel.truths - 1))
        shares[0] = share
        first = np.linalg.pinv(P)[:, 0]
        return z * math.sqrt(max(float(shares @ P @ first**2) - share**2, 0.0) / n)
    p, q = map(float, frequencies(question) or (channel.p, channel.q))
    lam = q + (p - q) * share
    return z * math.sqrt(lam * (1 - lam) / n) / abs(p - q)


def cases(sizes: tuple[int, ...], epsilons: tuple[float, ...]) -> Iterator[Case]:
    """Yield every question, with and without an opt-out, statistic and number of responses."""
    for name, (form, statistics) in QUESTIONS.items():
        parameters = form.get("parameters", {})
        is_fixed = not {"sigma", "truth"}.isdisjoint(parameters)
        for opt_out in (False, True)[: 1 if form.get("mechanism") == "two_coins" else 2]:
            for epsilon in epsilons[:1] if is_fixed else epsilons:
                question = published(form, {} if is_fixed else {"epsilon": str(epsilon)}, opt_out)
                stated = "" if is_fixed else f", epsilon {epsilon}"
                full_name = f"{name}{stated}{', opt-out' if opt_out else ''}"
                for statistic in statistics:
                    for n in sizes:
                        yield Case(full_name, question, statistic, n)
                    if name in SAMPLED and opt_out:
                        yield Case(f"1 of 4: {full_name}", question, statistic, 2000, QUARTER)


def published(form: dict[str, Any], privacy: dict[str, str], opt_out: bool) -> PublishedQuestion:
    """Return the question with or without "prefer not to say"."""
    fields = {"does_not_apply": False, "prefer_not_to_say": "No" if opt_out else False}
    question = {"id": "q", "text": "How?", **fields, **privacy, **form}
    return to_published(TypeAdapter(Question).validate_python(question, context=Caps()))


def true_answers(case: Case, option: int) -> tuple[Floats, Any]:
    """Return the planned shares of the true answers, and the answers for `population`."""
    question, k = case.question, case.question.channel.truths
    silent = len(opt_outs(question))
    A = 1 - PLANNED_NO_ANSWER if silent else 1.0
    opted_out = [(1 - A) / max(silent, 1)] * silent
    if not case.statistic.startswith("share"):
        return np.array([A / (k - silent)] * (k - silent) + opted_out), None
    if question.kind.is_multiple:
        chosen = [(option,), (option + 1,), *((place,) for place in opt_outs(question))]
        shares = np.array([A * case.share, A * (1 - case.share), *opted_out])
        return shares, np.array([question.truth(ticks) for ticks in chosen])
    answers = question.kind.count_ranked(question) or k - silent
    shares = np.full(answers, A * (1 - case.share) / (answers - 1))
    shares[option] = A * case.share
    # All rankings with the same first place are equally frequent.
    orders = (k - silent) // answers
    return np.append(np.repeat(shares / orders, orders), opted_out), None


def half_width(case: Case, option: int, rng: np.random.Generator) -> float:
    """Return half the width of the interval that a simulated survey shows; nan if it shows none."""
    shares, answers = true_answers(case, option)
    n = case.n if case.asked == ALL else int(rng.binomial(case.n, float(case.asked)))
    counts = population(case.question.channel, shares.tolist(), n, rng, answers)
    if case.statistic == "mean":
        mean = shown_mean(case.question, n, counts)
        return math.nan if mean is None else (mean.conf_high - mean.conf_low) / 2
    estimates = estimate_question(case.question, n, counts.tolist(), IntervalOptions())
    answered = estimates.answered if opt_outs(case.question) else estimates.shares
    intervals = estimates.spread if case.statistic == "widest cell" else answered
    if intervals is None:
        return math.nan
    return float((intervals.conf_high - intervals.conf_low)[option]) / 2


def shown_mean(question: PublishedQuestion, n: int, counts: Integers) -> Mean | None:
    """Return the mean, or the mean rank of the first option; None if the results show none."""
    if not question.kind.is_ranking:
        return question_mean(question, counts, IntervalOptions())
    ranks = estimate_question(question, n, counts.tolist(), IntervalOptions()).mean_ranks
    return ranks[0] if ranks else None


def widest(case: Case, rng: np.random.Generator) -> int:
    """Return the option or cell whose interval is widest in a large survey."""
    options = len(case.question.options) - len(opt_outs(case.question))
    if case.statistic == "widest cell":
        options = len(histogram_cells(case.question))
    elif case.statistic == "mean" or not isinstance(case.question.channel, WeightTable):
        return 0
    large = replace(case, n=LARGE, asked=ALL)
    widths = [[half_width(large, j, rng) for j in range(options)] for _ in range(LARGE_ROUNDS)]
    return int(np.argmax(np.mean(widths, axis=0)))


def simulated_margin(case: Case, rounds: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return the mean half width of simulated surveys that show an interval, and its error."""
    option = widest(case, rng)
    widths: list[float] = []
    while len(widths) < rounds:
        widths.append(half_width(case, option, rng))
        shown = [width for width in widths if not math.isnan(width)]
        if len(shown) < MIN_ROUNDS:
            continue
        error = float(np.std(shown)) / math.sqrt(len(shown))
        if error <= PRECISION * np.mean(shown):
            break
    return float(np.mean(shown)), error


def main(arguments: Sequence[str] | None = None) -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("--full", action="store_true", help="take more sizes and rounds")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args(arguments)
    with reduced(__name__, SHORT, options.short):
        compare(options.full, " ".join(options.words))


def compare(full: bool, words: str) -> None:
    """Print the table, and how many rows are within the target."""
    rng = np.random.default_rng(1)
    print(
        f"{'question':<46}{'statistic':>12}{'n':>7}{'planned':>9}{'simulated':>10}{'ratio':>7}"
        f"{'first':>8}"
    )
    ratios: dict[str, list[float]] = {"planned": [], "baseline": []}
    for case in cases(FULL_SIZES if full else SIZES, FULL_EPSILONS if full else EPSILONS):
        if words not in case.name:
            continue
        margin, error = simulated_margin(case, FULL_ROUNDS if full else ROUNDS, rng)
        ratio, first = case.planned / margin, case.baseline / margin
        require_range(f"{case.name}: planned to simulated margin", ratio, *PLAUSIBLE)
        ratios["planned"].append(ratio)
        ratios["baseline"].append(first)
        # Three standard errors of the simulation are not the plan's.
        outside = abs(ratio - 1) - 3 * error / margin > HIGHEST - 1
        print(
            f"{case.name:<46}{case.statistic:>12}{case.n:>7,}{case.planned:>9.4f}{margin:>10.4f}"
            f"{ratio:>7.3f}{'*' if outside else ' '}{first:>7.3f}",
            flush=True,
        )
    if not ratios["planned"]:
        raise RuntimeError(f"No question has the words: {words}")
    for name, values in ratios.items():
        shown = np.array([value for value in values if not math.isnan(value)])
        if not len(shown):
            continue
        inside = np.mean((shown >= LOWEST) & (shown <= HIGHEST))
        print(
            f"{name}: {len(shown)} rows, ratio {shown.min():.3f} to {shown.max():.3f}; "
            f"{inside:.1%} within {LOWEST} to {HIGHEST}"
        )


if __name__ == "__main__":
    main()
