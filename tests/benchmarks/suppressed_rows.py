"""Count the rows of the demo's results that are suppressed at 2,000 respondents.

    python -m tests.benchmarks.suppressed_rows [--short]

The first version of the demo asked everybody eight questions at a total epsilon of 7.9. The
recommended design has the same total, but asks each respondent 2 of the 8 questions, at half of it
each, and the hours by a square wave, which distributions need (the default is for means). Rows are
those of the CSV: options among all and among those who answered, cells, mean and median. The
earlier rule (`tests.benchmarks.shown_coverage`) looked at the estimates, so its figure is the mean
over simulated surveys; the rule in use decides the same in all of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from survey import demo
from survey.mechanism import BitVector
from survey.mechanism.simulation import population
from survey.questionnaire.definition import Definition
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.display_status import PARTS, SUPPRESSED, decide_disclosures
from survey.results.estimates.compute import estimate_question, histogram_cells
from survey.results.question_statistics import substantive_options, truth_values
from survey.results.request import DEFAULT_OPTIONS
from tests.benchmarks.designs import TRUE_SHARES
from tests.benchmarks.short import benchmark_parser, reduced, require_range
from tests.benchmarks.shown_coverage import old_rule
from tests.surveys import WORKPLACE, publish

RESPONDENTS = 2_000
ROUNDS = 20
MAX_SUPPRESSED = 5

SHORT = {"ROUNDS": 1}

NO_HOURS = 31
"""Position of "Prefer not to say" about overtime in the first version."""


def recommended(mechanism: str = 'mechanism = "square_wave"') -> Definition:
    """Return the first version's questions with the recommended design."""
    text = re.sub(r"^epsilon = [\d.]+$", "epsilon = 3.95", WORKPLACE, flags=re.MULTILINE)
    text = text.replace('unit = "hours"', f'unit = "hours"\n{mechanism}')
    return publish(f"questions_per_person = 2\n{text}")


def part_sizes(question: PublishedQuestion) -> dict[str, int]:
    """Return the number of rows of each part."""
    has_mean = bool(truth_values(question))
    return {
        "shares": len(question.options),
        "answered": len(substantive_options(question)),
        "spread": len(histogram_cells(question)),
        "mean": int(has_mean),
        "median": int(has_mean),
    }


def counts_of(question: PublishedQuestion, n: int, rng: np.random.Generator) -> list[int]:
    """Return the counts of n reports of the first demo's respondents."""
    channel, truth = question.channel, TRUE_SHARES[question.id]
    if isinstance(channel, BitVector):
        ticks = np.array([[j in ticked for j in range(channel.m)] for ticked in truth], dtype=int)
        return population(channel, list(truth.values()), n, rng, ticks).tolist()
    shares = np.zeros(channel.truths)
    for answer, share in truth.items():
        shares[place_of(question, answer)] += share
    return population(channel, (shares / shares.sum()).tolist(), n, rng).tolist()


def place_of(question: PublishedQuestion, answer: int | tuple[int, ...]) -> int:
    """Return the place of an answer among the truths; hours beyond a grid are its last value."""
    if isinstance(answer, tuple):
        return question.patterns.index(answer)
    if question.id != "unpaid_overtime":
        return min(answer, question.channel.truths - 1)
    last = question.channel.truths - 1
    return last if answer == NO_HOURS else min(answer, last - 1)


def suppressed_before(definition: Definition, n_asked: int) -> float:
    """Return the mean number of rows that the earlier rule suppressed."""
    rng, total = np.random.default_rng(1), 0
    for question in definition.questions:
        sizes = part_sizes(question)
        for _ in range(ROUNDS):
            counts = counts_of(question, n_asked, rng)
            estimates = estimate_question(question, n_asked, counts, DEFAULT_OPTIONS)
            shown = {
                part: (result := getattr(estimates, part)) is not None and old_rule(result)
                for part in PARTS
            }
            shown["answered"] &= shown["shares"]
            total += sum(sizes[part] for part in PARTS if not shown[part])
    return total / ROUNDS


def suppressed_now(definition: Definition, n_asked: int) -> int:
    """Return the number of rows that the rule in use suppresses."""
    return sum(
        part_sizes(question)[part]
        for question in definition.questions
        for part, decision in decide_disclosures(question, n_asked).items()
        if decision == SUPPRESSED
    )


def main(arguments: Sequence[str] | None = None) -> None:
    is_short = benchmark_parser(__doc__).parse_args(arguments).short
    with reduced(__name__, SHORT, is_short):
        compare()


def compare() -> None:
    """Print a row of figures for each design."""
    print(f"{RESPONDENTS:,} respondents")
    print(f"{'':<46}{'rows':>6}{'old rule':>10}{'now':>6}{'target':>8}{'ratio':>7}")
    for name, definition, target in (
        ("first version: 8 of 8 questions, epsilon 7.9", publish(WORKPLACE), None),
        ("recommended: 2 of 8 questions, epsilon 7.9", recommended(), MAX_SUPPRESSED),
        ("recommended, hours by the default mechanism", recommended(""), None),
        ("today's demo: 2 of 7 groups, epsilon 2.99", demo.definition(), None),
    ):
        n_asked = RESPONDENTS * definition.drawn // len(definition.groups)
        rows = sum(sum(part_sizes(question).values()) for question in definition.questions)
        before, now = suppressed_before(definition, n_asked), suppressed_now(definition, n_asked)
        require_range(f"{name}: suppressed rows", now, 0, rows - 1)
        print(f"{name:<46}{rows:>6}{before:>10.1f}{now:>6}{'' if target is None else target:>8}"
              f"{'' if target is None else f'{now / target:.2f}':>7}")  # fmt: skip
        for question in definition.questions:
            hidden = [p for p, d in decide_disclosures(question, n_asked).items()
                      if d == SUPPRESSED and part_sizes(question)[p]]  # fmt: skip
            if hidden:
                print(f"    {question.id}: {', '.join(hidden)}")


if __name__ == "__main__":
    main()
