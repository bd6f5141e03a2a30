"""A question by group, over time and by version: page, chart and CSV agree."""

from __future__ import annotations

import csv
import html
import io
import os
import re
from datetime import date

import numpy as np
import pytest

from survey.collect.publication import publish
from survey.disclosure import OTHER_GROUPS
from survey.questionnaire.loading import load
from survey.results.charts import FORMATS
from survey.results.groups import OPEN_LINK
from survey.results.number_format import percent, share_interval
from survey.settings import Caps
from survey.store import StoredReport
from tests.browser.research import add_released, stored_code
from tests.cases import each_case
from tests.conftest import SMALL, TODAY
from tests.store.reports import keeper_at, publish_pending
from tests.surveys import SAMPLED
from tests.web.researchers import People, send, sign_in

BASE = "/research/surveys/small"
DAYS = date(2026, 11, 2), date(2026, 11, 4), date(2026, 12, 7)


@pytest.fixture
def reader(client, researcher):
    assert sign_in(client).status_code == 302
    return client


@pytest.fixture
def daily(store):
    """Return a survey that stores release dates, with three groups and three days."""
    text = SMALL.replace('slug = "small"', 'slug = "small"\nbucket = "day"')
    survey = publish(store, load(text.encode(), "s.toml", Caps()), TODAY)
    for day in DAYS:
        add_released(store, survey, 900, day=day)
        add_released(store, survey, 700, stratum="north", day=day)
    add_released(store, survey, 40, stratum="tiny", day=DAYS[0])
    return survey


def rows_of(client, address: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(client.get(address).text)))


def table_of(page: str) -> list[list[str]]:
    """Return the rows of the table of groups as lists of cell texts."""
    body = re.search(r'<table class="groups">.*?<tbody>(.*?)</tbody>', page, re.S)[1]
    cells = re.compile(r"<t[hd][^>]*>(.*?)</t[hd]>", re.S)
    lines = [cells.findall(row) for row in body.split("</tr>") if "<t" in row]
    return [[text_of(cell) for cell in line] for line in lines]


