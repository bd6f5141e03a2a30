"""Researchers' pages: signing in, publishing and reading released estimates."""

from __future__ import annotations

import csv
import html
import io
import json
import os
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from argon2 import extract_parameters
from click.testing import CliRunner
from flask import request, url_for

from survey.app import create_app
from survey.cli import main
from survey.collect.publication import publish
from survey.questionnaire.canonical import freeze
from survey.questionnaire.loading import load
from survey.research.credentials import Passwords
from survey.research.sign_in_limits import Throttle, Visitor
from survey.results.analyses import CROSSTAB, REGRESSION, WEIGHTING
from survey.results.crosstab.compute import CrosstabRequest
from survey.results.estimates.result import CACHE_SIZE, ResultCache
from survey.results.estimates.table import row_label
from survey.results.number_format import share_texts
from survey.results.regression.compute import RegressionRequest
from survey.results.request import IntervalOptions, parse_options
from survey.results.weighting.request import WeightingRequest
from survey.settings import Caps
from survey.store import StoredReport
from tests.browser.research import add_released as add_reports
from tests.conftest import EMAIL, PASSWORD, SECRET, SMALL, TODAY
from tests.store.reports import publish_pending
from tests.web.researchers import send, sign_in, token


@pytest.fixture
def signed_in(client, researcher):
    assert sign_in(client).status_code == 302
    return client


def add_released(store, small, n, share=0.5):
    rng = np.random.default_rng(3)
    channels = [question.channel for question in small.definition.questions]
    truths = [rng.choice(3, size=n, p=[share, 0.9 - share, 0.1]) for _ in channels]
    codes = np.stack([c.perturb(t, rng) for c, t in zip(channels, truths, strict=True)], axis=1)
    rows = codes.astype(np.uint8)
    store.add_reports(
        [(small.key, StoredReport(os.urandom(16), "", row.tobytes())) for row in rows]
    )
    publish_pending(store, small, 25)


def publish_file(client, content, name="s.toml"):
    page = client.get("/research/publish")
    return client.post(
        "/research/publish",
        data={"csrf_token": token(page), "file": (io.BytesIO(content), name)},
        content_type="multipart/form-data",
    )


# -- signing in


@pytest.mark.security
@pytest.mark.parametrize(
    "path",
    [
        "/research/",
        "/research/publish",
        "/research/surveys/small",
        "/research/surveys/small/1",
        "/research/surveys/small/1/estimates.csv",
    ],
)
def test_object_access_to_researchers_pages_requires_a_sign_in(client, small, path):
    response = client.get(path)
    assert response.status_code == 302
    assert response.headers["Location"] == f"/research/sign-in?next={path}"


@pytest.mark.security
def test_logins_renew_the_session_and_signing_out_ends_it_on_the_server(client, researcher):
    client.get("/research/sign-in")
    before = client.get_cookie("survey").value
    sign_in(client)
    inside = client.get_cookie("survey").value
    assert inside != before
    page = client.get("/research/")
    assert page.status_code == 200
    client.post("/research/sign-out", data={"csrf_token": token(page)})
    assert client.get("/research/").status_code == 302
    client.set_cookie("survey", inside)  # a stolen cookie is worth nothing afterwards
    assert client.get("/research/").status_code == 302


@pytest.mark.security
@pytest.mark.parametrize(
    ("email", "password"), [(EMAIL, "wrong password"), ("nobody@example.org", PASSWORD)]
)
def test_logins_wrong_and_unknown_get_the_same_words(client, researcher, email, password):
    response = sign_in(client, email, password)
    assert response.status_code == 403
    assert "address or the password is wrong" in response.text


@pytest.mark.security
def test_logins_are_throttled_within_10_attempts_without_locking_the_owner_out(client, researcher):
    for _ in range(10):
        assert sign_in(client, password="wrong").status_code == 403
    assert sign_in(client).status_code == 429
    address = "/research/sign-in"
    elsewhere = client.post(
        address,
        data={"csrf_token": token(client.get(address)), "email": EMAIL, "password": PASSWORD},
        environ_base={"REMOTE_ADDR": "203.0.113.9"},
    )
    assert elsewhere.status_code == 302


