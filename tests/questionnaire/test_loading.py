"""Published definitions convert back to source for new versions and copies."""

from __future__ import annotations

import json

from survey.demo import definition as demo
from survey.questionnaire.canonical import freeze
from survey.questionnaire.definition import Definition
from survey.questionnaire.loading import load, source_of
from survey.questionnaire.validation import check
from survey.settings import Caps
from tests import surveys
from tests.cases import each_case
from tests.conftest import SMALL

SOURCES = {
    "small": SMALL,
    "every type": surveys.EVERY_TYPE,
    "skips": surveys.SKIPS,
    "sampled": surveys.SAMPLED,
    "joint": surveys.JOINT.decode(),
    "items": surveys.ITEMS.decode(),
    "matrix": surveys.MATRIX,
    "earlier answers": surveys.PIPED,
    "shared": f"kiosk = true\n{SMALL}",
    "languages": """
slug = "sprachen"
language = "de"
title = {de = "Arbeit", en = "Work", "pt-BR" = "Trabalho"}
introduction = {de = "Kurz.", en = "Short."}
consent = "Ja"
access = "invitation"
bucket = "week"
theme = "plum"
quick_exit = "https://example.org/"
epsilon = 0.5

[[pages]]
title = {de = "Seite", en = "Page"}
[[pages.questions]]
id = "lohn"
type = "number"
text = {de = "Wie viel?", en = "How much?"}
topic = {de = "Arbeit", en = "Work"}
low = -1
high = 1
step = 0.25
unit = {de = "Stunden", en = "hours"}
prefer_not_to_say = false
[[pages.questions]]
id = "laune"
type = "scale"
text = "Laune"
topic = {de = "Arbeit", en = "Work"}
low = -2
high = 2
low_label = {de = "schlecht", en = "bad (really)"}
[[pages.questions]]
id = "gruende"
type = "multiple_choice"
text = "Gründe"
none_of_these = {de = "Nichts", en = "Nothing"}
shuffle_options = true
does_not_apply = "Trifft nicht zu"
options = [{id = "a", label = "A"}, {id = "b", label = {de = "B", en = "Bee"}}]
[[pages.questions]]
id = "stufen"
type = "scale"
text = "Stufen"
keep_probability = "1/3"
options = [{id = "nie", label = "Nie"}, {id = "oft", label = "Oft"}]
[[pages.questions]]
id = "warner"
type = "yes_no"
text = "Warner"
mechanism = "warner"
parameters = {p = 0.7}
""",
}


def published(text: str) -> Definition:
    return freeze(load(text.encode(), "x.toml", Caps()), 3)


@each_case("name", SOURCES)
def test_converted_sources_publish_as_the_same_definition(name):
    definition = published(SOURCES[name])
    again = json.loads(json.dumps(source_of(definition)))
    assert freeze(check(again, Caps()), 3).canonical == definition.canonical


def test_the_demo_survey_converts_back_to_source():
    assert freeze(check(source_of(demo()), Caps()), 1).canonical == demo().canonical


def test_converted_sources_omit_parameters_that_only_the_channel_contains():
    text = SMALL.replace(
        'type = "yes_no"',
        'type = "yes_no"\nmechanism = "two_coins"\nparameters = {truth = 0.5, yes = 0.5}',
        1,
    )
    source = source_of(published(text))
    question = source["pages"][0]["questions"][0]
    assert question["parameters"] == {"truth": "0.5"}
