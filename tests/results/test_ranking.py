"""Rankings: the estimates of simulated respondents, and their chart."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime

import numpy as np

from survey.collect.publication import publish
from survey.questionnaire.definition import Definition
from survey.results.estimates.chart import middle_bars
from survey.results.estimates.compute import estimate_question, mean_range
from survey.results.estimates.result import question_result
from survey.results.request import DEFAULT_OPTIONS
from survey.settings import Caps
from survey.store import Store
from tests.surveys import RANKING, load
from tests.surveys import publish as frozen


def simulated_counts(definition: Definition, n: int) -> list[int]:
    """Return counts of n simulated respondents' reports to the ranking."""
    question, rng = definition.questions[0], np.random.default_rng(7)
    shares = [0.45, 0.25, 0.15, 0.05, 0.06, 0.04]
    answers = question.kind.draw_answers(question, shares, n, rng)
    truths = np.array([question.truth(answer) for answer in answers])
    reports = question.channel.perturb(truths, rng)
    return np.bincount(reports, minlength=question.channel.counted).tolist()


def test_results_have_shares_of_first_places_and_a_mean_rank_of_each_option(store: Store) -> None:
    survey = publish(store, load(RANKING.encode(), "ranking.toml", Caps()), date(2026, 1, 1))
    definition = survey.definition
    question, n = definition.questions[0], 20_000
    now = datetime(2026, 1, 1, tzinfo=UTC)
    result = question_result(survey, question, n, n, simulated_counts(definition, n), now)
    assert result.failure == ""
    assert result.disclosure == "show"
    first = {row.option_id: row for row in result.answered}
    strength = {"pay": 0.45, "time": 0.25, "team": 0.15, "safe": 0.05}
    ranks = {row.option_id: row for row in result.rows if row.statistic == "mean_rank"}
    assert list(ranks) == list(first) == list(strength)
    for option, share in strength.items():
        row, rank = first[option], ranks[option]
        # P(j is preferred to i) = s_j / (s_i + s_j) in the model of Plackett and Luce.
        expected = 1 + sum(s / (s + share) for other, s in strength.items() if other != option)
        assert row.std_error
        assert rank.std_error
        assert abs(row.estimate - share / 0.9) < 4.5 * row.std_error, option
        assert abs(rank.estimate - expected) < 4.5 * rank.std_error, option
        assert rank.base == "answered"
        assert 1 <= rank.conf_low < rank.conf_high <= 4
    bars = middle_bars(result)
    assert [bar.label for bar in bars.bars] == [
        f"Mean rank of “{option.label}”" for option in question.options[:4]
    ]
    assert [label for _, label in bars.ticks] == ["1.0", "2.5", "4.0"]
    assert math.isclose(sum(row.estimate or 0 for row in ranks.values()), 10, abs_tol=0.1)


def test_with_hardly_any_answers_every_rank_remains_possible() -> None:
    question = frozen(RANKING).questions[0]
    silent = np.zeros(question.channel.counted, dtype=int)
    silent[-1] = 200
    estimates = estimate_question(question, 200, silent.tolist(), DEFAULT_OPTIONS)
    assert estimates.mean_ranks == ()
    assert mean_range(question) == (1.0, 4.0)