def test_attempts_are_allowed_again_after_15_minutes(store):
    throttle = Throttle(store, SECRET)
    for _ in range(10):
        assert not throttle.refusal(Visitor("203.0.113.9"), EMAIL, 0.0)
    assert throttle.refusal(Visitor("203.0.113.9"), EMAIL.upper(), 899.0)
    assert not throttle.refusal(Visitor("203.0.113.9"), EMAIL, 900.0)


def test_workers_and_servers_share_counts_and_the_database_contains_no_name_or_address(store):
    first, second = Throttle(store, SECRET), Throttle(store, SECRET)
    for _ in range(5):
        assert not first.refusal(Visitor("203.0.113.9"), EMAIL, 0.0)
        assert not second.refusal(Visitor("203.0.113.9"), EMAIL, 0.0)
    assert first.refusal(Visitor("203.0.113.9"), EMAIL, 1.0)
    assert not second.refusal(Visitor("198.51.100.7"), EMAIL, 1.0)
    first.succeeded(Visitor("203.0.113.9"), EMAIL)
    assert not second.refusal(Visitor("203.0.113.9"), EMAIL, 2.0)
    for file in store.path.parent.glob(f"{store.path.name}*"):
        assert b"203.0.113.9" not in file.read_bytes()


def test_one_address_cannot_try_many_accounts_or_fill_the_disk(store, monkeypatch):
    throttle = Throttle(store, SECRET)
    admitted = sum(
        not throttle.refusal(Visitor("203.0.113.9"), f"{i}@example.org", 0.0) for i in range(200)
    )
    assert admitted == 50
    monkeypatch.setattr("survey.store.sign_ins.MAX_ATTEMPT_ROWS", 100)
    for i in range(300):
        throttle.refusal(Visitor(f"2001:db8:0:{i:x}::1"), f"{i}@example.org", 0.0)
    with store._lookup() as transaction:
        assert transaction.row("SELECT count(*) FROM sign_in_try")[0] <= 103


def test_ipv6_addresses_of_one_network_count_as_one(store):
    throttle = Throttle(store, SECRET)
    refusals = [throttle.refusal(Visitor(f"2001:db8::{i:x}"), EMAIL, 0.0) for i in range(20)]
    assert refusals.count("") == 10
    assert not throttle.refusal(Visitor("2001:db8:0:1::1"), EMAIL, 0.0)


def test_the_right_password_resets_the_count_of_failed_attempts(client, researcher):
    for _ in range(2):
        for _ in range(9):
            assert sign_in(client, password="wrong").status_code == 403
        assert sign_in(client).status_code == 302


def test_researchers_sign_in_and_publish_behind_https_without_a_referer(
    store, settings, researcher
):
    """The pages' policy suppresses the Referer header, so no check may require it."""
    proxied = replace(settings, trusted_proxies=1, public_url="https://survey.example.org")
    client = create_app(proxied, store).test_client()
    client.environ_base.update(
        HTTP_X_FORWARDED_PROTO="https",
        HTTP_X_FORWARDED_HOST="survey.example.org",
        HTTP_X_FORWARDED_FOR="203.0.113.9",
    )
    options = {"base_url": "https://survey.example.org"}
    form = {
        "csrf_token": token(client.get("/research/sign-in", **options)),
        "email": EMAIL,
        "password": PASSWORD,
    }
    assert client.post("/research/sign-in", data=form, **options).status_code == 302
    page = client.get("/research/publish", **options)
    assert page.status_code == 200
    form_data = {"csrf_token": token(page), "file": (io.BytesIO(SMALL.encode()), "s.toml")}
    published = client.post(
        "/research/publish", data=form_data, content_type="multipart/form-data", **options
    )
    assert published.status_code == 302
    form = {"csrf_token": token(client.get("/research/", **options))}
    assert client.post("/research/sign-out", data=form, **options).status_code == 302
    assert client.post("/research/sign-out", data={}, **options).status_code == 400


