"""Attacks on the release policy by those who issue invitations, send reports or read results."""

from __future__ import annotations

import secrets
import shutil
from dataclasses import replace

import numpy as np
import pytest

from survey.cli import main
from survey.collect.invitations import issue_invitations, new_tokens, token_hash
from survey.collect.publication import close, publish
from survey.collect.release import utc_today
from survey.collect.simulation import (
    add_simulated,
    complete_shares,
    make_test_run,
    simulate_respondents,
)
from survey.questionnaire.definition import report_body
from survey.questionnaire.loading import load
from survey.settings import Caps, Settings
from survey.store import Store, open_store
from tests.conftest import EMAIL, SMALL, TODAY
from tests.faults.reports import JSON, new_report
from tests.store.reports import keeper_at, write_spare_keys
from tests.web.researchers import send
from tests.web.routes import add_links
from tests.web.surfaces import MASKED, Surfaces, captured_log, response_text

pytestmark = [pytest.mark.security, pytest.mark.web]


@pytest.fixture
def surfaces(store, settings, small) -> Surfaces:
    return Surfaces(store, settings)


def post(surfaces: Surfaces, body: bytes, slug: str = "small") -> int:
    client = surfaces.client()
    return client.post(f"/s/{slug}/reports", data=body, headers=JSON).status_code


def victims_report(survey) -> bytes:
    """Return a report with codes that nobody else sends."""
    length = survey.definition.report_bytes
    return report_body(survey.sha256, secrets.token_urlsafe(16), [2, 2], length=length)


def equal_report(survey, stratum: str, token: str) -> bytes:
    """Return a report with an invitation and the same codes as all other equal reports."""
    identity, length = secrets.token_urlsafe(16), survey.definition.report_bytes
    return report_body(
        survey.sha256, identity, [0, 1], stratum=stratum, invitation=token, length=length
    )


def test_a_group_of_one_invitation_cannot_be_issued(surfaces, store, small):
    """Its only report would be published as that person's at closing."""
    page = "/research/surveys/small/collect"
    for stratum in ("", "boss"):
        for count in (1, 24):
            form = send(surfaces.client(), f"{page}/invite", page=page, count=count,
                        stratum=stratum, made="{}")  # fmt: skip
            assert form.status_code == 422
            command = surfaces.run("invite", "small", "--count", str(count), "--stratum", stratum)
            assert command.startswith("1 "), command
    assert store.n_invited_by_stratum(small.key) == {}


def test_closing_an_invitation_survey_publishes_no_fewer_than_25(surfaces, store, settings, small):
    """25 were invited, and one of them took part: her report is not published."""
    tokens = new_tokens(25)
    store.add_invitations(small.key, "night shift", [token_hash(token) for token in tokens])
    length = small.definition.report_bytes
    for token in tokens[:1]:
        body = report_body(
            small.sha256, secrets.token_urlsafe(16), [2, 2],
            stratum="night shift", invitation=token, length=length,
        )  # fmt: skip
        assert post(surfaces, body) == 201
    close(store, "small", utc_today())
    before = surfaces.read()
    assert keeper_at(store, settings, 1).work() == 0
    assert surfaces.rows() == {1: {}}
    assert surfaces.read() == before
    assert store.n_pending(small.key) == 0
    # The device may send the deleted report again: it gets the same answer as any stored report.
    assert post(surfaces, body) == 201
    assert post(surfaces, new_report(small)) == 410


def test_a_test_run_stores_no_real_report_beside_simulated_ones(surfaces, store, settings):
    """Test runs release at once: a real report among simulated ones would be readable."""
    draft = store.add_draft("{}", EMAIL, 1, {})
    survey = load(SMALL.encode(), "s.toml", Caps())
    test_run = make_test_run(store, survey, draft, utc_today())
    respondents = simulate_respondents(
        test_run.definition, 1, complete_shares(test_run.definition, {}), np.random.default_rng(1)
    )
    assert sum(add_simulated(store, test_run, respondents)) == 1
    assert post(surfaces, victims_report(test_run), test_run.slug) == 403
    keeper_at(store, settings, 1).work()
    assert store.n_pending(test_run.key) == 0
    assert store.tally(test_run.key).n == 1


