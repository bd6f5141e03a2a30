"""Open links and single-use invitations: how they are made, stored and checked."""

from __future__ import annotations

import csv
import hashlib
import re
import stat
from urllib.parse import parse_qs, urlsplit

import pytest
from click.testing import CliRunner

from survey.cli import main
from survey.collect.incoming_reports import Intake
from survey.collect.invitations import TOKEN, issue_invitations, new_tokens, validate_stratum
from survey.collect.publication import publish
from survey.errors import ConflictError, DesignError, InvitationError, InvitationNeededError
from survey.questionnaire.loading import load
from survey.settings import Caps
from tests.collect.test_incoming_reports import body
from tests.conftest import SECRET, SMALL, TODAY

INVITED_ONLY = f'access = "invitation"\n{SMALL}'


@pytest.fixture
def run(store, sqlite_settings, monkeypatch, tmp_path):
    """Run a command on the test's store, in a temporary directory."""
    monkeypatch.setenv("SURVEY_DATABASE", sqlite_settings.database)
    monkeypatch.setenv("SURVEY_SECRET", SECRET)
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(main, arguments)


def fragment_parts(link: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(link).fragment).items()}


@pytest.mark.security
def test_a_token_has_256_random_bits_and_only_its_hash_is_stored(store, small):
    tokens = new_tokens(50)
    assert len(set(tokens)) == 50
    assert all(TOKEN.fullmatch(token) for token in tokens)
    issue_invitations(store, small, "", tokens)
    with store.snapshot() as snapshot:
        rows = snapshot.rows("invitation", None, 100)
    hashes = {hashlib.sha256(token.encode()).digest() for token in tokens}
    assert {row[1] for row in rows} == hashes
    assert {(row[2], row[3]) for row in rows} == {("", 0)}


def test_each_invitation_admits_one_report(store, small, run):
    links = run("invite", "small", "--count", "25").stdout.split()
    assert len(links) == 25
    intake = Intake(store)
    for link in links[:3]:
        fragment = fragment_parts(link)
        assert fragment["d"] == small.sha256[:32]
        intake.receive("small", body(small, invitation=fragment["i"]), TODAY)
        with pytest.raises(InvitationError):
            intake.receive("small", body(small, invitation=fragment["i"]), TODAY)
    assert store.n_pending(small.key) == 3


def test_links_are_written_to_a_new_file_for_its_owner_and_as_qr_codes(store, small, run, tmp_path):
    result = run(
        *("invite", "small", "--count", "25", "--stratum", "Köln & Bonn"),
        *("--csv", "links.csv", "--qr", "codes"),
    )
    assert result.exit_code == 0, result.output
    assert "i=" not in result.output
    file = tmp_path / "links.csv"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with file.open(encoding="utf-8", newline="") as open_file:
        rows = list(csv.DictReader(open_file))
    assert [row["number"] for row in rows] == [str(n) for n in range(1, 26)]
    assert {row["stratum"] for row in rows} == {"Köln & Bonn"}
    assert {fragment_parts(row["link"])["s"] for row in rows} == {"Köln & Bonn"}
    assert store.n_invited(small.key, "Köln & Bonn") == 25
    file_names = sorted(path.name for path in (tmp_path / "codes").iterdir())
    assert file_names == [f"{n:02}.svg" for n in range(1, 26)]
    assert "<svg" in (tmp_path / "codes/01.svg").read_text()


def test_a_stratum_that_looks_like_a_formula_is_escaped_in_the_file(small, run, tmp_path):
    run("invite", "small", "--count", "25", "--stratum", "=1+1", "--csv", "links.csv")
    with (tmp_path / "links.csv").open(encoding="utf-8", newline="") as open_file:
        assert {row["stratum"] for row in csv.DictReader(open_file)} == {"'=1+1"}


@pytest.mark.security
def test_strata_below_25_people_are_refused_and_later_invitations_are_added(store, small, run):
    for options, name in (((), "this survey"), (("--stratum", "north"), 'stratum "north"')):
        refused = run("invite", "small", "--count", "24", *options)
        assert refused.exit_code == 1
        assert f"{name} would have 24 invitations; the minimum is 25" in refused.stderr
    assert store.n_invited_by_stratum(small.key) == {}
    assert run("invite", "small", "--count", "25", "--stratum", "north").exit_code == 0
    assert run("invite", "small", "--count", "1", "--stratum", "north").exit_code == 0
    assert store.n_invited(small.key, "north") == 26


@pytest.mark.security
def test_no_invitation_to_a_survey_for_shared_devices_is_issued(store, run, tmp_path):
    definition = load(f"kiosk = true\n{SMALL}".encode(), "s.toml", Caps())
    shared = publish(store, definition, TODAY)
    refused = run("invite", "small", "--count", "30", "--csv", "links.csv")
    assert refused.exit_code == 1
    assert "small is for shared devices" in refused.stderr
    assert not (tmp_path / "links.csv").exists()
    assert store.n_invited(shared.key, "") == 0