def test_behind_a_trusted_proxy_the_visitors_address_is_the_one_that_counts(store, settings):
    proxied = replace(settings, trusted_proxies=1, public_url="https://survey.example.org")
    proxied_app = create_app(proxied, store)
    requests = []
    proxied_app.add_url_rule(
        "/address",
        view_func=lambda: (
            requests.append((request.remote_addr, request.host, request.is_secure)) or ""
        ),
    )
    proxied_app.test_client().get(
        "/address",
        headers={
            "X-Forwarded-For": "198.51.100.1, 203.0.113.9",
            "X-Forwarded-Proto": "https",
            "X-Forwarded-Host": "survey.example.org",
        },
    )
    assert requests == [("203.0.113.9", "survey.example.org", True)]


RETURNED_FORMS = ("invite", "schedule")


@pytest.mark.security
def test_csrf_every_unsafe_route_rejects_requests_without_a_token(app, signed_in, store, small):
    values = {"slug": "small", "version": 1, "researcher": 1, "token": "t"}
    values |= {"key": 1, "language": "es", "number": 1}
    unsafe = [rule for rule in app.url_map.iter_rules() if "POST" in rule.methods]
    reports = [rule.rule for rule in unsafe if not rule.rule.startswith("/research/")]
    assert reports == ["/s/<survey:slug>/reports", "/s/<survey:slug>/field"]
    assert len(unsafe) > 10
    with app.test_request_context():
        paths = [
            url_for(rule.endpoint, **{name: values[name] for name in rule.arguments})
            for rule in unsafe
            if rule.rule not in reports
        ]
    # Drafts and long forms return the input to its author with status 409 and change nothing.
    returning = (
        "/research/drafts/",
        *(f"/research/surveys/small/collect/{n}" for n in RETURNED_FORMS),
    )
    expected = [409 if path.startswith(returning) else 400 for path in paths]
    assert [signed_in.post(path).status_code for path in paths] == expected
    assert store.drafts() == []
    assert [survey.state for survey in store.surveys()] == ["open"]
    assert not any(rule.methods & {"PUT", "PATCH", "DELETE"} for rule in app.url_map.iter_rules())


def test_signing_in_never_leads_to_another_site(client, researcher):
    for target in (
        "https://elsewhere.example/",
        "//elsewhere.example/",
        "/\\elsewhere.example",
        "/s/small",
        "/research/%0d%0aX:1",
        "/research/?a%0aSet-Cookie:b",
        "//x/research/?a=b",
        "/research",
    ):
        location = sign_in(client, next_page=target).headers["Location"]
        assert location == "/research/", target


def test_signing_in_returns_to_the_page_that_required_it(client, researcher):
    assert sign_in(client, next_page="/research/publish").headers["Location"] == "/research/publish"


# -- publishing


VIEW = "/research/surveys/small/explore?first=slept&second=works&level=0.99&question=a%20%26%2B"


def test_a_shared_view_opens_with_its_options_after_signing_in(client, researcher, small):
    requested = client.get(VIEW)
    assert requested.headers["Location"].startswith("/research/sign-in?next=")
    response = send(client, requested.headers["Location"], email=EMAIL, password=PASSWORD)
    assert response.headers["Location"] == VIEW


PROTECTED = SMALL.replace('"3/4"', '"3/5"')
"""The small survey with whole reports of a factor of 9 instead of 36."""


def test_a_definition_is_published_from_the_form(signed_in, store):
    response = publish_file(signed_in, PROTECTED.encode())
    assert response.status_code == 302
    assert store.versions("small")[0].state == "open"
    assert "A small survey" in signed_in.get("/research/").text


