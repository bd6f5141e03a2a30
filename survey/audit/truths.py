"""From answers to truths, written a second time: what the client must hand to its channels."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from survey.audit.exact import Truth, ticks

Form = Mapping[str, Any]
"""A definition, or a question of it, as its canonical JSON says."""

Answer = int | tuple[int, ...]
Answers = Mapping[str, Answer]


def questions(form: Form) -> list[Form]:
    """All questions in the order of their codes."""
    return [question for page in form["pages"] for question in page["questions"]]


def patterns(question: Form) -> list[tuple[int, ...]]:
    """All sets of ticks: ordinary ones in ascending order of their bitmask, then those alone."""
    together = len(question["options"]) - question["alone"]
    sets = [
        ticked
        for n in range(1, question["max_ticks"] + 1)
        for ticked in combinations(range(together), n)
    ]
    apart = [(option,) for option in range(together, len(question["options"]))]
    return sorted(sets, key=lambda ticked: sum(2**option for option in ticked)) + apart


def answers_of(question: Form) -> list[Answer | None]:
    """Every answer that can be given, and None where the question may be left out."""
    left_out: list[Answer | None] = [None] if question["opt_out"] else []
    if question["type"] == "multiple_choice":
        return [*patterns(question), *([(), None] if left_out else [])]
    return [*range(_grid_points(question) + len(question["options"])), *left_out]


def random_answer(question: Form, rng: random.Random) -> Answer | None:
    """One of them, without listing all."""
    if question["opt_out"] and rng.random() < 0.1:
        return None
    n = len(question["options"])
    if question["type"] != "multiple_choice":
        return rng.randrange(_grid_points(question) + n)
    together = n - question["alone"]
    if question["alone"] and rng.random() < 0.2:
        return (rng.randrange(together, n),)
    most = min(question["max_ticks"], together)
    return tuple(sorted(rng.sample(range(together), rng.randint(1, most))))


def truths(form: Form, answers: Answers, drawn: Sequence[str] | None) -> dict[str, Truth]:
    """The truth of every question that is drawn; one that is hidden does not apply."""
    chosen: dict[str, Answer] = {}
    found: dict[str, Truth] = {}
    asked = {question["id"]: question for question in questions(form)}
    for name, question in asked.items():
        if drawn is None or name in drawn:
            chosen[name] = _chosen(question, asked, answers, chosen)
            found[name] = _truth(question, chosen[name])
    return found


def _chosen(question: Form, asked: Mapping[str, Form], answers: Answers, before: Answers) -> Answer:
    """What a question counts as: its answer, its opt-out when untouched, or "does not apply"."""
    condition = question["ask_if"]
    if condition is not None:
        indices = before[condition["question"]]
        options = asked[condition["question"]]["options"]
        named = {options[i]["id"] for i in ([indices] if isinstance(indices, int) else indices)}
        if not named & set(condition["options"]):
            return _option(question, question["not_applicable"])
    answer = answers.get(question["id"], ())
    return _option(question, question["opt_out"]) if answer == () else answer


def _option(question: Form, option: str) -> Answer:
    index = [each["id"] for each in question["options"]].index(option)
    if question["type"] == "multiple_choice":
        return (index,)
    return _grid_points(question) + index


def _truth(question: Form, answer: Answer) -> Truth:
    if isinstance(answer, int):
        return answer
    if question["channel"]["kind"] == "bit_vector":
        return ticks(len(question["options"]), answer)
    return patterns(question).index(answer)


def is_number(question: Form) -> bool:
    """Whether the truths are points of a grid, before the options that are no answer."""
    return question["type"] in ("number", "date")


def _grid_points(question: Form) -> int:
    return int(question["grid"]["points"]) if is_number(question) else 0
