"""Simulated respondents: their answers, the truths these become, and their reports.

The rules from answers to truths are written here a second time, independently of the client.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from survey.audit.channels import Truth, ticks
from survey.audit.harness import Check, Node
from survey.mechanism import channel_from_json
from survey.questionnaire.definition import INVITATION_LENGTH, Definition, report_body

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


PEOPLE = 400
SEED = 20261121


@dataclass(frozen=True)
class Person:
    """What one invented person answers, what is drawn, and what the link says."""

    answers: dict[str, Answer]
    drawn: list[str] | None
    id_bytes: bytes
    stratum: str
    invitation: str
    draws: list[int] = field(default_factory=list)
    ranges: list[int] = field(default_factory=list)

    def request(self) -> dict[str, Any]:
        """The question to the client."""
        return {
            "answers": self.answers,
            "draws": self.draws,
            "idBytes": list(self.id_bytes),
            "circumstances": {
                "stratum": self.stratum,
                "invitation": self.invitation,
                "drawn": self.drawn,
            },
        }


def whole_surveys(node: Node, definition: Definition) -> Check:
    """All questions with their real channels, at random draws and at the ends of their ranges."""
    form = json.loads(definition.canonical)
    rng = random.Random(SEED)  # noqa: S311  invented people, the same in every audit
    everyone = [invented(form, rng) for _ in range(PEOPLE)]
    bodies = [perturbed(form, definition.sha256, each, _noted(each, rng)) for each in everyone]
    seen = node.ask(people=[person.request() for person in everyone])["people"]
    name = "reports of all questions"
    for person, body, answer in zip(everyone, bodies, seen, strict=True):
        if "refused" in answer or answer["ranges"] != person.ranges:
            detail = f"{person.answers}: other draws than promised"
            return Check("whole reports", name, False, detail)
        if answer["body"].encode() != body:
            detail = f"{person.answers}: another report than promised"
            return Check("whole reports", name, False, detail)
    detail = f"{PEOPLE} reports of all {len(questions(form))} questions, byte for byte as promised"
    return Check("whole reports", name, True, detail)


def invented(form: Form, rng: random.Random) -> Person:
    """A person with answers to all questions, some of them left out."""
    given = {question["id"]: random_answer(question, rng) for question in questions(form)}
    sampling = form["sampling"]
    groups = rng.sample(sampling["groups"], sampling["draw"]) if sampling else []
    has_link = rng.random() < 0.3
    return Person(
        answers={name: answer for name, answer in given.items() if answer is not None},
        drawn=[name for group in groups for name in group] if sampling else None,
        id_bytes=rng.randbytes(16),
        stratum='Köln "2"' if has_link else "",
        invitation="i" * INVITATION_LENGTH if has_link else "",
    )


def _noted(person: Person, rng: random.Random) -> Callable[[int], int]:
    """Draws at random and at the ends of their ranges, noted with the person."""

    def below(n: int) -> int:
        person.ranges.append(n)
        person.draws.append(rng.choice([0, n - 1, rng.randrange(n), rng.randrange(n)]))
        return person.draws[-1]

    return below


def perturbed(form: Form, definition_id: str, person: Person, below: Callable[[int], int]) -> bytes:
    """The person's report by the server's own channels."""
    found: Mapping[str, Any] = truths(form, person.answers, person.drawn)
    codes = [
        channel_from_json(question["channel"]).perturb_one(found[question["id"]], below)
        if question["id"] in found
        else None
        for question in questions(form)
    ]
    return report_body(
        definition_id,
        base64.urlsafe_b64encode(person.id_bytes).decode("ascii").rstrip("="),
        codes,
        stratum=person.stratum,
        invitation=person.invitation,
        length=form["report_bytes"],
    )
