"""Real answers to every type of question, from the shipped client to the CSV.

Fair's survey of 1974 (6,366 readers of a magazine; Fair, Journal of Political Economy 1978), as
statsmodels ships it.
"""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from statsmodels.datasets import fair

from survey.collect.publication import close, publish
from survey.questionnaire.loading import load
from survey.results.estimates.result import ResultCache
from survey.results.exports.csv import to_csv
from survey.settings import Caps
from tests.conftest import ROOT, TODAY, wait_until

DEFINITION = """
slug = "every-type"
title = "Marriage"
allow_skip_logic = true
prefer_not_to_say = false

[[pages]]
[[pages.questions]]
id = "affair"
type = "yes_no"
text = "Did you have an affair?"
mechanism = "two_coins"
parameters = { truth = "1/2", yes = "1/2" }
[[pages.questions]]
id = "marriage"
type = "scale"
text = "How do you rate your marriage?"
low = 1
high = 5
epsilon = 1.5
prefer_not_to_say = true
[[pages.questions]]
id = "religious"
type = "scale"
text = "How religious are you?"
mechanism = "geometric"
epsilon = 2
options = [{id = "not", label = "Not"}, {id = "mildly", label = "Mildly"},
           {id = "fairly", label = "Fairly"}, {id = "strongly", label = "Strongly"}]
prefer_not_to_say = true

[[pages]]
[[pages.questions]]
id = "affairs"
type = "number"
text = "How much time do you spend in affairs?"
low = 0
high = 10
step = "0.5"
epsilon = 2
ask_if = { question = "affair", options = ["yes"] }
[[pages.questions]]
id = "age"
type = "number"
text = "How old are you?"
low = "17.5"
high = 42
step = "0.5"
unit = "years"
epsilon = 1
prefer_not_to_say = true
[[pages.questions]]
id = "married"
type = "date"
text = "When did you marry?"
low = 1950-01-01
high = 1973-12-26
step = 10
mechanism = "square_wave"
epsilon = 2
[[pages.questions]]
id = "traits"
type = "multiple_choice"
text = "What is true of you?"
mechanism = "sampled_options"
epsilon = 2
options = [{id = "children", label = "I have children"}, {id = "college", label = "College"},
           {id = "strict", label = "I am religious"}]
[[pages.questions]]
id = "again"
type = "multiple_choice"
text = "Once more: what is true of you?"
mechanism = "subsets"
epsilon = 3
prefer_not_to_say = true
options = [{id = "children", label = "I have children"}, {id = "college", label = "College"},
           {id = "strict", label = "I am religious"}]
[[pages.questions]]
id = "occupation"
type = "single_choice"
text = "What is your occupation?"
mechanism = "best"
epsilon = 0.7
prefer_not_to_say = true
options = [{id = "student", label = "Student"}, {id = "farming", label = "Farming, unskilled"},
           {id = "skilled", label = "White collar"}, {id = "teacher", label = "Teacher, nurse"},
           {id = "manager", label = "Managerial"}, {id = "professional", label = "Professional"}]
"""

LATEST = 8766 // 10
"""Number of ten-day steps from the first to the last date of the question's grid."""


def people() -> list[dict[str, Any]]:
    """Return the answers of the 6,366 readers.

    A tenth withhold their age; another tenth choose "Prefer not to say" where they can.
    """
    frame = fair.load_pandas().data
    answers = []
    for number, row in enumerate(frame.to_dict("records")):
        traits = [row["children"] > 0, row["educ"] >= 14, row["religious"] >= 3]
        ticked = [i for i, holds in enumerate(traits) if holds] or [3]
        is_nonresponse = number % 10 == 1
        answers.append(
            {
                "affair": 0 if row["affairs"] > 0 else 1,
                "marriage": NONRESPONSE["marriage"]
                if is_nonresponse
                else int(row["rate_marriage"]) - 1,
                "religious": NONRESPONSE["religious"]
                if is_nonresponse
                else int(row["religious"]) - 1,
                "affairs": min(round(2 * row["affairs"]), 20),
                "age": 50 if number % 10 == 0 else round(2 * (row["age"] - 17.5)),
                "married": LATEST - round(row["yrs_married"] * 36.525),
                "traits": ticked,
                "again": NONRESPONSE["again"] if is_nonresponse else ticked,
                "occupation": NONRESPONSE["occupation"]
                if is_nonresponse
                else int(row["occupation"]) - 1,
            }
        )
    return answers


Place = tuple[str, str, str]
"""Key of a CSV row: question, option ("" for the mean) and base."""

CELL = re.compile(r"from_(-?[0-9.]+)_to_(-?[0-9.]+)")
"""Option identifier of a histogram's cell."""

