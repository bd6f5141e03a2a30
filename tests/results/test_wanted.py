"""Ways of reading a survey: each level, interval and target, and what they never change."""

from __future__ import annotations

import re

import numpy as np
import pytest

from survey.errors import DesignError
from survey.estimator import answered_shares, histogram, mean, median, no_answer_shares, proportions
from survey.results.estimates.compute import cells_of, values
from survey.results.estimates.histogram import edges
from survey.results.estimates.result import USUAL, survey_result
from survey.results.exports.text import to_lines
from survey.results.options import Wanted, query_of, wanted_from
from survey.store import Tally
from tests.results.test_every_type import FEW, NOW, QUESTIONS, counts_of, numbers, survey_of

N = 6_000
NAMES = ["choice", "hours", "mood", "wave", "coins", "bits"]
WAYS = [
    Wanted(level=0.9),
    Wanted(level=0.99, interval="wilson"),
    Wanted(simultaneous=True),
    Wanted(target="respondents"),
    Wanted(level=0.5, simultaneous=True, target="respondents"),
]


SIZES = (60, 600, N)


@pytest.fixture(scope="module")
def survey():
    return survey_of(NAMES)


@pytest.fixture(scope="module")
def usual(survey):
    """The survey as it is usually read, for each number of reports."""
    return {n: read(survey, n=n) for n in SIZES}


def read(survey, wanted=USUAL, n=N):
    questions = survey.definition.questions
    counts = [counts_of(question, n) for question in questions]
    return survey_result(survey, Tally(1, n, [n] * len(questions), counts), NOW, wanted)


@pytest.mark.parametrize("wanted", WAYS, ids=lambda wanted: str(query_of(wanted)))
def test_rows_are_what_the_estimator_says_in_every_way_of_reading(survey, wanted):
    choice, hours, mood, *_ = read(survey, wanted).questions
    asked = {"level": wanted.level, "simultaneous": wanted.simultaneous, "target": wanted.target}
    channel, counts = choice.question.channel, counts_of(choice.question, N)
    expected = proportions(counts, channel, interval=wanted.interval, **asked)
    for field in ("estimate", "std_error", "conf_low", "conf_high"):
        np.testing.assert_array_equal(numbers(choice.shares, field), getattr(expected, field))
    assert {row.method for row in choice.shares} == {expected.method}
    assert {row.conf_level for row in choice.rows} == {wanted.level}
    one, counts = hours.question, counts_of(hours.question, N)
    expected = no_answer_shares(counts, one.channel, **asked)
    assert numbers(hours.shares, "conf_low") == expected.conf_low.tolist()
    expected = mean(counts, one.channel, values(one), level=wanted.level)
    assert (hours.mean.conf_low, hours.mean.conf_high) == (expected.conf_low, expected.conf_high)
    counts = counts_of(mood.question, N)
    expected = median(counts, mood.question.channel, values(mood.question), level=wanted.level)
    assert mood.median.conf_high == expected.conf_high[0]


@pytest.mark.parametrize("wanted", WAYS, ids=lambda wanted: str(query_of(wanted)))
def test_shares_among_those_who_answered_are_read_the_same_way(survey, wanted):
    question = read(survey, wanted).questions[0]
    asked = {"level": wanted.level, "simultaneous": wanted.simultaneous, "target": wanted.target}
    counts, channel = counts_of(question.question, N), question.question.channel
    expected = answered_shares(counts, channel, [3], **asked)
    assert numbers(question.answered, "conf_low") == expected.conf_low.tolist()
    assert numbers(question.answered, "std_error") == expected.std_error.tolist()
    assert {row.method for row in question.answered} == {expected.method}


def test_all_cells_at_once_share_the_chance_of_missing(monkeypatch):
    monkeypatch.setitem(QUESTIONS, "few", FEW)
    (question,) = read(survey_of(["few"]), Wanted(simultaneous=True), 40_000).questions
    asked = question.question
    ends = edges(asked.grid, cells_of(asked))
    expected = histogram(
        counts_of(asked, 40_000), asked.channel, values(asked), ends, level=1 - 0.05 / 7
    )
    assert numbers(question.spread, "conf_low") == expected.conf_low.tolist()
    assert {row.method for row in question.spread} == {f"{expected.method}, simultaneous"}


@pytest.mark.parametrize("wanted", WAYS, ids=lambda wanted: str(query_of(wanted)))
@pytest.mark.parametrize("n", SIZES)
def test_no_way_of_reading_shows_what_the_usual_one_hides(survey, usual, wanted, n):
    other = read(survey, wanted, n)
    for one, two in zip(usual[n].rows, other.rows, strict=True):
        assert (one.option_id, one.statistic) == (two.option_id, two.statistic)
        assert one.flag == two.flag or two.flag == "suppressed"
        assert one.estimate is not None or two.estimate is None


def test_the_heading_says_how_the_survey_is_read(survey):
    wanted = Wanted(level=0.9, simultaneous=True, target="respondents")
    assert to_lines(read(survey, wanted))[0].endswith(
        "90% intervals, all shares of a question at once, shares of these respondents alone"
    )


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"level": "1"}, "level = 1 must be from 0.5 to 0.999, for example 0.95"),
        ({"level": "95"}, "level = 95 must be"),
        ({"level": "-1"}, "level = -1 must be from 0.5"),
        *[
            ({"level": text}, f"level = {text!r} must be a number, for example 0.95")
            for text in ("much", "nan", "inf", "", " 0.9", "0.9\n", "0_9", "٠.٩", "0x1", "9e-1")
        ],
        ({"interval": "wald"}, "interval = 'wald' must be one of feldman-cousins,"),
        ({"interval": "fixed-population"}, "interval = 'fixed-population' must be one of"),
        ({"target": "all"}, "target = 'all' must be one of population, respondents"),
        ({"target": "respondents", "interval": "wilson"}, "interval = 'wilson' is one for the"),
        ({"simultaneous": "yes"}, "simultaneous = 'yes' must be 1 or 0"),
    ],
)
def test_what_is_out_of_range_is_refused_by_name(query, words):
    with pytest.raises(DesignError, match="^" + re.escape(words)):
        wanted_from(query)


@pytest.mark.parametrize("wanted", [Wanted(), *WAYS], ids=lambda wanted: str(query_of(wanted)))
def test_a_link_says_what_is_not_as_usual_and_is_read_back(wanted):
    assert wanted_from({**query_of(wanted), "unrelated": "x"}) == wanted
