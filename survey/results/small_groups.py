"""Model-based shares of links or periods, each beside the direct share of its group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from survey import estimator
from survey.errors import ChannelError, DesignError
from survey.estimator import GroupShares
from survey.estimator.small_groups.normal_model import MIN_SPARE_GROUPS
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.charts import (
    OPTION_AXIS,
    PALETTES,
    PANEL_CHARACTERS,
    PERCENT_AXIS,
    PLOT_PIXELS,
    SCHEMA,
    config,
    dot_layer,
    facets,
    interval_layers,
    wrap_label,
)
from survey.results.display_status import FLAGS, SUPPRESSED, decide_disclosures
from survey.results.estimates.table import EstimateRow, row_label
from survey.results.groups import first_day
from survey.results.number_format import describe_share, format_p_value, not_enough, percent, points
from survey.results.request import IntervalOptions
from survey.results.trend.request import TrendRequest
from survey.results.trend.table import TrendGroup, TrendResult
from survey.store import PublishedSurvey

METHODS = {"links": "normal hierarchical model", "trend": "normal hierarchical model, linear trend"}
"""The value of the column `method`, by the kind of comparison."""


@dataclass(frozen=True)
class SmallGroupsRow:
    """One share of one group: its direct and its model-based estimate.

    direct_estimate to direct_conf_high  as in the CSV of the groups; empty if suppressed
    direct_flag         caution, suppressed or empty, for the direct estimate
    model_estimate to model_conf_high  the model-based share; empty if suppressed
    expected            the share that the model predicts for the group
    shrinkage           weight of `expected` in model_estimate, 0 to 1
    residual            standardized difference of the direct estimate from `expected`
    between_sd to between_conf_high  standard deviation of the true shares around `expected`
    heterogeneity_q, heterogeneity_df, p_value  test that all groups have the expected share
    flag                suppressed, or empty
    """

    survey_id: str
    survey_version: int
    stratum: str
    bucket: str
    question_id: str
    question_text: str
    option_id: str
    option_label: str
    n_reports: int
    direct_estimate: float | None
    direct_std_error: float | None
    direct_conf_low: float | None
    direct_conf_high: float | None
    direct_flag: str
    model_estimate: float | None
    model_std_error: float | None
    model_conf_low: float | None
    model_conf_high: float | None
    conf_level: float
    expected: float | None
    shrinkage: float | None
    residual: float | None
    between_sd: float | None
    between_conf_low: float | None
    between_conf_high: float | None
    heterogeneity_q: float | None
    heterogeneity_df: float | None
    p_value: float | None
    method: str
    epsilon: float
    flag: str


@dataclass(frozen=True)
class SmallGroupsResult:
    """Model-based shares of the groups of a comparison, or the reason why there are none.

    `groups` are those of the comparison, without the row of totals. `shares` is None if the shares
    are suppressed or there are too few groups; `reason` then explains which.
    """

    trend: TrendResult
    groups: tuple[TrendGroup, ...]
    shares: GroupShares | None
    reason: str = ""

    @property
    def request(self) -> TrendRequest:
        """The request of the comparison."""
        return self.trend.request

    @property
    def survey(self) -> PublishedSurvey:
        """The version of the survey."""
        return self.trend.survey

    @property
    def question(self) -> PublishedQuestion:
        """The question."""
        return self.trend.question

    @property
    def options(self) -> IntervalOptions:
        """The interval options, of which only the level applies to model-based shares."""
        return self.trend.options

    @property
    def is_over_time(self) -> bool:
        """Whether groups are periods, whose estimates are pulled towards a straight line."""
        return self.request.over == "trend"

    @property
    def labels(self) -> list[str]:
        """The labels of the options."""
        return [row_label(row) for row in self.groups[0].rows]

    @property
    def file_stem(self) -> str:
        """The stem of the names of downloaded files."""
        return f"{self.request.file_stem}-model"

    @property
    def rows_by_group(self) -> list[tuple[TrendGroup, list[SmallGroupsRow]]]:
        """The rows of each group."""
        return [(group, list(self._group_rows(i))) for i, group in enumerate(self.groups)]

    @property
    def rows(self) -> list[SmallGroupsRow]:
        """All rows, group by group."""
        return [row for _, rows in self.rows_by_group for row in rows]

    def _group_rows(self, place: int) -> Iterator[SmallGroupsRow]:
        group = self.groups[place]
        for option, direct in enumerate(group.rows):
            yield SmallGroupsRow(
                **_identity(direct),
                n_reports=group.result.n_asked,
                direct_estimate=direct.estimate,
                direct_std_error=direct.std_error,
                direct_conf_low=direct.conf_low,
                direct_conf_high=direct.conf_high,
                direct_flag=direct.flag,
                **self._model_columns(place, option),
                conf_level=self.options.level,
                method=METHODS[self.request.over],
                epsilon=direct.epsilon,
                flag="" if self.shares is not None else FLAGS[SUPPRESSED],
            )

    def _model_columns(self, group: int, option: int) -> dict[str, Any]:
        def number(name: str) -> float | None:
            if self.shares is None:
                return None
            values = getattr(self.shares, name)
            value = float(values[option] if values.ndim == 1 else values[group, option])
            return value if np.isfinite(value) else None

        return {column: number(name) for column, name in MODEL_COLUMNS.items()}


MODEL_COLUMNS = {
    "model_estimate": "estimate",
    "model_std_error": "std_error",
    "model_conf_low": "conf_low",
    "model_conf_high": "conf_high",
    "expected": "expected",
    "shrinkage": "shrinkage",
    "residual": "residual",
    "between_sd": "between_sd",
    "between_conf_low": "between_low",
    "between_conf_high": "between_high",
    "heterogeneity_q": "q",
    "heterogeneity_df": "dof",
    "p_value": "p_value",
}
"""The fields of `GroupShares` by their column."""


def _identity(row: EstimateRow) -> dict[str, Any]:
    names = ("survey_id", "survey_version", "stratum", "bucket", "question_id", "question_text")
    return {name: getattr(row, name) for name in (*names, "option_id", "option_label")}


OUTLIER = 3.0
"""Absolute residual above which a group counts as unlike the others."""


def spread_sentences(result: SmallGroupsResult) -> list[str]:
    """Return how much the true shares differ between groups, for each answer."""
    shares = result.shares
    if shares is None:
        return []
    labels = result.labels
    # The second of two exclusive answers says the same as the first.
    is_complement = len(labels) == 2 and not result.question.kind.is_multiple
    n_described = 1 if is_complement else len(labels)
    return [_spread_sentence(result, shares, option) for option in range(n_described)]


def _spread_sentence(result: SmallGroupsResult, shares: GroupShares, option: int) -> str:
    groups = "periods" if result.is_over_time else "groups"
    label = result.labels[option]
    high = points(float(shares.between_high[option]))
    test = format_p_value(float(shares.p_value[option]))
    if shares.is_pooled[option]:
        pooled = percent(float(shares.expected[0, option]))
        finding = (
            "the periods deviate from a straight line by no more than chance explains, so each "
            "model-based estimate lies on the line"
            if result.is_over_time
            else "the groups differ by no more than chance explains, so each model-based estimate "
            f"is the pooled share, {pooled}"
        )
        return (
            f"“{label}”: {finding}. A standard deviation of up to {high} points remains possible "
            f"({test})."
        )
    around = " around a straight line" if result.is_over_time else ""
    return (
        f"“{label}”: the true shares of the {groups} vary{around} with a standard deviation of "
        f"about {points(float(shares.between_sd[option]))} points ({result.options.percent} "
        f"interval {points(float(shares.between_low[option]))} to {high}; one-sided test of no "
        f"difference: {test})."
    )


def outlier_sentences(result: SmallGroupsResult) -> list[str]:
    """Return a warning for each group that the model fits badly."""
    if result.shares is None:
        return []
    residual = abs(result.shares.residual)
    return [
        f"“{group.name}” differs markedly from the others. Use its direct estimate."
        for group, values in zip(result.groups, residual, strict=True)
        if (values > OUTLIER).any()
    ]


def _weight_sentence(result: SmallGroupsResult, shares: GroupShares) -> str:
    """Return how much of the estimates comes from the model; empty if all of it does."""
    low, high = (percent(float(end)) for end in (shares.shrinkage.min(), shares.shrinkage.max()))
    if shares.is_pooled.all():
        return ""
    extent = low if low == high else f"between {low} and {high}"
    own = "period’s" if result.is_over_time else "group’s"
    return (
        f"The model contributes {extent} of each estimate; the {own} own responses contribute the "
        "rest."
    )


def paper_sentences(result: SmallGroupsResult) -> list[str]:
    """Return a sentence for a paper; none about suppressed figures."""
    shares = result.shares
    if shares is None:
        return []
    groups = "periods" if result.is_over_time else "groups"
    mean = "a linear trend" if result.is_over_time else "a common mean"
    return [
        f"Model-based shares of {len(result.groups)} {groups} were estimated with a normal "
        f"hierarchical model of the debiased shares with {mean} and known sampling variances (Fay "
        f"and Herriot 1979); {result.options.percent} intervals integrate over the variance "
        f"between {groups} ({shares.n:,} reports, each randomized on the respondent’s device)."
    ]


def caveats(result: SmallGroupsResult) -> list[str]:
    """Return the caveats that belong beside the figures."""
    if result.shares is None:
        return []
    groups, one = ("periods", "A period") if result.is_over_time else ("groups", "A group")
    texts = [
        _weight_sentence(result, result.shares),
        f"On average over the {groups}, {result.options.percent} of the intervals contain the true "
        f"share. {one} that is unlike all others is covered less often.",
        f"To compare two {groups}, use direct estimates: the model pulls estimates together.",
    ]
    return [text for text in texts if text]


GROUP_PIXELS = 36
OFFSETS = {"direct": -7, "model": 7}
"""Vertical offset in pixels of each estimate from its group's line."""

