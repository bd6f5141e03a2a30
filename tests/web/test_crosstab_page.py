"""The cross-tabulation page of two questions: table, test, sentences and CSV."""

from __future__ import annotations

import csv
import io
import os
import re

import numpy as np
import pytest

from survey.estimator import crosstab
from survey.results.crosstab.compute import CrosstabRequest, compute_crosstab
from survey.results.crosstab.table import SHADES, caveats, null_statement, paper_sentences, shades
from survey.results.joint_counts import joint_counts
from survey.results.request import IntervalOptions
from survey.store import StoredReport
from tests.store.reports import publish_pending
from tests.web.researchers import sign_in

PAGE = "/research/surveys/small/explore"


@pytest.fixture
def reader(client, researcher, small):
    assert sign_in(client).status_code == 302
    return client


def add_related(store, small, n, together=0.8):
    """Add reports of respondents whose second answer mostly depends on their first."""
    rng = np.random.default_rng(11)
    channels = [question.channel for question in small.definition.questions]
    first = rng.choice(3, size=n, p=[0.5, 0.4, 0.1])
    second = np.where(rng.random(n) < together, first, rng.integers(0, 3, n))
    codes = [c.perturb(t, rng) for c, t in zip(channels, (first, second), strict=True)]
    rows = np.stack(codes, axis=1).astype(np.uint8)
    store.add_reports(
        [(small.key, StoredReport(os.urandom(16), "", row.tobytes())) for row in rows]
    )
    publish_pending(store, small, 25)


def names_of(small) -> str:
    first, second = (question.id for question in small.definition.questions)
    return f"first={first}&second={second}"


def test_the_page_asks_for_two_questions(reader, small):
    page = reader.get(PAGE)
    assert page.status_code == 200
    assert "Choose a question, and another one or groups" in page.text
    for question in small.definition.questions:
        assert page.text.count(f">{question.text}</option>") == 2


def test_the_table_shows_the_estimates_the_test_and_sentences(reader, store, small):
    add_related(store, small, 4000)
    page = reader.get(f"{PAGE}?{names_of(small)}")
    assert page.status_code == 200
    names = [question.id for question in small.definition.questions]
    result = compute_crosstab(store, small, CrosstabRequest(*names), IntervalOptions())
    percentages = re.findall(r'class="strong">(-?\d+)%<', page.text)
    assert percentages == [f"{100 * row.estimate:.0f}" for row in result.rows]
    assert "were related" in page.text
    assert "p &lt; 0.001" in page.text
    assert "joint inversion" in page.text
    assert page.text.count("<blockquote>") == 2


def test_unrelated_answers_are_not_described_as_related(store, small):
    add_related(store, small, 4000, together=0.0)
    names = [question.id for question in small.definition.questions]
    result = compute_crosstab(store, small, CrosstabRequest(*names), IntervalOptions())
    assert len(paper_sentences(result)) == 1
    assert "do not show that the answers to the two questions are related" in null_statement(result)


def test_shades_range_from_zero_to_the_largest_share(store, small):
    add_related(store, small, 4000)
    names = [question.id for question in small.definition.questions]
    result = compute_crosstab(store, small, CrosstabRequest(*names), IntervalOptions())
    cell_shades = shades(result)
    largest = max(range(9), key=lambda at: result.rows[at].estimate)
    assert cell_shades[largest] == SHADES
    assert min(cell_shades) >= 0


def test_a_suppressed_table_has_no_cells_and_no_sentences(reader, store, small):
    add_related(store, small, 60)
    page = reader.get(f"{PAGE}?{names_of(small)}")
    assert "Not enough responses yet" in page.text
    assert "<blockquote>" not in page.text
    assert not re.findall(r'class="strong">', page.text)


def test_a_higher_level_widens_every_interval_and_is_part_of_the_link(reader, store, small):
    add_related(store, small, 4000)
    rows = {}
    for level in ("0.9", "0.99"):
        address = f"{PAGE}/crosstab.csv?{names_of(small)}&level={level}"
        rows[level] = list(csv.DictReader(io.StringIO(reader.get(address).text)))
    for narrow, wide in zip(rows["0.9"], rows["0.99"], strict=True):
        assert float(wide["conf_low"]) <= float(narrow["conf_low"])
        assert float(wide["conf_high"]) > float(narrow["conf_high"])
    page = reader.get(f"{PAGE}?{names_of(small)}&level=0.9")
    assert 'value="0.9" selected' in page.text


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("first=slept&second=slept", 422, "two different questions"),
        ("first=none&second=slept", 404, ""),
        ("first=slept&second=pressed&level=2", 422, ""),
        ("first=slept&second=pressed&version=9", 404, ""),
    ],
)
def test_invalid_pairs_of_questions_are_rejected_with_a_reason(reader, small, query, status, words):
    first, second = (question.id for question in small.definition.questions)
    pair_query = query.replace("slept", first).replace("pressed", second)
    response = reader.get(f"{PAGE}?{pair_query}")
    assert response.status_code == status
    assert words in response.text


def test_the_page_explains_that_there_are_no_reports(reader, small):
    response = reader.get(f"{PAGE}?{names_of(small)}")
    assert response.status_code == 422
    assert "no released report" in response.text


def test_the_table_has_its_caveat(store, small):
    add_related(store, small, 4000)
    names = [question.id for question in small.definition.questions]
    assert any(
        "would be biased" in text
        for text in caveats(
            compute_crosstab(store, small, CrosstabRequest(*names), IntervalOptions())
        )
    )


def test_the_most_likely_table_has_its_own_caveat(reader, store, small):
    add_related(store, small, 4000)
    page = reader.get(f"{PAGE}?{names_of(small)}&method=em")
    counts = joint_counts(store, small, 0, 1)
    channels = [question.channel for question in small.definition.questions]
    expected = crosstab(counts, channels, method="em").estimate
    percentages = re.findall(r'class="strong">(\d+)%<', page.text)
    assert percentages == [f"{100 * share:.0f}" for share in expected.flat]
    assert "expectation maximization" in page.text
    assert "small cells are biased" in page.text
    assert 'value="em" selected' in page.text
    rows = csv.DictReader(
        io.StringIO(reader.get(f"{PAGE}/crosstab.csv?{names_of(small)}&method=em").text)
    )
    assert {row["method"] for row in rows} == {"em"}
    assert reader.get(f"{PAGE}?{names_of(small)}&method=best").status_code == 422
