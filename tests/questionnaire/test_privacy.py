"""Privacy as it is stated: a channel under the caps, or a nearest value that really publishes."""

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
from survey.mechanism import SubsetSelection, from_epsilon
from survey.mechanism.accounting import total_epsilon
from survey.questionnaire.model import Question, Survey
from survey.questionnaire.privacy import (
    MAX_TRUTH_PROBABILITY,
    PRIVACY,
    build_channel,
    total_mistake,
)
from survey.settings import Caps

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


def publishes(way: str, value: Fraction, k: int, caps: Caps) -> bool:
    try:
        channel = PRIVACY[way](k, value)
    except ChannelError:
        return False
    return channel.exact_p <= MAX_TRUTH_PROBABILITY and channel.epsilon <= caps.question


def assert_channel_or_nearest(way: str, value: Fraction, k: int, caps: Caps) -> None:
    if publishes(way, value, k, caps):
        assert build_channel(way, value, k, caps) == PRIVACY[way](k, value)
        return
    with pytest.raises(ChannelError) as refused:
        build_channel(way, value, k, caps)
    said = re.search(rf"the nearest allowed value is {way} = ([0-9.]+)$", str(refused.value))
    assert said, str(refused.value)
    nearest = Fraction(said[1])
    assert publishes(way, nearest, k, caps)
    between = nearest + (GRID if value > nearest else -GRID)
    assert abs(value - nearest) <= GRID / 2 or not publishes(way, between, k, caps)


@given(way=WAYS, value=VALUES, k=st.integers(2, 100), caps=CAPS)
def test_a_value_gives_a_channel_or_the_nearest_value_that_publishes(way, value, k, caps):
    assert_channel_or_nearest(way, value, k, caps)


@pytest.mark.parametrize("way", sorted(PRIVACY))
@pytest.mark.parametrize("value", ["-1", "0", "0.00001", "1/100", "0.5", "0.995", "1", "13"])
def test_for_every_number_of_options_the_suggested_value_publishes(way, value):
    for k in range(2, 101):
        assert_channel_or_nearest(way, Fraction(value), k, Caps())


@pytest.mark.parametrize(
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
def test_the_nearest_value_is_the_one_a_person_would_find_by_trying(way, value, k, nearest):
    with pytest.raises(ChannelError, match=f"{way} = {re.escape(nearest)}$"):
        build_channel(way, Fraction(value), k, Caps())


def test_a_cap_below_every_value_says_that_none_is_allowed():
    with pytest.raises(ChannelError, match="allow no value"):
        build_channel("epsilon", Fraction(1), 3, Caps(question=Decimal("0.0005")))


def suggested_for_all(channels: Iterable[SubsetSelection], caps: Caps) -> str | None:
    mistake = total_mistake(channels, caps)
    said = re.search(r"equal questions is epsilon = ([0-9.]+) each$", mistake or "")
    assert said or not mistake or "ask fewer questions" in mistake
    return said[1] if said else None


@given(
    sizes=st.lists(st.integers(2, 100), min_size=1, max_size=12),
    cap=st.decimals("0.1", "20", places=3),
    question=st.decimals("0.1", "12", places=2),
)
def test_the_epsilon_suggested_for_all_questions_publishes_and_the_next_does_not(
    sizes, cap, question
):
    caps = Caps(question=question, survey=cap)
    each = suggested_for_all([from_epsilon(k, 11) for k in sizes], caps)
    if each is None:
        assert total_epsilon(from_epsilon(k, 11).ratio for k in sizes) <= cap
        return
    channels = [build_channel("epsilon", Fraction(each), k, caps) for k in sizes]
    assert total_mistake(channels, caps) is None
    above = Fraction(each) + GRID
    assert not all(publishes("epsilon", above, k, caps) for k in sizes) or total_mistake(
        [from_epsilon(k, above) for k in sizes], caps
    )


def test_more_questions_than_a_cap_can_hold_are_told_to_be_fewer():
    mistake = total_mistake([from_epsilon(3, 1)] * 200, Caps(survey=Decimal("0.1")))
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
        Question.model_validate(question(truth_probability="0.995"))