DOT_SIZE = 60


def small_groups_chart(result: SmallGroupsResult) -> dict[str, Any]:
    """Return the chart: circles are direct estimates, dots below them model-based ones."""
    level = 100 * result.options.level
    return {
        "$schema": SCHEMA,
        "description": "Direct (circles) and model-based (dots) estimates of each group, with "
        f"{level:g}% intervals: {result.question.text}",
        "background": None,
        "data": {"values": list(_points(result))},
        "facet": facets(result.labels),
        "columns": 1,
        "spacing": 16,
        "spec": {
            "width": PLOT_PIXELS,
            "height": {"step": GROUP_PIXELS},
            "encoding": {
                "y": {
                    "field": "group",
                    "type": "nominal",
                    "scale": {"domain": [wrap_label(group.name) for group in result.groups]},
                    "axis": OPTION_AXIS["axis"],
                }
            },
            "layer": [layer for kind in OFFSETS for layer in _layers(kind)],
        },
        "config": config(PALETTES["light"]),
    }


def _layers(kind: str) -> Iterator[dict[str, Any]]:
    """Yield the intervals and the dots of one kind of estimate."""
    is_model = kind == "model"
    for layer, mark in (
        *((layer, {}) for layer in interval_layers(PERCENT_AXIS)),
        (dot_layer(PERCENT_AXIS, size=DOT_SIZE), {"filled": is_model, "strokeWidth": 2}),
    ):
        yield {
            **layer,
            "transform": [{"filter": {"field": "kind", "equal": kind}}],
            "mark": {**layer["mark"], **mark, "yOffset": OFFSETS[kind]},
        }


