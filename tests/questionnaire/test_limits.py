"""Stated privacy gives a channel under the caps, or an error with a valid nearest value."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from survey.errors import ChannelError
from survey.mechanism import from_epsilon
from survey.mechanism.composition import total_epsilon, total_ratio
from survey.questionnaire.definition import Survey
from survey.questionnaire.designs import DESIGNS, PRIVACY, AnswerSpace, Statement
from survey.questionnaire.kinds.choice import ChoiceQuestion
from survey.questionnaire.limits import build_channel, is_too_weak, total_mistake
from survey.settings import Caps
from tests.cases import each_case

WAYS = st.sampled_from(sorted(PRIVACY))
VALUES = (
    st.integers(-10, 13_010).map(lambda n: Fraction(n, 1000))
    | st.fractions(min_value=-1, max_value=14)
    | st.sampled_from(
        [
            Fraction(text)
            for text in (
                "0",
                "1",
                "1/2",
                "1/3",
                "1/100",
                "0.989",
                "0.99",
                "0.9900001",
                "0.991",
                "0.995",
                "0.999",
                "8",
                "12",
                "13",
                "0.00001",
                "-1",
                "1e30",
                "-1e30",
                "0.98999999999999",
            )
        ]
    )
)
CAPS = st.decimals("0.1", "12", places=3).map(lambda cap: Caps(question=cap)) | st.just(Caps())
GRID = Fraction(1, 1000)


def of_choice(way: str, value: Fraction, k: int) -> Statement:
    return Statement("grr", way, value, AnswerSpace(k, 0))


def publishes(stated: Statement, value: Fraction, caps: Caps) -> bool:
    try:
        return value > stated.useless and not is_too_weak(stated.build(value), caps)
    except ChannelError:
        return False


def assert_channel_or_nearest(stated: Statement, caps: Caps, grid: Fraction = GRID) -> None:
    way, value = stated.way, stated.value
    if publishes(stated, value, caps):
        assert build_channel(stated, caps) == stated.build(value)
        return
    with pytest.raises(ChannelError) as refused:
        build_channel(stated, caps)
    match = re.search(rf"the nearest allowed value is {way} = ([0-9./]+)$", str(refused.value))
    assert match, str(refused.value)
    nearest = Fraction(match[1])
    assert publishes(stated, nearest, caps)
    between = nearest + (grid if value > nearest else -grid)
    assert abs(value - nearest) <= grid / 2 or not publishes(stated, between, caps)


@pytest.mark.slow
@given(way=WAYS, value=VALUES, k=st.integers(2, 100), caps=CAPS)
def test_a_value_gives_a_channel_or_the_nearest_value_that_publishes(way, value, k, caps):
    assert_channel_or_nearest(of_choice(way, value, k), caps)


@pytest.mark.web
@each_case("way", sorted(PRIVACY))
def test_for_every_number_of_options_the_suggested_value_publishes(way):
    for value in ("-1", "0", "0.00001", "1/100", "0.5", "0.995", "1", "13"):
        for k in range(2, 101):
            assert_channel_or_nearest(of_choice(way, Fraction(value), k), Caps())


BORDERLINE_FORMS = [
    ("best", "epsilon", AnswerSpace(8, 1)),
    ("warner", "p", AnswerSpace(2, 1)),
    ("two_coins", "truth", AnswerSpace(2, 0, parameters={"yes": "1/3"})),
    ("unrelated_question", "asked", AnswerSpace(2, 1, parameters={"prevalence": "1/12"})),
    ("forced_response", "truth", AnswerSpace(3, 0, parameters={"forced": ["1/2", "1/3", "1/6"]})),
    (
        "exponential",
        "epsilon",
        AnswerSpace(3, 1, parameters={"utility": [[2, 1, 0], [1, 2, 1], [0, 1, 2]]}),
    ),
    ("geometric", "epsilon", AnswerSpace(11, 1)),
    ("laplace", "epsilon", AnswerSpace(11, 0)),
    ("gaussian", "sigma", AnswerSpace(11, 1, step=Fraction(1, 2))),
    ("square_wave", "epsilon", AnswerSpace(21, 2)),
    ("one_bit", "epsilon", AnswerSpace(41, 1)),
    ("piecewise", "epsilon", AnswerSpace(41, 0)),
    ("hybrid", "epsilon", AnswerSpace(41, 1)),
    ("optimal_piecewise", "epsilon", AnswerSpace(41, 1)),
    ("bits", "epsilon", AnswerSpace(4, 0, ticks=4, alone=2)),
    ("bits", "truth_probability", AnswerSpace(4, 0, ticks=2, alone=1)),
    ("sampled_options", "epsilon", AnswerSpace(6, 0, ticks=3, alone=2)),
    ("half_space", "epsilon", AnswerSpace(6, 0, ticks=3, alone=2)),
    ("subsets", "epsilon", AnswerSpace(4, 0, ticks=4, alone=1)),
    ("first_or_order", "epsilon", AnswerSpace(4, 1)),
]


@pytest.mark.slow
@each_case(("design", "way", "space"), BORDERLINE_FORMS)
def test_every_design_gives_a_channel_or_the_nearest_value_that_publishes(design, way, space):
    grid = space.step * GRID if way == "sigma" else GRID
    for value in ("-1", "0", "0.3", "0.75", "0.999", "1", "5", "13", "40"):
        assert_channel_or_nearest(Statement(design, way, Fraction(value), space), Caps(), grid)


def test_the_table_covers_every_design_in_every_way():
    assert {(design, way) for design, way, _ in BORDERLINE_FORMS} | {
        ("grr", way) for way in PRIVACY
    } == {(name, way) for name, design in DESIGNS.items() for way in design.ways}


@each_case(
    ("way", "value", "k", "nearest"),
    [
        ("truth_probability", "1", 2, "0.99"),
        ("truth_probability", "0.995", 100, "0.967"),
        ("truth_probability", "0.1", 3, "0.334"),
        ("keep_probability", "1", 2, "0.98"),
        ("keep_probability", "0", 2, "0.001"),
        ("epsilon", "13", 2, "4.595"),
        ("epsilon", "13", 100, "8"),
        ("epsilon", "0", 3, "0.001"),
    ],
)
def test_the_nearest_value_is_the_closest_allowed_value(way, value, k, nearest):
    with pytest.raises(ChannelError, match=f"{way} = {re.escape(nearest)}$"):
        build_channel(of_choice(way, Fraction(value), k), Caps())


def test_a_cap_below_every_value_is_rejected_as_impossible():
    with pytest.raises(ChannelError, match="no value is within the limits of this server"):
        build_channel(of_choice("epsilon", Fraction(1), 3), Caps(question=Decimal("0.0005")))


def total_mistake_of(ratios: Iterable[Fraction], caps: Caps) -> str | None:
    ratios = list(ratios)
    return total_mistake(total_ratio(ratios), len(ratios), caps)


def suggested_for_all(sizes: list[int], caps: Caps) -> str | None:
    mistake = total_mistake_of((from_epsilon(k, 11).ratio for k in sizes), caps)
    match = re.search(r"equal questions is epsilon = ([0-9.]+) each$", mistake or "")
    assert match or not mistake or "ask fewer questions" in mistake
    return match[1] if match else None


@pytest.mark.slow
@given(
    sizes=st.lists(st.integers(2, 100), min_size=1, max_size=12),
    cap=st.decimals("0.1", "20", places=3),
    question=st.decimals("0.1", "12", places=2),
)
def test_the_epsilon_suggested_for_all_questions_fits_and_the_next_would_not(sizes, cap, question):
    caps = Caps(question=question, survey=cap)
    suggestion = suggested_for_all(sizes, caps)
    if suggestion is None:
        assert total_epsilon(from_epsilon(k, 11).ratio for k in sizes) <= cap
        return
    ratios = [from_epsilon(k, Fraction(suggestion)).ratio for k in sizes]
    assert total_mistake_of(ratios, caps) is None
    above = Fraction(suggestion) + GRID
    assert above > question or len(sizes) * above > cap


def test_too_many_questions_for_a_cap_are_rejected_with_advice_to_ask_fewer():
    mistake = total_mistake_of([from_epsilon(3, 1).ratio] * 200, Caps(survey=Decimal("0.1")))
    assert mistake is not None
    assert mistake.endswith("ask fewer questions")


def question(**stated: object) -> dict[str, object]:
    return {"id": "q", "type": "yes_no", "text": "Q?", **stated}


def test_the_model_takes_the_caps_from_the_validation_context():
    form = {"slug": "s", "title": "S", "pages": [{"questions": [question(epsilon=3)]}]}
    assert next(Survey.model_validate(form).questions).channel.epsilon <= 3
    with pytest.raises(ValidationError, match="nearest allowed value is epsilon = 2"):
        Survey.model_validate(form, context=Caps(question=Decimal(2)))


def test_the_model_alone_has_the_caps_of_a_new_instance():
    with pytest.raises(ValidationError, match=r"nearest allowed value is truth_probability = 0.99"):
        ChoiceQuestion.model_validate(question(truth_probability="0.995"))
