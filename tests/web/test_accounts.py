"""Researchers' accounts: two-factor authentication, teams, access rules and the activity log."""

from __future__ import annotations

import io
import re
import threading
import time
from urllib.parse import urlsplit

import pyotp
import pytest
from click.testing import CliRunner
from flask import Flask

from survey.app import create_app
from survey.archive import backup
from survey.cli import main
from survey.research.access import Gate, Section
from survey.research.credentials import password_mistake
from survey.research.sign_in_limits import Throttle, Visitor
from survey.research.surveys import moment
from survey.research.team import LINK_SECONDS
from survey.research.two_factor import SecondFactors, step_of
from survey.security import hash_of
from survey.store import ColleagueLink
from tests.conftest import EMAIL, PASSWORD, SECRET, SMALL, hashed_password
from tests.web.researchers import People, send, sign_in, token

pytestmark = pytest.mark.security

OTHER_EMAIL = "ben@example.org"


@pytest.fixture
def signed_in(client, researcher):
    assert sign_in(client).status_code == 302
    return client


def add(store, email: str) -> int:
    return store.add_researcher(email, hashed_password()).key


@pytest.fixture
def people(app, store, researcher, small):
    """Return a client for every role; the fixture's researcher is the administrator."""
    return People(app, store)


def with_two_factor(client) -> str:
    """Set up two-factor authentication on the account pages and return its secret."""
    page = client.get("/research/account/second-step")
    secret = re.search(r'class="secret">([A-Z2-7]+)<', page.text)[1]
    code = pyotp.TOTP(secret).now()
    response = send(client, "/research/account/second-step", code=code, current=PASSWORD)
    assert response.status_code == 200, response.text
    return secret


def wrong_code(secret: str) -> str:
    """Return a code that is invalid for this secret now and in the near future."""
    totp, now = pyotp.TOTP(secret), time.time()
    near = {totp.at(now + 30 * steps) for steps in range(-4, 60)}
    return next(code for code in map("{:06}".format, range(100)) if code not in near)


def test_object_access_a_page_without_an_access_rule_prevents_startup(store):
    app = Flask("without a rule")
    app.add_url_rule("/research/new", endpoint="new", view_func=lambda: "")
    with pytest.raises(RuntimeError, match="/research/new"):
        Gate(store, None, "").add(app, [])


def test_object_access_a_section_rejects_pages_without_an_access_rule():
    section = Section("new", "/research/new", [])
    with pytest.raises(TypeError, match="with their access"):
        section.get("/page")(lambda: "")


def test_object_access_surveys_of_others_are_not_listed_and_their_slugs_are_reserved(
    app, store, small
):
    add(store, "first@example.org")
    add(store, OTHER_EMAIL)
    client = app.test_client()
    sign_in(client, OTHER_EMAIL)
    assert "A small survey" not in client.get("/research/").text
    page = client.get("/research/publish")
    response = client.post(
        "/research/publish",
        data={
            "csrf_token": token(page),
            "file": (io.BytesIO(SMALL.replace("Two", "2").encode()), "s.toml"),
        },
    )
    assert response.status_code == 422
    assert "belongs to a survey that you cannot edit" in response.text
    assert len(store.versions("small")) == 1


# -- two-factor authentication


def test_logins_with_two_factor_authentication_need_more_than_a_password(signed_in, app, store):
    secret = with_two_factor(signed_in)
    client = app.test_client()
    requested = client.get("/research/account?of=mine&as=table")
    redirect = send(client, requested.location, email=EMAIL, password=PASSWORD)
    assert urlsplit(redirect.location).path == "/research/sign-in/code"
    assert client.get("/research/account").status_code == 302
    wrong = send(client, redirect.location, code=wrong_code(secret))
    assert wrong.status_code == 403
    step = store.second_factor(store.researcher(EMAIL).key).step + 1
    right = send(client, redirect.location, code=pyotp.TOTP(secret).generate_otp(step))
    assert right.location == "/research/account?of=mine&as=table"
    assert client.get("/research/account").status_code == 200


