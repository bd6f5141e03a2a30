"""The methods page is tied to the code: whatever a row can say has its section, and cites it."""

from __future__ import annotations

import inspect
import re
from decimal import Decimal
from itertools import product

import numpy as np
import pytest

from survey.collect.publication import publish
from survey.estimator import proportions
from survey.estimator.core.intervals import DEFAULT_INTERVAL, INTERVALS
from survey.estimator.shares.binomial import RESPONDENTS, TARGETS
from survey.mechanism import grr
from survey.questionnaire.designs import DESIGNS
from survey.questionnaire.native import load
from survey.results.estimates.result import Results
from survey.results.estimates.table import FLAGS, MECHANISMS, NOT_ESTIMABLE
from survey.results.exports.codebook import methods as methods_of_export
from survey.results.methods import (
    CHAPTERS,
    REFERENCES,
    SYMBOLS,
    anchor_of_interval,
    anchor_of_mechanism,
    example_of,
    filled_in,
    sections,
)
from survey.results.methods.filled_in import (
    explained,
    for_a_paper,
    questions_methods,
    references,
)
from survey.results.options import OFFERED, Wanted
from survey.settings import Caps
from tests.browser.research import add_released
from tests.browser.surveys import EVERY_TYPE
from tests.conftest import TODAY, long_unless

ALL = [section for chapter in CHAPTERS for section in chapter.sections]
WAYS = [*product(TARGETS, (False, True))]

FEWEST_METHODS = 5
"""Different words that rows of every type say of their methods, read in one way."""

FORBIDDEN = re.compile(r"\b(lying|liars?|fakes?|anonym\w*|encrypt\w*|honest\w*)\b", re.I)


@pytest.fixture
def every(store):
    """Every type of question, each telling enough for its numbers to be shown."""
    toml = EVERY_TYPE.replace("epsilon = 0.5", "epsilon = 4")
    survey = publish(store, load(toml.encode(), "s.toml", Caps(survey=Decimal(60))), TODAY)
    add_released(store, survey, 800)
    return survey


def test_every_interval_that_can_be_asked_for_and_every_one_there_is_has_its_section():
    for name in (*OFFERED, *INTERVALS):
        assert anchor_of_interval(name) in sections()


def test_every_mechanism_of_a_definition_has_its_section():
    assert set(DESIGNS) == set(MECHANISMS)
    for name in DESIGNS:
        assert anchor_of_mechanism(name) in sections()


def test_every_flag_of_a_row_has_its_section():
    for flag in {*FLAGS.values(), NOT_ESTIMABLE} - {""}:
        assert f"flag-{flag}" in sections()


@pytest.mark.parametrize("way", long_unless(WAYS[:1], WAYS), ids=str)
def test_whatever_statistic_base_method_and_mechanism_a_row_says_has_its_section(store, every, way):
    target, simultaneous = way
    result = Results(store).of(every, Wanted(simultaneous=simultaneous, target=target))
    for row in result.rows:
        assert row.statistic in sections()
        assert row.base in sections()
        if row.method:
            assert anchor_of_interval(row.method) in sections()
    for one in questions_methods(result):
        assert one.anchor in sections()
        assert {part.anchor for part in one.ran} <= set(sections())
    assert len({row.method for row in result.rows}) >= FEWEST_METHODS


def test_the_functions_named_for_a_question_are_those_of_the_estimator(store, every):
    import survey.estimator

    for one in questions_methods(Results(store).of(every)):
        for part in one.ran:
            assert callable(getattr(survey.estimator, part.estimator))


def test_no_address_leads_to_two_sections():
    addresses = [name for section in ALL for name in (section.anchor, *section.also)]
    assert len(addresses) == len(set(addresses))


def test_every_source_is_cited_in_the_code_that_it_explains():
    """The author and the year stand in the docstrings of the module that runs."""
    unfounded = []
    for section in ALL:
        text = " ".join(inspect.getsource(inspect.getmodule(run)) for run in section.runs)
        for source in section.sources:
            author = re.split(r",| and | et al", source)[0]
            year = source[-4:]
            if author not in text or year not in text:
                unfounded.append((section.anchor, source))
    assert unfounded == []


