"""Results of questions that were randomized jointly, from reports as devices send them."""

from __future__ import annotations

import json
import os
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from survey.cli import main
from survey.estimator import crosstab
from survey.mechanism import channel_from_json
from survey.parquet import export_reports
from survey.results.crosstab.compute import CrosstabRequest, compute_crosstab
from survey.results.crosstab.table import caveats
from survey.results.difference.compute import DifferenceRequest, compute_difference
from survey.results.exports.microdata import describe_channels, readme
from survey.results.joint_counts import count_combinations, joint_channel, joint_counts
from survey.results.regression.compute import RegressionRequest, compute_regression
from survey.results.request import IntervalOptions
from survey.results.weighting.compute import compute_weighting
from survey.results.weighting.request import WeightingRequest
from survey.store import StoredReport
from tests.results.populations import published
from tests.store.reports import publish_pending

N = 3_000
SHARES = np.array([[0.30, 0.10, 0.05], [0.05, 0.10, 0.40]])
"""True joint shares of (yes, no) by (often, once, never)."""

SOURCE = """
slug = "joint"
title = "Joint"
truth_probability = "3/4"
prefer_not_to_say = false
[[questions]]
id = "smoked"
type = "yes_no"
text = "Have you smoked?"
[[questions]]
id = "works"
type = "yes_no"
text = "Do you work?"
[[questions]]
id = "drank"
type = "single_choice"
text = "Have you drunk?"
options = [{id = "often", label = "Often"}, {id = "once", label = "Once"},
           {id = "never", label = "Never"}]
[[together]]
questions = ["smoked", "drank"]
joint = true
"""


@pytest.fixture
def joint(store):
    """Return a survey with released reports, and the true shares among its respondents."""
    survey = published(store, SOURCE)
    rng = np.random.default_rng(11)
    pairs = rng.choice(6, size=N, p=SHARES.ravel())
    smoked, works, _ = survey.definition.questions
    codes = np.unravel_index(smoked.joint.channel.perturb(pairs, rng), SHARES.shape)
    work = works.channel.perturb((rng.random(N) < 0.4).astype(np.int64), rng)
    rows = np.stack([codes[0], work, codes[1]], axis=1).astype(np.uint8)
    store.add_reports(
        [(survey.key, StoredReport(os.urandom(16), "", row.tobytes())) for row in rows]
    )
    publish_pending(store, survey, 25)
    return SimpleNamespace(survey=survey, shares=np.bincount(pairs, minlength=6) / N)


def cross(store, joint, first, second):
    return compute_crosstab(store, joint.survey, CrosstabRequest(first, second), IntervalOptions())


def test_a_cross_tab_uses_the_joint_channel_and_a_narrower_interval(store, joint):
    result = cross(store, joint, "smoked", "drank")
    channel = joint_channel(result.questions)
    assert channel.ratio == 18
    counts = joint_counts(store, joint.survey, 0, 2)
    expected = crosstab(counts, [channel])
    rows = result.rows
    np.testing.assert_array_equal([row.estimate for row in rows], expected.estimate.ravel())
    errors = np.array([row.std_error for row in rows])
    assert (np.abs([row.estimate for row in rows] - joint.shares) < 4.5 * errors).all()
    # Reports of the same size whose questions were randomized separately at the same total.
    apart = crosstab(counts, [question.own for question in own_channels()])
    assert (errors < 0.65 * apart.std_error.ravel()).all()
    assert result.test.p_value < 1e-6
    assert "were randomized jointly" in " ".join(caveats(result))


def own_channels():
    grr = {"kind": "subset_selection", "d": 1, "L": 1}
    forms = ({**grr, "k": 2, "T": 3}, {**grr, "k": 3, "T": 6})
    return [SimpleNamespace(own=channel_from_json(form)) for form in forms]


def test_a_cross_tab_with_another_question_uses_the_parts(store, joint):
    result = cross(store, joint, "drank", "works")
    counts = joint_counts(store, joint.survey, 2, 1)
    expected = crosstab(counts, [question.channel for question in result.questions])
    np.testing.assert_array_equal([row.estimate for row in result.rows], expected.estimate.ravel())
    assert result.test.p_value > 1e-4
    assert "as one answer" not in " ".join(caveats(result))


def test_shares_by_an_answer_of_the_pair_are_near_the_truth(store, joint):
    request = DifferenceRequest("smoked", "answer:drank:often", "answer:drank:never")
    result = compute_difference(store, joint.survey, request, IntervalOptions())
    yes = result.rows[0]
    assert abs(yes.estimate - (0.30 / 0.35 - 0.05 / 0.45)) < 4.5 * yes.std_error


