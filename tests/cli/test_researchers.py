"""The operator lists and removes accounts, and rotates the secret that protects them."""

from __future__ import annotations

import json
import time

import pyotp
import pytest
from click.testing import CliRunner

from survey.cli import main
from survey.research.two_factor import SecondFactors
from survey.store import ApiToken, ColleagueLink
from survey.store.schema import TABLES
from tests.conftest import SECRET

ADA, BEN, EVE = "ada@example.org", "ben@example.org", "eve@example.org"


@pytest.fixture
def run(store, settings, monkeypatch):
    monkeypatch.setenv("SURVEY_DATABASE", settings.database)
    monkeypatch.setenv("SURVEY_SECRET", SECRET)
    return lambda *arguments: CliRunner().invoke(main, ["researcher", *arguments])


@pytest.fixture
def keys(store) -> dict[str, int]:
    """Return the keys of three accounts; Ada is the administrator and the only owner of `work`."""
    keys = {email: store.add_researcher(email, "hash").key for email in (ADA, BEN, EVE)}
    store.set_role("work", keys[ADA], "owner")
    store.set_role("work", keys[BEN], "editor")
    store.set_role("shared", keys[ADA], "owner")
    store.set_role("shared", keys[EVE], "owner")
    return keys


def fill(store, key: int) -> None:
    """Store a row of the account in every table that refers to researchers."""
    draft = store.add_draft("{}", ADA, 5, {key: "owner"})
    store.add_comment(draft.key, 0, key, 5, "Shorter?")
    store.insert_rows("result_link", [(b"reader", "work", "Ministry", 2**40, key)])
    store.add_colleague_link(b"link", ColleagueLink("work", "viewer", 2**40, key))
    store.add_api_token(ApiToken(b"program", key, "R", "surveys", 5))
    store.start_session(b"token", key, 5, 100)
    store.set_second_factor(key, "SECRET", [bytes(32)])
    store.add_failed_sign_in(ADA, 5)
    store.insert_rows("release_notice", [("work", key, "", 0, 0, "")])


def tables_that_mention(store, key: int) -> set[str]:
    """Return the tables with a row that refers to an account."""
    found = set()
    with store.snapshot() as snapshot:
        for table in TABLES.values():
            columns = {"researcher", "maker"} & set(table.column_names)
            for row in snapshot.rows(table.name, None, 1_000) if columns else ():
                values = dict(zip(table.column_names, row, strict=True))
                if key in {values[column] for column in columns}:
                    found.add(table.name)
    return found


def test_accounts_are_listed_with_roles_two_factor_authentication_and_failures(run, store, keys):
    store.set_second_factor(keys[BEN], "SECRET", [])
    store.add_failed_sign_in(BEN, 5)
    assert run("list").output == (
        "ada@example.org: administrator, two-factor authentication off, owner of shared, "
        "owner of work\n"
        "ben@example.org: two-factor authentication on, 1 failed sign-in, editor of work\n"
        "eve@example.org: two-factor authentication off, owner of shared\n"
    )
    listed = json.loads(run("list", "--json").output)
    assert [row["failed_sign_ins"] for row in listed] == [0, 1, 0]
    assert listed[1]["roles"] == {"work": "editor"}


@pytest.mark.parametrize("settings", ["sqlite", "postgresql"], indirect=True)
def test_an_account_is_removed_only_if_its_surveys_keep_an_owner(run, store, keys):
    fill(store, keys[ADA])
    assert tables_that_mention(store, keys[ADA]) == {
        table.name for table in TABLES.values() if {"researcher", "maker"} & set(table.column_names)
    }
    refused = run("remove", ADA)
    assert refused.exit_code == 1
    assert "the only administrator and the only owner of trial-1, work" in refused.output
    for successor, reason in ((ADA, "the same account"), ("no@example.org", "no researcher no@")):
        refused = run("remove", ADA, "--successor", successor)
        assert (refused.exit_code, reason in refused.output) == (1, True), successor
    assert store.researcher(ADA) is not None
    removed = run("remove", ADA.upper(), "--successor", BEN)
    assert removed.exit_code == 0, removed.output
    assert removed.output == (
        "removed ADA@EXAMPLE.ORG\n"
        "ben@example.org is now an owner of trial-1, work\n"
        "ben@example.org is now the administrator\n"
        "deleted 1 comment and 1 link to results\n"
    )
    assert store.roles(keys[BEN]) == {"trial-1": "owner", "work": "owner"}
    assert [person.email for person in store.researchers()] == [BEN, EVE]
    assert store.researcher(BEN).is_admin
    assert not tables_that_mention(store, keys[ADA])


def test_an_account_that_is_never_the_only_owner_needs_no_successor(run, store, keys):
    assert run("remove", EVE).output == "removed eve@example.org\n"
    assert store.roles(keys[ADA])["shared"] == "owner"
    assert run("remove", EVE).output == "survey: there is no researcher eve@example.org\n"


def test_codes_stay_valid_after_the_secret_was_rotated(run, store, keys, tmp_path):
    former, secret = SECRET[::-1], pyotp.random_base32()
    SecondFactors(store, former).set_up(keys[BEN], secret, 0)
    SecondFactors(store, SECRET).set_up(keys[EVE], secret, 0)
    file = tmp_path / "former"
    file.write_text(f"{former}\n")
    result = run("reencrypt", str(file))
    assert result.output == "encrypted 1 secret of authenticator apps with the present secret\n"
    now = time.time()
    for email in (BEN, EVE):
        account = store.researcher(email)
        assert SecondFactors(store, SECRET).use_code(account, pyotp.TOTP(secret).at(now), now)
    SecondFactors(store, "0f" * 16).set_up(keys[BEN], secret, 0)
    lost = run("reencrypt", str(file))
    assert (lost.exit_code, "1 secret cannot be read" in lost.output) == (1, True)