def test_every_citation_has_its_reference_and_every_reference_is_cited():
    assert {source for section in ALL for source in section.sources} == set(REFERENCES)
    for short, full in REFERENCES.items():
        assert f"({short[-4:]})" in full


def test_every_section_says_something_and_every_formula_can_be_heard():
    for section in ALL:
        assert section.says
        assert section.runs
        assert section.title
        for formula in section.formulas:
            assert len(formula.spoken.split()) > 3
            assert not re.search(r"[_^]\{|[_^]\w", str(formula.html))
    assert all(meaning for _, meaning in SYMBOLS)


def test_no_section_uses_a_word_that_the_product_does_not():
    for section in ALL:
        said = (section.title, section.says, section.assumes, section.cannot)
        for text in (*said, example_of(section.anchor)):
            assert not FORBIDDEN.search(text), text


@pytest.mark.parametrize("interval", [name for name in OFFERED if name != "wilson-hull"])
def test_a_worked_interval_is_that_of_the_estimator(interval):
    found = proportions([700, 1300], grr(2, "3/4"), interval=interval)
    worked = example_of(anchor_of_interval(interval))
    assert f"{found.conf_low[0]:.2%} to {found.conf_high[0]:.2%}" in worked


def test_a_worked_share_follows_its_formula():
    """(f - q)/(p - q), written out once more by hand."""
    assert f"{(700 / 2000 - 0.25) / (0.75 - 0.25):.1%}" in example_of("share")


@pytest.mark.parametrize("anchor", [s.anchor for s in ALL if s.example])
def test_every_worked_case_can_be_computed_and_holds_numbers(anchor):
    assert re.search(r"\d", example_of(anchor))
    assert "nan" not in example_of(anchor)


def test_the_case_of_a_regression_finds_what_was_simulated():
    found = [float(x.replace("−", "-")) for x in re.findall(r"−?\d\.\d+", example_of("regression"))]
    assert np.allclose(found, [-1, 1], atol=0.2)


def test_the_methods_of_a_survey_are_worked_out_with_its_own_numbers(store, small):
    add_released(store, small, 3000)
    result = Results(store).of(small)
    one, question = questions_methods(result)[0], result.questions[0]
    row = question.shares[0]
    assert f"{row.report_count:,} of 3,000 reports" in one.worked
    assert one.worked.endswith(f"{row.estimate:.4f}")
    assert (one.p, one.n_options, one.n) == (0.75, 3, 3000)


def test_the_sentences_for_a_paper_have_everything_that_a_reader_needs(store, small):
    add_released(store, small, 3000)
    result = Results(store).of(small)
    text = " ".join(for_a_paper(result))
    for wanted in (
        "generalized randomized response (p = 0.75, epsilon = 1.792 each)",
        "3,000 released reports (release 1)",
        "95% intervals (Feldman and Cousins; function proportions)",
        small.sha256,
        "version 1",
        "software survey ",
        "truthfully cannot be seen",
    ):
        assert wanted in text
    assert any("Feldman" in each for each in references(result))
    assert "Warner" in " ".join(references(result))


def test_what_is_hidden_is_not_said_to_have_been_estimated(store, small):
    add_released(store, small, 40)
    result = Results(store).of(small)
    assert not any(part.interval for one in questions_methods(result) for part in one.ran)
    assert all(one.worked == "" for one in questions_methods(result))
    assert not any("Feldman" in each for each in references(result))


def test_another_way_of_reading_is_named_in_the_methods(store, small):
    add_released(store, small, 3000)
    found = Results(store).of(small, Wanted(level=0.9, target=RESPONDENTS))
    assert "90% intervals (Fixed population; function proportions)" in " ".join(for_a_paper(found))
    assert DEFAULT_INTERVAL not in {section.anchor for section in explained(found)}


def test_the_sheet_of_methods_says_the_same_as_the_report(store, small):
    add_released(store, small, 3000)
    result = Results(store).of(small)
    said = dict(methods_of_export(result))
    found = questions_methods(result)
    assert said["Mechanisms"] == filled_in.mechanisms_in_words(found)
    assert filled_in.intervals_in_words(found, result.wanted) in said["Estimation"]
