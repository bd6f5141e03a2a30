"""Planned margins are those that the results of simulated surveys show."""

from __future__ import annotations

import numpy as np
import pytest

from survey.results.plan.compute import planned_margin
from tests.benchmarks.planned_margins import (
    NUMBER,
    QUARTER,
    RANKING,
    SCALE,
    TICKS,
    Case,
    published,
    simulated_margin,
)
from tests.cases import each_case

CASES = {
    "yes/no with an opt-out": ({"type": "yes_no"}, "1", True, "share .5", 1000),
    "ticks of sampled options": (
        {**TICKS, "mechanism": "sampled_options"}, "2", False, "share .5", 2000,
    ),
    "ticks by patterns": ({**TICKS, "mechanism": "subsets"}, "3", False, "share .1", 1000),
    "ticks with an opt-out": ({**TICKS, "mechanism": "bits"}, "4", True, "share .1", 2000),
    "scale": ({**SCALE, "mechanism": "geometric"}, "3", True, "share .1", 2000),
    "mean of a scale": (SCALE, "2", True, "mean", 500),
    "mean of a number": ({**NUMBER, "mechanism": "hybrid"}, "1", True, "mean", 1000),
    "mean rank": (RANKING, "2", True, "mean", 1000),
    "mean rank of reports of whole orders": (
        {**RANKING, "options": RANKING["options"][:3]}, "3", False, "mean", 300,
    ),
    "first places": (RANKING, "3", True, "share .5", 2000),
    "cells": ({**NUMBER, "mechanism": "square_wave"}, "4", True, "widest cell", 2000),
}  # fmt: skip


@pytest.mark.web
@each_case("name", CASES)
def test_a_planned_margin_is_what_the_results_show(name):
    form, epsilon, opt_out, statistic, n = CASES[name]
    question = published(form, {"epsilon": epsilon}, opt_out)
    case = Case(name, question, statistic, n)
    margin, error = simulated_margin(case, 24, np.random.default_rng(4))
    assert case.planned == pytest.approx(margin, rel=0.025, abs=3 * error)


@pytest.mark.web
def test_a_question_of_a_quarter_of_the_respondents_has_a_margin_nearly_twice_as_wide():
    case = Case(
        "q", published({"type": "yes_no"}, {"epsilon": "1"}, True), "share .5", 4000, QUARTER
    )
    margin, error = simulated_margin(case, 24, np.random.default_rng(5))
    assert case.planned == pytest.approx(margin, rel=0.025, abs=3 * error)
    assert case.planned == planned_margin(case.question, 1000)
