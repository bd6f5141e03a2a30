"""Every surface that states the factor of a whole report states the one found by enumeration."""

from __future__ import annotations

import html
import io
import json
import math
import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product
from zipfile import ZipFile

import pytest
from click.testing import CliRunner
from openpyxl import load_workbook

from survey.audit.altered_definitions import check_label
from survey.audit.channels import distribution, truths_of
from survey.audit.node import Node
from survey.cli import main
from survey.collect.publication import publish
from survey.mechanism.composition import format_epsilon, log_rounded_up
from survey.questionnaire.definition import Definition, groups_of
from survey.questionnaire.kinds import PublishedQuestion
from survey.questionnaire.loading import load
from survey.questionnaire.privacy_loss import Bounds
from survey.respond.client import source_files
from survey.settings import Caps
from tests.api.conftest import Program, make_token
from tests.browser.research import add_released
from tests.conftest import EMAIL, TODAY
from tests.web.researchers import send, sign_in

SEVERAL_DRAWS = """
slug = "small"
title = "Nights"
allow_skip_logic = true
epsilon = "0.7"
prefer_not_to_say = false

[[pages]]
[[pages.questions]]
id = "works"
type = "yes_no"
text = "Do you work at night?"
topic = "Nights"
[[pages.questions]]
id = "hit"
type = "yes_no"
text = "Did anybody hit you?"
mechanism = "warner"
parameters = { p = "3/4" }

[[pages]]
[[pages.questions]]
id = "often"
type = "single_choice"
text = "How many nights a week?"
options = [{id = "one", label = "One or two"}, {id = "more", label = "More"}]
ask_if = { question = "works", options = ["yes"] }

[[pages]]
[[pages.questions]]
id = "places"
type = "multiple_choice"
text = "Where do you sleep?"
topic = "Nights"
mechanism = "sampled_options"
epsilon = "0.9"
options = [{id = "home", label = "At home"}, {id = "car", label = "In a car"},
           {id = "street", label = "On the street"}]
[[pages.questions]]
id = "tools"
type = "multiple_choice"
text = "Which of these do you use?"
mechanism = "subsets"
epsilon = 1
options = [{id = "knife", label = "A knife"}, {id = "ladder", label = "A ladder"}]
[[pages.questions]]
id = "drugs"
type = "multiple_choice"
text = "What did you take?"
mechanism = "bits"
epsilon = "1.2"
options = [{id = "caffeine", label = "Caffeine"}, {id = "other", label = "Something else"}]
"""
"""Reports of one, two and three draws, skip logic and a topic."""

SURVEYS = {
    "all questions": SEVERAL_DRAWS,
    "one of five": SEVERAL_DRAWS.replace(
        'epsilon = "0.7"', 'epsilon = "0.7"\nquestions_per_person = 1'
    ),
    "two of five": SEVERAL_DRAWS.replace(
        'epsilon = "0.7"', 'epsilon = "0.7"\nquestions_per_person = 2'
    ),
    "three of five": SEVERAL_DRAWS.replace(
        'epsilon = "0.7"', 'epsilon = "0.7"\nquestions_per_person = 3'
    ),
}


def enumerated_ratio(definition: Definition, topic: str = "") -> Fraction:
    """Return the largest P(reports | answers) / P(reports | other answers) of one respondent.

    Over all answers, all reports and all sets of questions that can be drawn. With a topic, only
    the groups of linked questions that contain one of its questions count.
    """
    by_id = {question.id: question for question in definition.questions}
    groups = [[by_id[name] for name in names] for names in groups_of(definition.questions)]
    n = definition.drawn if definition.is_sampled else len(groups)
    factors = [
        ratio_of_group(group) if not topic or any(q.topic == topic for q in group) else Fraction(1)
        for group in groups
    ]
    # Groups are randomized independently, so the largest ratio of several is the product.
    return max(math.prod(draw, start=Fraction(1)) for draw in combinations(factors, n))


def enumerated_strength(definition: Definition) -> str:
    """Return the grade of a whole report: weak if a question or the topic is."""
    by_id = {question.id: question for question in definition.questions}
    groups = [[by_id[name] for name in names] for names in groups_of(definition.questions)]
    parts = [enumerated_ratio(definition, "Nights"), *map(ratio_of_group, groups)]
    if enumerated_ratio(definition) > 20 or max(parts) > 9:
        return "weak"
    return "moderate" if enumerated_ratio(definition) > 3 else "strong"


def ratio_of_group(group: list[PublishedQuestion]) -> Fraction:
    """Return the largest ratio of the likelihoods of the reports to a few linked questions."""
    answers = [
        truths
        for truths in product(*(truths_of(question.channel) for question in group))
        if is_consistent(group, truths)
    ]
    distributions = {
        (question.id, truth): distribution(question.channel, truth)
        for question in group
        for truth in truths_of(question.channel)
    }
    largest = Fraction(1)
    for reports in product(*(distributions[q.id, truths_of(q.channel)[0]] for q in group)):
        likelihoods = [
            math.prod(
                distributions[question.id, truth][report]
                for question, truth, report in zip(group, truths, reports, strict=True)
            )
            for truths in answers
        ]
        largest = max(largest, Fraction(max(likelihoods)) / Fraction(min(likelihoods)))
    return largest


