"""The real survey as a whole: reports of invented people, byte for byte as Python writes them."""

from __future__ import annotations

import base64
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from survey.audit.check import Check
from survey.audit.node import Node
from survey.audit.truths import Answer, Form, questions, random_answer, truths
from survey.mechanism import AnyChannel, channel_from_json
from survey.questionnaire.definition import INVITATION_LENGTH, report_body

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


def whole_surveys(node: Node, form: Form, definition_id: str) -> Check:
    """All questions with their real channels, at random draws and at the ends of their ranges."""
    rng = random.Random(SEED)  # noqa: S311  invented people, the same in every audit
    everyone = [_person(form, rng) for _ in range(PEOPLE)]
    channels = {each["id"]: channel_from_json(each["channel"]) for each in questions(form)}
    bodies = [_body(form, definition_id, channels, person, rng) for person in everyone]
    request = {
        "definition": {**form, "id": definition_id},
        "people": [person.request() for person in everyone],
    }
    seen = node.ask(people=[request])["people"][0]
    name = "the survey as it is"
    for person, body, answer in zip(everyone, bodies, seen, strict=True):
        if answer["ranges"] != person.ranges:
            return Check(
                "whole reports", name, False, f"{person.answers}: other draws than promised"
            )
        if answer["body"].encode() != body:
            return Check(
                "whole reports", name, False, f"{person.answers}: another report than promised"
            )
    detail = f"{PEOPLE} reports of all {len(questions(form))} questions, byte for byte as promised"
    return Check("whole reports", name, True, detail)


def _person(form: Form, rng: random.Random) -> Person:
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


def _body(
    form: Form,
    definition_id: str,
    channels: Mapping[str, AnyChannel],
    person: Person,
    rng: random.Random,
) -> bytes:
    """The report by the server's own channels; notes the draws it takes."""

    def below(n: int) -> int:
        person.ranges.append(n)
        person.draws.append(rng.choice([0, n - 1, rng.randrange(n), rng.randrange(n)]))
        return person.draws[-1]

    found: Mapping[str, Any] = truths(form, person.answers, person.drawn)
    codes = [
        channel.perturb_one(found[name], below) if name in found else None
        for name, channel in channels.items()
    ]
    return report_body(
        definition_id,
        base64.urlsafe_b64encode(person.id_bytes).decode("ascii").rstrip("="),
        codes,
        stratum=person.stratum,
        invitation=person.invitation,
        length=form["report_bytes"],
    )
