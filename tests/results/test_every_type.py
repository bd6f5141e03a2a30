"""Rows, sentences and charts of every type of question, from released counts."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache

import numpy as np
import pytest

from survey.estimator import (
    answered_shares,
    channel_fit,
    disclosure,
    histogram,
    margin_split,
    margin_split_of_mean,
    mean,
    median,
    no_answer_shares,
    poisoning,
    poisoning_of_mean,
    proportions,
    subset_shares,
)
from survey.mechanism import SubsetSelection, WeightTable, from_epsilon
from survey.mechanism.bit_vector import TickChannel
from survey.mechanism.numeric import one_bit
from survey.mechanism.weight_table import Explicit
from survey.questionnaire.canonical import freeze
from survey.questionnaire.designs import DESIGNS
from survey.questionnaire.kinds import PublishedQuestion
from survey.questionnaire.loading import load
from survey.results.charts import chart_svg
from survey.results.estimates.chart import PART_CHARTS, file_chart, has_chart, middle_chart
from survey.results.estimates.compute import histogram_cells
from survey.results.estimates.result import (
    QuestionResult,
    SurveyResult,
    question_result,
    terminal_lines,
)
from survey.results.estimates.sentences import fabrication_remark, margin_remark
from survey.results.estimates.table import MECHANISMS, describe_estimate, row_label
from survey.results.exports.csv import to_csv
from survey.results.number_format import NumberFormat
from survey.results.question_statistics import single_code_channel, truth_values
from survey.results.request import IntervalOptions
from survey.settings import Caps
from survey.store import PublishedSurvey, Tally
from tests.cases import each_case
from tests.conftest import TODAY

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
N = 20_000
OPTIONS = 'options = [{id = "a", label = "A"}, {id = "b", label = "B"}, {id = "c", label = "C"}]'
EIGHT_OPTIONS = ", ".join(f'{{id = "{letter}", label = "{letter}"}}' for letter in "abcdefgh")

QUESTIONS = {
    "choice": f'type = "single_choice"\n{OPTIONS}',
    "sets": f'type = "single_choice"\nmechanism = "best"\nepsilon = 1\noptions = [{EIGHT_OPTIONS}]',
    "coins": 'type = "yes_no"\nmechanism = "two_coins"\nparameters = {truth = "1/2", yes = "1/3"}\n'
    "prefer_not_to_say = false",
    "bits": f'type = "multiple_choice"\nmechanism = "bits"\n{OPTIONS}',
    "sampled": f'type = "multiple_choice"\nmechanism = "sampled_options"\n{OPTIONS}',
    "space": f'type = "multiple_choice"\nmechanism = "half_space"\n{OPTIONS}',
    "subsets": f'type = "multiple_choice"\nmechanism = "subsets"\n{OPTIONS}',
    "hours": 'type = "number"\nlow = 0\nhigh = 10\nstep = "0.5"\nunit = "hours"',
    "pay": 'type = "number"\nlow = -100\nhigh = 100\nstep = 10\nprefer_not_to_say = false',
    "since": 'type = "date"\nlow = 2020-01-01\nhigh = 2020-12-30\nstep = 7\ndoes_not_apply = true',
    "mood": 'type = "scale"\nlow = 0\nhigh = 6',
    "wave": 'type = "scale"\nlow = 1\nhigh = 7\nmechanism = "square_wave"\n'
    "prefer_not_to_say = false",
}


def survey_of(names: list[str], head: str = "") -> PublishedSurvey:
    questions = "".join(
        f'[[pages.questions]]\nid = "{name}"\ntext = "{name}?"\n{QUESTIONS[name]}\n'
        + ("" if "epsilon" in QUESTIONS[name] or name == "coins" else "epsilon = 2\n")
        for name in names
    )
    toml = f'slug = "every"\ntitle = "Every"\n{head}[[pages]]\n{questions}'
    caps = Caps(question=8, survey=100)
    definition = freeze(load(toml.encode(), "every.toml", caps), 1)
    return PublishedSurvey(1, "every", 1, definition.sha256, "open", TODAY, definition.canonical)


def counts_of(question: PublishedQuestion, n: int, seed: int = 5) -> list[int]:
    """Return counts of n reports whose true shares decrease."""
    rng = np.random.default_rng(seed)
    channel = question.channel
    if isinstance(channel, TickChannel):
        ticks = np.eye(channel.m, dtype=np.uint8)[rng.integers(0, channel.m, n)]
        return channel.perturb(ticks, rng).sum(axis=0).tolist()
    weights = 1 / (1 + np.arange(channel.truths))
    reports = channel.perturb(rng.choice(channel.truths, size=n, p=weights / weights.sum()), rng)
    if isinstance(channel, SubsetSelection) and channel.d > 1:
        return reports.sum(axis=0).tolist()
    return np.bincount(reports, minlength=channel.counted).tolist()


def result_of(survey: PublishedSurvey, n_asked: int = N, n: int = N) -> SurveyResult:
    questions = survey.definition.questions
    counts = [counts_of(question, n_asked) for question in questions]
    return SurveyResult(survey, Tally(1, n, [n_asked] * len(questions), counts), NOW)


@cache
def every_type() -> SurveyResult:
    """Return the result of all `QUESTIONS`, which estimates each question on first access."""
    return result_of(survey_of(list(QUESTIONS)))


@pytest.fixture
def result() -> SurveyResult:
    return every_type()


def find_question(result: SurveyResult, name: str) -> QuestionResult:
    return next(question for question in result.questions if question.question.id == name)


def numbers(rows: tuple, field: str) -> list[float]:
    return [getattr(row, field) for row in rows]


def test_every_type_has_a_share_row_per_option_and_numbers_have_a_mean_and_a_median(result):
    expected = {
        "choice": (4, ""),
        "sets": (9, ""),
        "coins": (2, ""),
        "bits": (5, ""),
        "sampled": (5, ""),
        "space": (5, ""),
        "subsets": (5, ""),
        "hours": (1, "answered"),
        "pay": (0, "all"),
        "since": (2, "answered"),
        "mood": (8, "answered"),
        "wave": (7, "all"),
    }
    sizes = {
        question.question.id: (len(question.shares), question.mean.base if question.mean else "")
        for question in result.questions
    }
    assert sizes == expected
    assert all(row.base == "all" for question in result.questions for row in question.shares)
    answered = {question.question.id: len(question.answered) for question in result.questions}
    assert answered == {
        "choice": 3,
        "sets": 8,
        "coins": 0,
        "bits": 4,
        "sampled": 4,
        "space": 4,
        "subsets": 4,
        "hours": 0,
        "pay": 0,
        "since": 0,
        "mood": 7,
        "wave": 0,
    }
    for question in result.questions:
        assert bool(question.mean) == bool(question.median)
        for row in filter(None, (question.mean, question.median)):
            assert (row.option_id, row.option_label, row.mle) == ("", "", None)
            assert row.base == (question.spread or (row,))[0].base
    spread = {question.question.id: len(question.spread) for question in result.questions}
    assert {name: n for name, n in spread.items() if n} == {"hours": 10, "pay": 10, "since": 12}


def test_share_rows_contain_the_estimates(result):
    for question in result.questions:
        published = question.question
        counts = counts_of(published, N)
        if published.by_patterns:
            expected = subset_shares(
                counts, published.channel, published.patterns, len(published.options)
            )
        elif published.kind.is_numeric:
            if not published.options:
                continue
            expected = no_answer_shares(np.array(counts), published.channel)
        else:
            expected = proportions(counts, published.channel, n=N)
        for field in ("estimate", "std_error", "conf_low", "conf_high", "n_effective"):
            np.testing.assert_array_equal(
                numbers(question.shares, field), getattr(expected, field), published.id
            )
        mle = [np.nan if x is None else x for x in numbers(question.shares, "mle")]
        np.testing.assert_array_equal(mle, expected.mle, published.id)
        assert {row.method for row in question.shares} == {expected.method}


def test_answered_rows_contain_the_estimates_and_follow_those_among_all(result):
    for question in result.questions:
        if not question.answered:
            continue
        published, silent = question.question, len(question.shares) - 1
        expected = answered_shares(
            counts_of(published, N),
            published.channel,
            [silent],
            n=None if published.by_patterns else N,
            patterns=published.patterns if published.by_patterns else None,
        )
        assert question.parts["answered"].disclosure == disclosure(expected), published.id
        for field in ("estimate", "std_error", "conf_low", "conf_high", "n_effective"):
            np.testing.assert_array_equal(
                numbers(question.answered, field), getattr(expected, field), published.id
            )
        assert {(row.base, row.statistic, row.method) for row in question.answered} == {
            ("answered", "share", "fieller")
        }
        ids = [option.id for option in published.options[:silent]]
        assert [row.option_id for row in question.answered] == ids
        numbers_ = question.parts["mean"].rows + question.parts["median"].rows
        assert question.rows == (*question.shares, *question.answered, *numbers_)
    assert sum(bool(question.answered) for question in result.questions) == 7


NOISY = 'type = "scale"\nlow = 1\nhigh = 7\nmechanism = "geometric"\nepsilon = 1'


def test_a_mean_is_shown_although_the_shares_of_its_scale_are_suppressed(monkeypatch):
    monkeypatch.setitem(QUESTIONS, "noisy", NOISY)
    survey = survey_of(["noisy"])
    result = result_of(survey, 3000, 3000)
    (question,) = result.questions
    assert (question.parts["shares"].disclosure, question.parts["mean"].disclosure) == (
        "hide",
        "caution",
    )
    assert question.disclosure == "caution"
    assert {row.flag for row in question.shares + question.answered} == {"suppressed"}
    assert {row.estimate for row in question.shares + question.answered} == {None}
    assert question.mean.flag == "caution"
    assert question.mean.estimate is not None
    shares, mean_, *_ = question.caveats(closed=False)
    assert shares.startswith("Not enough responses yet for the shares: about ")
    assert mean_ == "Low precision for the mean: the intervals are wide."
    assert (has_chart(question, "shares"), has_chart(question, "middle")) == (False, True)
    margins = [remark for remark in question.remarks if "margin of error is" in remark]
    assert len(margins) == 1
    assert margins[0].startswith("The mean’s margin of error is ±")
    lines = terminal_lines(result)
    assert any("Mean of those who answered" in line for line in lines)
    assert not any("Value 1" in line or "Of those who answered:" in line for line in lines)
    closed = terminal_lines(replace(result, survey=replace(survey, state="closed")))
    assert any("Not enough responses for the shares." in line for line in closed)


def test_a_mean_of_hardly_any_answers_may_be_any_value():
    """Suppressing it would select the surveys in which more people seem to have answered."""
    survey = survey_of(["hours"])
    (question,) = survey.definition.questions
    # The last report stands for no answer.
    counts = [*[0] * (question.channel.counted - 1), 4000]
    outcome = question_result(survey, question, 4000, 4000, counts, NOW)
    assert outcome.parts["shares"].disclosure == outcome.parts["mean"].disclosure == "show"
    ends = outcome.mean.conf_low, outcome.mean.conf_high
    assert (outcome.mean.estimate, *ends, outcome.mean.flag) == (None, 0, 10, "")
    assert outcome.describe(outcome.mean) == "too few answered: any value is possible"
    assert not has_chart(outcome, "middle")
    assert not has_chart(outcome, "spread")


def test_shares_of_hardly_any_answers_may_be_anything():
    survey = survey_of(["choice"])
    (question,) = survey.definition.questions
    counts = np.round(4000 * question.channel.matrix[3]).astype(int).tolist()
    n = sum(counts)
    outcome = question_result(survey, question, n, n, counts, NOW)
    assert outcome.parts["shares"].disclosure != "hide"
    numbers_ = {(row.estimate, row.conf_low, row.conf_high, row.flag) for row in outcome.answered}
    assert numbers_ == {(None, 0, 1, "")}
    assert {outcome.describe(row) for row in outcome.answered} == {
        "too few answered: any value is possible"
    }


def test_the_remark_splits_the_widest_margin(result):
    question = find_question(result, "choice")
    shares = proportions(counts_of(question.question, N), question.question.channel)
    split = margin_split(shares)
    widest = int(split.margin.argmax())
    assert question.remarks[0] == (
        f"The widest margin of error is ±{100 * split.margin[widest]:.1f} points. Without "
        f"randomization it would be ±{100 * split.sampling[widest]:.1f} points."
    )


def test_the_remark_splits_the_margin_of_a_mean(result):
    question = find_question(result, "pay").question
    split = margin_split_of_mean(
        counts_of(question, N), single_code_channel(question), truth_values(question), level=0.95
    )
    assert find_question(result, "pay").remarks[0] == (
        f"The mean’s margin of error is ±{split.margin[0]:.1f}. Without randomization it would be "
        f"{'at most ' if split.at_most else ''}±{split.sampling[0]:.1f}."
    )


@each_case(
    ("name", "values"),
    [
        ("hours", [*(i / 2 for i in range(21)), None]),
        ("pay", range(-100, 101, 10)),
        ("mood", [*range(7), None]),
        ("wave", range(1, 8)),
        ("since", [*range(18262, 18627, 7), None, None]),
    ],
)
def test_mean_rows_contain_the_estimates(result, name, values):
    question = find_question(result, name)
    expected = mean(counts_of(question.question, N), question.question.channel, list(values))
    for field in ("estimate", "std_error", "conf_low", "conf_high", "n_effective", "method"):
        assert getattr(question.mean, field) == getattr(expected, field)


def test_report_counts_exist_where_reports_name_options(result):
    def report_counts(name):
        question = find_question(result, name)
        return numbers(question.rows[: len(question.shares)], "report_count")

    assert report_counts("choice") == counts_of(find_question(result, "choice").question, N)
    assert report_counts("sets") == counts_of(find_question(result, "sets").question, N)
    assert report_counts("coins") == counts_of(find_question(result, "coins").question, N)
    assert report_counts("bits") == counts_of(find_question(result, "bits").question, N)
    assert report_counts("hours") == [counts_of(find_question(result, "hours").question, N)[-1]]
    assert report_counts("wave") == [None] * 7
    assert {row.report_count for row in find_question(result, "hours").spread} == {None}
    subsets = find_question(result, "subsets").question
    holds_first = [0 in pattern for pattern in subsets.patterns]
    assert report_counts("subsets")[0] == np.array(counts_of(subsets, N))[holds_first].sum()


def test_a_sampled_option_counts_its_own_reports(result):
    question = find_question(result, "sampled")
    counts = counts_of(question.question, N)
    for option, row in enumerate(question.shares):
        assert row.n_reports == counts[option] < N
        assert row.report_count == counts[5 + option]
        assert row.report_share == counts[5 + option] / counts[option]


def test_rows_name_mechanism_truth_probability_and_number_of_truths(result):
    def design_columns(name):
        row = find_question(result, name).rows[0]
        return row.mechanism, row.truth_probability, row.n_options

    choice = find_question(result, "choice").question.channel
    assert design_columns("choice") == ("generalized randomized response", choice.p, 4)
    assert design_columns("coins") == ("two coins", None, 2)
    assert design_columns("hours") == ("hybrid of one bit and piecewise", None, 22)
    assert design_columns("bits")[2] == 5
    assert set(MECHANISMS) == set(DESIGNS)


def test_rows_count_only_respondents_who_were_asked():
    survey = survey_of(["choice", "hours", "mood"], head="questions_per_person = 1\n")
    result = result_of(survey, n_asked=5_741, n=N)
    assert {row.n_reports for row in result.rows} == {5_741}
    for question in result.questions:
        # The exact number, as in "n = 5,741" beside it.
        assert question.notes[0] == "A random 5,741 of 20,000 respondents were asked."


def test_a_sampled_question_needs_more_respondents():
    survey = survey_of(["choice", "hours"], head="questions_per_person = 1\n")
    unsampled = survey_of(["choice", "hours"])
    half, full = result_of(survey, 20, 40), result_of(unsampled, 20, 20)
    for sampled_question, full_question in zip(half.questions, full.questions, strict=True):
        assert sampled_question.disclosure == full_question.disclosure == "hide"
        n_needed = full_question.parts["shares"].missing + 20
        assert 2 * n_needed <= sampled_question.parts["shares"].missing + 40 <= 2.2 * n_needed


@each_case("name", list(QUESTIONS))
def test_a_question_without_responses_has_rows_without_numbers(result, name):
    survey = survey_of([name])
    (published,) = survey.definition.questions
    tally = Tally(0, 0, [0], [[0] * published.channel.counted])
    (question,) = SurveyResult(survey, tally, NOW).questions
    assert question.disclosure == "hide"
    for part in (question.parts["shares"], question.parts["mean"]):
        assert bool(part.rows) == bool(part.missing)
    for row in question.rows:
        assert (row.estimate, row.report_count, row.flag, row.n_reports) == (
            None,
            None,
            "suppressed",
            0,
        )
    assert len(question.rows) == len(find_question(result, name).rows)


@each_case("name", list(QUESTIONS))
def test_suppressed_questions_have_no_numbers(name):
    (question,) = result_of(survey_of([name]), 30, 30).questions
    assert question.disclosure == "hide"
    for part in (question.parts["shares"], question.parts["mean"], question.parts["median"]):
        assert part.missing > 0 or not part.rows
    assert question.remarks == ()
    for row in question.rows:
        columns = (row.estimate, row.mle, row.std_error, row.conf_low, row.report_share)
        assert (*columns, row.n_effective, row.method) == (None,) * 6 + ("",)
        assert row.flag == "suppressed"


def with_channel(name: str, channel: WeightTable, counts: list[int]) -> QuestionResult:
    """Return a question with a channel that no definition produces."""
    survey = survey_of([name])
    question = replace(survey.definition.questions[0], channel=channel)
    n = sum(counts)
    return question_result(survey, question, n, n, counts, NOW)


def test_shares_that_a_design_does_not_identify_are_marked_beside_the_mean():
    channel = one_bit(7, 2)
    question = with_channel("wave", channel, [9_000, 11_000])
    assert question.disclosure == "show"
    assert {row.flag for row in question.shares} == {"not_estimable"}
    assert {row.estimate for row in question.shares} == {None}
    assert describe_estimate(question.shares[0]) == "cannot be estimated from this design"
    assert question.mean.estimate == mean([9_000, 11_000], channel, range(1, 8)).estimate
    assert (question.median.flag, question.median.estimate) == ("not_estimable", None)
    assert not has_chart(question, "shares")
    assert has_chart(question, "middle")


def test_a_question_whose_design_identifies_nothing_promises_nothing():
    alike = WeightTable(Explicit(((3, 1), (3, 1), (1, 3), (1, 3))))
    question = with_channel("choice", alike, [500, 500])
    assert question.disclosure == "hide"
    assert question.caveats(closed=False) == [
        "Nothing can be estimated from this question's design."
    ]
    assert {row.flag for row in question.rows} == {"not_estimable"}
    assert question.remarks == ()


def test_means_in_words_have_unit_interval_and_one_extra_decimal(result):
    question = find_question(result, "hours")
    row = replace(question.mean, estimate=5.204, conf_low=5.01, conf_high=5.386)
    assert row_label(row) == "Mean of those who answered"
    assert question.describe(row) == "estimated 5.20 hours, between 5.01 and 5.39 hours"
    assert question.describe(replace(row, estimate=None)) == "not enough responses yet"
    assert row_label(find_question(result, "pay").mean) == "Mean"


def test_medians_in_words_have_the_decimals_of_the_grid(result):
    question = find_question(result, "hours")
    row = replace(question.median, estimate=2.5, conf_low=2.0, conf_high=3.0)
    assert row_label(row) == "Median of those who answered"
    assert question.describe(row) == "estimated 2.5 hours, between 2.0 and 3.0 hours"
    sure = replace(row, conf_low=2.5, conf_high=2.5)
    assert question.describe(sure) == "estimated 2.5 hours, no other value is in the interval"


def test_means_of_dates_are_days_in_the_csv_and_dates_in_words(result):
    question = find_question(result, "since")
    row = replace(question.mean, estimate=18262.4, conf_low=18262.0, conf_high=18290.6)
    words = question.describe(row)
    assert words == "estimated 1 January 2020, between 1 January 2020 and 30 January 2020"
    (parsed,) = csv.DictReader(io.StringIO(to_csv([row])))
    assert parsed["estimate"] == "18262.4"
    assert (parsed["mle"], parsed["report_count"], parsed["statistic"]) == ("", "", "mean")


@each_case(
    ("amounts", "value", "text"),
    [
        (NumberFormat(1, "km"), -0.04, "0.0 km"),
        (NumberFormat(1), -12.25, "−12.2"),
        (NumberFormat(0), 1234.5, "1,234"),
        (NumberFormat(is_date=True), -1e9, "1 January 1"),
        (NumberFormat(is_date=True), 1e9, "31 December 9999"),
    ],
)
def test_numbers_are_formatted_for_readers(amounts, value, text):
    assert amounts.text(value) == text


def test_no_number_in_the_csv_is_nan(result):
    assert "nan" not in to_csv(result.rows).lower()


def test_terminal_lines_match_the_page(result):
    lines, hours = "\n".join(terminal_lines(result)), find_question(result, "hours")
    assert "Several answers possible: shares do not add up to 100%." in lines
    choice = find_question(result, "choice")
    heading = lines.index("Of those who answered:")
    assert lines.index(describe_estimate(choice.shares[0])) < heading
    assert lines.index(describe_estimate(choice.answered[0])) > heading
    assert "Each report covers 1 of the 5 answers, at random." in lines
    for row in hours.middles:
        assert re.search(rf"{row_label(row)} +{re.escape(hours.describe(row))}", lines)
    for question in result.questions:
        for text in (*question.remarks, *question.caveats(closed=False)):
            assert f"  {text}\n" in lines + "\n"


def test_mean_and_median_have_a_chart_on_the_axis_of_their_grid(result):
    for name, ends in {"hours": [0.0, 10.0], "pay": [-100, 100], "mood": [0, 6]}.items():
        question = find_question(result, name)
        specification = middle_chart(question)
        axis = specification["layer"][0]["encoding"]["x"]
        assert axis["scale"]["domain"] == ends
        labels = [point["option"] for point in specification["data"]["values"]]
        assert labels == [row.statistic.capitalize() for row in question.middles]
        assert json.dumps(specification)


@each_case("name", list(QUESTIONS))
def test_charts_are_svg_without_script_or_style(result, name):
    question = find_question(result, name)
    shown = {part: has_chart(question, part) for part in PART_CHARTS}
    is_spread_shown = question.parts["spread"].disclosure != "hide"
    assert shown == {
        "shares": bool(question.shares),
        "middle": bool(question.mean),
        "spread": is_spread_shown,
    }
    for part in filter(shown.get, shown):
        svg = chart_svg(file_chart(question, part))
        assert svg.startswith("<svg")
        assert "<script" not in svg
        assert "style=" not in svg


def test_a_mean_of_dates_has_dates_on_its_axis(result):
    assert "2020" in chart_svg(file_chart(find_question(result, "since"), "middle"))


def test_a_mean_outside_its_grid_is_drawn_at_its_end(result):
    question = find_question(result, "hours")
    row = replace(question.mean, estimate=-0.3)
    part = replace(question.parts["mean"], rows=(row,))
    point = middle_chart(replace(question, parts={**question.parts, "mean": part}))["data"][
        "values"
    ][0]
    assert (point["dot"], point["outside"]) == (0.0, "below")


def test_median_rows_contain_the_estimates(result):
    for name in ("hours", "pay", "mood", "wave", "since"):
        question = find_question(result, name)
        published = question.question
        expected = median(counts_of(published, N), published.channel, truth_values(published))
        if question.parts["median"].disclosure == "hide":
            assert question.median.estimate is None
            continue
        for field in ("estimate", "conf_low", "conf_high"):
            assert getattr(question.median, field) == getattr(expected, field)[0]
        assert (question.median.std_error, question.median.n_effective) == (None, None)
        assert question.median.method == expected.method


SEVEN_VALUES = 'type = "number"\nlow = 0\nhigh = 6\nmechanism = "square_wave"\nepsilon = 6'


@pytest.fixture(scope="module")
def seven_values() -> QuestionResult:
    """Return a number with seven values and enough reports to show its histogram."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(QUESTIONS, "few", SEVEN_VALUES)
        return result_of(survey_of(["few"]), 40_000, 40_000).questions[0]