def test_an_odds_ratio_of_the_pair_is_near_the_truth(store, joint):
    request = RegressionRequest("smoked", ("drank", "works"))
    result = compute_regression(store, joint.survey, request, IntervalOptions())
    rows = {
        (row.predictor_id, row.predictor_option_id): row
        for row in result.rows
        if row.option_id == "yes"
    }
    expected = {"once": np.log(0.1 / 0.1), "never": np.log(0.05 / 0.4)}
    # "often" is the reference.
    reference = np.log(0.30 / 0.05)
    for option, log_odds in expected.items():
        row = rows["drank", option]
        assert abs(row.coefficient - (log_odds - reference)) < 4.5 * row.std_error


def test_shares_weighted_by_an_answer_of_the_pair_are_near_the_truth(store, joint):
    request = WeightingRequest("smoked", "answer:drank", "often,0.2\nonce,0.3\nnever,0.5", "shares")
    result = compute_weighting(store, joint.survey, request, IntervalOptions())
    yes = result.rows[0]
    truth = SHARES[0] / SHARES.sum(axis=0) @ [0.2, 0.3, 0.5]
    assert abs(yes.estimate - truth) < 4.5 * yes.std_error
    assert abs(yes.unweighted - 0.45) < 0.08


# Ibis 12 calls what newer engines call deprecated.
@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
def test_exported_reports_give_the_same_cross_tab(store, joint, settings, tmp_path):
    export_reports(store, joint.survey, tmp_path / "out", lambda n: None)
    command = ["estimate", "--cross", "smoked", "drank", "--csv"]
    stored = CliRunner(env={"SURVEY_DATABASE": settings.database}).invoke(main, [*command, "joint"])
    exported = CliRunner().invoke(main, [*command, "--parquet", str(tmp_path / "out")])
    assert exported.exit_code == 0, exported.output
    assert exported.stdout == stored.stdout


def test_microdata_name_the_joint_channel_of_each_pair(joint):
    first, apart, second = describe_channels(joint.survey)["questions"]
    assert first["joint"] == second["joint"]
    assert first["joint"]["questions"] == ["smoked", "drank"]
    assert channel_from_json(first["joint"]["channel"]).ratio == 18
    assert apart["joint"] is None
    assert json.dumps(first)
    text = readme(joint.survey, N, 1)
    assert "randomized jointly with drank" in text
    assert "joint epsilon 2.891" in text


THREE = """
slug = "three"
title = "Three"
epsilon = "0.8"
prefer_not_to_say = false
[[questions]]
id = "a"
type = "yes_no"
text = "A?"
[[questions]]
id = "b"
type = "yes_no"
text = "B?"
[[questions]]
id = "c"
type = "yes_no"
text = "C?"
[[together]]
questions = ["a", "b", "c"]
joint = true
"""
OF_THREE = np.array([[[0.30, 0.05], [0.05, 0.10]], [[0.05, 0.05], [0.10, 0.30]]])
"""True joint shares of the three answers."""


@pytest.fixture
def three(store):
    """Return a survey with released reports of three questions that were randomized as one."""
    survey = published(store, THREE)
    rng = np.random.default_rng(5)
    people = rng.choice(8, size=N, p=OF_THREE.ravel())
    reported = survey.definition.questions[0].joint.channel.perturb(people, rng)
    rows = np.stack(np.unravel_index(reported, OF_THREE.shape), axis=1).astype(np.uint8)
    store.add_reports(
        [(survey.key, StoredReport(os.urandom(16), "", row.tobytes())) for row in rows]
    )
    publish_pending(store, survey, 25)
    return survey


def test_every_pair_of_three_jointly_randomized_questions_is_cross_tabulated(store, three):
    for axis, (first, second) in enumerate([("b", "c"), ("a", "c"), ("a", "b")]):
        result = compute_crosstab(store, three, CrosstabRequest(first, second), IntervalOptions())
        # Four combinations stand for the eight: T' = T + L, L' = 2 L.
        assert joint_channel(result.questions).k == 4
        errors = np.array([row.estimate for row in result.rows]) - OF_THREE.sum(axis=axis).ravel()
        assert (np.abs(errors) < 4.5 * np.array([row.std_error for row in result.rows])).all()
        assert result.phi.estimate > 0.2


def test_the_cells_of_three_jointly_randomized_questions_follow_from_their_combinations(
    store, three
):
    """No page shows them; a notebook counts the combinations and estimates them as here."""
    combinations = count_combinations(store, three, [0, 1, 2])
    counts = np.zeros((2, 2, 2), dtype=np.int64)
    np.add.at(counts, tuple(combinations.codes.T), combinations.times)
    table = crosstab(counts, [joint_channel(three.definition.questions)])
    assert (np.abs(table.estimate - OF_THREE) < 4.5 * table.std_error).all()