def text_of(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", markup)).split())


def in_cell(row: dict[str, str]) -> str:
    """Return a share and its interval in the format of the table."""
    low, high = float(row["conf_low"]), float(row["conf_high"])
    return f"{percent(float(row['estimate']))} {share_interval(low, high)}"


def as_csv(address: str) -> str:
    """Return the address of the CSV file for a page's table."""
    path, _, query = address.partition("?")
    return f"{path}.csv?{query}"


@pytest.mark.parametrize(
    ("address", "column", "names"),
    [
        ("links", "stratum", ["", "north", OPEN_LINK, "tiny"]),
        ("trend", "bucket", ["2026-11-02", "2026-11-04", "2026-12-07"]),
        ("trend?per=week", "bucket", ["2026-W45", "2026-W50"]),
        ("trend?per=month", "bucket", ["2026-11", "2026-12"]),
        ("versions", "survey_version", ["1"]),
    ],
)
def test_page_and_csv_have_the_same_groups_and_numbers(reader, daily, address, column, names):
    page = reader.get(f"{BASE}/1/{address}")
    assert page.status_code == 200
    rows = rows_of(
        reader, f"{BASE}/1/{address.replace('?', '.csv?') if '?' in address else address + '.csv'}"
    )
    assert list(dict.fromkeys(row[column] for row in rows)) == names
    table = table_of(page.text)
    assert len(table) == len(names)
    for line, name in zip(table, names, strict=True):
        group_rows = [row for row in rows if row[column] == name]
        assert line[1] == f"{int(group_rows[0]['n_reports']):,}"
        if group_rows[0]["estimate"]:
            assert line[2:] == [in_cell(row) for row in group_rows]
        else:
            assert line[2].startswith("Not enough responses")


def test_small_links_are_published_together_on_the_page_as_in_the_csv(
    reader, store, small, settings
):
    add_pending(store, small, {"": 900, "north": 60, "east": 6, "west": 20})
    keeper_at(store, settings, 1).work()
    names = [line[0] for line in table_of(reader.get(f"{BASE}/1/links").text)]
    assert not any(name.startswith(OTHER_GROUPS) for name in names)
    store.close_survey("small", TODAY)
    keeper_at(store, settings, 2).work()
    page = reader.get(f"{BASE}/1/links").text
    names = [line[0].removesuffix(" wide intervals") for line in table_of(page)]
    assert names == ["all groups", "north", OPEN_LINK, OTHER_GROUPS]
    csv_rows = rows_of(reader, f"{BASE}/1/links.csv")
    assert {row["stratum"] for row in csv_rows} == {"", "north", OPEN_LINK, OTHER_GROUPS}
    assert {row["n_reports"] for row in csv_rows if row["stratum"] == OTHER_GROUPS} == {"26"}


def add_pending(store, survey, sizes):
    """Store pending reports of several groups, to be released together."""
    rng = np.random.default_rng(2)
    questions = survey.definition.questions
    for stratum, n in sizes.items():
        for _ in range(n):
            codes = b"".join(stored_code(question, (0.5, 0.3, 0.2), rng) for question in questions)
            store.add_reports([(survey.key, StoredReport(os.urandom(16), stratum, codes))])


def test_a_link_reproduces_its_view(reader, daily):
    question = daily.definition.questions[0].id
    query = f"question={question}&part=answered&per=week&level=0.99"
    page = reader.get(f"{BASE}/1/trend?{query}").text
    for phrase in (
        f'value="{question}" selected',
        'value="answered" selected',
        'value="week" selected',
    ):
        assert phrase in page
    assert "99% intervals" in page
    links = [html.unescape(link) for link in re.findall(r'(?:href|src|srcset)="([^"]+)"', page)]
    assert f"{BASE}/1/trend.csv?{query}" in links
    assert f"{BASE}/1/trend-figure.svg?{query}" in links
    other_query = query.replace("&level=0.99", "")
    assert f"{BASE}/1/trend?{other_query}" in links
    assert f"{BASE}/1/links?question={question}&level=0.99" in links
    rows = rows_of(reader, f"{BASE}/1/trend.csv?{query}")
    assert {(row["base"], row["conf_level"]) for row in rows} == {("answered", "0.99")}
    assert '<input type="hidden" name="level" value="0.99">' in page


@pytest.mark.parametrize("over", ["links", "trend", "versions"])
def test_every_answer_has_a_panel_and_the_figure_exists_in_every_format(reader, daily, over):
    page = reader.get(f"{BASE}/1/{over}").text
    captions = re.findall(r'<figcaption dir="auto">(.*?)</figcaption>', page)
    assert captions == ["Yes", "No", "Prefer not to say"]
    figures = [html.unescape(link) for link in re.findall(r'href="([^"]+-figure\.[^"]+)"', page)]
    assert len(figures) == len(FORMATS)
    assert {reader.get(address).status_code for address in figures} == {200}


def test_panels_escape_the_texts_of_a_hostile_definition(reader, store):
    hostile = '<script>alert(1)</script>\\" onload=\\"x'
    text = SMALL.replace('label = "Never"', f'label = "{hostile}"')
    text = text.replace('slug = "small"', 'slug = "small"\nbucket = "day"')
    survey = publish(store, load(text.encode(), "s.toml", Caps()), TODAY)
    for day in DAYS:
        add_released(store, survey, 900, stratum="north", day=day)
    for over in ("links", "trend", "versions"):
        page = reader.get(f"{BASE}/1/{over}?question=pressure").text
        assert "&lt;script&gt;alert(1)" in page
        assert "<script>" not in page
        assert 'onload="' not in page


def test_model_based_estimates_are_beside_direct_ones_on_page_in_file_and_figure(
    reader, store, small
):
    for stratum, n in {"north": 700, "south": 90, "east": 60, "west": 50}.items():
        add_released(store, small, n, stratum=stratum)
    page = reader.get(f"{BASE}/1/links?level=0.99").text
    table = re.search(r'<table class="groups model">(.*?)</table>', page, re.S)[1]
    kinds = [
        text_of(cell) for cell in re.findall(r'<th scope="row" class="quiet">(.*?)</th>', table)
    ]
    assert kinds == ["direct", "model-based"] * 4
    addresses = [
        html.unescape(link)
        for link in re.findall(r'(?:href|src|srcset)="([^"]+/model[^"]+)"', page)
    ]
    assert len(addresses) == 3 + len(FORMATS)
    assert all("level=0.99" in address for address in addresses)
    assert {reader.get(address).status_code for address in addresses} == {200}
    rows = rows_of(reader, next(address for address in addresses if ".csv" in address))
    model_lines = re.findall(r"model-based</th>(.*?)</tr>", table, re.S)
    for line, group in zip(model_lines, ("east", "north", "south", "west"), strict=True):
        cells = [text_of(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", line, re.S)]
        model_rows = [
            {name.removeprefix("model_"): value for name, value in row.items()}
            for row in rows
            if row["stratum"] == group
        ]
        assert cells == [in_cell(row) for row in model_rows]
    assert "95%" not in text_of(page[page.index('id="model"') :])


def test_few_groups_have_no_model_and_no_file_of_it(reader, daily):
    page = reader.get(f"{BASE}/1/trend").text
    assert "need at least 5 groups" in page
    assert 'id="model"' not in page
    assert reader.get(f"{BASE}/1/trend/model-chart-light.svg").status_code == 404
    assert reader.get(f"{BASE}/1/versions/model.csv").status_code == 404


def test_a_page_with_suppressed_groups_only_has_no_chart(reader, store, small):
    add_released(store, small, 30, stratum="north")
    page = reader.get(f"{BASE}/1/links").text
    assert "Not enough responses yet" in page
    assert "<figure" not in page
    assert reader.get(f"{BASE}/1/links-chart-light.svg").status_code == 404
    assert reader.get(f"{BASE}/1/links-figure.json").status_code == 404


def test_without_groups_the_page_explains_what_to_do(reader, store, small):
    add_released(store, small, 900)
    assert "create single-use invitations for a group" in reader.get(f"{BASE}/1/links").text
    assert "does not record when responses were released" in reader.get(f"{BASE}/1/trend").text
    for over in ("links", "trend"):
        assert reader.get(f"{BASE}/1/{over}.csv").status_code == 404


def test_a_survey_without_releases_shows_a_message(reader, store):
    text = SMALL.replace('slug = "small"', 'slug = "small"\nbucket = "week"')
    publish(store, load(text.encode(), "s.toml", Caps()), TODAY)
    page = reader.get(f"{BASE}/1/trend").text
    assert "No responses to this version have been released yet" in page


def test_versions_are_side_by_side_with_their_changes(reader, store, small):
    add_released(store, small, 1000)
    text = SMALL.replace('truth_probability = "3/4"', 'truth_probability = "4/5"')
    second = publish(store, load(text.encode(), "s.toml", Caps()), TODAY)
    add_released(store, second, 800)
    page = reader.get(f"{BASE}/2/versions").text
    assert [line[1] for line in table_of(page)] == ["1,000", "800"]
    assert [line[0].split(" wide")[0] for line in table_of(page)] == ["version 1", "version 2"]
    assert "Version 2 randomizes differently" in page
    assert "no figure combines responses to two" in page


@each_case(
    ("path", "status", "words"),
    [
        ("links?question=none", 404, "no question"),
        ("links?part=mode", 404, "there is no mode"),
        ("trend?per=year", 422, "per = 'year' must be one of"),
        ("links?level=2", 422, "level = 2 must be from"),
        ("others.csv", 404, "there is no page others"),
        ("links/model-chart-pink.svg", 404, "there is no chart in pink"),
        ("links-figure.gif", 404, "there is no figure .gif"),
    ],
)
def test_unknown_pages_and_parameters_are_rejected_with_the_reason(
    reader, small, path, status, words
):
    response = reader.get(f"{BASE}/1/{path}")
    assert response.status_code == status
    assert words in html.unescape(response.text)


def test_many_days_are_combined_into_weeks_by_default(reader, store, monkeypatch):
    monkeypatch.setattr("survey.results.trend.compute.MAX_PERIODS", 2)
    text = SMALL.replace('slug = "small"', 'slug = "small"\nbucket = "day"')
    survey = publish(store, load(text.encode(), "s.toml", Caps()), TODAY)
    for day in DAYS:
        add_released(store, survey, 60, day=day)
    assert 'value="week" selected' in reader.get(f"{BASE}/1/trend").text
    page = reader.get(f"{BASE}/1/trend?per=kept").text
    assert 'value="kept" selected' in page
    assert len(table_of(page)) == 3


def test_responses_of_a_group_are_those_to_the_question(reader, store):
    survey = publish(store, load(SAMPLED.encode(), "s.toml", Caps()), TODAY)
    rng, questions = np.random.default_rng(3), survey.definition.questions
    reports = []
    for asked in (rng.permutation(5) < 2 for _ in range(3000)):
        codes = b"".join(
            stored_code(question, (0.3, 0.7), rng) if is_asked else question.encode(None)
            for question, is_asked in zip(questions, asked, strict=True)
        )
        reports.append((survey.key, StoredReport(os.urandom(16), "north", codes)))
    store.add_reports(reports)
    publish_pending(store, survey, 25)
    rows = table_of(reader.get(f"{BASE}/1/links?question=q1").text)
    card = re.search(r"n = ([\d,]+)", reader.get(f"{BASE}/1/questions/q1").text)[1]
    assert rows[0][1] == card
    assert int(card.replace(",", "")) == pytest.approx(1200, abs=100)


TREND = f"{BASE}/1/trend"


def add_note(client, day: str, text: str, address: str = TREND):
    return send(client, address, day=day, text=text)


def test_an_editor_adds_a_note_that_every_member_sees_below_the_chart_and_in_the_file(
    app, store, researcher, daily
):
    people = People(app, store)
    add_note(people["editor"], "2026-11-10", "Vote")
    added = add_note(
        people["editor"], "2026-11-03", "Strike <b>here</b>\n ends ", f"{TREND}?per=week"
    )
    assert added.location == f"{TREND}?per=week#notes"
    assert [note.text for note in store.trend_notes("small")] == ["Strike <b>here</b> ends", "Vote"]
    page = people["viewer"].get(f"{TREND}?question=pressure").text
    assert "Strike &lt;b&gt;here&lt;/b&gt; ends" in page
    listed = re.findall(r'<span class="number">(\d).*?<time datetime="(.*?)">', page, re.S)
    assert listed == [("1", "2026-11-03"), ("2", "2026-11-10")]
    labels = re.findall(r'class="lines".*?aria-label="(.*?)"', page)
    assert len(labels) == 3
    assert all("Notes: 1 on 2026-11-03, 2 on 2026-11-10." in label for label in labels)
    assert "Add note" not in page
    assert ">Delete<" not in page
    figure = people["viewer"].get(f"{BASE}/1/trend-figure.svg?question=pressure").text
    assert figure.count('aria-label="Note 1, 2026-11-03: Strike &lt;b&gt;here&lt;/b&gt; ends"') == 3
    assert ">2. 2026-11-10: Vote<" in figure
    events = [(action.event, action.detail) for action in store.actions("small", 9)]
    assert ("added a note", "2026-11-10: Vote") in events


def test_a_survey_without_dates_takes_no_notes(app, store, researcher, small):
    response = add_note(People(app, store)["editor"], "2026-11-10", "Vote")
    assert response.status_code == 422
    assert "does not record dates" in response.text
    assert store.trend_notes("small") == []


def test_only_editors_add_and_delete_notes(app, store, researcher, daily):
    people = People(app, store)
    store.add_trend_note("small", "2026-11-03", 0, "Strike")
    for name, status in (("viewer", 403), ("stranger", 404)):
        client = people[name]
        for address in (TREND, f"{TREND}/notes/1"):
            answer = send(client, address, page="/research/account", day="2026-11-04", text="Mine")
            assert answer.status_code == status, (name, address)
    assert [note.text for note in store.trend_notes("small")] == ["Strike"]
    deleted = send(people["editor"], f"{TREND}/notes/1", page=TREND)
    assert deleted.status_code == 302
    assert store.trend_notes("small") == []
    assert "deleted: “Strike”" in people["editor"].get(deleted.location).text
    assert store.actions("small", 1)[0].event == "deleted a note"
    again = send(people["editor"], f"{TREND}/notes/1", page=TREND)
    assert "already been deleted" in people["editor"].get(again.location).text


def test_a_wrong_date_or_text_of_a_note_is_named_and_stays_in_the_form(reader, store, daily):
    for day, text, expected in (
        ("", "Strike", "Enter the date as year-month-day, such as 2026-11-17"),
        ("2026-02-30", "Strike", "Enter the date as year-month-day"),
        ("17.11.2026", "Strike", "Enter the date as year-month-day"),
        ("20261117", "Strike", "Enter the date as year-month-day"),
        ("2026-11-17", " \n ", "Write what happened on this date"),
        ("2026-11-17", "é" * 121, "must be at most 120 characters long (found 121)"),
        ("2026-11-17", "a\0b", "must not contain control characters"),
    ):
        answer = add_note(reader, day, text)
        assert answer.status_code == 422, text
        assert expected in html.unescape(answer.text)
        assert f'name="day" type="date" value="{day}"' in answer.text
        assert f'value="{text.strip()}"'.replace("\0", "") in answer.text.replace("\0", "")
    assert store.trend_notes("small") == []
    assert add_note(reader, "2026-11-17", "é" * 120).status_code == 302


def test_the_number_of_notes_is_limited_and_the_page_says_so(reader, store, daily, monkeypatch):
    monkeypatch.setattr("survey.store.presentation.MAX_NOTES", 1)
    add_note(reader, "2026-11-03", "Strike")
    rejected = add_note(reader, "2026-11-04", "Vote")
    assert rejected.status_code == 422
    assert "The note was not added: a survey can have 1 notes; delete one first" in rejected.text
