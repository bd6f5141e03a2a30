"""The demo: what it asks, and whether its respondents are enough to show every result."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from werkzeug.datastructures import MultiDict

from survey import demo
from survey.demo import SHIFTS, simulate
from survey.questionnaire.privacy_loss import odds_in_words
from survey.results.analyses import CROSSTAB, DIFFERENCE, REGRESSION, Analysis
from survey.results.combinations import list_combinations
from survey.results.difference.compute import comparable_groups
from survey.results.estimates.compute import estimate_question
from survey.results.estimates.result import ResultCache
from survey.results.plan.survey_design import survey_plan
from survey.results.regression.compute import regression_questions
from survey.results.regression.table import GROUP
from survey.results.request import DEFAULT_OPTIONS
from survey.store import PublishedSurvey, open_store
from tests.conftest import ROOT, TODAY

N_RESPONDENTS = 200_000
N_PENDING = 49
"""Reports that a release may leave pending in each group."""

SEEDS = 8
ANALYSES = {"Cross-tabulation": CROSSTAB, "Difference": DIFFERENCE, "Regression": REGRESSION}


class Figures(NamedTuple):
    """What a researcher sees in the demo: suppressed results, and the associations."""

    suppressed: Sequence[str]
    table_p_value: float
    difference: tuple[float, float]
    odds_ratio: tuple[float | None, float | None]

    @property
    def are_complete(self) -> bool:
        """Whether nothing is suppressed and every example shows its association."""
        shows_associations = (
            self.table_p_value < 0.01 and self.difference[0] > 0 and (self.odds_ratio[0] or 0) > 1
        )
        return not self.suppressed and shows_associations

    def __str__(self) -> str:
        low, high = (100 * end for end in self.difference)
        odds = ["undetermined" if end is None else f"{end:.1f}" for end in self.odds_ratio]
        return (
            f"suppressed: {', '.join(self.suppressed) or 'nothing'}; table: p = "
            f"{self.table_p_value:.2g}; difference: {low:.1f} to {high:.1f} points; odds ratio: "
            f"{odds[0]} to {odds[1]}"
        )


def demo_figures(directory: Path, seed: int) -> Figures:
    """Run the demo's respondents, without those who may be pending, and analyse their reports."""
    store = open_store(f"sqlite:///{directory / f'{seed}.db'}")
    store.migrate()
    survey = demo.prepare(store, TODAY)
    n = N_RESPONDENTS - N_PENDING * len(SHIFTS)
    rng = np.random.default_rng(seed)
    assert sum(demo.respond(store, survey, n, rng)) == n
    cache = ResultCache(store)
    rows: dict[str, Sequence[Any]] = {
        question.rows[0].question_id: question.rows
        for question in cache.result(survey, DEFAULT_OPTIONS).questions
    }
    results = {}
    for name, analysis in ANALYSES.items():
        query = MultiDict(parse_qsl(urlsplit(demo.EXAMPLES[name]).query))
        request = analysis.parse(query, {})
        results[name] = analysis.compute(cache, survey, request, DEFAULT_OPTIONS)
        rows[name] = results[name].rows
    store.close_connections()
    (increase,) = (row for row in rows["Difference"] if row.option_id == "yes")
    (bullied,) = (
        row
        for row in rows["Regression"]
        if (row.option_id, row.predictor_option_id) == ("yes", "yes")
    )
    return Figures(
        [name for name in rows if any(row.flag == "suppressed" for row in rows[name])],
        results["Cross-tabulation"].test.p_value,
        (increase.conf_low, increase.conf_high),
        (bullied.conf_low, bullied.conf_high),
    )


def test_the_demo_asks_everybody_a_part_of_8_questions_whose_answers_change_odds_by_at_most_20():
    definition = demo.definition()
    assert len(definition.questions) >= 8
    assert definition.drawn < len(definition.questions)
    assert definition.ratio <= 20
    factor = odds_in_words(definition.ratio)
    assert f"factor of at most {factor}." in (ROOT / "README.md").read_text(encoding="utf-8")
    assert ("bullied", "leaving") in definition.groups
    types = {question.type for question in definition.questions}
    assert types >= {"yes_no", "single_choice", "multiple_choice", "scale", "number"}


