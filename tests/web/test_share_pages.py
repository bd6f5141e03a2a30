"""The Share page of a survey, and its results as readers without an account see them."""

from __future__ import annotations

import html
import io
import re
import time
from dataclasses import replace
from datetime import date, timedelta

import pytest
import segno
from PIL import Image
from pypdf import PdfReader

from survey.collect.publication import close, publish
from survey.collect.release import utc_today
from survey.collect.release_notices import webhook_secret
from survey.questionnaire.loading import load
from survey.respondent_texts import LANGUAGES
from survey.security import hash_of
from survey.settings import Caps
from survey.store import Schedule, find_survey
from tests.conftest import EMAIL, SMALL, TODAY
from tests.store.reports import add, random_reports
from tests.web.researchers import People, send, sign_in
from tests.web.routes import LOOK, add_links

SHARE = "/research/surveys/small/share"
PUBLIC = "/research/public/small"
FIGURE = f"{PUBLIC}/1/figures/fell_asleep-shares.svg"
LATER = utc_today() + timedelta(7)


@pytest.fixture
def owner(client, researcher, small):
    assert sign_in(client).status_code == 302
    return client


@pytest.fixture
def stranger(app):
    return app.test_client()


def do(client, action: str, **data):
    return send(client, f"{SHARE}/{action}", page=SHARE, **data)


def dark_modules(png: bytes) -> list[list[bool]]:
    """Return the rows of a QR code without its border; a module is 10 pixels wide."""
    image = Image.open(io.BytesIO(png)).convert("L")
    places = range(45, image.width - 40, 10)
    return [[image.getpixel((x, y)) < 128 for x in places] for y in places]


def new_link(owner, label: str = "Ministry", day: date = LATER) -> str:
    """Create a link to the results and return its path."""
    page = do(owner, "links", label=label, expires=day.isoformat())
    assert page.status_code == 200
    return re.search(
        r'id="new-link" readonly value="http://[^/]+(/research/results/[^"]+)"', page.text
    )[1]


def fields(page: str) -> dict[str, str]:
    """Return the texts of a page's read-only fields by id."""
    inputs = re.findall(r'<input id="([^"]+)"[^>]* value="([^"]*)"', page)
    areas = re.findall(r'<textarea id="([^"]+)"[^>]*>\n(.*?)</textarea>', page, re.DOTALL)
    return {name: html.unescape(text) for name, text in [*inputs, *areas]}


# -- for respondents


def test_the_open_link_is_shared_as_text_qr_codes_and_email(owner, store, small):
    store.set_schedule(small.key, Schedule(None, LATER, 900))
    page = owner.get(SHARE).text
    texts = fields(page)
    link = texts["link-text"]
    assert link.endswith(f"/s/small#d={small.sha256[:32]}")
    assert link in texts["email-text"]
    assert str(LATER) in texts["email-text"]
    assert "a suspicion of 10% about you becomes at most" in texts["email-text"]
    assert f"Last day: {LATER}." in page
    assert "Response limit: 900." in page
    image = owner.get(f"{SHARE}/link.png")
    assert image.content_type == "image/png"
    assert dark_modules(image.data) == [
        list(map(bool, row)) for row in segno.make(link, error="q").matrix
    ]
    drawing = owner.get(f"{SHARE}/link.svg").text
    inline = re.search(r'class="qrline" stroke="#000" d="([^"]+)"', page)[1]
    assert f'd="{inline}"' in drawing
    assert owner.get(f"{SHARE}/link.gif").status_code == 404


@pytest.mark.web
def test_a_poster_is_one_page_with_the_address_and_the_protection(owner, store):
    for title in (
        "A survey",
        "A survey of the people in this hospital, in short words, all",
        "Schifffahrt " * 25,
    ):
        toml = SMALL.replace("A small survey", title).encode()
        survey = publish(store, load(toml, "s.toml", Caps()), TODAY)
        store.set_schedule(survey.key, Schedule(None, LATER, 0))
        pages = PdfReader(io.BytesIO(owner.get(f"{SHARE}/poster-a4.pdf").data)).pages
        assert len(pages) == 1
        text = " ".join(pages[0].extract_text().split())
        protection = "a suspicion of 10% about you becomes at most 80%."
        for part in (survey.definition.title, ":8000/s/small", f"until {LATER}", protection):
            assert part.strip() in text
        assert "#d=" not in text


def box(page) -> tuple[int, int]:
    """Return the size of a page in millimetres."""
    return tuple(round(float(side) / 72 * 25.4) for side in page.mediabox[2:])


