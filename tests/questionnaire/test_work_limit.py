"""The limit on the work that a definition causes."""

from __future__ import annotations

import pytest

from survey.errors import DefinitionError
from survey.questionnaire.kinds import number
from survey.questionnaire.loading import load
from survey.settings import Caps
from tests.benchmarks import bounds

DAYS = 'type = "date"\nlow = 2020-01-01\nhigh = 2022-09-26'


def test_questions_with_too_many_values_are_rejected_before_any_channel_is_built(monkeypatch):
    load(bounds.definition("five", bounds.numbers(5, 1_000)), "s.toml", Caps())
    monkeypatch.setattr(number.NumberQuestion, "_build_grid", None)
    for questions, n in (
        (bounds.numbers(6, 1_000), 6),
        (bounds.numbers(60, 1_000), 60),
        ([*bounds.numbers(5, 1_000), DAYS], 6),
    ):
        with pytest.raises(DefinitionError) as caught:
            load(bounds.definition("many", questions), "s.toml", Caps())
        expected = f"has {n} number, date or ranking questions with up to 1,000 values each"
        assert expected in str(caught.value)
        assert "choose larger steps" in str(caught.value)


def test_a_ranking_counts_with_all_its_orders():
    ranking = 'type = "ranking"\n' + bounds.entries("options", 6, "label")
    load(bounds.definition("nine", [ranking] * 9), "s.toml", Caps())
    with pytest.raises(DefinitionError, match="rank fewer options, so that each has at most 707"):
        load(bounds.definition("ten", [ranking] * 10), "s.toml", Caps())


def test_the_suggested_number_of_values_is_accepted():
    load(bounds.definition("many", bounds.numbers(60, 288)), "s.toml", Caps())
    with pytest.raises(DefinitionError, match="at most 288 values"):
        load(bounds.definition("many", bounds.numbers(60, 289)), "s.toml", Caps())
