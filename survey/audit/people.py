"""The real survey as a whole: reports of invented people, byte for byte as Python writes them."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from survey.audit.check import Check
from survey.audit.node import Node
from survey.audit.truths import Answer, Form, questions, random_answer, truths
from survey.mechanism import channel_from_json
from survey.questionnaire.definition import INVITATION_LENGTH, Definition, report_body

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
