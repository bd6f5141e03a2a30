"""What the device makes of a definition: the same survey, its figures, and what it refuses."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import asdict
from fractions import Fraction
from typing import Any

from survey.audit.check import Check
from survey.audit.node import Node
from survey.audit.refusals import Attempt, attempts
from survey.audit.truths import Form, questions, random_answer
from survey.questionnaire.definition import Definition
from survey.questionnaire.label import labels, odds_in_words

GROUP = "definition"


def accepted(node: Node, definition: Definition) -> Check:
    """Whether the survey that a device ends up with is, byte for byte, the one published."""
    text = definition.canonical.decode("utf-8")
    (answer,) = node.ask(accept=[{"canonical": text}])["accept"]
    ok = answer == {"id": definition.sha256, "canonical": text}
    detail = f"definition {definition.sha256[:16]}, all {len(definition.canonical):,} bytes of it"
    return Check(GROUP, "the survey that the device runs", ok, detail if ok else _other(answer))


def _other(answer: dict[str, Any]) -> str:
    if "refused" in answer:
        return f"refused: {answer['refused']}"
    return "the device ends up with other questions, channels or texts than were published"


def refused(node: Node, definition: Definition, form: Form) -> Check:
    """Whether the device takes what is just allowed, and refuses by name what is just not."""
    every = attempts(definition, form)
    asked = [{"canonical": each.canonical, "prefix": each.prefix} for each in every]
    for each, answer in zip(every, node.ask(accept=asked)["accept"], strict=True):
        if answer.get("refused", "") != each.reason:
            return Check(GROUP, "what the device refuses", False, _wrong(each, answer))
    taken = sum(not each.reason for each in every)
    detail = f"{len(every) - taken} definitions refused, {taken} on the allowed side taken"
    return Check(GROUP, "what the device refuses", True, detail)


def _wrong(each: Attempt, answer: dict[str, Any]) -> str:
    said = f"refused as {answer['refused']}" if "refused" in answer else "taken"
    return f"{each.name}: {said}, must be {f'refused as {each.reason}' if each.reason else 'taken'}"


def refused_draws(node: Node, form: Form) -> Check:
    """Whether no report is made of other questions than the survey draws for one person."""
    rng = random.Random(0)  # noqa: S311  one invented person
    given = {question["id"]: random_answer(question, rng) for question in questions(form)}
    answers = {name: answer for name, answer in given.items() if answer is not None}
    wrong = list(_wrong_draws(form))
    asked = [
        {
            "answers": answers,
            "draws": [],
            "idBytes": [0] * 16,
            "circumstances": {"stratum": "", "invitation": "", "drawn": drawn},
        }
        for drawn in wrong
    ]
    seen = node.ask(people=asked)["people"]
    ok = all(answer == {"refused": "RangeError"} for answer in seen)
    detail = f"{len(wrong)} choices of questions that the survey does not draw are refused"
    name = "other questions than are drawn"
    return Check(GROUP, name, ok, detail if ok else "a report is made of them")


def _wrong_draws(form: Form) -> Iterator[list[str] | None]:
    names = [question["id"] for question in questions(form)]
    if form["sampling"] is None:
        yield from ([], names[:1], names)
        return
    groups, draw = form["sampling"]["groups"], form["sampling"]["draw"]
    for some in (groups[: draw - 1], groups[: draw + 1], groups):
        yield [name for group in some for name in group]
    drawn = [name for group in groups[:draw] for name in group]
    yield from (None, [*drawn[1:], "unknown"], [*drawn, drawn[0]], [*drawn, groups[draw][0]])


def labelled(node: Node, definition: Definition) -> Check:
    """Whether the label says of every question what the server computes, and of all together."""
    (seen,) = node.ask(label=[{}])["label"]
    promised = {name: asdict(each) for name, each in labels(definition).items()}
    most, least = map(int, seen["total"]["ratio"])
    wrong = [name for name, figures in promised.items() if seen["questions"].get(name) != figures]
    total = (Fraction(most, least), seen["total"]["odds"])
    if total != (definition.ratio, odds_in_words(definition.ratio)):
        wrong.append("all questions together")
    detail = f"frequencies and bounds of {len(promised)} questions, and of all together"
    failed = f"other figures than the server's for {', '.join(wrong[:3])}"
    return Check(GROUP, "the label's figures", not wrong, failed if wrong else detail)
