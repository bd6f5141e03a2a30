"""A table of two questions in the words of a paper, each with the caveat that belongs to it."""

from __future__ import annotations

from collections.abc import Sequence

from survey.estimator import Independence
from survey.results.crosstab.compute import CrossedQuestions, CrossedRow
from survey.results.exports.codebook import COLLECTION, LIMITS, SUPPRESSION, survey_facts
from survey.results.wording import p_value, percent

HEAT_STEPS = 8
"""Shades of a cell, from nothing to the largest share of its table."""


_HOW = {
    "linear": "debiased by joint inversion",
    "em": "the most likely table by expectation maximization",
}


def to_write(found: CrossedQuestions) -> list[str]:
    """Sentences as they can stand in a paper; none while the table is hidden."""
    if found.shown == "hide":
        return []
    largest = max(found.rows, key=lambda row: row.estimate or 0.0)
    sentences = [_share(found, largest)]
    if found.test is not None:
        sentences.append(_relation(found, found.test))
    return sentences


def caveats(found: CrossedQuestions) -> list[str]:
    """What must be said beside the figures."""
    how = " (joint inversion)" if found.table.method == "linear" else ""
    said = [
        f"Every cell is estimated from both random answers of each report at once{how}. Counting "
        "the reports of those who reported a certain answer would be biased."
    ]
    if found.table.method == "em":
        said.append(
            "The most likely table has no cell below 0 and is nearer to the truth on the whole; "
            "small cells are biased, so add up, compare and publish unbiased estimates."
        )
        if not found.table.converged:
            said.append("The search for the most likely table did not end: do not use it.")
    if found.shown == "caution":
        said.append("The intervals are wide: read the table as a first impression.")
    if found.test is not None and found.test.small_expected:
        said.append("Few reports are expected in some cells, so the test is doubtful.")
    if found.test is None and found.shown != "hide":
        said.append(
            "Whether the answers are related is not tested here: the reports name several options, "
            "or all say the same."
        )
    return said


def crossed_methods(found: CrossedQuestions) -> list[tuple[str, str]]:
    """How the table was made, in pairs of what and how, for its export."""
    test = [_relation(found, found.test)] if found.test is not None else []
    return [
        *survey_facts(found.survey, found.table.n),
        ("Questions", " × ".join(question.text for question in found.questions)),
        ("Figures", f"{100 * found.table.level:.4g}% intervals, of each cell alone"),
        ("Collection", COLLECTION),
        (
            "Estimation",
            "Joint inversion of both channels (P = A⁻¹ F B⁻ᵀ), unbiased: a cell may lie "
            "outside 0 to 1. Wilson’s score intervals; they hold sampling and randomization.",
        ),
        ("Suppression", SUPPRESSION),
        *(("Test", each) for each in test),
        ("Limits", " ".join([*caveats(found), LIMITS])),
    ]


def heat(found: CrossedQuestions) -> list[int | None]:
    """A shade for each row of the table, 0 to `HEAT_STEPS`; None while it is hidden."""
    rows = found.rows
    largest = max((row.estimate or 0.0 for row in rows), default=0.0)
    return [_shade(row.estimate, largest) for row in rows]


def _shade(estimate: float | None, largest: float) -> int | None:
    if estimate is None:
        return None
    return round(HEAT_STEPS * max(estimate, 0.0) / largest) if largest > 0 else 0


def by_row(found: CrossedQuestions) -> list[tuple[str, Sequence[tuple[CrossedRow, int | None]]]]:
    """The cells row by row, with the label of the first answer and the shade of each."""
    rows, shades = found.rows, heat(found)
    width = found.table.estimate.shape[1]
    return [
        (
            rows[at].first_option_label,
            list(zip(rows[at : at + width], shades[at : at + width], strict=True)),
        )
        for at in range(0, len(rows), width)
    ]


def _share(found: CrossedQuestions, row: CrossedRow) -> str:
    first, second = (question.text for question in found.questions)
    low, high = percent(row.conf_low)[:-1], percent(row.conf_high)
    return (
        f"An estimated {percent(row.estimate)} answered “{row.first_option_label}” to “{first}” "
        f"and “{row.second_option_label}” to “{second}” ({100 * row.conf_level:g}% confidence "
        f"interval {low} to {high}; {row.n_reports:,} reports, each randomized on the "
        f"respondent’s device, {_HOW[found.table.method]})."
    )


def _relation(found: CrossedQuestions, test: Independence) -> str:
    first, second = (question.text for question in found.questions)
    told = (
        "were related" if test.p_value < 1 - found.table.level else "were not shown to be related"
    )
    return (
        f"The answers to “{first}” and “{second}” {told} (Pearson’s test of the randomized "
        f"reports, χ²({test.df}) = {test.statistic:.1f}, {p_value(test.p_value)})."
    )
