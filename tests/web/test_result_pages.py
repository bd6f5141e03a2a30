"""Results of long surveys: pages of questions, their table of contents and their anchors."""

from __future__ import annotations

import re

import pytest

from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.results.estimates import result as estimates
from survey.settings import Caps
from tests.benchmarks import dashboard
from tests.benchmarks.storage import today
from tests.web.researchers import sign_in

ADDRESS = "/research/surveys/load/1"


@pytest.fixture
def ada(client, researcher):
    """Return the client of an administrator."""
    assert sign_in(client).status_code == 302
    return client


@pytest.fixture
def long_survey(store, settings):
    """Publish a survey of 60 questions with results."""
    dashboard.fill(store, settings.database, 400, 60)


def cards(page: str) -> list[str]:
    return re.findall(r'<h2 id="q-(q\d+)"', page)


def entries(page: str) -> dict[str, str]:
    """Return the address of each question in the table of contents."""
    contents = page.partition('<nav class="outline"')[2].partition("</nav>")[0]
    links = re.findall(r'<a href="([^"]*#q-(q\d+))"', contents)
    return {name: address.replace("&amp;", "&") for address, name in links}


def test_the_first_page_of_results_estimates_only_its_questions(ada, long_survey, monkeypatch):
    estimated = []
    estimate = estimates.question_result

    def record(survey, question, *arguments):
        estimated.append(question.id)
        return estimate(survey, question, *arguments)

    monkeypatch.setattr(estimates, "question_result", record)
    page = ada.get(ADDRESS).text
    n_findings = 5
    assert 2 <= len(cards(page)) <= 15
    assert len(estimated) == len(set(estimated)) <= len(cards(page)) + n_findings
    assert len(page.encode()) <= 1000 * dashboard.FIRST_KB


@pytest.mark.web
def test_every_question_is_on_one_page_and_each_page_has_its_anchor(ada, long_survey):
    names, shown, address = [f"q{i}" for i in range(60)], [], "?level=0.9"
    while address:
        page = ada.get(ADDRESS + address).text
        assert "90% interval" in page
        # The anchor of a question on another page is its entry, which leads to its card.
        assert sorted(re.findall(r' id="q-(q\d+)"', page)) == sorted(names)
        assert list(entries(page)) == names
        shown += cards(page)
        following = re.search(r'<a href="([^"]+)" rel="next">', page)
        address = following[1].replace("&amp;", "&") if following else ""
    assert shown == names
    for name, link in entries(page).items():
        if link.startswith("?"):
            assert name in cards(ada.get(ADDRESS + link.partition("#")[0]).text)
    assert cards(ada.get(f"{ADDRESS}?page=all").text) == names
    assert cards(ada.get(f"{ADDRESS}?page=99").text) == cards(page)
    assert cards(ada.get(f"{ADDRESS}?page=x").text) == cards(ada.get(ADDRESS).text)


def test_findings_lead_to_cards_on_other_pages(ada, long_survey):
    for address in ("", "?page=3"):
        page = ada.get(ADDRESS + address).text
        findings = page.partition('<ul class="findings">')[2].partition("</ul>")[0]
        links = re.findall(r'<a href="([^"]*)#q-(q\d+)"', findings)
        assert len(links) == 5
        for link, name in links:
            target = ada.get(ADDRESS + link.replace("&amp;", "&")).text if link else page
            assert name in cards(target)


def test_public_results_are_divided_into_pages(ada, store, long_survey):
    store.set_public_results("load", public=True)
    address = "/research/public/load"
    page = ada.get(address).text
    assert cards(page) == cards(ada.get(ADDRESS).text)
    assert cards(ada.get(address + entries(page)["q59"].partition("#")[0]).text)[-1] == "q59"


def test_a_matrix_that_spans_pages_has_one_summary_of_all_rows(ada, store):
    rows = ", ".join(f'{{id = "r{i}", text = "Row {i}"}}' for i in range(12))
    text = (
        'slug = "grid"\ntitle = "Grid"\n[[questions]]\nid = "m"\ntext = "How often?"\n'
        f'type = "matrix"\nlow = 1\nhigh = 11\nepsilon = 6\nrows = [{rows}]\n'
    )
    publish(store, load(text.encode(), "g.toml", Caps(survey=200)), today())
    pages = [ada.get(f"/research/surveys/grid/1?page={n}").text for n in (1, 2)]
    summaries = [page.partition('<section class="question matrix"')[2] for page in pages]
    assert [bool(summary) for summary in summaries] == [True, False]
    links = re.findall(r'<a href="([^"]*)#q-(\w+)"', summaries[0].partition("</section>")[0])
    assert len(links) == 12
    assert [link for link, _ in links] == [""] * 8 + ["?page=2"] * 4
    assert all(f'<h2 id="q-{name}"' in pages[bool(link)] for link, name in links)


@pytest.mark.web
def test_the_benchmark_of_the_dashboard_runs(tmp_path, capsys):
    url = f"sqlite:///{tmp_path / 'dashboard.db'}"
    dashboard.measure_first_response(url, dashboard.SHORT_SIZES, 1)
    assert len(capsys.readouterr().out.splitlines()) == 10