def test_estimates_from_the_simulated_reports_are_close_to_the_simulated_answers():
    definition, rng = demo.definition(), np.random.default_rng(1)
    population = simulate(200_000, rng)
    codes = population.reports(definition, rng)
    assert list(population.answers) == [question.id for question in definition.questions]
    stops = np.cumsum([question.code_bytes for question in definition.questions])
    n_answers = 0
    for question, column in zip(
        definition.questions, np.split(codes, stops[:-1], axis=1), strict=True
    ):
        n_asked, counts = question.count(column)
        n_answers += n_asked
        answers = population.answers[question.id]
        estimates = estimate_question(question, n_asked, counts.tolist(), DEFAULT_OPTIONS)
        if question.kind.is_numeric:
            values = answers[answers < question.grid.points]
            errors = [(estimates.mean.estimate - values.mean()) / estimates.mean.std_error]
        else:
            n_options = len(question.options)
            ticks = answers if question.kind.is_multiple else np.eye(n_options)[answers]
            errors = (estimates.shares.estimate - ticks.mean(axis=0)) / estimates.shares.std_error
        assert np.abs(errors).max() < 4, question.id
    # Each of 7 groups is drawn with a probability of 2/7; standard error of the sum: about 220.
    assert abs(n_answers - 8 * len(codes) * definition.drawn / len(definition.groups)) < 1_000


def test_the_demo_has_the_planners_design_that_asks_two_groups():
    survey = demo.load()
    plan = survey_plan(
        list(survey.questions),
        Fraction("2.995"),
        N_RESPONDENTS,
        crossings=[("bullied", "leaving")],
    )
    assert survey.drawn == 2
    design = plan.design_for(survey.drawn, len(survey.groups))
    assert design.groups == demo.definition().groups
    for question, item in zip(survey.questions, design.questions, strict=True):
        assert question.channel == item.question.channel, question.id
        assert question.joint == item.question.joint, question.id


@pytest.mark.web
@pytest.mark.slow
def test_the_demo_shows_every_estimate_and_its_example_analyses(tmp_path):
    figures = demo_figures(tmp_path, seed=1)
    print(figures)
    assert figures.are_complete, figures


def answer_to(analysis: Analysis, cache: ResultCache, survey: PublishedSurvey, **query: str) -> Any:
    """Return the result of a link to an analysis."""
    request = analysis.parse(MultiDict(query), {})
    return analysis.compute(cache, survey, request, DEFAULT_OPTIONS)


def first_comparisons(cache: ResultCache, survey: PublishedSurvey) -> Iterator[tuple[str, Any]]:
    """Yield each question compared between the shifts, and by the answers to each other one."""
    for question in survey.definition.questions:
        for groups in comparable_groups(cache.store, survey, question).values():
            by: dict[str, list[str]] = {}
            for group in groups:
                by.setdefault("link" if group.kind == "link" else group.name, []).append(group.id)
            for name, (a, b, *_) in by.items():
                result = answer_to(DIFFERENCE, cache, survey, question=question.id, a=a, b=b)
                yield f"{question.id} by {name}", result


@pytest.mark.web
def test_explore_shows_most_of_the_demo_and_the_associations_with_the_shift(store):
    survey = demo.prepare(store, TODAY)
    n = N_RESPONDENTS - N_PENDING * len(SHIFTS)
    assert sum(demo.respond(store, survey, n, np.random.default_rng(1))) == n
    cache = ResultCache(store)
    combinations = list_combinations(store, survey)
    comparisons = dict(first_comparisons(cache, survey))
    outcomes = [question.id for question in regression_questions(survey)]
    regressions = [
        answer_to(REGRESSION, cache, survey, question=outcome, predictor=predictor)
        for outcome in outcomes
        for predictor in (*outcomes, GROUP)
        if predictor != outcome
    ]
    tables = [
        answer_to(CROSSTAB, cache, survey, first=first, second=second)
        for first, second in itertools.combinations(outcomes, 2)
    ]
    shown = {
        "combinations": (sum(not item.missing for item in combinations), len(combinations)),
        "tables": (sum(not table.is_suppressed for table in tables), len(tables)),
        "comparisons": (
            sum(not result.is_suppressed for result in comparisons.values()),
            len(comparisons),
        ),
        "regressions": (sum(not result.is_suppressed for result in regressions), len(regressions)),
    }
    print(shown)
    for name, (n_shown, n_possible) in shown.items():
        assert n_shown >= 0.7 * n_possible > 10, (name, shown)
    for name in ("injured", "sick_at_work", "bullied", "unpaid_overtime", "satisfaction"):
        rows = comparisons[f"{name} by link"].rows
        assert min(row.p_value for row in rows) < 0.001, name


@pytest.mark.web  # each simulation takes several seconds
def test_every_demo_shows_every_estimate_and_its_example_analyses(tmp_path):
    n_complete = 0
    for seed in range(SEEDS):
        figures = demo_figures(tmp_path, seed)
        print(f"seed {seed}: {figures}")
        n_complete += figures.are_complete
    print(f"{n_complete} of {SEEDS} complete")
    assert n_complete == SEEDS