@pytest.mark.web
def test_a_poster_speaks_the_surveys_languages_on_one_page_of_either_size(owner, store):
    titles = {"en": "Night work", "de": "Nachtarbeit", "eo": "Nokta laboro"}
    long = "Ñandú " * 20
    cases = ({}, dict.fromkeys(("es", "fr", "uk"), long), dict.fromkeys(LANGUAGES[1:], long))
    for others in cases:
        written = ", ".join(f'{name} = "{text}"' for name, text in {**titles, **others}.items())
        toml = SMALL.replace('title = "A small survey"', f"title = {{ {written} }}").encode()
        publish(store, load(toml, "s.toml", Caps()), TODAY)
        for size, millimetres in (("a4", (210, 297)), ("a3", (297, 420))):
            pages = PdfReader(io.BytesIO(owner.get(f"{SHARE}/poster-{size}.pdf").data)).pages
            assert [box(page) for page in pages] == [millimetres], (others, size)
            text = " ".join(pages[0].extract_text().split())
            assert "Take part in a survey" in text
            assert text.count("würfelt") == 1
            assert "Nokta laboro" in text
    assert owner.get(f"{SHARE}/poster-a5.pdf").status_code == 404


def test_only_an_open_survey_for_everybody_has_a_link_to_share(owner, store):
    toml = SMALL.replace('slug = "small"', 'slug = "invited"\naccess = "invitation"')
    publish(
        store,
        load(toml.encode(), "s.toml", Caps()),
        TODAY,
        team={store.researcher(EMAIL).key: "owner"},
    )
    invited = "/research/surveys/invited/share"
    assert "by invitation only" in owner.get(invited).text
    for file in ("link.svg", "poster-a4.pdf"):
        assert owner.get(f"{invited}/{file}").status_code == 404
    close(store, "small", TODAY)
    assert "#d=" not in owner.get(SHARE).text
    for file in ("link.svg", "poster-a4.pdf"):
        assert owner.get(f"{SHARE}/{file}").status_code == 410


# -- results by a secret link


@pytest.mark.security
def test_a_link_shows_what_the_team_sees_and_nothing_else(owner, store, small, stranger):
    add_links(store, small)
    store.set_role("small", store.researcher(EMAIL).key, "owner")
    shown = stranger.get(new_link(owner))
    assert shown.status_code == 200
    assert "Set-Cookie" not in shown.headers
    team = owner.get("/research/surveys/small/1").text
    charts = r'<div class="bars">.*?</div>'
    assert re.findall(charts, shown.text, re.DOTALL) == re.findall(charts, team, re.DOTALL) != []
    sizes = r"n = [\d,]+ · margin [^·]+"
    assert re.findall(sizes, shown.text) == re.findall(sizes, team) != []
    assert "Privacy loss of one complete response" in shown.text
    assert "randomized every answer once" in shown.text
    for control in ("<form", "<button", "/research/surveys", EMAIL, "Ministry"):
        assert control not in shown.text, control
    signed_in = owner.get(shown.request.path)
    assert signed_in.text == shown.text


@pytest.mark.security
def test_readers_see_no_pending_response(owner, store, small, stranger):
    path = new_link(owner)
    do(owner, "public", public="yes")
    before = [stranger.get(address).text for address in (path, PUBLIC)]
    add(store, small, random_reports(60))
    assert [stranger.get(address).text for address in (path, PUBLIC)] == before
    assert "No results yet" in before[0]


@pytest.mark.security
def test_unknown_expired_and_revoked_links_get_the_same_response(
    owner, store, stranger, monkeypatch
):
    first, second = new_link(owner, "First"), new_link(owner, "Second", utc_today())
    assert first != second
    listed = owner.get(SHARE).text
    assert first.rpartition("/")[2] not in listed
    assert str(utc_today()) in listed
    token_hash = re.findall(r'name="link" value="([0-9a-f]{64})"', listed)[1]
    assert do(owner, "links/end", link="0" * 64).status_code == 302
    assert stranger.get(first).status_code == 200
    assert do(owner, "links/end", link=token_hash).status_code == 302
    now = 24 * 3600 + int(time.time())
    assert stranger.get(second).status_code == 200
    monkeypatch.setattr(time, "time", lambda: now)
    answers = [stranger.get(path) for path in (first, second, "/research/results/unknown")]
    assert [answer.status_code for answer in answers] == [404] * 3
    assert len({answer.data for answer in answers}) == 1
    assert len({tuple(answer.headers) for answer in answers}) == 1