def test_a_file_with_warnings_becomes_a_draft_that_can_be_published_unchanged(signed_in, store):
    reworded = PROTECTED.replace(
        "Did anybody press you to stay longer?", "Do you fall asleep at work?"
    )
    for text, warning in (
        (SMALL, "one complete response changes the odds by a factor of at most 36"),
        (PROTECTED.replace("3/5", "0.9"), "“Did you fall asleep at work?” alone changes the odds"),
        (reworded, "“Did you fall asleep at work?” and “Do you fall asleep at work?” are nearly"),
    ):
        response = publish_file(signed_in, text.encode())
        assert store.surveys() == [], text
        page = html.unescape(signed_in.get(response.location).text)
        assert warning in page
        assert "Not published yet." in page
        # The remedy is one click away.
        assert ("Ask each person 1 of 2 questions" in page) == (text != reworded), text
    revision = re.search(r'name="revision"[^>]*value="(\d+)"', page)[1]
    send(signed_in, response.location, agreed="y", revision=revision)
    (published,) = store.versions("small")
    assert published.canonical == freeze(load(reworded.encode(), "s.toml", Caps()), 1).canonical
    # A question of another survey of the team; its own earlier version does not count.
    other = PROTECTED.replace('"small"', '"other"').replace("press you", "urge you")
    response = publish_file(signed_in, other.encode())
    page = html.unescape(signed_in.get(response.location).text)
    assert (
        "is nearly equal to “Did you fall asleep at work?” in the survey “A small survey”" in page
    )
    assert publish_file(signed_in, PROTECTED.encode()).location == "/research/surveys/small/collect"


def test_every_error_is_shown_and_nothing_is_published(signed_in, store):
    invalid = SMALL.replace('truth_probability = "3/4"', "truth_probability = 0.2")
    response = publish_file(signed_in, invalid.encode())
    assert response.status_code == 422
    assert "page 1, question 1 (fell_asleep)" in response.text
    assert "page 2, question 1 (pressure)" in response.text
    assert "0.334" in response.text
    assert store.surveys() == []


def test_publishing_the_same_definition_twice_is_rejected(signed_in):
    publish_file(signed_in, PROTECTED.encode())
    assert "is already published" in publish_file(signed_in, PROTECTED.encode()).text


def test_publishing_a_weak_definition_twice_is_rejected_before_the_warnings(signed_in, small):
    assert "is already published" in publish_file(signed_in, SMALL.encode()).text


def test_a_missing_file_is_an_error_beside_the_field(signed_in):
    page = signed_in.get("/research/publish")
    response = signed_in.post("/research/publish", data={"csrf_token": token(page)})
    assert response.status_code == 422
    assert "Choose a definition file" in response.text


def test_a_huge_upload_is_413(signed_in):
    response = signed_in.post(
        "/research/publish", data=b"x" * 2_000_000, content_type="multipart/form-data; boundary=b"
    )
    assert response.status_code == 413


# -- results


def test_an_empty_survey_states_that_there_are_not_enough_responses(signed_in, small):
    page = signed_in.get("/research/surveys/small/1")
    assert page.status_code == 200
    assert page.text.count("Not enough responses yet") == 2
    assert "<figure" not in page.text


def test_a_survey_without_reports_states_how_many_are_needed(signed_in, small):
    page = signed_in.get("/research/surveys/small/1").text
    assert len(re.findall(r"Not enough responses yet: about [\d,]+ more needed\.", page)) == 2


def test_a_suppressed_question_states_how_many_more_are_needed(signed_in, store, small):
    add_released(store, small, 40)
    page = signed_in.get("/research/surveys/small/1")
    assert re.search(r"about\s+[\d,]+ more needed", page.text)


def test_the_dashboard_has_a_chart_and_a_table_per_question(signed_in, store, small):
    add_released(store, small, 3000)
    page = signed_in.get("/research/surveys/small/1").text
    assert page.count('<div class="bars">') == page.count("<table") == 2
    assert "style=" not in page
    for words in (
        "Privacy loss of one complete response: ε 3.584 (weak).",
        "by a factor of at most 36. A suspicion of 10% becomes at most 80%, one of 50% becomes",
        "privacy moderate (ε&nbsp;1.792)",
    ):
        assert words in page
    # The mechanism is one click away: beside an estimate, its figures are misquoted.
    assert "truth probability" not in page
    assert "Share of reports" not in page
    alone = signed_in.get("/research/surveys/small/1/questions/fell_asleep").text
    assert "This question alone: moderate protection (ε 1.792), odds factor at most 6" in alone
    assert "truth probability 0.750" in alone
    assert "Share of reports" in alone
    assert alone.count('/methods#mechanism-grr">Method<') == 1


