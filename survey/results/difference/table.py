"""Rows of a difference between two groups, with its chart and sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from survey.estimator import Difference, Disclosure, Independence, MeanDifference
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.charts import chart_point, dot_chart
from survey.results.display_status import FLAGS, NO_BASE, SUPPRESSED, numbers_at
from survey.results.groups import ANSWER, LINK, VERSION, Group
from survey.results.number_format import (
    NumberFormat,
    format_p_value,
    number_format,
    percent,
    points,
)
from survey.results.question_statistics import (
    Answer,
    answer_columns,
    answer_name,
    find_question,
    question_columns,
    truth_labels,
    truth_values,
)
from survey.results.request import IntervalOptions
from survey.results.significance import is_finding, significance_limit
from survey.store import PublishedSurvey


@dataclass(frozen=True)
class DifferenceRow:
    """One answer, or the mean, in both groups; the fields are the columns of the CSV.

    `estimate` is group a minus group b. Shares are fractions of one, means are in the question's
    own unit. Suppressed rows have no numbers.
    """

    survey_id: str
    survey_version: int
    question_id: str
    statistic: str
    option_id: str
    option_label: str
    group_a: str
    group_b: str
    n_a: int
    n_b: int
    estimate_a: float | None
    estimate_b: float | None
    estimate: float | None
    std_error: float | None
    conf_low: float | None
    conf_high: float | None
    p_value: float | None
    conf_level: float
    method: str
    flag: str


@dataclass(frozen=True)
class DifferenceResult:
    """The answers of two groups to a question, the decisions about them, and Pearson's test.

    `n` is the number of reports of each group; for groups by an answer, the number of reports
    that include both questions, because nobody knows who belongs to which group. `missing` lists
    the groups with too few reports, and about how many more responses they need (0: no number
    suffices); for groups by an answer, only the first group, with the number for both together.
    """

    survey: PublishedSurvey
    question: PublishedQuestion
    groups: tuple[Group, Group]
    n: tuple[int, int]
    options: IntervalOptions
    shares: Difference | None = None
    shares_disclosure: Disclosure = SUPPRESSED
    means: MeanDifference | None = None
    means_disclosure: Disclosure = SUPPRESSED
    test: Independence | None = None
    missing: tuple[tuple[Group, int], ...] = ()

    @property
    def by_answer(self) -> bool:
        """Whether the groups are known only through randomized answers."""
        return self.groups[0].kind == ANSWER

    @property
    def is_suppressed(self) -> bool:
        """Whether nothing is shown."""
        return self.shares_disclosure == self.means_disclosure == SUPPRESSED

    @property
    def share_rows(self) -> list[DifferenceRow]:
        """One row per answer, all shown or none; empty for numbers and dates."""
        if self.question.kind.is_numeric:
            return []
        return [
            self._row("share", answer, self.shares_disclosure, _share_numbers(self.shares, place))
            for place, answer in enumerate(truth_labels(self.question))
        ]

    @property
    def mean_rows(self) -> list[DifferenceRow]:
        """The row of the mean, if the answers are numbers or scores."""
        if not truth_values(self.question) or self.by_answer:
            return []
        numbers = _mean_numbers(self.means, _mean_reach(self.question))
        return [self._row("mean", ("", ""), self.means_disclosure, numbers)]

    @property
    def rows(self) -> list[DifferenceRow]:
        """All rows in the order of the CSV."""
        return [*self.share_rows, *self.mean_rows]

    @property
    def chart_rows(self) -> list[DifferenceRow]:
        """The rows of shares with an estimate and an interval that excludes something."""
        return [
            row
            for row in self.share_rows
            if row.estimate is not None and not self.excludes_nothing(row)
        ]

    def excludes_nothing(self, row: DifferenceRow) -> bool:
        """Return whether the interval contains all possible differences, as it is printed."""
        reach = _mean_reach(self.question) if row.statistic == "mean" else 1.0
        low, high = row.conf_low or 0.0, row.conf_high or 0.0
        return low <= -PRINTED_AS_WHOLE * reach and high >= PRINTED_AS_WHOLE * reach

    def _row(
        self, statistic: str, answer: Answer, disclosure: Disclosure, numbers: dict[str, Any]
    ) -> DifferenceRow:
        first, second = self.groups
        return DifferenceRow(
            **question_columns(self.survey, self.question),
            statistic=statistic,
            **answer_columns("option", answer),
            group_a=first.id,
            group_b=second.id,
            n_a=self.n[0],
            n_b=self.n[1],
            conf_level=self.options.level,
            flag=FLAGS[disclosure],
            **(NO_NUMBERS if disclosure == SUPPRESSED else numbers),
        )


PRINTED_AS_WHOLE = 0.995
"""Part of a range from which an end is printed as the end of the range, in whole points."""

NUMBERS = ("estimate", "std_error", "conf_low", "conf_high", "p_value")
"""Columns that have the same name in the results of both estimators."""

NO_NUMBERS: dict[str, Any] = {**dict.fromkeys(("estimate_a", "estimate_b", *NUMBERS)), "method": ""}


def _unknown_numbers(reach: float) -> dict[str, Any]:
    """Return the interval of all possible differences, for groups with hardly any people.

    Such a result is shown like any other: suppressing it would select the surveys with estimates.
    """
    return NO_NUMBERS | {"conf_low": -reach, "conf_high": reach, "method": NO_BASE}


def _share_numbers(shares: Difference | None, place: int) -> dict[str, Any]:
    if shares is None:
        return _unknown_numbers(1.0)
    return {
        "estimate_a": float(shares.share_a[place]),
        "estimate_b": float(shares.share_b[place]),
        **numbers_at(shares, NUMBERS, place),
        "method": shares.method,
    }


def _mean_reach(question: PublishedQuestion) -> float:
    """Return the largest possible difference of two means."""
    values = [value for value in truth_values(question) if value is not None]
    return max(values) - min(values)


def _mean_numbers(means: MeanDifference | None, reach: float) -> dict[str, Any]:
    if means is None:
        return _unknown_numbers(reach)
    return {
        "estimate_a": means.mean_a,
        "estimate_b": means.mean_b,
        **{name: getattr(means, name) for name in (*NUMBERS, "method")},
    }


AXIS_ENDS = (0.1, 0.2, 0.4, 0.6, 1.0)
"""Possible ends of the axis; the chart uses the smallest that contains every interval."""


def chart_title(result: DifferenceResult) -> str:
    """Return the title of the chart."""
    first, second = result.groups
    return (
        f"{result.question.text} {first.label} minus {second.label}, "
        f"with {result.options.percent} intervals"
    )


def difference_chart(result: DifferenceResult) -> dict[str, Any]:
    """Return a Vega-Lite chart of differences and intervals; 0 is in the middle of the axis."""
    rows = result.chart_rows
    ends = [abs(end) for row in rows for end in (row.conf_low, row.conf_high) if end is not None]
    axis_end = next(end for end in AXIS_ENDS if end >= max(ends, default=0.0))
    data = [
        chart_point(
            row,
            row.option_label,
            f"{points(row.estimate)} points ({points(row.conf_low)} to {points(row.conf_high)})",
            -axis_end,
            axis_end,
        )
        for row in rows
        if row.estimate is not None
    ]
    axis = {
        "title": "percentage points",
        "values": [-axis_end, -axis_end / 2, 0, axis_end / 2, axis_end],
        "labelExpr": "format(datum.value * 100, '~r')",
    }
    scale = {"scale": {"domain": [-axis_end, axis_end]}, "axis": axis}
    return dot_chart(chart_title(result), data, scale)


def paper_sentences(result: DifferenceResult) -> list[str]:
    """Return sentences for a paper, about differences that the responses show."""
    sentences = [_share_sentence(result, row) for row in _findings(result, result.share_rows)[:1]]
    if result.test is not None and result.test.p_value < significance_limit(result.options.level):
        sentences.append(_test_sentence(result, result.test))
    means = _findings(result, result.mean_rows)
    return sentences + [_mean_sentence(result, row) for row in means]


def null_statement(result: DifferenceResult) -> str:
    """State that no difference was shown, and how large it may be; empty if one was shown."""
    share, mean = _largest_possible(result.share_rows), _largest_possible(result.mean_rows)
    possible = [
        f"{points(share)} percentage points" if share else "",
        f"{format_mean_difference(result, mean)} between the means" if mean else "",
    ]
    if paper_sentences(result) or not any(possible):
        return ""
    first, second = _group_phrases(result)
    return (
        f"These responses do not show a difference between {first} and {second}. Differences of "
        f"up to {' and of up to '.join(filter(None, possible))} remain possible."
    )


def _findings(result: DifferenceResult, rows: Sequence[DifferenceRow]) -> list[DifferenceRow]:
    """Return the rows whose difference is shown although all of them were tested."""
    tested = [row for row in rows if row.p_value is not None]
    limit = significance_limit(result.options.level, _count_tests(rows))
    shown = [row for row in tested if is_finding(row.p_value, row.conf_low, row.conf_high, limit)]
    return sorted(shown, key=lambda row: row.p_value or 0.0)


def _count_tests(rows: Sequence[DifferenceRow]) -> int:
    """Return the number of tests; the shares of two answers have the same one."""
    tested = sum(row.p_value is not None for row in rows)
    return tested if tested > 2 else 1


def _largest_possible(rows: Sequence[DifferenceRow]) -> float | None:
    """Return the end of the intervals that is farthest from 0; None without an estimate."""
    ends = [end for row in rows if row.p_value is not None for end in (row.conf_low, row.conf_high)]
    return max((abs(end) for end in ends if end is not None), default=None)


def caveats(result: DifferenceResult) -> list[str]:
    """Return the caveats that belong beside the figures."""
    texts = [GROUP_CAVEATS[result.groups[0].kind]]
    n_tests = _count_tests(result.share_rows)
    if n_tests > 1:
        # Rounded down: a limit rounded up would promise too much.
        limit = math.floor(1e4 * significance_limit(result.options.level, n_tests)) / 1e4
        texts.append(
            f"Each interval and p-value is for one answer alone. Among {n_tests} answers, one "
            f"may differ by chance: to allow for all of them, require p below {limit:g}."
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
    "twice, and the data cannot show this.",
    LINK: "The groups must have reached different people. Unless they were assigned at random, a "
    "difference is not an effect.",
}


def group_name(group: Group, survey: PublishedSurvey) -> str:
    """Return the name of a group, with its question if an answer defines it."""
    if group.kind == ANSWER:
        return answer_name(group.label, find_question(survey, group.name))
    return group.label


def group_phrase(group: Group, survey: PublishedSurvey) -> str:
    """Return a phrase for the members of a group."""
    if group.kind == ANSWER:
        return f"those who answered {group_name(group, survey)}"
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
    first, second = _group_phrases(result)
    return (
        f"The answers to “{result.question.text}” differed between {first} and {second} (Pearson’s "
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