OPTIONS = {
    "affair": ["yes", "no"],
    "marriage": [f"value_{i}" for i in range(1, 6)],
    "religious": ["not", "mildly", "fairly", "strongly"],
    "traits": ["children", "college", "strict", "none_of_these"],
    "again": ["children", "college", "strict", "none_of_these"],
    "occupation": ["student", "farming", "skilled", "teacher", "manager", "professional"],
}
NONRESPONSE = {"marriage": 5, "religious": 4, "again": [4], "occupation": 6}
"""Index of "Prefer not to say" in each question."""


def true_shares(answers: list[dict[str, Any]]) -> dict[Place, float]:
    """Return the true shares of all readers and, with nonresponse, of those who answered."""
    truths: dict[Place, float] = {}
    for question, options in OPTIONS.items():
        replies = [item[question] for item in answers]
        substantive = [item for item in replies if item != NONRESPONSE.get(question)]
        if question in NONRESPONSE:
            truths[question, "prefer_not_to_say", "all"] = 1 - len(substantive) / len(replies)
        for base, respondents in (
            ("all", replies),
            ("answered", substantive if question in NONRESPONSE else []),
        ):
            for i, option in enumerate(options if respondents else []):
                selections = [i in np.atleast_1d(item) for item in respondents]
                truths[question, option, base] = float(np.mean(selections))
    return truths


def numbers(answers: list[dict[str, Any]]) -> dict[str, list[float]]:
    """Return the values of readers who answered the questions for numbers and dates."""
    respondents = [item for item in answers if item["affair"] == 0]
    with_age = [item for item in answers if item["age"] < 50]
    return {
        "affairs": [item["affairs"] / 2 for item in respondents],
        "age": [17.5 + item["age"] / 2 for item in with_age],
        "married": [-7305 + 10 * item["married"] for item in answers],
    }


def true_values(answers: list[dict[str, Any]], places: Iterable[Place]) -> dict[Place, float]:
    """Return the true value of every row; `places` contains the histograms' cells."""
    truths, values_by_question = true_shares(answers), numbers(answers)
    truths["affairs", "does_not_apply", "all"] = 1 - len(values_by_question["affairs"]) / len(
        answers
    )
    truths["age", "prefer_not_to_say", "all"] = 1 - len(values_by_question["age"]) / len(answers)
    for question, values in values_by_question.items():
        base = "all" if len(values) == len(answers) else "answered"
        truths[question, "", base] = float(np.mean(values))
        for place in places:
            if place[0] == question and (cell := CELL.fullmatch(place[1])):
                first, last = float(cell[1]), float(cell[2])
                truths[place] = float(np.mean([first <= value <= last for value in values]))
    rated = [item for item in answers if item["marriage"] < 5]
    for scale in ("marriage", "religious"):
        truths[scale, "", "answered"] = float(np.mean([item[scale] + 1 for item in rated]))
    return truths


def estimated(serve, store, node, definition: str) -> dict[Place, dict[str, str]]:
    """Send all answers through the shipped client and return the CSV's shares and means.

    Medians are excluded because they have no standard error to compare a difference with.
    """
    survey = publish(store, load(definition.encode(), "every.toml", Caps()), TODAY)
    answers = people()
    url = serve(SURVEY_RELEASE_EVERY="1")
    run = subprocess.run(
        [node, str(ROOT / "tests/web/respond_many.mjs"), f"{url}/s/every-type"],
        input=json.dumps(answers),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) == len(answers) == 6366
    close(store, "every-type", TODAY)
    wait_until(lambda: store.n_released(survey.key) == len(answers))
    rows = csv.DictReader(io.StringIO(to_csv(ResultCache(store).result(survey).rows)))
    return {
        (row["question_id"], row["option_id"], row["base"]): row
        for row in rows
        if row["statistic"] != "median"
    }


@pytest.mark.long
@pytest.mark.parametrize("n_questions", ["all", "4"])
def test_real_values_of_every_type_are_estimated(serve, store, node, n_questions):
    """Each estimate is within five standard errors of the truth (one false alarm in 10^5 runs)."""
    definition = DEFINITION
    if n_questions != "all":
        definition = definition.replace(
            "[[pages]]", f"questions_per_person = {n_questions}\n[[pages]]", 1
        )
    rows = estimated(serve, store, node, definition)
    truths = true_values(people(), rows)
    assert set(rows) == set(truths)
    assert rows["age", "", "answered"]["statistic"] == "mean"
    assert rows["age", "prefer_not_to_say", "all"]["statistic"] == "share"
    n_estimates = {"all": 0, "answered": 0}
    for place, truth in truths.items():
        row = rows[place]
        if row["flag"] in ("suppressed", "not_estimable"):
            assert row["estimate"] == ""
            continue
        n_estimates[place[2]] += 1
        error = float(row["std_error"])
        assert abs(float(row["estimate"]) - truth) <= 5 * error, (place, truth, row)
        assert float(row["conf_low"]) < float(row["conf_high"])
    assert (n_estimates["all"], n_estimates["answered"]) >= (
        (20, 10) if n_questions == "all" else (5, 1)
    ), n_estimates
