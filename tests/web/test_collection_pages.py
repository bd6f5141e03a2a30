"""The collection pages: survey link, invitations, schedule, releases and closing."""

from __future__ import annotations

import csv
import html
import io
import re
from datetime import UTC, date, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from survey.collect.incoming_reports import Intake
from survey.collect.publication import close, publish
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import Plan, Schedule, find_survey
from survey.store.field_boxes import seal_box
from tests.collect.test_incoming_reports import body
from tests.conftest import SMALL, TODAY
from tests.store.reports import add, keeper_at, random_reports
from tests.store.tablets import publish_for_tablets
from tests.web.researchers import send, sign_in, token

PAGE = "/research/surveys/small/collect"


@pytest.fixture
def owner(client, researcher, small):
    assert sign_in(client).status_code == 302
    return client


def do(client, action: str, **data):
    return send(client, f"{PAGE}/{action}", page=PAGE, **data)


def test_the_open_link_is_shown_as_text(owner, small):
    assert f"/s/small#d={small.sha256[:32]}" in owner.get(PAGE).text


@pytest.mark.security
def test_invitations_are_downloaded_once_and_each_admits_one_report(owner, store, small):
    download = do(owner, "invite", count="30", stratum="Köln")
    assert download.content_type == "text/csv; charset=utf-8"
    assert "small-invitations.csv" in download.headers["Content-Disposition"]
    assert download.headers["Cache-Control"] == "no-store"
    rows = list(csv.DictReader(io.StringIO(download.text)))
    assert len(rows) == 30
    assert {row["stratum"] for row in rows} == {"Köln"}
    fragment = parse_qs(urlsplit(rows[0]["link"]).fragment)
    report = body(small, stratum="Köln", invitation=fragment["i"][0])
    Intake(store).receive("small", report, TODAY)
    assert store.n_pending(small.key) == 1
    assert fragment["i"][0] not in owner.get(PAGE).text


def test_an_invalid_invitation_is_rejected_beside_its_field(owner, store, small):
    for data, words in (
        ({"count": "0"}, "from 1 to 100,000"),
        ({"count": ""}, "the number of people"),
        ({"count": "many"}, "Not a valid integer"),
        ({"count": "9" * 400}, "from 1 to 100,000"),
        ({"count": "5", "stratum": "north"}, "the minimum is 25"),
        ({"count": "30", "stratum": "other groups"}, "choose another name"),
        ({"count": "30", "stratum": "a\nb"}, "stratum"),
        ({"count": "30", "stratum": "n" * 61}, "longer than 60"),
    ):
        response = do(owner, "invite", **data)
        assert response.status_code == 422, data
        assert words in response.text, data
        assert store.n_invited(small.key, data.get("stratum", "")) == 0, data


def hidden_fields(client) -> dict[str, str]:
    """Return the hidden fields of the invitation form."""
    page = client.get(PAGE)
    form_id = re.findall(r'name="made" type="hidden" value="([^"]*)"', page.text)[-1]
    return {"csrf_token": token(page), "made": html.unescape(form_id)}


def test_an_invitation_form_sent_twice_creates_links_once_and_shows_a_message(owner, store, small):
    do(owner, "invite", count="25", stratum="Köln")
    form = {**hidden_fields(owner), "count": "30", "stratum": "Köln"}
    assert owner.post(f"{PAGE}/invite", data=form).content_type.startswith("text/csv")
    again = owner.post(f"{PAGE}/invite", data=form)
    assert again.status_code == 409
    assert "No invitations were created" in again.text
    assert store.n_invited(small.key, "Köln") == 55
    other_form = {**form, "stratum": "Bonn"}
    assert owner.post(f"{PAGE}/invite", data=other_form).status_code == 200
    new_form = {**hidden_fields(owner), "count": "30", "stratum": "Köln"}
    assert owner.post(f"{PAGE}/invite", data=new_form).status_code == 200
    assert store.n_invited(small.key, "Köln") == 85


@pytest.mark.security
def test_a_survey_for_shared_devices_offers_and_creates_no_invitations(owner, store):
    shared = publish(store, load(f"kiosk = true\n{SMALL}".encode(), "s.toml", Caps()), TODAY)
    page = owner.get(PAGE).text
    assert "on which the next person could use an invitation" in page
    assert f'action="{PAGE}/invite"' not in page
    refused = send(owner, f"{PAGE}/invite", page=f"{PAGE}", count="30", stratum="")
    assert refused.status_code == 422
    assert store.n_invited(shared.key, "") == 0