def test_a_link_is_valid_for_a_year_at_most(owner, store):
    for day in (utc_today() - timedelta(1), utc_today() + timedelta(366)):
        refused = do(owner, "links", label="Ministry", expires=day.isoformat())
        assert refused.status_code == 422
        assert "Choose a day from" in refused.text
    assert store.result_links("small", 0) == []
    new_link(owner, day=utc_today() + timedelta(365))
    suggested = re.search(r'name="expires"[^>]* value="([^"]+)"', owner.get(SHARE).text)[1]
    assert suggested == str(utc_today() + timedelta(30))


def test_a_link_names_its_reader_in_printable_characters(owner, store):
    for label in (" ", "Min\0istry", "Min\u202eistry", "x" * 61):
        assert do(owner, "links", label=label, expires=LATER.isoformat()).status_code == 422, label
    new_link(owner, " The \n Ministry ")
    assert [link.label for link in store.result_links("small", 0)] == ["The Ministry"]


def test_a_form_sent_twice_creates_one_link(owner, store, monkeypatch):
    first = new_link(owner)
    again = do(owner, "links", label="Ministry", expires=LATER.isoformat())
    assert again.status_code == 422
    assert "there is already a valid link for Ministry" in again.text
    (link,) = store.result_links("small", 0)
    assert link.token_hash == hash_of(first.rpartition("/")[2])
    monkeypatch.setattr("survey.store.shared_results.MAX_RESULT_LINKS", 2)
    new_link(owner, "Press")
    refused = do(owner, "links", label="Unions", expires=LATER.isoformat())
    assert "at most 2 valid links" in refused.text


# -- public results


@pytest.mark.security
def test_results_are_public_only_while_an_owner_says_so(owner, store, small, stranger):
    add_links(store, small)
    unknown = stranger.get("/research/public/unknown")
    for path in (PUBLIC, FIGURE):
        assert stranger.get(path).data == unknown.data
        assert stranger.get(path).status_code == 404
    assert do(owner, "public", public="yes").status_code == 302
    assert stranger.get(PUBLIC).status_code == 200
    code = fields(owner.get(SHARE).text)["code-1"]
    assert re.fullmatch(r'<figure><img alt="[^"<]+" src="[^"<]+"></figure>', code)
    assert FIGURE in code
    embed = f'href="{SHARE}#embed-fell_asleep-shares"'
    assert embed in owner.get("/research/surveys/small/1").text
    assert embed not in stranger.get(PUBLIC).text
    assert stranger.get(FIGURE).data.startswith(b"<svg")
    assert "randomized on respondents’ devices" in stranger.get(FIGURE).text
    png = stranger.get(FIGURE.replace(".svg", ".png"))
    assert (png.mimetype, png.data[:4]) == ("image/png", b"\x89PNG")
    for other in ("pdf", "json", "gif"):
        assert stranger.get(FIGURE.replace("svg", other)).status_code == 404
    assert do(owner, "public", public="").status_code == 302
    for path in (PUBLIC, FIGURE):
        assert stranger.get(path).status_code == 404


def test_a_license_appears_with_public_results_and_under_their_figures(
    owner, store, small, stranger
):
    add_links(store, small)
    address = 'href="https://creativecommons.org/licenses/by/4.0/"'
    do(owner, "public", public="yes")
    assert "License:" not in stranger.get(FIGURE).text
    do(owner, "public", public="yes", license="CC BY 4.0")
    assert "License: CC BY 4.0" in stranger.get(FIGURE).text
    assert address in stranger.get(PUBLIC).text
    assert '<option selected value="CC BY 4.0">' in owner.get(SHARE).text
    assert do(owner, "public", public="yes", license="mine").status_code == 404
    do(owner, "public", public="", license="CC BY 4.0")
    assert store.license_of_results("small") == ""
    do(owner, "public", public="yes")
    assert address not in stranger.get(PUBLIC).text, "a license ends with public access"


@pytest.mark.security
def test_a_public_figure_hides_what_the_results_suppress(owner, store, small, stranger):
    add(store, small, random_reports(60))
    do(owner, "public", public="yes")
    assert stranger.get(FIGURE).status_code == 404
    assert "No figure has enough released responses yet." in owner.get(SHARE).text


@pytest.mark.security
def test_readers_cannot_choose_what_the_server_draws(owner, store, small, stranger):
    add_links(store, small)
    do(owner, "public", public="yes")
    plain, page = stranger.get(FIGURE).data, stranger.get(PUBLIC).data
    for query in ("title=Mine", "size=print", "level=0.8", "level=no"):
        assert stranger.get(f"{FIGURE}?{query}").data == plain
        assert stranger.get(f"{PUBLIC}?{query}").data == page


@pytest.mark.security
@pytest.mark.parametrize("settings", ["sqlite", "postgresql"], indirect=True)
def test_addresses_with_nul_are_missing_on_either_database(stranger, settings):
    for path in ("public/a%00b", "public/a%00b/1/figures/x-shares.svg", "assets/x/a%00b/logo"):
        assert stranger.get(f"/research/{path}").status_code == 404, path