class CollectionRun:
    """A collection with results on every page, in which two groups have `n_pending` reports.

    Of equal reports, a release publishes 25 of each group, whether 50 or 74 are pending.
    """

    def __init__(self, store: Store, settings: Settings, n_pending: int) -> None:
        self.store, self.settings = store, settings
        self.surfaces = Surfaces(store, settings)
        self.texts: dict[str, str] = {}
        survey = publish(store, load(SMALL.encode(), "s.toml", Caps()), TODAY)
        add_links(store, survey)
        bodies = []
        for stratum in ("north", "south"):
            tokens = new_tokens(100)
            issue_invitations(store, survey, stratum, tokens)
            bodies += [equal_report(survey, stratum, token) for token in tokens[:n_pending]]
        with captured_log() as log:
            client = self.surfaces.client()
            for body in bodies:
                answer = client.post("/s/small/reports", data=body, headers=JSON)
                assert answer.status_code == 201
            assert keeper_at(store, settings, 1).work() == 50
            self.read("released")
            self.back_up()
            self.close()
            self.read("closed")
        self.texts["log"] = "\n".join(log)

    def read(self, state: str) -> None:
        for name, text in self.surfaces.read(is_complete=True).items():
            self.texts[f"{name} {state}"] = text

    def back_up(self) -> None:
        file = f"{self.settings.keys}.backup"
        self.texts["backup"] = self.surfaces.run("backup", file).replace(file, "FILE")

    def close(self) -> None:
        """Close the survey on its page, and once more with the command."""
        page = "/research/surveys/small/collect"
        client = self.surfaces.client()
        self.texts["closing"] = response_text(
            send(client, f"{page}/close", page=page, name="small")
        )
        self.texts["message"] = MASKED.sub("", client.get(page).text)
        self.texts["close"] = self.surfaces.run("close", "small")


def test_nothing_readable_depends_on_the_number_of_pending_reports(
    store, settings, migrated_file, tmp_path
):
    """Compare runs that differ only in the number of pending reports, before and after closing."""
    shutil.copy(migrated_file, tmp_path / "other.db")
    write_spare_keys(tmp_path / "other-keys")
    other = replace(
        settings, database=f"sqlite:///{tmp_path / 'other.db'}", keys=str(tmp_path / "other-keys")
    )
    few, many = (
        CollectionRun(store, settings, 50),
        CollectionRun(open_store(other.database), other, 74),
    )
    without_result = {
        name
        for name, text in few.texts.items()
        if name.startswith("/") and name.endswith(" released") and not text.startswith("200 ")
    }
    # One page takes no GET, and two addresses redirect to pages that are compared.
    assert without_result == {
        "/s/small/sent released",
        "/research/surveys/small released",
        "/research/surveys/small/explore/show?first=fell_asleep&second=pressure released",
    }
    assert few.texts["log"] == ""
    assert {name for name, text in few.texts.items() if many.texts[name] != text} == set()
    assert [keeper_at(run.store, run.settings, 2).work() for run in (few, many)] == [50, 98]
    many.store.close_connections()


def test_no_option_of_a_command_releases_reports_earlier():
    """Operators can choose neither the time nor the number of reports of a release."""
    options = {
        name: {
            spelling for option in main.get_command(None, name).params for spelling in option.opts
        }
        for name in ("release", "close", "keeper", "schedule")
    }
    assert options == {
        "release": set(),
        "close": {"slug"},
        "keeper": {"--take-over", "--destroy-unused", "--yes"},
        "schedule": {"slug", "--opens", "--closes", "--most"},
    }


def test_an_attacker_who_sends_24_reports_does_not_read_the_25th(surfaces, store, settings, small):
    """On an open link, the attacker knows all codes but the victim's, and reads every surface."""
    keeper_at(store, settings, 1).work()
    for _ in range(24):
        assert post(surfaces, new_report(small)) == 201
    before = surfaces.read()
    assert post(surfaces, victims_report(small)) == 201
    for minute in (1, 20, 59):
        assert keeper_at(store, settings, 1 + minute / 60).work() == 0
    assert {name for name, text in surfaces.read().items() if text != before[name]} == set()
    # 25 pending reports are too few for a release: the attacker has to send 25 more.
    assert keeper_at(store, settings, 2).work() == 0
    # Closing the survey does not release them at a moment that an attacker chooses.
    close(store, "small", utc_today())
    assert keeper_at(store, settings, 2.9).work() == 0
    assert surfaces.rows() == {1: {}}
