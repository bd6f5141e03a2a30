"""Compare designs of a whole survey with equal total epsilon: how many questions each person gets.

Run as `python -m tests.benchmarks.designs [--short]`. The baseline is the demo of the first version
(`first_demo.toml`): eight questions, all of which each of 2,000 people is asked, at epsilons from
.5 to 1.8 with a total of 7.9. `survey_plan` designs the same survey with the same total for each
number s of questions per person. A row shows the ratio of the typical margin (the geometric mean
over all questions, for shares of 50% and 10%) to that of the baseline: as planned, and as simulated
respondents with other true shares answer the design. The simulated margin of a question is half the
width of its default interval, of its least precise option or of the mean.

A second table compares eight yes/no questions at total epsilon 2, with a true share of one tenth:
all asked, and the recommended design. Its baseline is the design that asks everybody everything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

from survey.mechanism.channel import Integers
from survey.questionnaire.definition import groups_of
from survey.questionnaire.kinds import PublishedQuestion
from survey.questionnaire.kinds.base import Answer
from survey.questionnaire.loading import load_file
from survey.results.estimates.compute import estimate_question, question_mean
from survey.results.plan.compute import plans_mean, value_range
from survey.results.plan.survey_design import (
    SurveyDesign,
    present_design,
    survey_plan,
    yes_no_questions,
)
from survey.results.request import IntervalOptions
from survey.settings import Caps
from tests.benchmarks.short import benchmark_parser, reduced, require_range

FIRST_DEMO = Path(__file__).with_name("first_demo.toml")
TOTAL = Fraction("7.9")
N = 2_000
ROUNDS = 20
TARGETS = {8: 0.93, 4: 0.68, 3: 0.61, 2: 0.57, 1: 0.72}
SHORT = {"ROUNDS": 1, "TARGETS": {2: 0.57}}

TOLERANCE = 0.03
"""Distance from a target that counts as reached."""

PLAUSIBLE = (0.8, 1.25)
"""Plausible ratios to a target; a ratio outside means a faulty benchmark."""

HOURS = (0.34, 0.08, 0.09, 0.08, 0.07, 0.07, 0.05, 0.04, 0.04, 0.03, 0.03)

TRUE_SHARES: Mapping[str, Mapping[Answer, float]] = {
    "injured": dict(enumerate((0.20, 0.68, 0.12))),
    "sick_at_work": dict(enumerate((0.34, 0.24, 0.30, 0.12))),
    "bullied": dict(enumerate((0.18, 0.67, 0.15))),
    "harassed": dict(enumerate((0.16, 0.84))),
    "support": {
        (0,): 0.20,
        (0, 1): 0.16,
        (0, 2): 0.08,
        (0, 1, 2): 0.04,
        (1,): 0.10,
        (2,): 0.08,
        (1, 3): 0.05,
        (3,): 0.06,
        (4,): 0.15,
        (5,): 0.08,
    },
    "unpaid_overtime": {**dict(enumerate(HOURS)), 12: 0.03, 15: 0.02, 20: 0.01, 31: 0.02},
    "satisfaction": dict(enumerate((0.08, 0.10, 0.14, 0.14, 0.18, 0.23, 0.13))),
    "leaving": dict(enumerate((0.34, 0.66))),
}
"""What the first demo's simulated respondents answered truthfully."""

YES_NO_TOTAL = Fraction(2)
YES_NO_SHARES = {0: 0.1, 1: 0.9}
YES_NO_TARGETS = 0.132, 0.064


def report_counts(
    question: PublishedQuestion, shares: Mapping[Answer, float], n: int, rng: np.random.Generator
) -> tuple[int, Integers]:
    """Return the counts of the reports of n people who answer at random by these shares."""
    truths = np.array([question.truth(answer) for answer in shares])
    people = rng.choice(len(truths), size=n, p=list(shares.values()))
    codes = question.channel.perturb(truths[people], rng)
    if question.channel.report_bits:
        return question.count(np.packbits(codes.astype(np.uint8), axis=1))
    return n, np.bincount(codes, minlength=question.channel.counted)