def test_cell_rows_contain_the_estimates(seven_values):
    published = seven_values.question
    expected = histogram(
        counts_of(published, 40_000), published.channel, truth_values(published), range(8)
    )
    assert seven_values.parts["spread"].disclosure != "hide"
    assert [row.option_label for row in seven_values.spread] == list("0123456")
    assert [row.option_id for row in seven_values.spread][:2] == ["from_0_to_0", "from_1_to_1"]
    assert {(row.statistic, row.base) for row in seven_values.spread} == {("share", "answered")}
    np.testing.assert_array_equal(numbers(seven_values.spread, "estimate"), expected.linear)
    np.testing.assert_array_equal(numbers(seven_values.spread, "mle"), expected.estimate)
    for field in ("std_error", "conf_low", "conf_high"):
        np.testing.assert_array_equal(numbers(seven_values.spread, field), getattr(expected, field))


def test_a_histogram_has_a_bar_a_dot_and_an_interval_on_an_axis_that_begins_at_0(seven_values):
    specification = file_chart(seven_values, "spread")
    marks = [layer["mark"]["type"] for layer in specification["layer"]]
    assert marks == ["bar", "rule", "tick", "tick", "point", "text"]
    assert specification["layer"][0]["encoding"]["x"]["scale"]["domain"][0] == 0
    assert len(specification["data"]["values"]) == 7
    assert chart_svg(specification).startswith("<svg")