def bars_of(page: str) -> list[tuple[str, str, list[str]]]:
    """Return label, words and the positions of the ends of the interval of every bar."""
    return [
        (
            re.search(r'class="answer"[^>]*>([^<]*)', item)[1],
            " ".join(re.sub(r"<[^>]+>", " ", item[item.index('class="value">') + 14 :]).split()),
            re.findall(r'<rect class="end" x="([\d.]+)%"', item),
        )
        for item in re.findall(
            r"<li(?: class=\"[a-z]+\")?>\s*<span class=\"answer.*?</li>", page, re.S
        )
    ]


FOUR = """
slug = "four"
title = "Four"
epsilon = 3
[[questions]]
id = "often"
type = "single_choice"
text = "How often?"
options = [
  {id = "never", label = "Never"}, {id = "once", label = "Once"}, {id = "often", label = "Often"},
]
"""


def test_bars_are_sorted_and_end_at_their_intervals_with_opt_outs_last(signed_in, store):
    survey = publish(store, load(FOUR.encode(), "four.toml", Caps()), TODAY)
    add_reports(store, survey, 3000, (0.1, 0.3, 0.2, 0.4))
    result = ResultCache(store).result(survey).question("often")
    rows = {row.option_label: row for row in result.shares}
    bars = bars_of(signed_in.get("/research/surveys/four/1").text)
    assert [bar[0] for bar in bars] == ["Once", "Often", "Never", "Prefer not to say"]
    end = 0.25 * -(-max(row.conf_high for row in rows.values()) // 0.25)
    for label, words, places in bars:
        row = rows[label]
        assert words == " ".join(
            filter(None, share_texts(row.estimate, row.conf_low, row.conf_high))
        )
        low, high = (100 * value / end for value in (row.conf_low, row.conf_high))
        assert [float(place) for place in places] == pytest.approx([low, high], abs=0.01)


@pytest.mark.security
def test_the_results_state_the_limits_of_a_release(signed_in, store, small):
    add_released(store, small, 3000)
    results = "/research/surveys/small/1"
    for page in (results, f"{results}/questions/fell_asleep"):
        assert (
            "This hides each response among the others, but not from a person who sends all "
            "the others."
        ) in " ".join(signed_in.get(page).text.split()), page


def test_the_page_warns_that_an_open_link_can_be_used_repeatedly(signed_in, store, small):
    page = signed_in.get("/research/surveys/small/1").text
    assert "Anyone with the link can respond, even more than once." in page
    invited = SMALL.replace('slug = "small"', 'slug = "invited"\naccess = "invitation"')
    publish(store, load(invited.encode(), "s.toml", Caps()), TODAY)
    page = signed_in.get("/research/surveys/invited/1").text
    assert "Each invitation allows one response." in page
    assert "more than once" not in page


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


EVERY = """
slug = "every"
title = "Every kind of figure"
epsilon = 3
[[pages]]
[[pages.questions]]
id = "often"
type = "single_choice"
text = "How often?"
options = [{id = "never", label = "Never"}, {id = "once", label = "Once"}]
[[pages.questions]]
id = "where"
type = "multiple_choice"
text = "Where?"
options = [{id = "home", label = "At home"}, {id = "work", label = "At work"}]
[[pages.questions]]
id = "mood"
type = "scale"
text = "How are you?"
low = 1
high = 5
[[pages.questions]]
id = "hours"
type = "number"
text = "How many hours?"
low = 0
high = 6
mechanism = "square_wave"
epsilon = 6
unit = "hours"
"""
READINGS = [
    {},
    {"level": "0.9"},
    {"level": "0.99", "simultaneous": "1"},
    {"interval": "wilson"},
    {"target": "respondents"},
]


@pytest.fixture
def every(store):
    survey = publish(store, load(EVERY.encode(), "every.toml", Caps(survey=20)), TODAY)
    add_reports(store, survey, 2500)
    return survey


def table_rows(page: str) -> list[str]:
    """Return the text of every table row of a page."""
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.S)
    return [" ".join(html.unescape(re.sub(r"<[^>]+>", " ", row)).split()) for row in rows]


