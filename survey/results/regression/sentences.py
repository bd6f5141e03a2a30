"""Sentences about a regression: for a paper, caveats, and the labels of its page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from survey.results.number_format import format_p_value
from survey.results.regression.table import GROUP, NOT_DETERMINED, RegressionResult, RegressionRow
from survey.results.significance import is_finding, significance_limit

MAX_SENTENCES = 4

ANY_VALUE = "any value is possible"
"""The text for an interval without ends, which replaces the estimate."""

SMALLEST_RATIO, LARGEST_RATIO = 1e-6, 1e6
"""Odds ratios beyond these are shown as less or more than the limit."""

PRECISION = {
    False: "standard errors from the observed information",
    True: "standard errors from the expected information",
}
"""The source of standard errors, without and with a penalty."""

INTERVALS = {
    False: "each interval joins Wald’s and that of the profile likelihood",
    True: "each interval joins those of the profile likelihood with and without the penalty",
}
"""The source of intervals, without and with a penalty."""


def paper_sentences(result: RegressionResult) -> list[str]:
    """Return sentences for a paper about the clearest differences that the responses show."""
    findings = sorted(_findings(result), key=lambda row: row.p_value or 0.0)[:MAX_SENTENCES]
    if not findings:
        return []
    return [_model_sentence(result), *(_coefficient_sentence(result, row) for row in findings)]


def null_statement(result: RegressionResult) -> str:
    """State that no odds ratio was shown to differ from 1; empty if one was."""
    if not _tested_rows(result) or _findings(result):
        return ""
    return (
        "These responses do not show that the odds differ by any of the predictors. This is no "
        "evidence that they are equal: every odds ratio within the intervals remains possible."
    )


def _tested_rows(result: RegressionResult) -> list[RegressionRow]:
    if result.fit is None or not result.fit.converged:
        return []
    return [row for row in result.rows if row.predictor_id and row.p_value is not None]


def _findings(result: RegressionResult) -> list[RegressionRow]:
    """Return the coefficients that are shown to differ from 0 although all were tested."""
    rows = _tested_rows(result)
    limit = significance_limit(result.options.level, max(len(rows), 1))
    return [
        row for row in rows if is_finding(row.p_value, row.conf_low, row.conf_high, limit, equal=1)
    ]


def caveats(result: RegressionResult) -> list[str]:
    """Return the caveats that belong beside the figures."""
    texts = [
        "The model accounts for the randomization of each question; a regression on raw responses "
        "would bias odds ratios towards 1."
    ]
    if result.fit is not None and not result.fit.converged:
        texts.append(
            "The search for the most likely coefficients did not converge: do not use these "
            "figures. Choose fewer predictors."
        )
    if any(row.flag == NOT_DETERMINED for row in result.rows):
        texts.append(
            "“Not determined” marks coefficients without an estimate. The responses fit best if a "
            "share is 0, or a predictor separates the answers, so the most likely odds ratio is "
            "infinite or 0. The interval is still valid. To get an estimate, choose Firth’s "
            "penalized likelihood or fewer predictors, or collect more responses."
        )
    if result.fit and any(" to " not in _interval_text(row) for row in result.rows):
        texts.append(
            "“Above” and “below” mark intervals with one end. On the other side, the responses do "
            "not limit the odds ratio, or only beyond a factor of a million. “Any value is "
            "possible” means that neither side has a limit."
        )
    if result.fit is not None and result.fit.penalty == "firth":
        texts.append(
            "Firth’s penalty keeps all coefficients finite by making the shares of the answers "
            "more equal. If an interval is very wide, the penalty determines the estimate more "
            "than the responses do."
        )
    if result.disclosure == "caution":
        texts.append("The intervals are wide: treat the odds ratios as a first impression.")
    texts.append(
        "An odds ratio compares respondents who differ in one predictor and agree in the others. "
        "It is not an effect unless the predictor was assigned at random."
    )
    return texts


def rows_by_outcome(result: RegressionResult) -> list[list[RegressionRow]]:
    """Return the coefficients of each answer."""
    size = len(result.terms)
    rows = result.rows
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def rows_by_predictor(rows: Sequence[RegressionRow]) -> list[tuple[str, list[RegressionRow]]]:
    """Return the coefficients of one answer, grouped by predictor."""
    groups = groupby(rows, key=lambda row: row.predictor_id)
    return [(predictor, list(members)) for predictor, members in groups]


def format_odds_ratio(value: float | None) -> str:
    """Format an odds ratio to three significant digits.

    >>> [format_odds_ratio(x) for x in (2.3456, 0.0123, 1234.5, 2e6, None)]
    ['2.35', '0.0123', '1,230', 'more than 1,000,000', '']
    """
    if value is None:
        return ""
    if value > LARGEST_RATIO:
        return f"more than {format_odds_ratio(LARGEST_RATIO)}"
    if value < SMALLEST_RATIO:
        return f"less than {format_odds_ratio(SMALLEST_RATIO)}"
    return f"{float(f'{value:.3g}'):,.10f}".rstrip("0").rstrip(".")


def format_interval(low: float | None, high: float | None) -> str:
    """Format an interval of odds ratios; an end that is None is open.

    >>> [format_interval(*ends) for ends in ((0.5, 2), (None, 2), (0.5, None), (None, None))]
    ['0.5 to 2', 'below 2', 'above 0.5', 'any value is possible']
    >>> [format_interval(*ends) for ends in ((1e-9, 2), (2e6, None), (None, 1e-9), (1e-9, 2e6))]
    ['below 2', 'above 1,000,000', 'below 0.000001', 'any value is possible']
    """
    has_low = low is not None and low >= SMALLEST_RATIO
    has_high = high is not None and high <= LARGEST_RATIO
    first = format_odds_ratio(min(low or 0.0, LARGEST_RATIO))
    second = format_odds_ratio(max(high or 0.0, SMALLEST_RATIO))
    if has_low and has_high:
        return f"{first} to {second}"
    if has_low:
        return f"above {first}"
    return f"below {second}" if has_high else ANY_VALUE


def _interval_text(row: RegressionRow) -> str:
    return format_interval(row.conf_low, row.conf_high)


def predictor_label(row: RegressionRow) -> str:
    """Return the category that a coefficient compares with the reference, or "Intercept"."""
    if not row.predictor_id:
        return "Intercept"
    return row.predictor_option_label


def predictor_text(result: RegressionResult, predictor: str) -> str:
    """Return the text of a predictor's question, or "Group"."""
    if predictor == GROUP:
        return "Group"
    questions = {question.id: question.text for question in result.survey.definition.questions}
    return questions.get(predictor, "")