def test_a_suppressed_histogram_has_rows_without_numbers():
    (hours,) = result_of(survey_of(["hours"]), 2_000, 2_000).questions
    assert hours.parts["spread"].disclosure == "hide"
    assert {(row.estimate, row.mle, row.conf_low) for row in hours.spread} == {(None,) * 3}
    assert {row.flag for row in hours.spread} == {"suppressed"}
    assert re.search(r"for the histogram: about [\d,]+ more", hours.caveats(closed=False)[-1])


def test_each_value_is_in_exactly_one_cell(result):
    for question in result.questions:
        bins = histogram_cells(question.question)
        if not bins:
            continue
        grid = question.question.grid
        ends = [end for cell in bins for end in (cell.first, cell.last)]
        assert ends == sorted(ends)
        assert (ends[0], ends[-1]) == (grid.values[0], grid.values[-1])
        n_cells_by_value = [sum(c.first <= value <= c.last for c in bins) for value in grid.values]
        assert set(n_cells_by_value) == {1}
        assert len(bins) <= 12


def test_remarks_state_the_results_of_the_estimator(result):
    question = find_question(result, "choice")
    counts = counts_of(question.question, N)
    channel = question.question.channel
    outcome = poisoning(proportions(counts, channel), channel)
    fewest = math.ceil(outcome.margin.max() / outcome.largest_shift.max())
    assert question.remarks[1:] == (
        "The responses are consistent with the randomization. This cannot rule out fabricated "
        "responses or untruthful answers.",
        f"As few as {fewest:,} fabricated responses out of {N:,} could shift an estimate by the "
        "widest margin of error undetected.",
    )
    hours = find_question(result, "hours")
    outcome = poisoning_of_mean(
        counts_of(hours.question, N), hours.question.channel, truth_values(hours.question)
    )
    assert hours.remarks[-1] == (
        f"As few as {outcome.fakes_per_margin[0]:,} fabricated responses out of {N:,} could shift "
        "the mean by its margin of error undetected."
    )