def simulated_margin(
    question: PublishedQuestion, shares: Mapping[Answer, float], n: int, rng: np.random.Generator
) -> float:
    """Return the margin of one simulated survey: of the widest share, or of the mean."""
    n_asked, counts = report_counts(question, shares, n, rng)
    if plans_mean(question):
        mean = question_mean(question, counts, IntervalOptions())
        assert mean is not None
        return (mean.conf_high - mean.conf_low) / 2 / value_range(question)
    estimate = estimate_question(question, n_asked, counts.tolist(), IntervalOptions()).shares
    assert estimate is not None
    return float((estimate.conf_high - estimate.conf_low).max()) / 2


def margins(
    design: SurveyDesign, shares: Mapping[str, Mapping[Answer, float]], rng: np.random.Generator
) -> list[float]:
    """Return the mean margin of every question over simulated surveys."""
    return [
        float(
            np.mean(
                [
                    simulated_margin(item.question, shares[item.question.id], item.responses, rng)
                    for _ in range(ROUNDS)
                ]
            )
        )
        for item in design.questions
    ]


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(float(np.mean(np.log(values))))


def print_demo(rng: np.random.Generator) -> bool:
    """Print a row per design of the first demo; return whether all targets are reached."""
    questions = list(load_file(FIRST_DEMO, Caps()).questions)
    present = present_design(questions, groups_of(questions), len(questions), N)
    baseline = margins(present, TRUE_SHARES, rng)
    plan = survey_plan(questions, TOTAL, N)
    print(f"First demo, total epsilon {float(TOTAL)}, n = {N:,}: typical margins")
    points = 100 * present.typical_margin
    print(f"baseline: all 8 asked at the present epsilons, {points:.2f} points")
    print(
        f"{'asked':>6}{'factor':>10}{'points':>8}{'figure':>8}{'target':>8}{'ratio':>7}"
        f"{'simulated':>11}"
    )
    passed = True
    for drawn, target in TARGETS.items():
        design = plan.design_for(drawn)
        figure = design.typical_margin / present.typical_margin
        simulated = geometric_mean(margins(design, TRUE_SHARES, rng)) / geometric_mean(baseline)
        require_range("simulated margin over the target", simulated / target, *PLAUSIBLE)
        passed &= abs(figure - target) <= TOLERANCE and abs(simulated - target) <= TOLERANCE
        print(
            f"{drawn:>6}{float(design.ratio):>10,.0f}{100 * design.typical_margin:>8.2f}"
            f"{figure:>8.3f}{target:>8.2f}{figure / target:>7.2f}{simulated:>11.3f}"
        )
    print(f"recommended: {plan.recommended.drawn} (target 2)")
    return passed and plan.recommended.drawn == 2


def print_yes_no(rng: np.random.Generator) -> bool:
    """Print the margins of eight yes/no questions; return whether both targets are reached."""
    questions = yes_no_questions(8)
    plan = survey_plan(questions, YES_NO_TOTAL, N)
    shares = dict.fromkeys((question.id for question in questions), YES_NO_SHARES)
    print(f"\nEight yes/no questions, total epsilon {YES_NO_TOTAL}, n = {N:,}, true share 10%")
    print(f"{'asked':>6}{'figure':>8}{'target':>8}{'ratio':>7}")
    passed = True
    for design, target in zip((plan.design_for(8), plan.recommended), YES_NO_TARGETS, strict=True):
        figure = float(np.mean(margins(design, shares, rng)))
        require_range("margin over the target", figure / target, *PLAUSIBLE)
        passed &= abs(figure / target - 1) <= TOLERANCE
        print(f"{design.drawn:>6}{100 * figure:>8.2f}{100 * target:>8.1f}{figure / target:>7.2f}")
    return passed


def main(arguments: Sequence[str] | None = None) -> None:
    is_short = benchmark_parser(__doc__).parse_args(arguments).short
    rng = np.random.default_rng(20261124)
    with reduced(__name__, SHORT, is_short):
        verdicts = print_demo(rng), print_yes_no(rng)
    print("\nall targets reached" if all(verdicts) else "\nMISSED")


if __name__ == "__main__":
    main()