def _model_sentence(result: RegressionResult) -> str:
    predictors = dict.fromkeys(row.predictor_id for row in result.rows if row.predictor_id)
    phrases = [
        "the group" if predictor == GROUP else f"“{predictor_text(result, predictor)}”"
        for predictor in predictors
    ]
    outcomes = len({row.option_id for row in result.rows})
    kind = "logistic" if outcomes == 1 else "multinomial logistic"
    is_penalized = result.fit is not None and result.fit.penalty == "firth"
    return (
        f"“{result.question.text}” was regressed on {' and '.join(phrases)} ({kind} regression by "
        f"{'Firth’s penalized' if is_penalized else 'maximum'} likelihood through the "
        f"randomization; {result.n:,} reports, each randomized on the respondent’s device; "
        f"{PRECISION[is_penalized]}; {INTERVALS[is_penalized]})."
    )


def _coefficient_sentence(result: RegressionResult, row: RegressionRow) -> str:
    return (
        f"The estimated odds of “{row.option_label}” against “{row.against_option_label}” were "
        f"{format_odds_ratio(row.odds_ratio)} times as high for {_comparison_phrase(result, row)} "
        f"({100 * row.conf_level:g}% confidence interval: {_interval_text(row)}; "
        f"{format_p_value(row.p_value or 0.0)})."
    )


def _comparison_phrase(result: RegressionResult, row: RegressionRow) -> str:
    category, reference = row.predictor_option_label, row.reference_option_label
    if row.predictor_id == GROUP:
        return f"respondents of the group “{category}” as for “{reference}”"
    return (
        f"those who answered “{category}” to “{predictor_text(result, row.predictor_id)}” as for "
        f"those who answered “{reference}”"
    )
