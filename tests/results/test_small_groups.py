"""Model-based shares beside direct ones: what is shown, when, and in which words."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from survey.estimator import group_shares
from survey.estimator.trust.suppression import HIDDEN_MARGIN
from survey.results.charts import chart_svg
from survey.results.display_status import worst_cases
from survey.results.estimates.result import SurveyResult
from survey.results.exports.csv import column_names
from survey.results.groups import add_tallies, split_by_link, split_by_period
from survey.results.small_groups import (
    SmallGroupsRow,
    caveats,
    compute_small_groups,
    outlier_sentences,
    paper_sentences,
    small_groups_chart,
    spread_sentences,
)
from survey.results.trend.compute import link_results, period_results, version_results
from tests.results.test_every_type import QUESTIONS, counts_of, survey_of
from tests.results.test_trend import FIRST, NOW, combine, results_of, tally

LINKS = {
    ("north", ""): tally([400, 300, 100]),
    ("south", ""): tally([75, 60, 15]),
    ("east", ""): tally([20, 60, 10]),
    ("west", ""): tally([40, 24, 6]),
    ("centre", ""): tally([110, 115, 25]),
}
DAYS = {
    ("", f"2026-11-{day:02}"): part
    for day, part in zip((2, 3, 9, 10, 20), LINKS.values(), strict=True)
}


def by_link(survey, tallies=LINKS, question=FIRST, part="shares"):
    every = SurveyResult(survey, add_tallies(tallies.values()), NOW)
    groups = results_of(survey, split_by_link(tallies))
    return combine("links", link_results(every, groups), question, part)


def by_period(survey, tallies=DAYS):
    return combine("trend", period_results(results_of(survey, split_by_period(tallies))), FIRST)


def counts(tallies):
    """Return the counts of the first question in the order of the groups' names."""
    return [tallies[key].counts[0] for key in sorted(tallies)]


def test_rows_hold_the_model_beside_the_direct_estimates_of_the_page(small):
    trend = by_link(small)
    model = compute_small_groups(trend)
    shares = group_shares(counts(LINKS), small.definition.questions[0].channel)
    assert [group.name for group in model.groups] == ["centre", "east", "north", "south", "west"]
    assert [row.model_estimate for row in model.rows] == shares.estimate.ravel().tolist()
    assert [row.model_conf_high for row in model.rows] == shares.conf_high.ravel().tolist()
    assert [row.between_sd for row in model.rows[:3]] == shares.between_sd.tolist()
    direct = [row for group in trend.groups[1:] for row in group.rows]
    assert [row.direct_estimate for row in model.rows] == [row.estimate for row in direct]
    assert [row.direct_flag for row in model.rows] == [row.flag for row in direct]
    # The model shows what is too imprecise alone.
    assert any(row.direct_estimate is None for row in model.rows)
    assert {row.flag for row in model.rows} == {""}
    assert [row.n_reports for row in model.rows[::3]] == [250, 90, 800, 150, 70]


def test_periods_are_drawn_towards_a_line_over_their_days(small):
    model = compute_small_groups(by_period(small))
    days = [date(2026, 11, day).toordinal() for day in (2, 3, 9, 10, 20)]
    channel = small.definition.questions[0].channel
    shares = group_shares(counts(DAYS), channel, days)
    assert [row.model_estimate for row in model.rows] == shares.estimate.ravel().tolist()
    assert {row.method for row in model.rows} == {"normal hierarchical model, linear trend"}
    assert [row.bucket for row in model.rows[::3]] == [bucket for _, bucket in sorted(DAYS)]


def test_the_model_is_suppressed_by_the_number_of_all_reports_alone(small):
    shares = next(iter(worst_cases(small.definition.questions[0]).values()))
    needed = shares.required_n(HIDDEN_MARGIN)
    of_each = needed // 5
    for answers in ((0, 0, 1), (1, 0, 0)):
        few = {key: tally([of_each * answer for answer in answers]) for key in LINKS}
        few["east", ""] = tally([0, needed - 4 * of_each - 1, 0])
        model = compute_small_groups(by_link(small, few))
        assert model.shares is None, answers
        assert model.reason == "Not enough responses yet."
        assert {row.flag for row in model.rows} == {"suppressed"}
        assert {row.model_estimate for row in model.rows} == {None}
        assert spread_sentences(model) == caveats(model) == paper_sentences(model) == []
        few["east", ""] = tally([0, needed - 4 * of_each, 0])
        assert compute_small_groups(by_link(small, few)).shares is not None, answers


