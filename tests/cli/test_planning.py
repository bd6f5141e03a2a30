"""`survey simulate`: the estimates of a published survey for simulated respondents."""

from __future__ import annotations

import csv
import io

import pytest
from click.testing import CliRunner

from survey.cli import main
from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import open_store
from tests import surveys
from tests.conftest import SMALL, TODAY

TRUE = (0.3, 0.6, 0.1)


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.setenv("SURVEY_DATABASE", f"sqlite:///{tmp_path / 'cli.db'}")
    return lambda *arguments: CliRunner().invoke(main, arguments)


@pytest.fixture
def store(tmp_path):
    opened = open_store(f"sqlite:///{tmp_path / 'cli.db'}")
    opened.migrate()
    yield opened
    opened.close_connections()


def published(store, text):
    return publish(store, load(text.encode(), "s.toml", Caps()), TODAY)


def test_the_estimates_of_simulated_respondents_are_close_to_the_true_shares(run, store):
    published(store, SMALL)
    shares = ",".join(map(str, TRUE))
    ran = run("simulate", "small", "--n", "4000", "--true", f"fell_asleep={shares}", "--csv")
    assert ran.exit_code == 0, ran.output
    rows = list(csv.DictReader(io.StringIO(ran.output)))
    rows = [item for item in rows if item["question_id"] == "fell_asleep" and item["base"] == "all"]
    assert [item["n_reports"] for item in rows] == ["4000"] * 3
    for row, share in zip(rows, TRUE, strict=True):
        assert abs(float(row["estimate"]) - share) < 5 * float(row["std_error"])


def test_simulated_reports_are_not_added_to_the_survey_and_leave_no_file(
    run, store, monkeypatch, tmp_path
):
    survey = published(store, SMALL)
    folder = tmp_path / "kept"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    assert run("simulate", "small", "--n", "60").exit_code == 0
    assert store.n_released(survey.key) == store.n_pending(survey.key) == 0
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "text", [surveys.EVERY_TYPE, surveys.SKIPS, surveys.SAMPLED, surveys.RANKING]
)
def test_the_true_values_of_every_question_type_are_printed(run, store, text):
    survey = published(store, text)
    ran = run("simulate", "small", "--n", "300")
    assert ran.exit_code == 0, ran.output
    estimated, true = ran.output.split("All responses are simulated.")
    for question in survey.definition.questions:
        assert question.text in estimated
        assert question.text in true


def test_the_true_mean_ranks_of_a_ranking_are_printed(run, store):
    published(store, surveys.RANKING)
    ran = run("simulate", "small", "--n", "300", "--true", "matters=.6,.2,.1,.1,0,0")
    _, true = ran.output.split("All responses are simulated.")
    # 1 + .2/.8 + .1/.7 + .1/.7, and 1 + .6/.8 + .1/.3 + .1/.3
    assert "Mean rank of “Pay” among those who answer: 1.5\n" in true
    assert "Mean rank of “Free time” among those who answer: 2.4\n" in true


def test_the_second_version_of_an_invitation_survey_can_be_simulated(run, store):
    published(store, SMALL)
    published(store, f'access = "invitation"\n{SMALL}')
    assert "2,000 released reports" in run("simulate", "small").output


def test_wrong_shares_are_rejected_by_name(run, store):
    published(store, SMALL)
    for share, message in (
        (
            "other=.5,.5,0",
            "'other' is not a question of this survey; questions: fell_asleep, pressure",
        ),
        ("fell_asleep=.5,.5", "fell_asleep needs 3 shares (yes, no, prefer_not_to_say), not 2"),
        ("fell_asleep=2,-1,0", "fell_asleep: a share must be between 0 and 1 (found 2.0)"),
        ("fell_asleep=nan,1,0", "fell_asleep: a share must be between 0 and 1 (found nan)"),
        ("fell_asleep=.5,.2,.2", "must be at least 0 and add up to 1, not 0.9"),
        ("fell_asleep", "must be a question and its shares, such as slept=.1,.8,.1"),
    ):
        result = run("simulate", "small", "--true", share)
        assert result.exit_code == 1, share
        assert message in result.output, (share, result.output)


def test_a_missing_survey_is_named_in_the_error(run, store):
    ran = run("simulate", "none")
    assert ran.exit_code == 1
    assert "none" in ran.output
