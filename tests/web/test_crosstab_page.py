"""The cross-tabulation page of two questions: table, test, sentences and CSV."""

from __future__ import annotations

import csv
import html
import io
import os
import re

import numpy as np
import pytest

from survey.estimator import conditional, crosstab
from survey.estimator.tables.conditional import options_with_base
from survey.estimator.tables.crosstab import PairDesign
from survey.estimator.trust.suppression import HIDDEN_MARGIN
from survey.estimator.trust.worst_case import conditional_worst_case
from survey.results.crosstab.compute import CrosstabRequest, compute_crosstab
from survey.results.crosstab.table import SHADES, caveats, null_statement, paper_sentences, shades
from survey.results.joint_counts import joint_counts
from survey.results.number_format import percent, share_interval
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


def joint_shares(page) -> str:
    """Return the part of the page with the table of joint shares."""
    return page.text.partition('aria-label="Estimated joint shares"')[2]


def percents_of(page, name) -> list[list[str]]:
    """Return the texts of the table of column or row percentages, line by line."""
    region = page.text.partition(f'aria-label="Estimated {name} percentages"')[2].partition(
        "</table>"
    )[0]
    lines = re.findall(r"<tr>(.*?)</tr>", region, re.DOTALL)
    return [
        [
            " ".join(re.sub(r"<[^>]+>", " ", cell).split())
            for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line, re.DOTALL)
        ]
        for line in lines
    ]


def text_of(estimate, low, high) -> str:
    return f"{percent(float(estimate))} {share_interval(float(low), float(high))}"


@pytest.mark.parametrize(("name", "given"), [("column", 1), ("row", 0)])
def test_per_cent_of_columns_and_rows_have_totals_and_correct_intervals(
    reader, store, small, name, given
):
    add_related(store, small, 12_000)
    page = reader.get(f"{PAGE}?{names_of(small)}" + ("" if name == "column" else "&percent=row"))
    lines = percents_of(page, name)
    if name == "row":
        lines = [list(line) for line in zip(*lines, strict=True)]
    channels = [question.channel for question in small.definition.questions]
    table = crosstab(joint_counts(store, small, 0, 1), channels)
    shares, totals, bases = conditional(table, given), table.margin(1 - given), table.margin(given)
    labels = [[option.label for option in q.options] for q in small.definition.questions]
    assert lines[0][1:] == ["All respondents", *labels[given]]
    for a, (label, total, *cells) in enumerate(lines[1:-1]):
        assert label == labels[1 - given][a]
        assert total == text_of(totals.estimate[a], totals.conf_low[a], totals.conf_high[a])
        assert cells == [
            text_of(shares.estimate[a, b], shares.conf_low[a, b], shares.conf_high[a, b])
            for b in range(len(labels[given]))
        ]
    assert lines[-1][:2] == ["Share of all respondents", "100%"]
    assert lines[-1][2:] == [
        text_of(*ends) for ends in zip(bases.estimate, bases.conf_low, bases.conf_high, strict=True)
    ]


def test_column_percentages_are_first_and_a_link_leads_to_row_percentages(reader, store, small):
    add_related(store, small, 12_000)
    page = reader.get(f"{PAGE}?{names_of(small)}&level=0.9")
    assert percents_of(page, "column")
    assert not percents_of(page, "row")
    percentages = page.text.index("Estimated column percentages")
    assert percentages < page.text.index("<summary>Joint shares")
    address = html.unescape(re.search(r'href="([^"]+percent=row[^"]*)"', page.text)[1])
    other = reader.get(address)
    assert percents_of(other, "row")
    assert not percents_of(other, "column")
    assert 'value="0.9" selected' in other.text
    assert 'name="percent" value="row"' in other.text
    assert reader.get(f"{PAGE}?{names_of(small)}&percent=total").status_code == 422


def test_per_cent_that_is_less_precise_than_the_table_says_how_many_responses_it_needs(
    reader, store, small
):
    add_related(store, small, 500)
    page = reader.get(f"{PAGE}?{names_of(small)}")
    channels = [question.channel for question in small.definition.questions]
    needed = conditional_worst_case(PairDesign(tuple(channels), (3, 3))).required_n(HIDDEN_MARGIN)
    assert needed > 500
    assert "Estimated joint shares" in page.text
    assert not percents_of(page, "column")
    sentence = r"This table of percentages appears after about [\d,]+ more responses"
    assert re.search(sentence, page.text)
    assert "<details open>" in page.text
    rows = csv.DictReader(io.StringIO(reader.get(f"{PAGE}/crosstab.csv?{names_of(small)}").text))
    assert {(row["column_share"], row["row_conf_high"]) for row in rows} == {("", "")}


def test_a_group_that_may_be_empty_has_no_per_cent(reader, store, small):
    rng = np.random.default_rng(3)
    channels = [question.channel for question in small.definition.questions]
    codes = [c.perturb(np.zeros(12_000, dtype=int), rng) for c in channels]
    rows = np.stack(codes, axis=1).astype(np.uint8)
    store.add_reports(
        [(small.key, StoredReport(os.urandom(16), "", row.tobytes())) for row in rows]
    )
    publish_pending(store, small, 25)
    page = reader.get(f"{PAGE}?{names_of(small)}")
    columns = [list(column) for column in zip(*percents_of(page, "column"), strict=True)][2:]
    table = crosstab(joint_counts(store, small, 0, 1), channels)
    clear = options_with_base(table, given=1)
    assert 0 in clear
    assert len(clear) < 3
    for option, (_, *cells, _base) in enumerate(columns):
        assert (set(cells) == {"any share is possible"}) == (option not in clear)
    rows = csv.DictReader(io.StringIO(reader.get(f"{PAGE}/crosstab.csv?{names_of(small)}").text))
    by_option = {row["second_option_id"]: row["column_share"] for row in rows}
    ids = [option.id for option in small.definition.questions[1].options]
    assert [bool(by_option[id_]) for id_ in ids] == [place in clear for place in range(3)]


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
    percentages = re.findall(r'class="strong">(−?\d+)%<', joint_shares(page))
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
    percentages = re.findall(r'class="strong">(\d+)%<', joint_shares(page))
    assert percentages == [f"{100 * share:.0f}" for share in expected.flat]
    assert "expectation maximization" in page.text
    assert "small cells are biased" in page.text
    assert 'value="em" selected' in page.text
    rows = csv.DictReader(
        io.StringIO(reader.get(f"{PAGE}/crosstab.csv?{names_of(small)}&method=em").text)
    )
    assert {row["method"] for row in rows} == {"em"}
    assert reader.get(f"{PAGE}?{names_of(small)}&method=best").status_code == 422