def test_too_few_groups_are_explained(small):
    three = dict(list(LINKS.items())[:3])
    text = "Model-based estimates need at least {} groups with responses to this question."
    assert compute_small_groups(by_link(small, three)).reason == text.format(4)
    four = dict(list(DAYS.items())[:4])
    assert compute_small_groups(by_period(small, four)).reason == text.format(5)


def test_only_shares_of_options_over_links_and_time_have_a_model(small):
    assert compute_small_groups(by_link(small, part="answered")) is None
    results = [
        SurveyResult(replace(small, key=n, version=n), part, NOW)
        for n, part in enumerate(LINKS.values(), 1)
    ]
    versions, _ = version_results(results, FIRST)
    assert compute_small_groups(combine("versions", versions, FIRST)) is None


@pytest.mark.web
def test_every_type_of_question_with_a_share_per_option_has_a_model():
    with_model = set()
    for name in QUESTIONS:
        survey = survey_of([name])
        (question,) = survey.definition.questions
        parts = [counts_of(question, 2_000, seed) for seed in range(5)]
        tallies = {
            (f"g{place}", ""): replace(tally([2_000]), n_asked=[2_000], counts=[part])
            for place, part in enumerate(parts)
        }
        model = compute_small_groups(by_link(survey, tallies, name, "shares"))
        if model is not None and model.shares is not None:
            with_model.add(name)
            assert len(model.labels) == len(question.options), name
            assert "<svg" in chart_svg(small_groups_chart(model)), name
    assert with_model == {"choice", "sets", "coins", "bits", "sampled", "space", "mood", "wave"}


def test_sentences_say_how_much_groups_differ(small):
    differing = {key: tally([40 + 90 * place, 400, 60]) for place, key in enumerate(LINKS)}
    model = compute_small_groups(by_link(small, differing))
    yes = spread_sentences(model)[0]
    assert yes.startswith("“Yes”: the true shares of the groups vary with a standard deviation of")
    assert f"about {round(100 * model.shares.between_sd[0])} points (95% interval" in yes
    assert "p < 0.001" in yes
    assert caveats(model)[0].startswith("The model contributes between")


def test_sentences_say_when_groups_are_pooled(small):
    alike = {key: tally([100 + place % 2, 80, 20]) for place, key in enumerate(LINKS)}
    model = compute_small_groups(by_link(small, alike))
    pooled = round(100 * model.shares.expected[0, 0])
    yes = spread_sentences(model)[0]
    assert "differ by no more than chance" in yes
    assert f"each model-based estimate is the pooled share, {pooled}%." in yes
    assert "95% of the intervals contain the true share" in caveats(model)[0]
    line = compute_small_groups(by_period(small, {key: tally([100, 80, 20]) for key in DAYS}))
    assert "deviate from a straight line by no more than chance" in spread_sentences(line)[0]
    assert "5 periods" in paper_sentences(line)[0]


def test_a_group_unlike_all_others_is_named(small):
    alike = {key: tally([100 + place % 2, 80, 20]) for place, key in enumerate(LINKS)}
    assert outlier_sentences(compute_small_groups(by_link(small, alike))) == []
    alike[("east", "")] = tally([30, 150, 20])
    (sentence,) = outlier_sentences(compute_small_groups(by_link(small, alike)))
    assert sentence == "“east” differs markedly from the others. Use its direct estimate."


def test_the_chart_has_both_estimates_of_each_group(small):
    model = compute_small_groups(by_link(small))
    points = small_groups_chart(model)["data"]["values"]
    for kind in ("direct", "model"):
        values = [getattr(row, f"{kind}_estimate") for row in model.rows]
        shown = [min(max(value, 0.0), 1.0) for value in values if value is not None]
        assert sorted(p["dot"] for p in points if p["kind"] == kind) == sorted(shown)
    assert "model-based" in chart_svg(small_groups_chart(model))


def test_the_columns_of_the_file_are_fixed():
    assert column_names(SmallGroupsRow) == (
        "survey_id", "survey_version", "stratum", "bucket", "question_id", "question_text",
        "option_id", "option_label", "n_reports", "direct_estimate", "direct_std_error",
        "direct_conf_low", "direct_conf_high", "direct_flag", "model_estimate", "model_std_error",
        "model_conf_low", "model_conf_high", "conf_level", "expected", "shrinkage", "residual",
        "between_sd", "between_conf_low", "between_conf_high", "heterogeneity_q",
        "heterogeneity_df", "p_value", "method", "epsilon", "flag",
    )  # fmt: skip