@pytest.fixture
def for_tablets(owner, store, tmp_path):
    return publish_for_tablets(store, tmp_path)


def test_the_link_for_tablets_and_its_last_day_are_shown(owner, for_tablets):
    page = owner.get(PAGE).text
    assert f"/field/#slug=small&amp;d={for_tablets.sha256[:32]}" in page
    assert f"until {for_tablets.definition.field.until}" in page
    assert "Responses that are still on tablets will be lost" in page


def test_a_tablets_file_is_imported_once_and_other_files_are_rejected(owner, store, for_tablets):
    definition = for_tablets.definition
    box = seal_box(definition, bytes(definition.report_bytes))
    content = f"survey-field 1 small {for_tablets.sha256}\n".encode() + box
    for _ in range(2):
        page = do(owner, "tablet", file=(io.BytesIO(content), "field-small.queue"))
        assert page.status_code == 302
        assert "Imported the whole file (1 slot)" in owner.get(PAGE).text
    assert store.n_pending(for_tablets.key) == 1
    for wrong in (b"x", content.replace(b"small", b"other"), content + b"x"):
        page = do(owner, "tablet", file=(io.BytesIO(wrong), "x"))
        assert page.status_code == 422
    assert store.n_pending(for_tablets.key) == 1


def test_a_survey_does_not_close_before_the_last_day_of_its_tablets(owner, store, for_tablets):
    early = for_tablets.definition.field.until - timedelta(days=1)
    page = do(owner, "schedule", opens="", closes=str(early), most="")
    assert page.status_code == 422
    assert "its tablets may upload responses until" in page.text
    assert store.versions("small")[0].schedule.closes is None


def test_the_button_of_a_planned_group_creates_its_links_once(owner, store, small):
    store.set_plan(small.key, Plan(0, {"Köln": 30, "Bonn": 30}))
    page = owner.get(PAGE)
    for stratum, status in (("Köln", 200), ("Bonn", 200), ("Köln", 409)):
        markup = page.text[: page.text.index(f" for {stratum}<")].rpartition("<form")[2]
        form = dict(re.findall(r'name="(\w+)"[^>]*? value="([^"]*)"', markup))
        form = {name: html.unescape(value) for name, value in form.items()}
        assert form["count"] == "30"
        assert owner.post(f"{PAGE}/invite", data=form).status_code == status
    assert store.n_invited_by_stratum(small.key) == {"Köln": 30, "Bonn": 30}


@pytest.mark.parametrize(
    ("action", "typed"),
    [
        ("schedule", {"opens": "2090-01-01", "closes": "2090-02-03", "most": "500"}),
        ("invite", {"count": "30", "stratum": "Köln & Bonn"}),
    ],
)
def test_form_input_is_returned_after_the_session_expires(
    owner, store, small, researcher, action, typed
):
    form = {**hidden_fields(owner), **typed}
    for session in store.sessions(store.researcher(researcher).key):
        store.end_session(session.token_hash)
    response_401 = owner.post(f"{PAGE}/{action}", data=form)
    assert response_401.status_code == 401
    assert "You are signed out" in response_401.text
    again = dict(re.findall(r'<textarea name="(\w+)" hidden>\n(.*?)</textarea>', response_401.text))
    assert {name: html.unescape(again[name]) for name in typed} == typed
    assert "made</dt>" not in response_401.text
    sign_in(owner)
    again = {name: html.unescape(value) for name, value in again.items()}
    response = owner.post(f"{PAGE}/{action}", data={**again, "csrf_token": token(owner.get(PAGE))})
    assert response.status_code == (302 if action == "schedule" else 200)
    if action == "schedule":
        assert find_survey(store, "small").schedule.maximum == 500
    else:
        assert store.n_invited(small.key, "Köln & Bonn") == 30


def test_the_field_of_a_survey_without_response_limit_is_empty(owner):
    field = re.search(r'<input[^>]*name="most"[^>]*>', owner.get(PAGE).text)
    assert field
    assert 'value=""' in field[0]


