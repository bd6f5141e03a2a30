"""Rankings: valid definitions, and the truths of answers."""

from __future__ import annotations

import pytest

from survey.errors import DefinitionError
from survey.settings import Caps
from tests.surveys import RANKING, load, publish


def mistakes(change: tuple[str, str]) -> str:
    """Return the mistakes in the survey after a change."""
    assert change[0] in RANKING, change
    with pytest.raises(DefinitionError) as error:
        load(RANKING.replace(*change).encode(), "ranking.toml", Caps())
    return str(error.value)


def test_impossible_rankings_are_refused_with_the_reason() -> None:
    few = ',\n           {id = "team", label = "Colleagues"}, {id = "safe", label = "Safety"}]'
    more = ", ".join(f'{{id = "more_{i}", label = "More {i}"}}' for i in range(3))
    condition = 'ask_if = {question = "matters", options = ["pay"]}\ndoes_not_apply = true\n'
    skips = RANKING.replace("[[pages]]", "allow_skip_logic = true\n[[pages]]", 1)
    for change, reason in (
        ((few, "]"), "2 options where 3 to 6 are allowed"),
        (('label = "Safety"}]', f'label = "Safety"}}, {more}]'), "7 options where 3 to 6 are"),
        (('label = "Safety"', 'label = "pay"'), '"pay" is already the label of another option'),
        (('epsilon = "2.5"', "truth_probability = 0.6"), "state epsilon, not truth_probability"),
        (('epsilon = "2.5"', 'epsilon = "7"'), "nearest allowed value is epsilon = "),
        (('type = "ranking"', 'type = "ranking"\nmechanism = "grr"'), "available: first_or_order"),
    ):
        assert reason in mistakes(change), change
    text = skips.replace('id = "works"\n', f'id = "works"\n{condition}')
    with pytest.raises(DefinitionError, match="is not a question with options on an earlier page"):
        load(text.encode(), "ranking.toml", Caps())


def test_truths_are_numbered_in_lexicographic_order_and_opt_outs_come_last() -> None:
    question = publish(RANKING).questions[0]
    assert question.truth((0, 1, 2, 3)) == 0
    assert question.truth((3, 2, 1, 0)) == 23
    assert [question.truth(4), question.truth(5)] == [24, 25]
    for wrong in (0, 6, (0, 1, 2), (0, 0, 1, 2)):
        with pytest.raises(KeyError):
            question.truth(wrong)