def options_of(reading: dict[str, str]) -> list[str]:
    """Return the command's options that correspond to a link's query."""
    return [
        word
        for name, value in reading.items()
        for word in ([f"--{name}"] if name == "simultaneous" else [f"--{name}", value])
    ]


@pytest.mark.parametrize(
    "readings",
    [READINGS[:2], pytest.param(READINGS[2:], marks=pytest.mark.long)],
    ids=["usual", "others"],
)
def test_every_figure_is_the_same_on_page_in_csv_in_json_and_in_the_terminal(
    signed_in, store, every, settings, monkeypatch, readings
):
    monkeypatch.setenv("SURVEY_DATABASE", settings.database)
    for reading in readings:
        check_figures(signed_in, ResultCache(store).result(every, parse_options(reading)), reading)


def check_figures(signed_in, result, reading):
    """Compare page, CSV, JSON and terminal output with the same options."""
    address = "/research/surveys/every/1"
    page = signed_in.get(address, query_string=reading).text
    download = signed_in.get(f"{address}/estimates.csv", query_string=reading).text

    def run(command, *options):
        response = CliRunner().invoke(main, [command, "every", *options_of(reading), *options])
        return response.stdout_bytes.decode()

    without_clock = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
    for text in (run("export"), run("estimate", "--csv")):
        assert without_clock.sub("", text) == without_clock.sub("", download)
    csv_rows = rows_of(download)
    for json_row, csv_row in zip(json.loads(run("estimate", "--json")), csv_rows, strict=True):
        assert {
            k: "" if v is None else str(v) for k, v in json_row.items() if k != "generated_at"
        } == {k: v for k, v in csv_row.items() if k != "generated_at"}
    # The machine-readable outputs agree; now compare the page with the terminal.
    lines, printed = table_rows(page), run("estimate")
    assert len(result.rows) == len(csv_rows)
    n_estimates = 0
    for question in result.questions:
        for row in question.rows:
            if row.estimate is None:
                continue
            n_estimates += 1
            assert re.search(
                rf"^  {re.escape(row_label(row))} +{re.escape(question.describe(row))}$",
                printed,
                re.M,
            )
            words = question.describe(row).removeprefix("estimated ")
            estimate, _, ends = words.partition(", ")
            ends = ends.removeprefix("between ").replace(" and ", " to ")
            unit = question.number_format(row).unit if row.statistic != "share" else ""
            figures = f"{estimate} {ends}".removesuffix(f" {unit}" if unit else "")
            if "no other value" in ends:
                figures = f"{estimate} only {estimate.removesuffix(f' {unit}')}"
            assert any(item.startswith(row_label(row)) and figures in item for item in lines), (
                row_label(row),
                figures,
            )
        alone = signed_in.get(f"{address}/questions/{question.question.id}", query_string=reading)
        for remark in (*question.remarks, *question.caveats(closed=False)):
            assert remark in html.unescape(alone.text)
            assert f"  {remark}\n" in printed
    assert n_estimates > 20


def test_invalid_options_in_a_link_are_rejected_with_the_reason(signed_in, small):
    for query, words in (
        ("level=1", "level = 1 must be from 0.5 to 0.999"),
        ("level=much", "must be a number"),
        ("level=٠.٩", "level = '٠.٩' must be a number, for example 0.95"),
        ("level=0_9", "must be a number"),
        ("interval=wald", "must be one of feldman-cousins"),
        ("simultaneous=2", "must be 1 or 0"),
        ("target=all", "must be one of population, respondents"),
        ("target=respondents&interval=wilson", "applies to the population only"),
    ):
        for path in ("", "/1", "/1/estimates.csv"):
            response = signed_in.get(f"/research/surveys/small{path}?{query}")
            assert response.status_code == 422, (path, query)
            assert words in html.unescape(response.text), (path, query)


