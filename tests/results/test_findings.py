"""Key findings: which results are named, and in which words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.results.estimates.chart import middle_bars
from survey.results.estimates.findings import MAX_FINDINGS, Finding, key_findings
from survey.results.estimates.result import ResultCache
from survey.settings import Caps
from tests.browser.research import add_released
from tests.conftest import TODAY

EPSILONS = ("2", "0.8", "3", "0.9", "4", "4.5", "1", "5")
"""One yes/no question each; the second, fourth and seventh are the least precise."""

TOML = 'slug = "many"\ntitle = "Many"\n' + "".join(
    f'[[questions]]\nid = "q{i}"\ntext = "Question {i}?"\ntype = "yes_no"\nepsilon = {epsilon}\n'
    for i, epsilon in enumerate(EPSILONS)
)
HOURS = """
slug = "hours"
title = "Hours"
[[questions]]
id = "hours"
text = "How many hours?"
type = "number"
low = 0
high = 10
unit = "hours"
epsilon = 4
"""


@pytest.fixture
def results(store):
    def compute(toml: str, n: int, weights=(0.62, 0.38)):
        survey = publish(store, load(toml.encode(), "s.toml", Caps(survey=100)), TODAY)
        add_released(store, survey, n, weights)
        return ResultCache(store).result(survey)

    return compute


def test_findings_are_those_of_the_most_precise_designs_in_the_order_of_the_survey(results):
    found = [finding.question_id for finding in key_findings(results(TOML, 6000))]
    assert found == ["q0", "q2", "q4", "q5", "q7"]
    assert len(found) == MAX_FINDINGS


@pytest.mark.parametrize("weights", [(0.9, 0.1), (0.1, 0.9)])
def test_a_finding_is_about_the_first_answer_whatever_the_estimates_are(results, weights):
    result = results(TOML, 6000, weights)
    row = result.question("q5").shares[0]
    finding = next(item for item in key_findings(result) if item.question_id == "q5")
    assert finding.answer == "Yes" == row.option_label
    assert finding.value == f"{round(100 * row.estimate)}%"
    assert finding.interval == f"{round(100 * row.conf_low)} to {round(100 * row.conf_high)}%"


def test_a_finding_about_numbers_is_the_mean_with_its_unit(results):
    result = results(HOURS, 6000)
    mean = result.question("hours").mean
    assert key_findings(result) == [
        Finding(
            "hours",
            "How many hours?",
            "",
            f"{mean.estimate:.1f} hours",
            f"{mean.conf_low:.1f} to {mean.conf_high:.1f}",
        )
    ]


def test_an_interval_that_ends_at_zero_is_drawn_to_zero(results):
    """Zero is in the middle of this ruler, not at its start."""
    result = results(HOURS.replace("low = 0", "low = -10"), 6000).question("hours")
    mean = replace(result.mean, estimate=1.0, conf_low=0.0, conf_high=2.0)
    parts = {**result.parts, "mean": replace(result.parts["mean"], rows=(mean,))}
    bar = middle_bars(replace(result, parts=parts)).bars[0]
    assert (bar.low, bar.dot, bar.high) == (50, 55, 60)


def test_suppressed_results_are_no_findings(results):
    result = results(TOML, 60)
    shown = [item.question.id for item in result.questions if item.disclosure != "hide"]
    assert [finding.question_id for finding in key_findings(result)] == shown
    assert 0 < len(shown) < MAX_FINDINGS