@pytest.mark.security
def test_files_of_a_look_are_missing_alike_with_and_without_a_logo(owner, store, stranger):
    missing = [stranger.get(f"/research/assets/{'0' * 64}/{slug}/logo") for slug in ("small", "no")]
    store.set_team_look("small", LOOK)
    missing.append(stranger.get(f"/research/assets/{'0' * 64}/small/logo"))
    assert {response.status_code for response in missing} == {404}
    assert len({response.data for response in missing}) == 1


def test_readers_can_open_the_results_of_an_earlier_version(owner, store, small, stranger):
    add_links(store, small)
    changed = load(SMALL.replace("Once", "One time").encode(), "s.toml", Caps())
    publish(store, changed, TODAY)
    do(owner, "public", public="yes")
    assert find_survey(store, "small").version == 2
    newest = stranger.get(PUBLIC).text
    assert "No results yet" in newest
    assert f"{PUBLIC}?version=1" in newest
    assert "Key findings" in stranger.get(f"{PUBLIC}?version=1").text
    assert stranger.get(f"{PUBLIC}?version=3").status_code == 404


def test_sharing_results_is_logged_without_the_secret(owner, store):
    path = new_link(owner)
    token_hash = re.search(r'name="link" value="([0-9a-f]{64})"', owner.get(SHARE).text)[1]
    do(owner, "links/end", link=token_hash)
    for public in ("yes", "yes", ""):
        do(owner, "public", public=public)
    actions = [(action.event, action.detail) for action in store.actions("small", 9)]
    assert actions == [
        ("ended public results", ""),
        ("made the results public", ""),
        ("revoked a results link", "Ministry"),
        ("created a results link", f"Ministry, until {LATER}"),
    ]
    assert path.rpartition("/")[2] not in str(actions)


@pytest.mark.security
def test_only_owners_get_the_forms_that_share_results(app, store, researcher, small):
    people = People(app, store)
    pages = {name: people[name].get(SHARE) for name in ("viewer", "editor", "owner")}
    assert pages["viewer"].status_code == 403
    assert "Make results public" not in pages["editor"].text
    assert "Create link" not in pages["editor"].text
    assert "Make results public" in pages["owner"].text
    assert "Create link" in pages["owner"].text
    results = {name: people[name].get("/research/surveys/small/1").text for name in pages}
    assert [SHARE in text for text in results.values()] == [False, True, True]


# -- messages at each release

HOOK = "https://hooks.example.org/a?key=private-path"


@pytest.fixture
def settings(settings):
    return replace(
        settings,
        smtp="smtp://localhost",
        mail_from="surveys@example.org",
        webhook_hosts="hooks.example.org",
    )


def test_researchers_choose_e_mails_and_owners_add_webhooks(owner, store, small):
    for _ in range(2):  # the second time, the form was sent twice
        assert do(owner, "email", subscribe="yes").status_code == 302
    assert "You get an e-mail about each release." in owner.get(SHARE).text
    assert do(owner, "webhooks", url=HOOK).status_code == 302
    (mail, hook) = store.release_notices("small")
    assert (mail.notice.url, mail.email, hook.notice.url) == ("", EMAIL, HOOK)
    for url, reason in {
        "https://elsewhere.example.org": "allowed hosts: hooks.example.org",
        HOOK: "already gets messages",
        "": "Enter the address of the webhook",
    }.items():
        refused = do(owner, "webhooks", url=url)
        assert refused.status_code == 422
        assert reason in refused.text
    store.record_delivery(hook, "the webhook returned status 500")
    assert "the webhook returned status 500" in owner.get(SHARE).text
    do(owner, "email", subscribe="")
    do(owner, "webhooks/remove", url=HOOK)
    assert store.release_notices("small") == []
    events = [action.event for action in store.actions("small", 9)]
    assert events == ["removed a webhook", "added a webhook"]
    assert "private-path" not in str(store.actions("small", 9))


@pytest.mark.security
def test_only_owners_see_the_address_and_the_secret_of_a_webhook(app, store, small, settings):
    people = People(app, store)
    do(people["owner"], "webhooks", url=HOOK)
    secret = webhook_secret(settings, "small", HOOK)
    pages = {name: people[name].get(SHARE).text for name in ("owner", "editor")}
    assert secret in pages["owner"]
    assert html.escape(HOOK) in pages["owner"]
    assert "hooks.example.org" in pages["editor"]
    assert "private-path" not in pages["editor"]
    assert secret not in pages["editor"]