def test_the_link_without_a_version_leads_to_the_newest_with_the_same_options(signed_in, small):
    address = "/research/surveys/small"
    for query in ("", "?level=0.99&simultaneous=1", "?target=respondents", "?interval=wilson"):
        response = signed_in.get(address + query)
        assert (response.status_code, response.location) == (302, f"{address}/1{query}")
    assert signed_in.get(f"{address}?level=0.95&unrelated=x").location == f"{address}/1"
    assert signed_in.get("/research/surveys/none?level=0.9").status_code == 404


def test_links_to_other_levels_keep_the_other_options(signed_in, store, small):
    add_released(store, small, 3000)
    page = signed_in.get("/research/surveys/small/1?level=0.9").text
    links = [html.unescape(link) for link in re.findall(r'href="([^"]+)"', page)]
    address = "/research/surveys/small/1"
    for query in ("", "?level=0.99", "?level=0.9&simultaneous=1", "?level=0.9&target=respondents"):
        assert f"{address}{query}" in links
    assert f"{address}/estimates.csv?level=0.9" in links
    assert re.findall(r'aria-current="true">([^<]+)<', page) == [
        "90%",
        "per estimate",
        "population",
        "Feldman-Cousins (default)",
    ]
    assert "90% interval" in page
    assert "95% interval" not in page
    assert "<script>" not in page


def test_the_csv_has_fixed_columns_for_all_data(signed_in, store, small):
    empty = signed_in.get("/research/surveys/small/1/estimates.csv")
    add_released(store, small, 3000)
    full = signed_in.get("/research/surveys/small/1/estimates.csv")
    header = (
        "survey_id,survey_version,wave,stratum,bucket,question_id,question_text,option_id,"
        "option_label,statistic,base,n_reports,report_count,report_share,estimate,mle,"
        "std_error,conf_low,conf_high,conf_level,n_effective,method,mechanism,"
        "truth_probability,n_options,epsilon,flag,generated_at,app_version"
    )
    assert empty.text.splitlines()[0] == full.text.splitlines()[0] == header
    # Three options per question, then the two answers of the first question among answerers.
    bases = [row["base"] for row in rows_of(full.text)]
    assert bases == ["all"] * 3 + ["answered"] * 2 + ["all"] * 3
    assert bases == [row["base"] for row in rows_of(empty.text)]
    assert {row["flag"] for row in rows_of(empty.text)} == {"suppressed"}
    assert {row["estimate"] for row in rows_of(empty.text)} == {""}
    assert full.headers["Content-Disposition"] == 'attachment; filename="small-1-estimates.csv"'


@pytest.mark.security
def test_small_groups_one_more_report_changes_no_published_result(signed_in, store, small):
    add_released(store, small, 3000)
    address = "/research/surveys/small/1"
    before = [signed_in.get(address).data, signed_in.get(f"{address}/estimates.csv").data]
    store.add_reports(
        [(small.key, StoredReport(os.urandom(16), "", b"\x00\x00")) for _ in range(24)]
    )
    after = [signed_in.get(address).data, signed_in.get(f"{address}/estimates.csv").data]

    def without_token(page):
        return re.sub(rb'name="csrf_token"[^>]*>', b"", page)

    assert [without_token(page) for page in before] == [without_token(page) for page in after]


def test_results_are_computed_once_per_release(store, small, monkeypatch):
    add_released(store, small, 100)
    results, wide = ResultCache(store), IntervalOptions(level=0.99)
    assert results.result(small) is results.result(small)
    assert results.result(small, wide) is results.result(small, wide) is not results.result(small)
    add_released(store, small, 100)
    assert results.result(small).n == results.result(small, wide).n == 200


ANALYSES = (
    (CROSSTAB, CrosstabRequest("fell_asleep", "pressure")),
    (REGRESSION, RegressionRequest("fell_asleep", ("pressure",))),
    (WEIGHTING, WeightingRequest("pressure", "answer:fell_asleep", "yes,40\nno,60")),
)


