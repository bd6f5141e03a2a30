"""The pages for differences, weighting and regression: links, forms, files and errors."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from survey.results.charts import FORMATS
from survey.results.difference.compute import DifferenceRequest, compute_difference
from survey.results.regression.compute import RegressionRequest, compute_regression
from survey.results.request import IntervalOptions
from survey.results.weighting.compute import compute_weighting
from survey.results.weighting.request import WeightingRequest
from tests.parquet.reports import fill
from tests.parquet.reports import published as published_kinds
from tests.results.populations import add_people, shares_by_first_answer
from tests.web.researchers import sign_in, token

PAGE = "/research/surveys/small/explore"
LINKS = "question=fell_asleep&a=link:north&b=link:south"
BY_LINK = "question=fell_asleep&by=link"
MARGINS = "&margins=north,20%0Asouth,80"


@pytest.fixture
def reader(client, researcher, small):
    assert sign_in(client).status_code == 302
    return client


@pytest.fixture
def two_links(store, small):
    add_people(store, small, 2500, "north", shares_by_first_answer(0.5), 1)
    add_people(store, small, 2000, "south", shares_by_first_answer(0.2), 2)
    return small


def rows_of(answer):
    assert answer.status_code == 200
    assert "attachment" in answer.headers["Content-Disposition"]
    return list(csv.DictReader(io.StringIO(answer.text)))


def test_all_explore_pages_link_to_each_other_and_explain_the_first_step(reader, two_links):
    pages = ("", "/difference", "/weighting", "/regression")
    for page in pages:
        response = reader.get(PAGE + page)
        assert response.status_code == 200
        navigation = re.search(r'(?s)<nav [^>]*aria-label="Explore">.*?</nav>', response.text)
        links = re.findall(r'href="([^"?]+)', navigation[0])
        assert links == [PAGE + address for address in pages]
        assert navigation[0].count('aria-current="page"') == 1
        assert 'class="empty"' in response.text


def test_the_page_of_a_difference_has_table_chart_test_sentence_and_caveat(
    reader, store, two_links
):
    response = reader.get(f"{PAGE}/difference?{LINKS}")
    request = DifferenceRequest("fell_asleep", "link:north", "link:south")
    result = compute_difference(store, two_links, request, IntervalOptions())
    figures = re.findall(r'class="number strong">(−?\d+)<', response.text)
    assert figures == [f"{100 * row.estimate:.0f}".replace("-", "−") for row in result.rows]
    assert "<svg" in response.text
    assert "Pearson’s test of the randomized reports" in response.text
    assert "<blockquote>" in response.text
    assert 'class="caution"' in response.text
    assert 'value="link:north" selected' in response.text


def test_a_difference_can_be_downloaded_as_csv_and_as_figure(reader, two_links):
    rows = rows_of(reader.get(f"{PAGE}/difference/difference.csv?{LINKS}&level=0.9"))
    assert [row["option_id"] for row in rows] == ["yes", "no", "prefer_not_to_say"]
    assert {row["conf_level"] for row in rows} == {"0.9"}
    figures = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF", "json": b"{"}
    for kind, start in figures.items():
        figure = reader.get(f"{PAGE}/difference/figure.{kind}?{LINKS}")
        assert figure.status_code == 200
        assert figure.data.startswith(start)
    assert reader.get(f"{PAGE}/difference/figure.gif?{LINKS}").status_code == 404


def test_groups_by_an_answer_are_compared_by_joint_inversion(reader, two_links):
    page = reader.get(f"{PAGE}/difference?question=fell_asleep").text
    assert 'value="answer:pressure:never"' in page
    by_answer = "question=fell_asleep&a=answer:pressure:never&b=answer:pressure:once"
    assert "joint inversion" in reader.get(f"{PAGE}/difference?{by_answer}").text


def test_a_number_is_offered_no_groups_by_answer(reader, store):
    survey = published_kinds(store, ["hours", "choice"])
    fill(store, survey, 300)
    page = f"/research/surveys/{survey.slug}/explore/difference?question="
    assert "a mean cannot be compared" in reader.get(f"{page}hours").text
    fill(store, survey, 300, "north", seed=6)
    text = reader.get(f"{page}hours").text
    assert 'value="link:north"' in text
    assert 'value="answer:' not in text


def test_closed_menus_name_the_question_with_the_answer(reader, two_links):
    page = reader.get(f"{PAGE}/difference?question=pressure").text
    assert page.count(">“Yes” to “Did you fall asleep at work?”</option>") == 2
    assert page.count(">group “north”</option>") == 2
    page = reader.get(f"{PAGE}/regression?question=pressure").text
    assert ">“Often” to “Did anybody press you to stay longer?”</option>" in page


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("question=fell_asleep&a=link:north&b=link:north", 422, "two different groups"),
        ("question=fell_asleep&a=link:north&b=answer:pressure:never", 422, "cannot be compared"),
        ("question=pressure&a=answer:pressure:never&b=answer:pressure:once", 422, "its own"),
        ("question=fell_asleep&a=link:north&b=link:west", 404, "link:west"),
        ("question=none&a=link:north&b=link:south", 404, "none"),
    ],
)
def test_invalid_groups_are_rejected_beside_their_field(reader, two_links, query, status, words):
    response = reader.get(f"{PAGE}/difference?{query}")
    assert response.status_code == status
    assert words in response.text
    if status == 422:
        assert 'aria-describedby="b-error"' in response.text


def test_a_suppressed_difference_has_no_number_on_its_page_or_in_its_files(reader, store, small):
    add_people(store, small, 3000, "north")
    add_people(store, small, 60, "south")
    response = reader.get(f"{PAGE}/difference?{LINKS}")
    assert "Not enough responses yet" in response.text
    assert "<svg" not in response.text
    assert "<blockquote>" not in response.text
    rows = rows_of(reader.get(f"{PAGE}/difference/difference.csv?{LINKS}"))
    assert {(row["estimate"], row["estimate_a"], row["p_value"]) for row in rows} == {("", "", "")}
    assert reader.get(f"{PAGE}/difference/figure.svg?{LINKS}").status_code == 404


@pytest.mark.parametrize(
    "page",
    [
        "?first=fell_asleep&second=pressure",
        "/difference?question=fell_asleep&a=answer:pressure:never&b=answer:pressure:once",
        "/weighting?question=fell_asleep&by=answer:pressure&margins=Never,50%0AOnce,40%0AOften,10",
        "/regression?question=fell_asleep&predictor=pressure",
    ],
)
def test_the_announced_number_of_responses_is_fixed_and_suffices(reader, store, small, page):
    def announced():
        text = " ".join(reader.get(PAGE + page).text.split())
        # A table may be precise enough before its row and column percentages are.
        number = re.search("(?<!percentages) appears after about ([0-9,]+) more responses", text)
        return int(number[1].replace(",", "")) if number else 0

    add_people(store, small, 30, seed=1)
    first = announced()
    assert first > 50
    add_people(store, small, 30, seed=2)
    # Numbers are rounded up to two digits.
    assert 0 <= first - announced() - 30 + first / 10 <= first / 5
    add_people(store, small, announced(), seed=3)
    assert "Not enough responses" not in reader.get(PAGE + page).text
    assert announced() == 0


def test_groups_state_how_many_more_responses_each_needs(reader, store, small):
    add_people(store, small, 3000, "north")
    add_people(store, small, 30, "south")
    text = " ".join(reader.get(f"{PAGE}/difference?{LINKS}").text.split())
    assert re.search("appears after about [0-9,]+ more responses of group “south”", text)
    assert "responses of group “north”" not in text


def test_an_interval_that_excludes_nothing_is_replaced_by_a_flag(reader, store, small, monkeypatch):
    nobody = np.array([[0.5, 0.0, 0.0], [0.5, 0.0, 0.0], [0.0, 0.0, 0.0]])
    add_people(store, small, 1500, shares=nobody)
    groups = "a=answer:pressure:never&b=answer:pressure:often"
    page = reader.get(f"{PAGE}/difference?question=fell_asleep&{groups}").text
    assert "any difference is possible" in page
    assert "100 to 100" not in page
    weights = "by=answer:pressure&unit=percent&margins=Never,50%0AOnce,40%0AOften,10"
    page = reader.get(f"{PAGE}/weighting?question=fell_asleep&{weights}").text
    assert page.count("any share is possible") == 3
    survey = published_kinds(store, ["bits", "long_bits"])
    fill(store, survey, 300)
    monkeypatch.setattr("survey.results.crosstab.compute.disclosure", lambda *_tables: "show")
    table = f"/research/surveys/{survey.slug}/explore?first=bits.a&second=long_bits.o0"
    page = reader.get(table).text
    assert "any share is possible" in page
    assert "0 to 100%" not in page


def test_the_margins_field_has_a_line_for_each_category(reader, two_links):
    page = reader.get(f"{PAGE}/weighting?{BY_LINK}").text
    assert re.search(r"<textarea[^>]*>\s*north, \nsouth, </textarea>", page)
    assert "by=link" not in page.split("<form")[0]


def test_weighted_and_unweighted_shares_are_side_by_side(reader, store, two_links):
    response = reader.get(f"{PAGE}/weighting?{BY_LINK}{MARGINS}")
    request = WeightingRequest("fell_asleep", "link", "north,20\nsouth,80")
    result = compute_weighting(store, two_links, request, IntervalOptions())
    figures = re.findall(r'class="number strong">(\d+)%<', response.text)
    assert figures == [f"{100 * row.estimate:.0f}" for row in result.rows]
    assert f"design effect {result.design_effect:.2f}" in response.text
    assert "<blockquote>" in response.text
    rows = rows_of(reader.get(f"{PAGE}/weighting/weighted.csv?{BY_LINK}{MARGINS}"))
    assert [float(row["estimate"]) for row in rows] == [row.estimate for row in result.rows]


def test_margins_with_a_wrong_total_are_rejected_and_stay_in_the_field(reader, two_links):
    response = reader.get(f"{PAGE}/weighting?{BY_LINK}&margins=north,20%0Asouth,75")
    assert response.status_code == 422
    assert response.text.count("These margins add up to 95%, not to 100%") == 2
    assert re.search(r'<textarea[^>]*aria-describedby="margins-hint margins-error"', response.text)
    assert re.search(r"<textarea[^>]*>\s*north,20\nsouth,75</textarea>", response.text)
    assert response.text.count("<title>Error: ") == 1


def uploaded(reader, content, name="margins.csv", **fields):
    page = reader.get(f"{PAGE}/weighting?{BY_LINK}")
    form = {
        "csrf_token": token(page),
        "question": "fell_asleep",
        "by": "link",
        "unit": "percent",
        "level": "0.9",
        "file": (io.BytesIO(content), name),
        **fields,
    }
    return reader.post(f"{PAGE}/weighting/upload", data=form)


@pytest.mark.parametrize(
    "content",
    [
        b"link,share\r\nnorth,20\r\nsouth,80\r\n",
        b"\xef\xbb\xbfnorth;20,0\nsouth;80,0",
        b'"north",20\n"south",80',
    ],
)
def test_uploaded_margins_become_a_link_that_reproduces_the_view(reader, two_links, content):
    response = uploaded(reader, content)
    assert response.status_code == 302
    query = parse_qs(urlsplit(response.location).query)
    assert query["level"] == ["0.9"]
    page = reader.get(response.location)
    assert page.status_code == 200
    assert "post-stratified" in page.text


def test_uploaded_margins_with_a_wrong_total_appear_in_the_field(reader, two_links):
    page = reader.get(uploaded(reader, b"north,20\nsouth,70").location)
    assert page.status_code == 422
    assert "add up to 90%" in page.text
    assert re.search(r"<textarea[^>]*>\s*north,20\nsouth,70</textarea>", page.text)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"PK\x03\x04", "save it as CSV first"),
        (b"  \n ", "no lines of text"),
        (b"north,20\n" * 500, "Margins in a link can have 3,000 characters"),
    ],
)
def test_an_invalid_file_is_rejected_beside_its_field(reader, two_links, content, words):
    response = uploaded(reader, content)
    assert response.status_code == 422
    assert response.text.count(words) == 2
    assert 'aria-describedby="file-hint file-error"' in response.text
    assert 'value="link" selected' in response.text


def test_margins_too_long_for_a_link_are_rejected_and_stay_in_the_field(reader, two_links):
    response = reader.get(f"{PAGE}/weighting?{BY_LINK}&margins={'north,20%0A' * 400}")
    assert response.status_code == 422
    assert "Margins in a link can have 3,000 characters" in response.text
    assert response.text.count("north,20") == 400


def test_the_page_shows_the_odds_ratios_of_the_estimator(reader, store, two_links):
    query = "question=fell_asleep&predictor=pressure&predictor=link"
    response = reader.get(f"{PAGE}/regression?{query}")
    request = RegressionRequest("fell_asleep", ("pressure", "link"))
    result = compute_regression(store, two_links, request, IntervalOptions())
    figures = re.findall(r'class="number strong">([\d.,]+)<', response.text)
    assert figures == [f"{row.odds_ratio:.3g}" for row in result.rows]
    assert response.text.count(" checked>") == 2
    assert "maximum likelihood through the randomization" in response.text
    rows = rows_of(reader.get(f"{PAGE}/regression/regression.csv?{query}"))
    assert [row["predictor_id"] for row in rows] == [row.predictor_id for row in result.rows]
    values = re.findall(r'<span class="value"><b>([\d.,]+)</b>', response.text)
    assert values == [f"{row.odds_ratio:.3g}" for row in result.rows if row.predictor_id]
    penalized = reader.get(f"{PAGE}/regression?{query}&penalty=firth").text
    assert '<option value="firth" selected>' in penalized
    assert "Firth’s penalized likelihood through the randomization" in penalized
    assert "#regression-firth" in penalized


@pytest.mark.parametrize(
    ("query", "field", "words"),
    [
        (
            "question=fell_asleep&against=fell_asleep:no",
            "predictors",
            "Choose at least one predictor",
        ),
        (
            "question=fell_asleep&predictor=fell_asleep",
            "predictors",
            "“Did you fall asleep at work?” is the outcome, so it cannot be a predictor",
        ),
        (
            "question=fell_asleep&predictor=pressure&against=fell_asleep:often",
            "against",
            "“Did you fall asleep at work?” has no answer &#39;often&#39;",
        ),
        (
            "question=fell_asleep&predictor=pressure&penalty=x",
            "penalty",
            "penalty must be firth or empty (found &#39;x&#39;)",
        ),
    ],
)
def test_invalid_regressions_are_rejected_beside_their_field(
    reader, two_links, query, field, words
):
    response = reader.get(f"{PAGE}/regression?{query}")
    assert response.status_code == 422
    assert f'<a href="#{field}">{words}</a>' in response.text
    error = rf'id="{field}\b.{{,120}}<span class="unseen">Error: </span>{re.escape(words)}</p>'
    assert re.search(error, response.text, re.DOTALL)


def test_the_outcome_is_not_offered_as_its_own_predictor(reader, two_links):
    def offered(query):
        return re.findall(r'name="predictor" value="(\w+)"', reader.get(PAGE + query).text)

    assert offered("/regression") == []
    assert offered("/regression?question=fell_asleep") == ["link", "pressure"]
    assert offered("/regression?question=pressure&predictor=pressure") == ["link", "fell_asleep"]


@pytest.mark.web
def test_the_forest_plot_can_be_downloaded_in_every_format(reader, two_links):
    query = "question=fell_asleep&predictor=pressure&predictor=link"
    page = reader.get(f"{PAGE}/regression?{query}").text
    links = [html.unescape(link) for link in re.findall(r'href="([^"]+/figure\.[^"]+)"', page)]
    assert [link.partition("?")[0].rpartition(".")[2] for link in links] == list(FORMATS)
    for link in links:
        response = reader.get(link)
        assert response.status_code == 200
        assert response.content_type == FORMATS[link.partition("?")[0].rpartition(".")[2]]
    chart = json.loads(reader.get(links[0]).text)
    assert "n = 4,500" in json.dumps(chart, ensure_ascii=False)
    assert reader.get(f"{PAGE}/regression/figure.gif?{query}").status_code == 404


def test_a_suppressed_regression_has_no_figure(reader, store, small):
    add_people(store, small, 60, "north", shares_by_first_answer(0.5), 1)
    query = "question=fell_asleep&predictor=pressure"
    assert "Not enough responses" in reader.get(f"{PAGE}/regression?{query}").text
    response = reader.get(f"{PAGE}/regression/figure.svg?{query}")
    assert response.status_code == 404
    assert "the regression of fell_asleep has no chart" in response.text


def test_a_regression_on_an_unknown_question_is_not_found(reader, two_links):
    response = reader.get(f"{PAGE}/regression?question=fell_asleep&predictor=none")
    assert response.status_code == 404
    assert "none" in response.text


def test_no_file_contains_suppressed_coefficients(reader, store, small):
    add_people(store, small, 150)
    query = "question=fell_asleep&predictor=pressure"
    assert "Not enough responses yet" in reader.get(f"{PAGE}/regression?{query}").text
    rows = rows_of(reader.get(f"{PAGE}/regression/regression.csv?{query}"))
    assert {(row["odds_ratio"], row["std_error"]) for row in rows} == {("", "")}


@pytest.mark.parametrize(
    "page",
    [
        f"/difference?{LINKS}",
        f"/weighting?{BY_LINK}{MARGINS}",
        "/regression?question=fell_asleep&predictor=pressure",
    ],
)
def test_explore_pages_work_without_reports(reader, small, page):
    response = reader.get(PAGE + page)
    assert response.status_code in (200, 404, 422)
    assert "Something went wrong" not in response.text


@pytest.mark.parametrize(
    "file",
    [
        "/crosstab.csv?first=fell_asleep&second=fell_asleep",
        "/difference/difference.csv?question=fell_asleep&a=link:north&b=link:north",
        "/difference/figure.svg?question=fell_asleep&a=link:north&b=link:north",
        "/weighting/weighted.csv?question=fell_asleep&by=answer:fell_asleep&margins=yes,50%0Ano,50",
        "/weighting/weighted.csv?question=fell_asleep&by=link&margins=north,50%0Asouth,40",
        "/regression/regression.csv?question=fell_asleep",
    ],
)
def test_files_that_cannot_be_computed_are_rejected_with_a_reason(reader, two_links, file):
    response = reader.get(PAGE + file)
    assert response.status_code == 422
    assert "Something went wrong" not in response.text


def test_parameters_of_another_question_are_ignored(reader, two_links):
    odds = "question=pressure&predictor=fell_asleep&against=fell_asleep:no"
    page = reader.get(f"{PAGE}/regression?{odds}")
    assert page.status_code == 200
    baselines = re.findall(r'<option value="(pressure:\w+)"', page.text)
    assert baselines[0] == "pressure:never"
    assert " selected" not in page.text.split('id="against"')[1].split("</select>")[0]
    parameters = f"question=fell_asleep&by=answer:pressure&typed_for=link{MARGINS}"
    page = reader.get(f"{PAGE}/weighting?{parameters}")
    assert page.status_code == 200
    assert re.search(r"<textarea[^>]*>\s*Never, \nOnce, \nOften, </textarea>", page.text)


def test_the_baseline_of_the_odds_can_be_chosen_on_the_page(reader, two_links):
    query = "question=fell_asleep&predictor=pressure&against=fell_asleep:yes"
    page = reader.get(f"{PAGE}/regression?{query}")
    assert "Odds of “No” against “Yes”" in page.text
    assert 'value="fell_asleep:yes" selected' in page.text


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("hours", "Estimated means, and A minus B in hours with"),
        ("since", "Estimated means, and A minus B in days with"),
        ("mood", "Estimated shares, and A minus B in percentage points with"),
    ],
)
def test_a_difference_of_means_has_the_unit_of_the_question(reader, store, kind, words):
    survey = published_kinds(store, [kind])
    fill(store, survey, 3000, "north", 1)
    fill(store, survey, 2000, "south", 2)
    link = f"/research/surveys/{survey.slug}/explore/difference"
    page = reader.get(f"{link}?question={kind}&a=link:north&b=link:south").text
    assert words in " ".join(page.split())


def test_the_server_picks_a_table_or_a_comparison(reader, two_links):
    def target(query):
        response = reader.get(f"{PAGE}/show?{query}")
        assert response.status_code == 302
        assert reader.get(response.location).status_code == 200
        address = urlsplit(response.location)
        return address.path, {name: text for name, (text,) in parse_qs(address.query).items()}

    first = "first=fell_asleep&level=0.9&version=1"
    assert target(f"{first}&second=pressure&method=em") == (
        PAGE,
        {
            "first": "fell_asleep",
            "second": "pressure",
            "method": "em",
            "level": "0.9",
            "version": "1",
        },
    )
    assert target(f"{first}&second=groups&method=em") == (
        f"{PAGE}/difference",
        {
            "question": "fell_asleep",
            "a": "link:north",
            "b": "link:south",
            "level": "0.9",
            "version": "1",
        },
    )
    assert target(f"{first}&second=") == (
        PAGE,
        {"first": "fell_asleep", "level": "0.9", "version": "1"},
    )
    assert target(f"{first}&second=&_external=1&slug=x&_scheme=ftp")[0] == PAGE
    assert reader.get(f"{PAGE}/show?first=fell_asleep&second=versions").status_code == 404


def test_more_than_two_groups_are_shown_on_one_page(reader, store, small):
    for seed, group in enumerate(("north", "south", "east")):
        add_people(store, small, 3000, group, seed=seed)
    response = reader.get(f"{PAGE}/show?first=fell_asleep&second=groups&level=0.9")
    address = urlsplit(response.location)
    assert address.path == "/research/surveys/small/1/links"
    assert parse_qs(address.query) == {"question": ["fell_asleep"], "level": ["0.9"]}
    page = reader.get(response.location).text
    assert all(group in page for group in ("north", "south", "east"))


def test_explore_lists_what_can_be_shown_and_what_needs_more_responses(reader, store, small):
    add_people(store, small, 60, "north", seed=1)
    page = " ".join(reader.get(PAGE).text.split())
    number = re.search("Nothing yet. After about ([0-9,]+) more responses:", page)
    add_people(store, small, int(number[1].replace(",", "")), "north", seed=2)
    add_people(store, small, 60, "south", seed=3)
    page = " ".join(reader.get(PAGE).text.split())
    shown, later = page.split("What can be shown now")[1].split("<details>")
    assert "second=" in shown
    for link in re.findall(r'href="([^"]+show[^"]+)"', shown):
        answer = reader.get(link.replace("&amp;", "&"), follow_redirects=True)
        assert answer.status_code == 200
        assert "Not enough responses" not in answer.text
    assert "more responses" in later


@pytest.mark.parametrize(
    "page",
    [
        "?first=fell_asleep&second=pressure",
        f"/difference?{LINKS}",
        f"/weighting?{BY_LINK}{MARGINS}",
        "/regression?question=fell_asleep&predictor=pressure",
    ],
)
def test_headings_of_researchers_texts_follow_their_own_direction(reader, two_links, page):
    assert '<h2 id="table" dir="auto">' in reader.get(PAGE + page).text


def test_a_question_that_is_chosen_alone_comes_first(reader, store, small):
    for seed, group in enumerate(("north", "south")):
        add_people(store, small, 3000, group, seed=seed)
    page = reader.get(f"{PAGE}?first=pressure").text
    assert '<option value="pressure" selected>' in page
    now = page.partition("What can be shown now")[2]
    listed = re.findall(r"first=(\w+)&amp;second=(\w+)", now)
    is_chosen = ["pressure" in pair for pair in listed]
    assert is_chosen == sorted(is_chosen, reverse=True)
    assert {True, False} == set(is_chosen)


def test_the_page_of_a_question_links_to_the_question_in_explore(reader, store, small):
    add_people(store, small, 3000, "north")
    for question in small.definition.questions:
        page = reader.get(f"/research/surveys/small/1/questions/{question.id}").text
        address = re.search(rf'href="([^"]*explore[^"]*first={question.id}[^"]*)"', page)[1]
        explore = reader.get(address.replace("&amp;", "&")).text
        assert f'<option value="{question.id}" selected>' in explore