@each_case(
    "options",
    [
        IntervalOptions(),
        IntervalOptions(level=0.99),
        IntervalOptions(simultaneous=True),
        IntervalOptions(target="respondents"),
        IntervalOptions(interval="clopper-pearson"),
    ],
)
def test_fabricated_reports_are_counted_for_the_printed_margin(options):
    (published,) = survey_of(["choice"]).definition.questions
    channel = from_epsilon(3, 6)
    question = replace(published, channel=channel)
    shares = proportions(
        [210, 90, 0],
        channel,
        level=options.level,
        interval=options.interval,
        simultaneous=options.simultaneous,
        target=options.target,
    )
    half = (shares.conf_high - shares.conf_low).max() / 2
    assert f"widest margin of error is ±{100 * half:.1f} points" in margin_remark(shares)
    # A fabricated report for an option with lambda = 0 shifts it by 1/((p-q) n).
    fewest = math.ceil(half * (channel.p - channel.q) * 300)
    assert fewest > 1
    assert fabrication_remark(shares, question) == (
        f"As few as {fewest} fabricated responses out of 300 could shift an estimate by the widest "
        "margin of error undetected."
    )


def test_a_multiple_choice_has_a_remark_on_its_margin_only(result):
    for name in ("bits", "sampled", "space", "subsets"):
        (remark,) = find_question(result, name).remarks
        assert remark.startswith("The widest margin of error is ±")


