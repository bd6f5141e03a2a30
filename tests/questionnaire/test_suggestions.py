"""Following the suggestions of error messages leads to a valid definition in few steps."""

from __future__ import annotations

import json
import re
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from survey.errors import DefinitionError
from survey.questionnaire import canonical
from survey.questionnaire.canonical import freeze
from survey.questionnaire.kinds.base import LARGEST
from survey.questionnaire.loading import load
from survey.settings import Caps
from tests.cases import each_case

MOST_STEPS = 6
"""Maximum number of steps; each step removes one mistake of the form."""

NOT_SAID = "no value is within the limits of this server"

ODD = ("1/3", "1/365", "7/9", "0.0013", "1e-7", "4e-7", "1e-30", "12.5", "0.999", "0.99999")
EDGES = ("0", "1", "2", "-1", "13", "1000", "1e12", "-1e12", "1000000000001", "0.05", "0.95")
VALUES = st.sampled_from([*ODD, *EDGES]) | st.decimals(-20, 20, places=3).map(str)
CHANCES = st.sampled_from(["0", "1", "1/3", "1/365", "0.995", "0.7777777777", "1.2", "-0.5"]) | (
    st.decimals(0, 1, places=3).map(str)
)
EPSILONS = st.sampled_from(["0", "-3", "1e-9", "0.01", "1", "4", "7.9", "8", "12", "40"])
CAPS = st.sampled_from([Caps(), Caps(question=Decimal(1)), Caps(question=Decimal("11.5"))])
WHOLE = st.integers(-300, 300) | st.sampled_from([LARGEST, -LARGEST, LARGEST - 3])