def test_logins_code_works_once_even_in_concurrent_attempts(signed_in, store, researcher):
    secret = with_two_factor(signed_in)
    researcher_record, factors = store.researcher(EMAIL), SecondFactors(store, SECRET)
    now = time.time() + 30
    code = pyotp.TOTP(secret).at(now)
    outcomes: list[bool] = []
    threads = [
        threading.Thread(
            target=lambda: outcomes.append(factors.use_code(researcher_record, code, now))
        )
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [False] * 7 + [True]


@pytest.mark.parametrize(("seconds", "right"), [(-31, True), (0, True), (31, True), (90, False)])
def test_a_clock_may_be_off_by_half_a_minute(seconds, right):
    secret, now = "JBSWY3DPEHPK3PXP" * 2, 1_000_000_000
    step = step_of(secret, pyotp.TOTP(secret).at(now + seconds), now)
    assert (step is not None) is right


@pytest.mark.parametrize("code", ["", "12345", "abcdef", "１２３４５６", "1" * 64])
def test_malformed_codes_are_rejected(code):
    assert step_of(pyotp.random_base32(), code, 1_000_000_000) is None


def test_logins_recovery_codes_sign_in_once_each(signed_in, app, store):
    page = signed_in.get("/research/account/second-step")
    secret = re.search(r'class="secret">([A-Z2-7]+)<', page.text)[1]
    response = send(
        signed_in,
        "/research/account/second-step",
        code=pyotp.TOTP(secret).now(),
        current=PASSWORD,
    )
    codes = re.findall(r"<code>([a-z2-7-]{19})</code>", response.text)
    assert len(set(codes)) == 10
    for expected_status in (302, 403):
        client = app.test_client()
        redirect = sign_in(client)
        typed = codes[0].upper().replace("-", " ")
        assert send(client, redirect.location, code=typed).status_code == expected_status
    assert store.n_recovery_codes(store.researcher(EMAIL).key) == 9


def test_logins_codes_are_throttled_within_10_attempts(signed_in, app):
    code = wrong_code(with_two_factor(signed_in))
    client = app.test_client()
    redirect = sign_in(client)
    statuses = [send(client, redirect.location, code=code).status_code for _ in range(11)]
    assert statuses == [403] * 10 + [429]


@pytest.mark.security
def test_logins_codes_cannot_be_guessed_from_many_networks(signed_in, app, store):
    """An attacker who knows the password gets 20 attempts in total, from any number of networks."""
    code = wrong_code(with_two_factor(signed_in))
    client = app.test_client()
    redirect = sign_in(client)
    statuses = []
    for number in range(25):
        client.environ_base["REMOTE_ADDR"] = f"203.0.113.{number}"
        statuses.append(send(client, redirect.location, code=code).status_code)
    assert statuses == [403] * 20 + [429] * 5


def test_rejected_attempts_are_not_stored(store):
    """If they were stored, one network could push all other attempts out of the table."""
    throttle = Throttle(store, SECRET)
    admitted = [
        not throttle.refusal(Visitor("203.0.113.9"), f"{n}@example.org", 1e9) for n in range(200)
    ]
    assert admitted == [True] * 50 + [False] * 150
    with store.snapshot() as snapshot:
        assert len(snapshot.rows("sign_in_try", None, 1_000)) == 101


@pytest.mark.security
def test_right_passwords_and_codes_do_not_lock_a_network_out(store):
    """An office shares one address; only its failed attempts count."""
    throttle = Throttle(store, SECRET)
    office = Visitor("203.0.113.9")
    for n in range(200):
        email = f"{n}@example.org"
        assert not throttle.refusal(office, email, 1e9)
        throttle.succeeded(office, email)
        assert not throttle.code_refusal(office, email, 1e9)
        throttle.code_succeeded(office, email)
    admitted = [not throttle.refusal(office, f"{n}@example.com", 1e9) for n in range(60)]
    assert admitted == [True] * 50 + [False] * 10


@pytest.mark.security
def test_logins_must_enter_the_code_within_five_minutes(signed_in, app, monkeypatch):
    with_two_factor(signed_in)
    client = app.test_client()
    redirect = sign_in(client, next_page="/research/account")
    later = time.time() + 301
    monkeypatch.setattr(time, "time", lambda: later)
    assert client.get(redirect.location).location == "/research/sign-in?next=/research/account"


def test_two_factor_authentication_requires_the_password_and_a_valid_code(signed_in, store):
    page = signed_in.get("/research/account/second-step")
    secret = re.search(r'class="secret">([A-Z2-7]+)<', page.text)[1]
    right = pyotp.TOTP(secret).now()
    for code, current in ((right, "wrong password"), (wrong_code(secret), PASSWORD)):
        response = send(signed_in, "/research/account/second-step", code=code, current=current)
        assert response.status_code == 422
        assert secret in response.text
        assert store.second_factor(store.researcher(EMAIL).key) is None


def next_code(store, secret: str) -> str:
    """Return the first code that has not been used."""
    step = store.second_factor(store.researcher(EMAIL).key).step + 1
    return pyotp.TOTP(secret).generate_otp(step)


def test_logins_two_factor_authentication_is_removed_or_replaced_only_with_a_code(signed_in, store):
    """An attacker who has a session and the password cannot remove the second factor."""
    secret = with_two_factor(signed_in)
    pages = ("/research/account/second-step/remove", "/research/account/second-step")
    stored = store.second_factor(store.researcher(EMAIL).key).secret
    new = pyotp.TOTP(re.search(r'class="secret">([A-Z2-7]+)<', signed_in.get(pages[1]).text)[1])
    right = next_code(store, secret)
    for current, code in (
        ("wrong password", right),
        (PASSWORD, wrong_code(secret)),
        (PASSWORD, new.now()),
        (PASSWORD, ""),
    ):
        for page in pages:
            form = {"current": current, "existing_app_code": code, "code": new.now()}
            assert send(signed_in, page, **form).status_code == 422, (page, current, code)
    assert store.second_factor(store.researcher(EMAIL).key).secret == stored
    form = {"current": PASSWORD, "existing_app_code": right, "code": new.now()}
    codes = re.findall(r"<code>([a-z2-7-]{19})</code>", send(signed_in, pages[1], **form).text)
    assert store.second_factor(store.researcher(EMAIL).key).secret != stored
    assert (
        send(signed_in, pages[0], current=PASSWORD, existing_app_code=codes[0]).status_code == 302
    )
    assert store.second_factor(store.researcher(EMAIL).key) is None


def test_logins_store_the_secrets_of_apps_encrypted_also_in_backups(signed_in, store, tmp_path):
    plain = with_two_factor(signed_in)
    researcher = store.researcher(EMAIL)
    other = store.add_researcher(OTHER_EMAIL, hashed_password())
    # An earlier version stored this one.
    store.set_second_factor(other.key, plain, [])
    factors = SecondFactors(store, SECRET)
    assert factors.encrypt_all() == 1
    assert factors.encrypt_all() == 0
    backup(store, tmp_path / "backup", lambda *_: None)
    store.close_connections()  # as the server does before it starts its workers
    for file in (*store.path.parent.glob(f"{store.path.name}*"), tmp_path / "backup"):
        assert plain.encode() not in file.read_bytes(), file
    secrets = {store.second_factor(key).secret for key in (researcher.key, other.key)}
    assert len(secrets) == 2
    now = time.time()
    assert factors.use_code(other, pyotp.TOTP(plain).at(now), now)
    # Neither another secret of the server nor another account decrypts it.
    code = pyotp.TOTP(plain).at(now + 30)
    assert not SecondFactors(store, SECRET[::-1]).use_code(researcher, code, now)
    store.set_second_factor(researcher.key, store.second_factor(other.key).secret, [])
    assert not factors.use_code(researcher, code, now)


def test_logins_with_a_damaged_secret_explain_the_remedy(app, store, researcher, caplog):
    """The server then accepts no code of the app, and does not fail."""
    ada, now = store.researcher(EMAIL), time.time()
    factors, secret = SecondFactors(store, SECRET), pyotp.random_base32()
    codes = factors.set_up(ada.key, secret, 0)
    stored = store.second_factor(ada.key).secret
    for at in range(len(stored)):
        for bit in (1, 2, 64):
            damaged = stored[:at] + chr(ord(stored[at]) ^ bit) + stored[at + 1 :]
            if damaged.isprintable():
                store.replace_second_factor_secret(ada.key, stored, damaged)
                factors.encrypt_all()
                assert not factors.is_readable(ada) or damaged[:-1] == stored[:-1], damaged
                assert not factors.use_code(ada, "123 456", now)
                store.replace_second_factor_secret(
                    ada.key, store.second_factor(ada.key).secret, stored
                )
    store.replace_second_factor_secret(ada.key, stored, stored[:-6])
    client = app.test_client()
    redirect = sign_in(client)
    caplog.clear()
    page = send(client, redirect.location, code=pyotp.TOTP(secret).now())
    assert page.status_code == 403
    assert f"survey researcher reset {EMAIL}" in page.text
    (event,) = [record.getMessage() for record in caplog.records if "two_factor" in record.name]
    assert event.startswith("the secret of an authenticator app cannot be read")
    assert client.get("/research/account").status_code == 302
    assert send(client, redirect.location, code=codes[0]).status_code == 302
    assert client.get("/research/account").status_code == 200


def test_logins_recovery_codes_work_after_the_servers_secret_was_changed(signed_in, store):
    researcher, now = store.researcher(EMAIL), time.time()
    (code, *_) = SecondFactors(store, SECRET).set_up(researcher.key, pyotp.random_base32(), 0)
    assert SecondFactors(store, SECRET[::-1]).use_code(researcher, code, now)


def test_logins_of_accounts_without_two_factor_lead_to_its_setup_while_it_is_required(
    people, app, store
):
    rule = {"page": "/research/people", "required": "yes"}
    send(people["admin"], "/research/people/two-factor", **rule)
    setup = "/research/account/second-step"
    for path in ("/research/", "/research/account", "/research/account/programs"):
        assert people["owner"].get(path).location == setup, path
    change = people["owner"].post("/research/account/password", data={"csrf_token": ""})
    assert change.status_code in (302, 400)
    assert "This server requires two-factor authentication" in people["owner"].get(setup).text
    administrator = people["admin"]
    assert administrator.get("/research/people").location == setup
    with_two_factor(administrator)
    assert administrator.get("/research/people").status_code == 200
    removed = administrator.get("/research/account/second-step/remove")
    assert removed.location == "/research/account"
    assert "To use another app" in administrator.get("/research/account").text
    send(administrator, "/research/people/two-factor", page="/research/people", required="no")
    assert people["owner"].get("/research/").status_code == 200
    log = administrator.get("/research/people/log").text
    assert "required two-factor" in log
    assert "stopped requiring two-factor" in log


# -- passwords and sessions


def test_logins_end_everywhere_else_when_the_password_is_changed(signed_in, app):
    second_client = app.test_client()
    sign_in(second_client)
    new = "copper kite unfolds slowly"
    wrong_password = send(
        signed_in, "/research/account/password", current="wrong password", new=new, again=new
    )
    assert wrong_password.status_code == 422
    mismatch = send(
        signed_in, "/research/account/password", current=PASSWORD, new=new, again=new + "r"
    )
    assert "The two new passwords differ" in mismatch.text
    response = send(signed_in, "/research/account/password", current=PASSWORD, new=new, again=new)
    assert response.location == "/research/account"
    assert signed_in.get("/research/account").status_code == 200
    assert second_client.get("/research/account").status_code == 302
    assert sign_in(app.test_client(), password=new).status_code == 302


COMMON_PASSWORDS = (
    *("password1234", "qwerty123456", "1q2w3e4r5t6y", "aaaaaaaaaaaa", "Passw0rd1234"),
    *("iloveyou1234", "administrator", "researcherexample", "researcher2026"),
    *("Summer2026!!", "correcthorsebatterystaple", "Correct-Horse-Battery-Staple!"),
    *("Researcher-2026!!", "a-small-survey-26!"),
)


def test_logins_reject_common_passwords(signed_in, app, store, small, settings, monkeypatch):
    """Every form rejects such a new password; no password is changed or stored."""
    before = store.researcher(EMAIL).password_hash
    change, join = "/research/account/password", f"/research/join/{new_link(store)}"
    monkeypatch.setenv("SURVEY_DATABASE", settings.database)
    for common in COMMON_PASSWORDS:
        page = send(signed_in, change, current=PASSWORD, new=common, again=common)
        assert "too easy to guess" in page.text, common
        page = send(app.test_client(), join, email="researcher@example.net", password=common)
        assert "too easy to guess" in page.text, common
        for command in ("add", "reset"):
            result = CliRunner().invoke(main, ["researcher", command, EMAIL, "--password", common])
            assert (result.exit_code, "too easy to guess" in result.output) == (1, True), common
    assert [person.password_hash for person in store.researchers()] == [before]


def test_logins_accept_passphrases_and_random_passwords_but_no_known_names():
    for good in (
        "mossy planet donkey trivial lunar quiet",
        "mossyplanetdonkeytriviallunarquiet",
        "cloud-ladder-sixty-fern",
        "январь погода чайник окно",
        "xK9#qLz!3mPv",
        "#!x(%/)=?&*$7",
    ):
        assert password_mistake(EMAIL, good, ["survey.example.org", "A small survey"]) == "", good
    for bad in (f"{EMAIL}77", "survey.example.org1", "Survey-Example-2026"):
        assert password_mistake(EMAIL, bad, ["survey.example.org"]), bad


def new_link(store) -> str:
    """Store a link for a new researcher and return its token."""
    maker = store.researcher(EMAIL).key
    store.add_colleague_link(hash_of("link"), ColleagueLink("", "viewer", 2**40, maker))
    return "link"


def test_logins_can_be_ended_from_another_session_of_the_same_researcher_only(people, store, app):
    second = app.test_client()
    sign_in(second, "owner@example.org")
    page = people["owner"].get("/research/account")
    (session,) = re.findall(r'name="session" value="([0-9a-f]{64})"', page.text)
    stranger = people["viewer"]
    send(stranger, "/research/account/sessions/end", page="/research/account", session=session)
    assert second.get("/research/account").status_code == 200
    owner = people["owner"]
    send(owner, "/research/account/sessions/end", page="/research/account", session=session)
    assert second.get("/research/account").status_code == 302
    assert owner.get("/research/account").status_code == 200


def test_an_operator_can_reset_an_account(signed_in, app, store, settings, monkeypatch):
    with_two_factor(signed_in)
    monkeypatch.setenv("SURVEY_DATABASE", settings.database)
    monkeypatch.setenv("SURVEY_SECRET", SECRET)
    monkeypatch.setenv("SURVEY_PASSWORD_COST", "1")
    new = "a new password of the operator"
    response = CliRunner().invoke(main, ["researcher", "reset", EMAIL, "--password", new])
    assert response.exit_code == 0, response.output
    assert signed_in.get("/research/account").status_code == 302
    client = app.test_client()
    assert sign_in(client, password=new).location == "/research/"
    unknown = CliRunner().invoke(main, ["researcher", "reset", "no@example.org", "--password", new])
    assert (unknown.exit_code, unknown.output) == (
        1,
        "survey: there is no researcher no@example.org\n",
    )


# -- teams


def link_in(page) -> str:
    return re.search(r"<code>(http[^<]*/join/[^<]+)</code>", page.text)[1]


def test_a_colleague_joins_with_a_single_use_link(people, app, store):
    team = "/research/surveys/small/team"
    invitation = send(people["owner"], f"{team}/invite", page=team, role="editor")
    path = urlsplit(link_in(invitation)).path
    newcomer = app.test_client()
    assert "Editor" not in newcomer.get(path).text
    assert "Your role: editor" in newcomer.get(path).text
    short = send(newcomer, path, email="new@example.org", password="short")
    assert short.status_code == 422
    accepted = send(newcomer, path, email="VIEWER@example.org", password=PASSWORD)
    assert "already has an account" in accepted.text
    assert send(newcomer, path, email="new@example.org", password=PASSWORD).status_code == 302
    assert store.roles(store.researcher("new@example.org").key) == {"small": "editor"}
    assert newcomer.get("/research/surveys/small/1").status_code == 200
    assert app.test_client().get(path).status_code == 404


def test_signed_in_researchers_join_with_one_button(people, store):
    team = "/research/surveys/small/team"
    invitation = send(people["owner"], f"{team}/invite", page=team, role="viewer")
    path = urlsplit(link_in(invitation)).path
    assert send(people["stranger"], path).status_code == 302
    assert store.roles(store.researcher("stranger@example.org").key) == {"small": "viewer"}


def open_links(page) -> list[str]:
    return re.findall(r'name="link" value="([0-9a-f]{64})"', page.text)


def test_a_removed_owner_cannot_return_through_a_link_they_created(people, store):
    team = "/research/surveys/small/team"
    store.set_role("small", store.researcher("viewer@example.org").key, "owner")
    invitation = send(people["viewer"], f"{team}/invite", page=team, role="owner")
    removed = store.researcher("viewer@example.org").key
    send(people["owner"], f"{team}/members/{removed}", page=team, role="none")
    assert people["viewer"].get(urlsplit(link_in(invitation)).path).status_code == 404
    assert store.roles(removed).get("small") is None
    assert open_links(people["owner"].get(team)) == []


def test_unused_links_are_listed_without_tokens_and_can_be_revoked(people, store, app):
    team = "/research/surveys/small/team"
    paths = []
    for role in ("editor", "viewer"):
        invitation = send(people["owner"], f"{team}/invite", page=team, role=role)
        paths.append(urlsplit(link_in(invitation)).path)
    page = people["admin"].get(team)
    listed = page.text[page.text.index("Unused invitations") :]
    assert "owner@example.org" in listed
    assert "<td>Editor</td>" in listed
    assert moment(int(time.time()) + LINK_SECONDS)[:10] in listed
    assert not any(path.rpartition("/")[2] in page.text for path in paths)
    for name in open_links(page):
        send(people["stranger"], f"{team}/links/end", page="/research/account", link=name)
    assert len(store.colleague_links("small", 0)) == 2
    send(people["admin"], f"{team}/links/end", page=team, link=open_links(page)[0])
    statuses = [app.test_client().get(path).status_code for path in paths]
    assert sorted(statuses) == [200, 404]
    assert "revoked an invitation" in people["owner"].get(f"{team}/log").text


def test_an_admin_can_revoke_a_link_for_a_new_researcher(people, app):
    invitation = send(people["admin"], "/research/people/invite", page="/research/people")
    (name,) = open_links(people["admin"].get("/research/people"))
    send(people["admin"], "/research/people/links/end", page="/research/people", link=name)
    assert open_links(people["admin"].get("/research/people")) == []
    assert app.test_client().get(urlsplit(link_in(invitation)).path).status_code == 404


def test_a_link_expires_after_a_week(people, app, monkeypatch):
    team = "/research/surveys/small/team"
    invitation = send(people["owner"], f"{team}/invite", page=team, role="viewer")
    later = time.time() + 8 * 24 * 3600
    monkeypatch.setattr(time, "time", lambda: later)
    assert app.test_client().get(urlsplit(link_in(invitation)).path).status_code == 404


def test_an_owner_changes_roles_but_cannot_remove_the_last_owner(people, store):
    team = "/research/surveys/small/team"
    keys = {member.email: member.researcher for member in store.members("small")}
    owner = people["owner"]
    viewer = keys["viewer@example.org"]
    send(owner, f"{team}/members/{viewer}", page=team, role="none")
    assert "small" not in store.roles(viewer)
    assert people["viewer"].get("/research/surveys/small/1").status_code == 404
    response = send(owner, f"{team}/members/{keys['owner@example.org']}", page=team, role="viewer")
    assert response.status_code == 409
    assert "needs an owner" in response.text
    assert store.roles(keys["owner@example.org"])["small"] == "owner"


def test_the_log_contains_researchers_actions_and_nothing_about_respondents(people, store, small):
    team = "/research/surveys/small/team"
    send(people["owner"], f"{team}/invite", page=team, role="viewer")
    page = people["owner"].get(f"{team}/log").text
    assert "owner@example.org" in page
    assert "invited a colleague" in page
    assert "signed in" not in page
    everything = people["admin"].get("/research/people/log").text
    assert "signed in" in everything
    assert "127.0.0.1" not in everything


def test_a_researcher_invited_by_an_admin_sees_no_survey_yet(people, app, store):
    invitation = send(people["admin"], "/research/people/invite", page="/research/people")
    newcomer = app.test_client()
    path = urlsplit(link_in(invitation)).path
    assert send(newcomer, path, email="new@example.org", password=PASSWORD).status_code == 302
    assert store.roles(store.researcher("new@example.org").key) == {}
    assert newcomer.get("/research/surveys/small/1").status_code == 404
    assert newcomer.get("/research/publish").status_code == 200


def test_a_new_server_serves_public_pages_without_signing_in(settings, store):
    client = create_app(settings, store).test_client()
    assert client.get("/healthz").status_code == 200
    assert client.get("/s/missing").status_code == 200
    assert client.get("/s/missing/definition.json").status_code == 404