def test_impossible_reports_are_reported_as_inconsistent():
    survey = survey_of(["choice"])
    (question,) = survey.definition.questions
    outcome = question_result(survey, question, 8000, 8000, [7600, 200, 100, 100], NOW)
    assert channel_fit([7600, 200, 100, 100], question.channel).doubtful
    assert "not consistent with the randomization" in outcome.warning


def test_a_scale_names_the_answers_of_its_scores(result):
    assert find_question(result, "mood").notes == ["Scores: 0 = 0, 6 = 6."]


@each_case("name", sorted(set(QUESTIONS) - {"pay", "since"}))
def test_a_question_without_reports_predicts_the_same_number_each_time(name):
    survey = survey_of([name])
    question = survey.definition.questions[0]
    none = [0] * question.channel.counted
    first, again = (question_result(survey, question, 0, 0, none, NOW) for _ in range(2))
    missing = [part.missing for part in first.parts.values()]
    assert missing == [part.missing for part in again.parts.values()]
    text = " ".join(first.caveats(closed=False))
    for part in (
        first.parts["shares"],
        first.parts["mean"],
        first.parts["median"],
        first.parts["spread"],
    ):
        assert not part.rows or f"about {part.missing:,} more needed" in text


def test_sampled_questions_without_reports_need_more_respondents():
    whole = survey_of(["choice", "mood"])
    sampled = survey_of(["choice", "mood"], "questions_per_person = 1\n")
    missing = []
    for survey in (whole, sampled):
        question = survey.definition.questions[0]
        none = [0] * question.channel.counted
        outcome = question_result(survey, question, 0, 0, none, NOW)
        missing.append(outcome.parts["shares"].missing)
    assert missing[1] == pytest.approx(2 * missing[0], rel=0.1)