def with_mechanism(*names: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.sampled_from([{}, *({"mechanism": name} for name in names)])


def options(number: int) -> list[dict[str, str]]:
    return [{"id": f"o{i}", "label": f"O{i}"} for i in range(number)]


def merged(*parts: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.tuples(*parts).map(lambda values: {k: v for part in values for k, v in part.items()})


def fixed(**entries: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {k: v if isinstance(v, st.SearchStrategy) else st.just(v) for k, v in entries.items()}
    )


DAYS = st.dates() | st.sampled_from([date.min, date.max])
NUMBERS = fixed(type="number", low=VALUES, high=VALUES, step=VALUES)
DATES = fixed(
    type="date",
    low=DAYS.map(str),
    high=DAYS.map(str),
    step=st.integers(1, 9_000) | st.just(10**9),
)
ON_GRID = merged(
    NUMBERS | DATES,
    fixed(epsilon=EPSILONS),
    with_mechanism("square_wave", "one_bit", "hybrid", "geometric"),
)
SCALES = merged(
    fixed(type="scale", low=WHOLE, high=WHOLE, epsilon=EPSILONS),
    with_mechanism("square_wave", "laplace", "best"),
)
NOISY = fixed(
    type="number", low="0", high="10", mechanism="gaussian", parameters=fixed(sigma=VALUES)
)
TICKS = merged(
    fixed(
        type="multiple_choice",
        options=st.integers(2, 100).map(options),
        max_ticks=st.integers(-1, 101),
        epsilon=EPSILONS,
    ),
    with_mechanism("bits", "sampled_options", "half_space"),
)
CHOICES = fixed(type="single_choice", options=st.integers(2, 100).map(options)).flatmap(
    lambda form: st.sampled_from(["truth_probability", "keep_probability", "epsilon"]).flatmap(
        lambda way: VALUES.map(lambda value: {**form, way: value})
    )
)
CLASSICAL = fixed(type="yes_no", prefer_not_to_say=st.booleans()).flatmap(
    lambda form: st.sampled_from(
        [
            ("warner", {"p": CHANCES}),
            ("two_coins", {"truth": CHANCES, "yes": CHANCES}),
            ("unrelated_question", {"asked": CHANCES, "prevalence": CHANCES}),
            ("forced_response", {"truth": CHANCES, "forced": st.lists(CHANCES, max_size=4)}),
        ]
    ).flatmap(
        lambda design: st.fixed_dictionaries(design[1]).map(
            lambda parameters: {**form, "mechanism": design[0], "parameters": parameters}
        )
    )
)
FORMS = st.one_of(ON_GRID, SCALES, NOISY, TICKS, CHOICES, CLASSICAL)


def refused(form: dict[str, Any], caps: Caps) -> str:
    """Return the mistakes in a survey with only this question; empty if it is valid."""
    content = {"slug": "s", "title": "S", "questions": [{"id": "q", "text": "Q?", **form}]}
    try:
        freeze(load(json.dumps(content).encode(), "s.json", caps), 1)
    except DefinitionError as error:
        ((_, sentence),) = error.mistakes
        return sentence
    return ""


def corrected(form: dict[str, Any], sentence: str) -> dict[str, Any]:
    """Return the form with the suggestion of an error message applied."""
    number = re.search(r"the nearest allowed number is (\d+)", sentence)
    if number:
        return of_number(form, sentence, int(number[1]))
    match = re.search("the nearest allowed value is (.+)$", sentence)
    assert match, sentence
    form = {**form, "parameters": {**form.get("parameters", {})}}
    for change in re.split(" with | and ", match[1]):
        name, value = change.split(" = ")
        place = form["parameters"] if name in form["parameters"] else form
        assert name in place, sentence
        is_whole = isinstance(place[name], int)
        place[name] = json.loads(value) if is_whole or value[0] == "[" else value
    return form if form["parameters"] else {k: v for k, v in form.items() if k != "parameters"}


def of_number(form: dict[str, Any], sentence: str, number: int) -> dict[str, Any]:
    if "forced" in sentence:
        forced = [*form["parameters"]["forced"], "0.5", "0.5", "0.5"][:number]
        return {**form, "parameters": {**form["parameters"], "forced": forced}}
    return {**form, "options": options(number)}


def kind_of(sentence: str) -> str:
    """Return the kind of a mistake: its message without numbers."""
    return re.sub(r"-?[\d.,/e-]*\d[\d.,/e-]*", "#", sentence.partition("; the nearest")[0])


def assert_settles(form: dict[str, Any], caps: Caps) -> None:
    history: list[str] = []
    while sentence := refused(form, caps):
        assert NOT_SAID not in sentence
        assert kind_of(sentence) not in map(kind_of, history), [*history, sentence]
        history.append(sentence)
        assert len(history) <= MOST_STEPS, history
        form = corrected(form, sentence)


@pytest.mark.slow
@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(form=FORMS, caps=CAPS)
def test_no_mistake_recurs_after_its_suggestion_is_applied(form, caps):
    assert_settles(form, caps)


@pytest.mark.long
@settings(max_examples=5_000, suppress_health_check=[HealthCheck.too_slow])
@given(form=FORMS, caps=CAPS)
def test_no_mistake_recurs_in_thousands_of_forms(form, caps):
    assert_settles(form, caps)


COIN = {"type": "yes_no", "mechanism": "two_coins"}
UNRELATED = {"type": "yes_no", "mechanism": "unrelated_question"}


@each_case(
    ("form", "words"),
    [
        ({**COIN, "parameters": {"truth": "0.5", "yes": "1"}}, "yes = 1 .*is yes = 0.989$"),
        (
            {**COIN, "parameters": {"truth": "0.5", "yes": "0.999"}},
            "yes = 0.999 is too weak with truth = 0.5 .*is yes = 0.989$",
        ),
        (
            {**COIN, "parameters": {"truth": "0.05", "yes": "0.995"}},
            "yes = 0.995 is too weak with truth = 0.05 .*is yes = 0.994$",
        ),
        (
            {**UNRELATED, "parameters": {"asked": "0.7", "prevalence": "1/365"}},
            "prevalence = 1/365 is too weak with asked = 0.7 .*is prevalence = 0.0",
        ),
        (
            {**UNRELATED, "parameters": {"asked": "0.7777777777", "prevalence": "0.3333333333"}},
            r"above 2\^32; .*is asked = 0.778 with prevalence = 0.333$",
        ),
        ({**COIN, "parameters": {"truth": "0", "yes": "1"}}, "truth = 0 .*truth = 0.* with yes ="),
    ],
)
def test_the_parameter_that_has_to_change_is_named(form, words):
    sentence = refused(form, Caps())
    assert re.search(words, sentence), sentence
    assert not refused(corrected(form, sentence), Caps())


def test_forced_chances_that_do_not_add_up_are_suggested_in_thousandths():
    form = {
        "type": "yes_no",
        "mechanism": "forced_response",
        "parameters": {"truth": "0.5", "forced": ["0.5", "0.6"]},
    }
    sentence = refused(form, Caps())
    assert sentence == (
        "forced adds up to 11/10, not to 1; the nearest allowed value is forced = [0.455, 0.545]"
    )
    assert not refused(corrected(form, sentence), Caps())


@pytest.mark.slow
def test_a_body_above_the_limit_is_rejected_with_the_number_of_questions_that_fits(monkeypatch):
    monkeypatch.setattr(canonical, "MAX_REPORT_BYTES", 1024)

    def survey(number: int) -> bytes:
        form = {"type": "multiple_choice", "text": "Q?", "mechanism": "bits", "epsilon": "0.05"}
        questions = [{"id": f"q{i}", "options": options(90), **form} for i in range(number)]
        return json.dumps({"slug": "s", "title": "S", "questions": questions}).encode()

    with pytest.raises(DefinitionError, match="at most 1,024 are allowed") as refusal:
        freeze(load(survey(150), "s.json", Caps()), 1)
    fitting = int(re.search(r"the nearest allowed number .* is (\d+)$", str(refusal.value))[1])
    freeze(load(survey(fitting), "s.json", Caps()), 1)
    with pytest.raises(DefinitionError, match=f"is {fitting}$"):
        freeze(load(survey(fitting + 1), "s.json", Caps()), 1)