def test_cross_tabs_regressions_and_weighting_are_computed_once_per_release(store, small):
    add_released(store, small, 100)
    results, options = ResultCache(store), IntervalOptions()
    for analysis, asked in ANALYSES:
        first = analysis.compute(results, small, asked, options)
        assert analysis.compute(results, small, asked, options) is first, analysis.name
        assert analysis.compute(results, small, asked, IntervalOptions(level=0.9)) is not first
        add_released(store, small, 100)
        assert analysis.compute(results, small, asked, options) is not first, analysis.name


def test_concurrent_readers_of_the_same_result_share_one_computation(store, small):
    results, computations, barrier = ResultCache(store), [], threading.Barrier(4)

    def compute(*arguments):
        computations.append(arguments)
        time.sleep(0.05)
        return len(computations)

    def read(_):
        barrier.wait()
        return results.analysis(compute, small, CrosstabRequest(), IntervalOptions())

    with ThreadPoolExecutor(4) as readers:
        assert list(readers.map(read, range(4))) == [1] * 4


def test_the_cache_of_results_has_a_maximum_size(store, small):
    results = ResultCache(store)
    for place in range(CACHE_SIZE + 5):
        results.result(small, IntervalOptions(level=0.5 + place / 1000))
    assert len(results._entries) == CACHE_SIZE


@pytest.mark.security
def test_markup_in_question_texts_is_escaped(signed_in, store):
    attack = PROTECTED.replace("Did you fall asleep at work?", "<script>alert(1)</script>").replace(
        "Never", "<img src=x onerror=alert(1)>"
    )
    publish_file(signed_in, attack.encode())
    add_released(store, store.versions("small")[0], 3000)
    page = signed_in.get("/research/surveys/small/1").text
    assert "<script>alert" not in page
    assert "<img src=x" not in page


def test_an_unknown_survey_or_version_is_404(signed_in, small):
    for path in ("/research/surveys/none", "/research/surveys/small/9"):
        assert signed_in.get(path).status_code == 404


@pytest.mark.security
@pytest.mark.web
def test_logins_take_the_same_time_after_the_password_cost_was_raised_and_renew_the_hash(
    store, settings
):
    store.add_researcher(EMAIL, Passwords(1).hash(PASSWORD))
    passwords = Passwords(3)
    costs = []
    passwords._spend = costs.append
    assert not passwords.verify(store.researcher(EMAIL), "wrong")
    assert not passwords.verify(None, "wrong")
    assert costs == [2, 0]
    raised = create_app(replace(settings, password_cost=3), store).test_client()
    assert sign_in(raised).status_code == 302
    (now,) = {extract_parameters(store.researcher(EMAIL).password_hash).time_cost}
    assert now == 3
    assert sign_in(raised).status_code == 302


@pytest.mark.security
def test_logins_hash_is_not_renewed_over_a_password_that_was_changed_meanwhile(store, researcher):
    before = store.researcher(EMAIL)
    store.set_password(EMAIL, Passwords(1).hash("another password"))
    store.renew_hash(before, Passwords(1).hash(PASSWORD))
    assert Passwords(1).verify(store.researcher(EMAIL), "another password")


@pytest.mark.security
def test_logins_of_an_unknown_researcher_cost_one_password_hash_like_a_known_one(store):
    passwords = Passwords(1)
    store.add_researcher(EMAIL, passwords.hash(PASSWORD))
    verified = []
    hasher = passwords._hasher
    passwords._hasher = SimpleNamespace(
        verify=lambda hashed, password: verified.append(hashed) or hasher.verify(hashed, password)
    )
    assert not passwords.verify(None, PASSWORD)
    assert not passwords.verify(store.researcher(EMAIL), "wrong")
    assert passwords.verify(store.researcher(EMAIL), PASSWORD)
    parameters = {hashed.rsplit("$", 2)[0] for hashed in verified}
    assert len(verified) == 3
    assert len(parameters) == 1
