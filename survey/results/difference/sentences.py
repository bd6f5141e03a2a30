"""Sentences about a difference between two groups: for a paper, and the caveats."""

from __future__ import annotations

from survey.estimator import Independence
from survey.results.difference.table import DifferenceResult, DifferenceRow
from survey.results.display_status import NO_BASE
from survey.results.groups import ANSWER, LINK, VERSION, Group
from survey.results.number_format import (
    NumberFormat,
    format_p_value,
    number_format,
    percent,
    points,
)
from survey.results.question_statistics import find_question
from survey.store import PublishedSurvey


def paper_sentences(result: DifferenceResult) -> list[str]:
    """Return sentences for a paper; none about suppressed figures."""
    sentences = []
    rows = [row for row in result.share_rows if row.p_value is not None]
    if rows:
        sentences.append(_share_sentence(result, min(rows, key=lambda row: row.p_value or 0.0)))
    if result.test is not None:
        sentences.append(_test_sentence(result, result.test))
    means = [row for row in result.mean_rows if row.p_value is not None]
    return sentences + [_mean_sentence(result, row) for row in means]


def caveats(result: DifferenceResult) -> list[str]:
    """Return the caveats that belong beside the figures."""
    texts = [GROUP_CAVEATS[result.groups[0].kind]]
    rows = [row for row in result.share_rows if row.p_value is not None]
    if len(rows) > 2:
        texts.append(
            f"Each interval and p-value is for one answer alone. Of {len(rows)} answers, one may "
            f"differ by chance: p below {0.05 / len(rows):.3f} is significant for all of them."
        )
    rows = [*result.share_rows, *result.mean_rows]
    if any(row.method == NO_BASE for row in rows):
        texts.append(
            "Too few respondents in one of the groups appear to have answered, so any difference "
            "is possible."
        )
    if "caution" in (result.shares_disclosure, result.means_disclosure):
        texts.append("The intervals are wide: treat the differences as a first impression.")
    if result.test is not None and result.test.small_expected:
        texts.append("Some cells have few expected reports, so Pearson’s test is unreliable.")
    texts.append("Respondents of one group may answer less truthfully than those of the other.")
    return texts


GROUP_CAVEATS = {
    ANSWER: "Group membership is known only through randomized answers. Both groups are estimated "
    "from all reports at once (joint inversion). Counting only the reports with a certain answer "
    "would be biased.",
    VERSION: "The versions must have reached different people. Anyone who answered both is counted "
    "twice, and nobody can tell.",
    LINK: "The groups must have reached different people. Unless they were assigned at random, a "
    "difference is not an effect.",
}


def group_phrase(group: Group, survey: PublishedSurvey) -> str:
    """Return a phrase for the members of a group."""
    if group.kind == ANSWER:
        text = find_question(survey, group.name).text
        return f"those who answered “{group.label}” to “{text}”"
    if group.kind == VERSION:
        return f"respondents of {group.label}"
    return f"respondents of the {group.label}"


def _group_phrases(result: DifferenceResult) -> tuple[str, str]:
    first, second = result.groups
    return group_phrase(first, result.survey), group_phrase(second, result.survey)


def _share_sentence(result: DifferenceResult, row: DifferenceRow) -> str:
    first, second = _group_phrases(result)
    return (
        f"An estimated {percent(row.estimate_a)} of {first} and {percent(row.estimate_b)} of "
        f"{second} answered “{row.option_label}” to “{result.question.text}”: a difference of "
        f"{points(row.estimate)} percentage points ({100 * row.conf_level:g}% confidence interval "
        f"{points(row.conf_low)} to {points(row.conf_high)}; {format_p_value(row.p_value or 0.0)}; "
        f"{_report_counts(result)}, each randomized on the respondent’s device, "
        f"{'debiased by joint inversion' if result.by_answer else 'debiased'})."
    )


def _test_sentence(result: DifferenceResult, test: Independence) -> str:
    is_significant = test.p_value < 1 - result.options.level
    first, second = _group_phrases(result)
    verb = "differed" if is_significant else "were not shown to differ"
    return (
        f"The answers to “{result.question.text}” {verb} between {first} and {second} (Pearson’s "
        f"test of the randomized reports, χ²({test.df}) = {test.statistic:.1f}, "
        f"{format_p_value(test.p_value)})."
    )


def _mean_sentence(result: DifferenceResult, row: DifferenceRow) -> str:
    first, second = _group_phrases(result)
    text = number_format(result.question, "mean").text
    a, b = float(row.estimate_a or 0.0), float(row.estimate_b or 0.0)
    low, high = (format_mean_difference(result, end) for end in (row.conf_low, row.conf_high))
    return (
        f"The estimated mean of “{result.question.text}” was {text(a)} for {first} and "
        f"{text(b)} for {second}: a difference of {format_mean_difference(result, row.estimate)} "
        f"({100 * row.conf_level:g}% confidence interval {low} to {high}; "
        f"{format_p_value(row.p_value or 0.0)}; {_report_counts(result)}, each randomized on the "
        "respondent’s device, debiased)."
    )


def unit_text(result: DifferenceResult) -> str:
    """Return what the figures are, and the unit of their difference."""
    if not result.question.kind.is_numeric:
        return "Estimated shares, and A minus B in percentage points"
    formatter = number_format(result.question, "mean")
    unit = "days" if formatter.is_date else formatter.unit
    return "Estimated means, and A minus B" + (f" in {unit}" if unit else "")


def format_mean_difference(result: DifferenceResult, value: float | None) -> str:
    """Format a difference of means in the unit of the question, for dates in days."""
    if value is None:
        return ""
    formatter = number_format(result.question, "mean")
    return (NumberFormat(0, "days") if formatter.is_date else formatter).text(value)


def _report_counts(result: DifferenceResult) -> str:
    if result.by_answer:
        return f"{result.n[0]:,} reports"
    return f"{result.n[0]:,} and {result.n[1]:,} reports"