def _points(result: SmallGroupsResult) -> Iterator[dict[str, Any]]:
    for group, rows in result.rows_by_group:
        for label, row in zip(result.labels, rows, strict=True):
            for kind, words in (("direct", "direct"), ("model", "model-based")):
                estimate, low, high = (
                    getattr(row, f"{kind}_{name}") for name in ("estimate", "conf_low", "conf_high")
                )
                if estimate is None:
                    continue
                yield {
                    "panel": wrap_label(label, PANEL_CHARACTERS),
                    "group": wrap_label(group.name),
                    "kind": kind,
                    "dot": min(max(estimate, 0.0), 1.0),
                    "low": low,
                    "high": high,
                    "outside": "below" if estimate < 0 else "above" if estimate > 1 else "no",
                    "words": f"{group.name}, {label}, {words}: "
                    f"{describe_share(estimate, low, high)}",
                }


TOO_FEW = "Model-based estimates need at least {needed} groups with responses to this question."


def compute_small_groups(trend: TrendResult) -> SmallGroupsResult | None:
    """Estimate the shares of all groups in a comparison by one model; None if no model applies.

    A model applies to shares among all respondents, over links (a common share) or over time (a
    straight line). Versions have none, because they may randomize differently. Suppression depends
    on the channel and on the number of reports in all groups together.
    """
    question, request = trend.question, trend.request
    # The first row over links is the total of all groups.
    groups = trend.groups[1:] if request.over == "links" else trend.groups
    has_model = request.over != "versions" and request.part == "shares"
    if not groups or not has_model or question.kind.is_numeric or question.by_patterns:
        return None
    counts = np.array([group.counts for group in groups], dtype=np.int64)
    n_asked = [group.result.n_asked for group in groups]
    if not sum(n_asked):
        return None
    covariate = _days(groups) if request.over == "trend" else None
    try:
        shares = estimator.group_shares(
            counts, question.channel, covariate, n=n_asked, level=trend.options.level
        )
    except ChannelError:
        return None
    except DesignError:
        needed = MIN_SPARE_GROUPS + (1 if covariate is None else 2)
        return SmallGroupsResult(trend, groups, None, TOO_FEW.format(needed=needed))
    if decide_disclosures(question, sum(n_asked))["shares"] == SUPPRESSED:
        text = not_enough(trend.survey)
        return SmallGroupsResult(trend, groups, None, f"{text[0].upper()}{text[1:]}.")
    return SmallGroupsResult(trend, groups, shares)


def _days(groups: tuple[TrendGroup, ...]) -> list[float]:
    return [float(first_day(group.period).toordinal()) for group in groups]
