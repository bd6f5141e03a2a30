"""`survey audit` writes readable text or JSON and reports every failure."""

from __future__ import annotations

import json
from functools import partial

import pytest
from click.testing import CliRunner

from survey.audit.bundled_modules import unbundle
from survey.audit.enumeration import Auditor
from survey.audit.node import Check
from survey.audit.summary import (
    GROUPS,
    LIMITS,
    check_whole_reports,
    run_checks,
    to_json,
    to_text,
)
from survey.audit.visits import check_visits
from survey.cli import main
from survey.respond.client import Client, source_files
from tests import surveys
from tests.conftest import SMALL, long_unless

CLIENT = Client.load()

QUICK = ["--samples", "1000"]

CHECKS = [
    Check("channels", "enumeration of a channel", True, "all exact"),
    Check("channels", "e^epsilon as the pages show it", True, "the same"),
    Check("whole reports", "one + other", False, "the draws are other than the channels'"),
]


@pytest.fixture
def published(monkeypatch, tmp_path, node):
    """Publish the small survey, and put Node on the path."""
    monkeypatch.setenv("PATH", node.rpartition("/")[0])
    monkeypatch.setenv("SURVEY_DATABASE", f"sqlite:///{tmp_path / 'audit.db'}")
    file = tmp_path / "small.toml"
    file.write_text(SMALL, encoding="utf-8")
    for command in (["migrate"], ["publish", str(file)]):
        assert CliRunner().invoke(main, command).exit_code == 0


@pytest.mark.long
def test_the_audit_of_the_demo_is_readable_and_exits_with_0(node, monkeypatch):
    monkeypatch.setenv("PATH", node.rpartition("/")[0])
    result = CliRunner().invoke(main, ["audit", "--samples", "1000"])
    assert result.exit_code == 0, result.output
    assert "BAD" not in result.output
    assert f"client {CLIENT.sha256}" in result.output
    assert all(title in result.output for title in GROUPS.values())
    assert "checks passed" in result.output.splitlines()[-1]


@pytest.mark.web
def test_the_audit_of_a_published_survey_has_json(published, monkeypatch):
    # All visits take half a minute; another test makes them.
    monkeypatch.setattr("survey.audit.summary.check_visits", partial(check_visits, most=1))
    form = json.loads(CliRunner().invoke(main, ["audit", "small", *QUICK, "--json"]).output)
    assert form["client"] == CLIENT.sha256
    assert set(form["files"]) == set(CLIENT.files)
    assert form["ok"]
    assert all(check["ok"] for check in form["checks"])


@pytest.mark.web
@pytest.mark.security
def test_an_audit_that_finds_a_broken_client_exits_with_1(published, monkeypatch):
    source = source_files()["mechanism.js"].replace(b"u < T ? 0", b"T < u ? 0")
    broken = Client.from_sources({**source_files(), "mechanism.js": source})
    monkeypatch.setattr(Client, "load", lambda: broken)
    monkeypatch.setattr("survey.audit.summary.check_visits", lambda *_: [])
    result = CliRunner().invoke(main, ["audit", "small", *QUICK])
    assert result.exit_code == 1
    assert "BAD  enumeration of" in result.stdout
    assert "does not randomize as promised" in result.stderr


def test_an_audit_without_node_names_node(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    result = CliRunner().invoke(main, ["audit"])
    assert result.exit_code == 1
    assert "install Node" in result.stderr


def test_the_text_lists_hashes_groups_with_titles_and_a_summary():
    text = to_text("c0de", {"mechanism.js": "f11e"}, CHECKS)
    assert text.splitlines()[:2] == ["client c0de", "  f11e  mechanism.js"]
    assert text.count(GROUPS["channels"]) == 1
    assert text.splitlines()[-2] == LIMITS
    assert "BAD  one + other: the draws" in text
    assert text.splitlines()[-1].startswith("1 of 3 checks failed")
    assert to_text("c0de", {}, CHECKS[:2]).splitlines()[-1].startswith("all 2 checks passed")


def test_the_json_has_the_same_content():
    form = json.loads(to_json("c0de", {"mechanism.js": "f11e"}, CHECKS))
    assert not form["ok"]
    assert form["summary"].startswith("1 of 3 checks failed")
    assert form["limits"] == LIMITS
    assert form["checks"][2] == {
        "group": "whole reports",
        "name": "one + other",
        "ok": False,
        "detail": "the draws are other than the channels'",
    }


EVERY_RUN = ("routed_and_drawn",)


@pytest.mark.web
@pytest.mark.parametrize("name", long_unless(EVERY_RUN, surveys.EVERY_CHANNEL))
def test_surveys_of_every_kind_pass_all_groups_of_checks(node, name):
    checks = list(
        run_checks(CLIENT.files, surveys.publish(surveys.EVERY_CHANNEL[name]), 1_000, node)
    )
    assert all(check.ok for check in checks), [check for check in checks if not check.ok]
    assert [group for group in GROUPS if any(item.group == group for item in checks)] == [*GROUPS]


@pytest.mark.long
def test_the_largest_publishable_survey_passes(node):
    definition = surveys.publish(surveys.LARGEST)
    auditor = Auditor(unbundle(CLIENT.files), node, definition)
    assert all(check.ok for check in check_whole_reports(unbundle(CLIENT.files), definition, node))
    channels = [question.channel for question in definition.questions[1:]]
    assert all(check.ok for check in auditor.enumeration(channels))
    assert all(check.ok for check in auditor.sampling(channels, 1_000))
