"""Declare each analysis: how a link is parsed, computed, tabulated, charted and worded.

Pages, CSV files, workbooks and figures of all analyses are served from these declarations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from survey.errors import ChannelError, CountsError, DesignError, NotFoundError, SurveyError
from survey.mechanism.composition import format_epsilon
from survey.results import small_groups
from survey.results.charts import chart_svg, has_numbers
from survey.results.combinations import GROUP_HEADINGS, list_combinations
from survey.results.crosstab import table as crosstab_table
from survey.results.crosstab.compute import METHODS, CrosstabRequest, compute_crosstab
from survey.results.crosstab.table import CrosstabRow, page_rows, percent_table
from survey.results.difference import table as difference_table
from survey.results.difference.compute import (
    DifferenceRequest,
    comparable_groups,
    compute_difference,
)
from survey.results.difference.table import DifferenceResult, DifferenceRow, difference_chart
from survey.results.estimates.chart import PART_CHARTS, file_chart, has_chart
from survey.results.estimates.compute import EstimatesRequest
from survey.results.estimates.result import ResultCache, SurveyResult
from survey.results.estimates.table import EstimateRow
from survey.results.exports.xlsx import crosstab_workbook, estimates_workbook
from survey.results.groups import list_groups
from survey.results.joint_counts import list_variables
from survey.results.number_format import (
    covers_everything,
    format_p_value,
    number_format,
    points,
)
from survey.results.question_statistics import Answer, answer_name, find_question, truth_labels
from survey.results.regression import sentences as regression_sentences
from survey.results.regression.chart import forest_chart, forests
from survey.results.regression.compute import (
    MAX_PREDICTORS,
    PENALTIES,
    RegressionRequest,
    compute_regression,
    default_baseline,
    has_groups,
    regression_questions,
)
from survey.results.regression.table import GROUP, RegressionResult, RegressionRow
from survey.results.request import IntervalOptions, Request
from survey.results.small_groups import (
    SmallGroupsResult,
    SmallGroupsRow,
    compute_small_groups,
    small_groups_chart,
)
from survey.results.trend.chart import (
    group_panels,
    line_panels,
    note_lines,
    trend_chart,
)
from survey.results.trend.compute import compute_trend
from survey.results.trend.request import TrendRequest
from survey.results.trend.table import TrendResult
from survey.results.weighting import table as weighting_table
from survey.results.weighting.compute import (
    compute_weighting,
    list_bases,
    list_categories,
    weightable_questions,
)
from survey.results.weighting.request import UNITS, WeightingRequest
from survey.results.weighting.table import WeightingRow
from survey.store import PublishedSurvey

Chart = dict[str, Any]
Context = dict[str, Any]


@dataclass(frozen=True)
class Analysis:
    """One analysis.

    parse        query of a link and parameters of its path -> request
    compute      cache, survey, request, options -> result
    row_type     dataclass of the rows; its fields are the columns of the CSV
    template     template of the page
    form         cache, survey, request -> what the page's form offers
    context      result -> what the template needs beside it
    sentences    module with the functions `paper_sentences` and `caveats` of a result
    chart        result, request -> Vega-Lite chart; None without a chart
    source       result, request -> lines under a figure; None for the survey and its date only
    svg          renders the chart for a page
    workbook     result -> XLSX file; None without a workbook
    error_field  the form field beside which the page shows why nothing can be computed, unless the
                 error names another (`FieldError`)
    errors       errors that the page shows instead of a result
    level_only   whether the confidence level is the only interval option
    """

    name: str
    parse: Callable[[Any, Mapping[str, str]], Request]
    compute: Callable[[ResultCache, PublishedSurvey, Any, IntervalOptions], Any]
    row_type: type
    template: str = ""
    form: Callable[[ResultCache, PublishedSurvey, Any], Context] = lambda *_: {}
    context: Callable[[Any], Context] = lambda _: {}
    sentences: Any = None
    chart: Callable[[Any, Any], Chart] | None = None
    source: Callable[[Any, Any], str] | None = None
    svg: Callable[[Chart, str], str] = chart_svg
    workbook: Callable[[Any], bytes] | None = None
    error_field: str = ""
    errors: tuple[type[SurveyError], ...] = (CountsError, ChannelError)
    level_only: bool = True

    def page_context(self, result: Any) -> Context:
        """Return everything that the template needs beside a result."""
        texts: Context = {}
        if self.sentences:
            paper, caveats = self.sentences.paper_sentences(result), self.sentences.caveats(result)
            texts = {"sentences": paper, "caveats": caveats}
        return {**texts, **self.context(result)}


def _estimates_chart(result: SurveyResult, request: EstimatesRequest) -> Chart:
    question, part = result.question(request.question), request.part
    if part not in PART_CHARTS:
        raise NotFoundError(f"there is no chart {part}: choose one of {', '.join(PART_CHARTS)}")
    if not has_chart(question, part):
        raise NotFoundError(f"the question {request.question} has no chart of its {part}")
    return file_chart(question, part)


def _estimates_source(result: SurveyResult, request: EstimatesRequest) -> str:
    question = result.question(request.question)
    epsilon = format_epsilon(question.question.channel.epsilon)
    return figure_source(result.survey, result.now, question.n_asked, epsilon=epsilon)


def figure_source(survey: PublishedSurvey, now: datetime, *n: int, epsilon: str = "") -> str:
    """Return the line under a figure: numbers of reports, survey, date, and randomization."""
    reports = f"n = {' and '.join(f'{number:,}' for number in n)} · " if n else ""
    privacy = f" (ε\N{NO-BREAK SPACE}{epsilon})" if epsilon else ""
    return (
        f"{reports}{survey.definition.title}, {now:%b %Y} · "
        f"randomized on respondents’ devices{privacy}"
    )


ESTIMATES = Analysis(
    name="estimates",
    parse=lambda _query, path: EstimatesRequest(**path),
    compute=lambda cache, survey, _request, options: cache.result(survey, options),
    row_type=EstimateRow,
    template="research/dashboard.html",
    chart=_estimates_chart,
    source=_estimates_source,
    workbook=estimates_workbook,
    level_only=False,
)


def _crosstab_form(
    cache: ResultCache, survey: PublishedSurvey, request: CrosstabRequest
) -> Context:
    groups = list_groups(cache.store, survey)
    # The reader chose this question, so its combinations come first.
    question = request.first.partition(".")[0]
    combinations = [] if request.is_complete else list_combinations(cache.store, survey, question)
    combinations.sort(
        key=lambda item: question not in [id_.partition(".")[0] for id_ in (item.question, item.by)]
    )
    return {
        "methods": METHODS,
        "variables": [variable.question for variable in list_variables(survey)],
        "bys": {name: text for name, text in GROUP_HEADINGS.items() if text in groups},
        "combinations": combinations,
    }


CROSSTAB = Analysis(
    name="crosstab",
    parse=lambda query, _path: CrosstabRequest.parse(query),
    compute=lambda cache, *arguments: cache.analysis(compute_crosstab, *arguments),
    row_type=CrosstabRow,
    template="research/crosstab.html",
    form=_crosstab_form,
    context=lambda result: {
        "rows": page_rows(result),
        "percent_table": percent_table,
        "null_statement": crosstab_table.null_statement(result),
        "covers_everything": covers_everything,
    },
    sentences=crosstab_table,
    workbook=crosstab_workbook,
    error_field="second",
)


def _difference_form(
    cache: ResultCache, survey: PublishedSurvey, request: DifferenceRequest
) -> Context:
    question = find_question(survey, request.question) if request.question else None
    return {
        "question": question,
        "groups": comparable_groups(cache.store, survey, question) if question else {},
        "group_name": lambda group: difference_table.group_name(group, survey),
    }


def _difference_context(result: DifferenceResult) -> Context:
    has_chart = bool(result.chart_rows)
    return {
        "group_phrases": [
            difference_table.group_phrase(group, result.survey) for group in result.groups
        ],
        "null_statement": difference_table.null_statement(result),
        "chart": chart_svg(difference_chart(result)) if has_chart else "",
        "mean_text": number_format(result.question, "mean").text,
        "mean_difference": lambda value: difference_table.format_mean_difference(result, value),
        "points": points,
        "unit_text": difference_table.unit_text(result),
        "excludes_nothing": result.excludes_nothing,
        "p_value": format_p_value,
    }


def _difference_chart(result: DifferenceResult, request: DifferenceRequest) -> Chart:
    if not result.chart_rows:
        raise NotFoundError(f"the question {request.question} has no chart of differences")
    return difference_chart(result)


DIFFERENCE = Analysis(
    name="difference",
    parse=lambda query, _path: DifferenceRequest.parse(query),
    compute=lambda cache, *arguments: compute_difference(cache.store, *arguments),
    row_type=DifferenceRow,
    template="research/difference.html",
    form=_difference_form,
    context=_difference_context,
    sentences=difference_table,
    chart=_difference_chart,
    source=lambda result, _request: figure_source(
        result.survey, datetime.now(UTC), *(result.n[:1] if result.by_answer else result.n)
    ),
    error_field="b",
)


def _weighting_form(
    cache: ResultCache, survey: PublishedSurvey, request: WeightingRequest
) -> Context:
    categories = list_categories(cache.store, survey, request.by) if request.by else []
    return {
        "bases": list_bases(cache.store, survey),
        "weightable": weightable_questions(survey),
        "units": UNITS,
        "has_margins_field": bool(request.question and categories),
        "margins": request.margins
        if request.margins.strip()
        else "\n".join(f"{category.label}, " for category in categories),
        "n_lines": min(max(len(categories), 3), 12) + 1,
    }


WEIGHTING = Analysis(
    name="weighting",
    parse=lambda query, _path: WeightingRequest.parse(query),
    compute=lambda cache, *arguments: cache.analysis(compute_weighting, *arguments),
    row_type=WeightingRow,
    template="research/weighting.html",
    form=_weighting_form,
    context=lambda _: {"covers_everything": covers_everything},
    sentences=weighting_table,
    error_field="margins",
    errors=(DesignError, CountsError, ChannelError),
)


def _regression_form(
    cache: ResultCache, survey: PublishedSurvey, request: RegressionRequest
) -> Context:
    questions = regression_questions(survey)
    outcome = next((question for question in questions if question.id == request.question), None)
    baselines: list[Answer] = []
    if outcome is not None:
        baselines = [
            (f"{outcome.id}:{id_}", answer_name(label, outcome))
            for id_, label in truth_labels(outcome)
        ]
        baselines.insert(0, baselines.pop(default_baseline(outcome)))
    return {
        "candidates": questions,
        "outcome": outcome,
        "predictors": [question for question in questions if question != outcome],
        "baselines": baselines,
        "group": GROUP if has_groups(cache.store, survey) else "",
        "max_predictors": MAX_PREDICTORS,
        "penalties": PENALTIES,
    }


def _regression_context(result: RegressionResult) -> Context:
    return {
        "null_statement": regression_sentences.null_statement(result),
        "odds_ratio": regression_sentences.format_odds_ratio,
        "interval": regression_sentences.format_interval,
        "ANY_VALUE": regression_sentences.ANY_VALUE,
        "p_value": format_p_value,
        "predictor_label": regression_sentences.predictor_label,
        "predictor_text": lambda name: regression_sentences.predictor_text(result, name),
        "forests": forests(result),
        "tables": regression_sentences.rows_by_outcome(result),
        "rows_by_predictor": regression_sentences.rows_by_predictor,
    }


def _regression_chart(result: RegressionResult, request: RegressionRequest) -> Chart:
    if result.is_suppressed:
        raise NotFoundError(f"the regression of {request.question} has no chart")
    return forest_chart(result)


REGRESSION = Analysis(
    name="regression",
    parse=lambda query, _path: RegressionRequest.parse(query),
    compute=lambda cache, *arguments: cache.analysis(compute_regression, *arguments),
    row_type=RegressionRow,
    template="research/regression.html",
    form=_regression_form,
    context=_regression_context,
    sentences=regression_sentences,
    chart=_regression_chart,
    source=lambda result, _request: figure_source(result.survey, datetime.now(UTC), result.n),
    error_field="predictors",
)


def _trend_chart(result: TrendResult, _request: TrendRequest) -> Chart:
    if not has_numbers(result.rows):
        raise NotFoundError(f"the question {result.request.question} has no chart of groups")
    return trend_chart(result)


def _compute_trend(
    cache: ResultCache, survey: PublishedSurvey, request: TrendRequest, options: IntervalOptions
) -> TrendResult:
    return compute_trend(cache, survey, request, options, today=datetime.now(UTC).date())


def _trend_context(result: TrendResult) -> Context:
    model = compute_small_groups(result) if result.groups else None
    panels = group_panels if result.request.over == "links" else line_panels
    charts: Context = {"panels": panels(result) if has_numbers(result.rows) else None}
    if model is None:
        return {**charts, "model": None}
    return {
        **charts,
        "model": model,
        "model_spread": small_groups.spread_sentences(model),
        "model_outliers": small_groups.outlier_sentences(model),
        "model_sentences": small_groups.paper_sentences(model),
        "model_caveats": small_groups.caveats(model),
    }


def _trend_source(result: TrendResult | SmallGroupsResult, request: TrendRequest) -> str:
    # The first group of a comparison over links is the total.
    has_total = isinstance(result, TrendResult) and request.over == "links"
    groups = result.groups[:1] if has_total else result.groups
    n = sum(group.result.n_asked for group in groups)
    notes = note_lines(result) if isinstance(result, TrendResult) else []
    return "\n".join([*notes, figure_source(result.survey, datetime.now(UTC), n)])


TREND = Analysis(
    name="trend",
    parse=lambda query, path: TrendRequest.parse(query, path["over"]),
    compute=_compute_trend,
    row_type=EstimateRow,
    template="research/trend.html",
    context=_trend_context,
    chart=_trend_chart,
    source=_trend_source,
    level_only=False,
)


def _compute_small_groups(
    cache: ResultCache, survey: PublishedSurvey, request: TrendRequest, options: IntervalOptions
) -> SmallGroupsResult:
    trend = _compute_trend(cache, survey, request, options)
    model = compute_small_groups(trend) if trend.groups else None
    if model is None:
        raise NotFoundError(f"{survey.slug} has no model-based estimates of this kind")
    return model


def _small_groups_chart(result: SmallGroupsResult, _request: TrendRequest) -> Chart:
    if result.shares is None:
        raise NotFoundError(f"the question {result.question.id} has no model-based estimates")
    return small_groups_chart(result)


SMALL_GROUPS = replace(
    TREND,
    name="small_groups",
    compute=_compute_small_groups,
    row_type=SmallGroupsRow,
    chart=_small_groups_chart,
)