def is_consistent(group: list[PublishedQuestion], truths: tuple) -> bool:
    """Whether a question that is not asked has the answer "does not apply", and no other has."""
    options = {
        question.id: None if isinstance(truth, tuple) else question.options[truth].id
        for question, truth in zip(group, truths, strict=True)
        if not question.by_patterns
    }
    return all(
        (options[question.ask_if.question] in question.ask_if.options)
        != (options[question.id] == question.not_applicable)
        for question in group
        if question.ask_if
    )


def words_of(page: str) -> str:
    """Return the text of a page without tags."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def pages(client, slug: str) -> Iterator[tuple[str, str]]:
    """Yield every researchers' page and file that states the factor of a whole report."""
    base = f"/research/surveys/{slug}/1"
    for name in ("", "/methods", "/report", "/microdata"):
        yield name or "/dashboard", words_of(client.get(base + name).text)
    copy = send(client, f"/research/drafts/of/{slug}", page="/research/publish")
    for name in ("", "/publish"):
        yield f"draft{name}", words_of(client.get(copy.location + name).text)
    book = load_workbook(io.BytesIO(client.get(f"{base}/estimates.xlsx").data))
    yield "xlsx", " ".join(str(c) for sheet in book for row in sheet.values for c in row)
    with (
        send(client, f"{base}/microdata", form="csv") as packed,
        ZipFile(io.BytesIO(packed.data)) as members,
    ):
        yield "README.txt", words_of(members.read("README.txt").decode())


def rounded_up(factor):
    """A factor as pages print it: in tenths below 10, whole from 10 on."""
    return f"{math.ceil(10 * factor) / 10:g}" if factor < 10 else f"{math.ceil(factor):,}"


@pytest.mark.slow
@pytest.mark.parametrize("name", SURVEYS)
def test_every_surface_states_the_factor_of_a_whole_report_that_enumeration_finds(
    client, store, researcher, node, monkeypatch, tmp_path, name
):
    survey = publish(store, load(SURVEYS[name].encode(), "s.toml", Caps()), TODAY)
    add_released(store, survey, 100)
    factor = enumerated_ratio(survey.definition)
    bounds, strength = Bounds.of(factor), enumerated_strength(survey.definition)
    n, epsilon = math.ceil(factor), format_epsilon(log_rounded_up(factor))
    figure = rounded_up(factor)
    sign_in(client)
    store.set_role("small", store.researcher(EMAIL).key, "owner")
    sentence = (
        "One complete response changes the odds of a guess about someone by a factor of at most "
        f"{figure}. {bounds.examples}"
    )
    for place, text in pages(client, "small"):
        assert sentence in text, (place, re.findall(r"complete response changes.{120}", text))
        factors = re.findall(r"complete response changes the odds.*?at most ([\d,.]+\d|\d)", text)
        assert set(factors) == {figure}, place
        if place != "xlsx":
            assert f"({strength})" in text, place
    assert f"{epsilon} ({strength})" in client.get("/research/").text

    key = store.researcher(EMAIL).key
    version = Program(client, make_token(store, key)).get("/surveys/small/versions/1").get_json()
    assert (version["odds_factor"], version["epsilon"]) == (n, log_rounded_up(factor))

    monkeypatch.setenv("SURVEY_DATABASE", f"sqlite:///{tmp_path / 'none.db'}")
    file = tmp_path / "s.toml"
    file.write_text(SURVEYS[name], encoding="utf-8")
    checked = CliRunner().invoke(main, ["check", str(file)])
    assert f"epsilon {epsilon}, odds factor at most {figure}; a suspicion" in checked.stdout
    assert ("Weak protection: one complete response" in checked.stderr) == (factor > 20)
    figures = json.loads(CliRunner().invoke(main, ["check", "--json", str(file)]).stdout)
    assert (Fraction(figures["ratio"]), figures["odds"]) == (factor, figure)
    of_topic = Bounds.of(enumerated_ratio(survey.definition, "Nights"))
    assert figures["topics"][0]["odds"] == of_topic.odds

    device = Node(source_files(), node, survey.canonical)
    label = device.ask(label=[{}])["label"][0]
    assert Fraction(*map(int, label["total"]["ratio"])) == factor
    assert label["total"]["odds"] == figure
    assert label["topics"]["Nights"]["odds"] == of_topic.odds
    audited = check_label(device, survey.definition)
    assert audited.ok
    assert audited.detail.endswith(f"by a factor of at most {figure}")
