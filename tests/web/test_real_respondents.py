"""Real answers pass through the shipped client, the network and the server to the estimates.

Fair's survey of 1974 (6,366 readers of a magazine; Fair, Journal of Political Economy 1978), as
statsmodels ships it: affairs, religiosity, children, occupation.
"""

from __future__ import annotations

import json
import subprocess
import urllib.request

import numpy as np
import pytest
from statsmodels.datasets import fair

from survey.collect.publication import close, publish
from survey.estimator import proportions
from survey.questionnaire.loading import load
from survey.settings import Caps
from tests.conftest import ROOT, TODAY, wait_until

DEFINITION = """
slug = "fair"
title = "Marriage"
truth_probability = "3/4"

[[questions]]
id = "affair"
type = "yes_no"
text = "Did you have an affair?"
prefer_not_to_say = false

[[questions]]
id = "religious"
type = "single_choice"
text = "How religious are you?"
prefer_not_to_say = false
epsilon = 1.5
options = [{id = "not", label = "Not"}, {id = "mildly", label = "Mildly"},
           {id = "fairly", label = "Fairly"}, {id = "strongly", label = "Strongly"}]

[[questions]]
id = "children"
type = "single_choice"
text = "How many children do you have?"
keep_probability = 0.4
options = [{id = "c0", label = "None"}, {id = "c1", label = "1"}, {id = "c2", label = "2"},
           {id = "c3", label = "3"}, {id = "c4", label = "4"}, {id = "c5", label = "5 or more"}]

[[questions]]
id = "occupation"
type = "single_choice"
text = "What is your occupation?"
epsilon = 2
options = [{id = "student", label = "Student"}, {id = "farming", label = "Farming, unskilled"},
           {id = "skilled", label = "White collar"}, {id = "teacher", label = "Teacher, nurse"},
           {id = "manager", label = "Managerial"}, {id = "professional", label = "Professional"}]
"""


def true_answers() -> dict[str, np.ndarray]:
    frame = fair.load_pandas().data
    return {
        "affair": np.where(frame["affairs"] > 0, 0, 1),
        "religious": frame["religious"].to_numpy().astype(int) - 1,
        "children": np.ceil(frame["children"].to_numpy()).clip(0, 5).astype(int),
        "occupation": frame["occupation"].to_numpy().astype(int) - 1,
    }


@pytest.mark.web
def test_real_proportions_lie_inside_the_simultaneous_intervals(serve, store, node):
    survey = publish(store, load(DEFINITION.encode(), "fair.toml", Caps()), TODAY)
    answers = true_answers()
    people = [
        dict(zip(answers, map(int, row), strict=True))
        for row in zip(*answers.values(), strict=True)
    ]
    assert len(people) == 6366
    url = serve(SURVEY_RELEASE_EVERY="1")
    run = subprocess.run(
        [node, str(ROOT / "tests/web/respond_many.mjs"), f"{url}/s/fair"],
        input=json.dumps(people),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) == 6366
    close(store, "fair", TODAY)
    wait_until(lambda: store.n_released(survey.key) == len(people))
    tally = store.tally(survey.key)
    assert tally.n == 6366
    for question, counts in zip(survey.definition.questions, tally.counts, strict=True):
        k = question.channel.k
        truth = np.bincount(answers[question.id], minlength=k) / 6366
        result = proportions(counts, question.channel, level=1 - 1e-6, simultaneous=True)
        assert np.all(result.conf_low <= truth), (question.id, truth, result)
        assert np.all(truth <= result.conf_high), (question.id, truth, result)
        # The intervals are informative: neither empty nor as wide as a guess.
        assert 0 < (result.conf_high - result.conf_low).max() < 0.35


@pytest.mark.web
def test_identical_true_answers_arrive_as_different_reports(serve, store, node):
    """If 200 respondents give identical answers, their stored codes vary as the channel does."""
    survey = publish(store, load(DEFINITION.encode(), "fair.toml", Caps()), TODAY)
    url = serve(SURVEY_RELEASE_EVERY="1")
    people = [{"affair": 0, "religious": 0, "children": 0, "occupation": 0}] * 200
    subprocess.run(
        [node, str(ROOT / "tests/web/respond_many.mjs"), f"{url}/s/fair"],
        input=json.dumps(people),
        check=True,
        capture_output=True,
        text=True,
    )
    close(store, "fair", TODAY)
    wait_until(lambda: store.n_released(survey.key) == len(people))
    for counts in store.tally(survey.key).counts:
        assert min(counts[0], 200 - counts[0]) > 20


@pytest.mark.web
@pytest.mark.security
def test_the_server_prints_nothing_about_respondents(serve, store, node, capfd):
    publish(store, load(DEFINITION.encode(), "fair.toml", Caps()), TODAY)
    url = serve()
    for path in ("/s/fair", "/s/fair/definition.json", "/s/none"):
        request = urllib.request.Request(url + path, headers={"User-Agent": "planted-agent"})
        try:
            with urllib.request.urlopen(request) as response:
                assert response.headers["Set-Cookie"] is None
        except urllib.error.HTTPError as error:
            error.close()
    process = serve.processes[0]
    process.terminate()
    # Wait longer than the server's time-out for workers that are shutting down.
    printed = process.communicate(timeout=90)[0]
    assert "planted-agent" not in printed
    assert "/s/" not in printed