@pytest.mark.parametrize("name", ["other groups", "a\nb", "a\x00b", "\u202eabc", "n" * 61])
def test_a_stratum_that_cannot_be_displayed_is_refused(store, small, name):
    with pytest.raises(DesignError, match=r"stratum|other groups"):
        validate_stratum(store, small, name, 30)


def test_existing_files_are_never_replaced_and_nothing_is_issued(store, small, run, tmp_path):
    (tmp_path / "links.csv").write_text("mine")
    refused = run("invite", "small", "--count", "2", "--csv", "links.csv")
    assert refused.exit_code == 1
    assert (tmp_path / "links.csv").read_text() == "mine"
    assert run("invite", "small", "--count", "2", "--csv", "no/links.csv").exit_code == 1
    assert store.n_invited(small.key, "") == 0


def test_files_of_links_that_could_not_be_issued_are_deleted(
    store, small, run, tmp_path, monkeypatch
):
    def fail(*_) -> None:
        raise ConflictError("one of these invitations was issued before")

    monkeypatch.setattr("survey.cli.surveys.issue_invitations", fail)
    refused = run("invite", "small", "--count", "2", "--csv", "links.csv", "--qr", "codes")
    assert refused.exit_code == 1
    assert not (tmp_path / "links.csv").exists()
    assert list((tmp_path / "codes").glob("*")) == []


def test_nobody_is_invited_to_a_closed_or_missing_survey(store, small, run):
    assert "there is no survey" in run("invite", "other", "--count", "1").stderr
    store.close_survey("small", TODAY)
    assert "accepts no responses" in run("invite", "small", "--count", "1").stderr
    assert "accepts no responses" in run("link", "small").stderr


def test_the_open_link_is_printed_and_drawn_as_a_qr_code(small, run, tmp_path):
    printed = run("link", "small", "--qr", "open.svg").stdout.strip()
    assert re.fullmatch(rf"http://\S+/s/small#d={small.sha256[:32]}", printed)
    assert "<svg" in (tmp_path / "open.svg").read_text()
    assert run("link", "small", "--qr", "open.svg").exit_code == 1
    run("link", "small", "--qr", "open.PNG")
    assert (tmp_path / "open.PNG").read_bytes().startswith(b"\x89PNG")
    for name in ("open.jpg", "open"):
        result = run("link", "small", "--qr", name)
        assert result.exit_code == 1
        assert f"--qr {name}: the file name must end in .svg or .png" in result.stderr
        assert not (tmp_path / name).exists()


@pytest.mark.security
def test_no_open_link_is_printed_for_a_survey_with_invitations(run, store, tmp_path):
    (tmp_path / "s.toml").write_text(INVITED_ONLY, encoding="utf-8")
    published = run("publish", "s.toml")
    assert "survey invite small" in published.stdout
    assert "#d=" not in published.stdout
    refused = run("link", "small")
    assert refused.exit_code == 1
    assert "survey invite small" in refused.stderr


def test_the_command_warns_of_links_that_open_only_on_this_machine(small, run, monkeypatch):
    assert "SURVEY_PUBLIC_URL" in run("link", "small").stderr
    monkeypatch.setenv("SURVEY_PUBLIC_URL", "https://survey.example")
    assert run("link", "small").stderr == ""


def test_publishing_again_explains_what_happens_to_links(run, store, tmp_path):
    (tmp_path / "s.toml").write_text(SMALL, encoding="utf-8")
    assert "no longer work" not in run("publish", "s.toml").stderr
    (tmp_path / "s.toml").write_text(INVITED_ONLY, encoding="utf-8")
    assert "no longer work" in run("publish", "s.toml").stderr


def test_an_invitation_only_survey_accepts_no_report_without_an_invitation(store):
    survey = publish(store, load(INVITED_ONLY.encode(), "s.toml", Caps()), TODAY)
    intake = Intake(store)
    with pytest.raises(InvitationNeededError):
        intake.receive("small", body(survey), TODAY)
    (token,) = new_tokens(1)
    issue_invitations(store, survey, "", [token])
    intake.receive("small", body(survey, invitation=token), TODAY)
    assert store.n_pending(survey.key) == 1


def test_an_invitation_of_another_survey_is_invalid(store, small):
    second_survey = publish(
        store,
        load(SMALL.replace('slug = "small"', 'slug = "other"').encode(), "s.toml", Caps()),
        TODAY,
    )
    (token,) = new_tokens(1)
    issue_invitations(store, second_survey, "", [token])
    with pytest.raises(InvitationError):
        Intake(store).receive("small", body(small, invitation=token), TODAY)