def test_dates_and_a_limit_are_saved_shown_and_removed(owner, store):
    first = datetime.now(UTC).date()
    last = first + timedelta(days=30)
    response = do(owner, "schedule", opens=first.isoformat(), closes=last.isoformat(), most="500")
    assert response.status_code == 302
    assert find_survey(store, "small").schedule == Schedule(first, last, 500)
    assert f'value="{last.isoformat()}"' in owner.get(PAGE).text
    do(owner, "schedule", opens="", closes="", most="")
    assert find_survey(store, "small").schedule == Schedule()


def test_an_invalid_schedule_is_rejected_with_the_reason(owner, store):
    for data, words in (
        ({"opens": "2030-01-02", "closes": "2030-01-01"}, "before it opens"),
        ({"closes": "2020-01-01"}, "has passed"),
        ({"opens": "2020-01-01"}, "has passed; leave this empty to open at once"),
        ({"closes": "31.12.2030"}, "Not a valid date"),
        ({"most": "-1"}, "Enter a number from 0"),
        ({"most": "9" * 400}, "Enter a number from 0"),
    ):
        response = do(owner, "schedule", **data)
        assert response.status_code == 422, data
        assert words in response.text, data
        assert find_survey(store, "small").schedule == Schedule(), data


def test_an_opening_date_in_the_past_is_accepted_if_unchanged(owner, store, small):
    store.set_schedule(small.key, Schedule(date(2020, 1, 1)))
    response = do(owner, "schedule", opens="2020-01-01", closes="", most="500")
    assert response.status_code == 302
    assert find_survey(store, "small").schedule == Schedule(date(2020, 1, 1), None, 500)


def test_pending_reports_are_never_counted_and_no_button_releases_them(owner, store, small):
    before = re.sub(r'value="[^"]*"', "", owner.get(PAGE).text.partition("<main")[2])
    add(store, small, random_reports(24))
    # Exclude attribute values: random tokens differ.
    assert re.sub(r'value="[^"]*"', "", owner.get(PAGE).text.partition("<main")[2]) == before
    assert re.search(r"Next release: \d{4}-\d\d-\d\d \d\d:00 UTC", before)
    assert owner.post(f"{PAGE}/release", data=hidden_fields(owner)).status_code in (404, 405)
    assert store.n_released(small.key) == 0


@pytest.mark.security
def test_the_page_states_the_limits_of_a_release(owner):
    text = " ".join(owner.get(PAGE).text.split())
    assert (
        "A release hides each response among the others of its group. If one person sends all "
        "the others, only the randomization protects the remaining response."
    ) in text


def test_released_reports_are_counted_by_group_and_small_groups_are_published_together(
    owner, store, small, settings
):
    for stratum, n in (("", 60), ("north", 30), ("east", 20), ("west", 14)):
        add(store, small, random_reports(n, stratum))
    keeper_at(store, settings, 1).work()
    page = owner.get(PAGE).text
    # A survey whose reports all came by one link has no table of groups.
    assert not re.search(">(open link|north|east|west|other groups)<", page)
    assert store.n_released(small.key) == 25
    close(store, "small", TODAY)
    keeper_at(store, settings, 2).work()
    page = owner.get(PAGE).text
    assert ">open link<" in page
    assert ">north<" in page
    assert ">other groups<" in page
    assert not re.search(">(east|west)<", page)
    assert ">34<" in page


def test_a_survey_is_closed_after_its_slug_is_typed(owner, store, small):
    response = do(owner, "close", name="smal")
    assert response.status_code == 422
    assert "Type small to close the survey" in response.text
    assert find_survey(store, "small").state == "open"
    assert do(owner, "close", name="small").status_code == 302
    assert find_survey(store, "small").state == "closed"
    page = owner.get(PAGE).text
    assert "accepts no responses" in page
    assert "Create and download links" not in page


def test_a_closed_survey_gets_no_invitations_or_schedule(owner, store, small):
    page = owner.get(PAGE)
    store.close_survey("small", TODAY)
    assert send(owner, f"{PAGE}/invite", page="/research/publish", count="9").status_code == 410
    assert page.status_code == 200


def test_an_invitation_survey_shows_no_open_link(client, researcher, store):
    toml = f'access = "invitation"\n{SMALL}'
    publish(store, load(toml.encode(), "s.toml", Caps()), date.today())
    sign_in(client)
    assert "#d=" not in client.get(PAGE).text


def test_collection_actions_are_logged(owner):
    do(owner, "invite", count="25")
    do(owner, "close", name="small")
    page = owner.get("/research/surveys/small/team/log").text
    assert "created invitations" in page
    assert "closed" in page
