"""Visits of the shipped entry, from the link to the acknowledgment: what is sent, kept and left."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

from survey.audit.harness import Check, Node
from survey.audit.respondents import Form, Person, invented, perturbed, questions
from survey.audit.sampling import below
from survey.audit.whole_reports import choose
from survey.mechanism.channel import WORD_TOTAL
from survey.questionnaire.definition import Definition

GROUP = "visits"

NOT_RUN = (
    *("dom.js", "drawing.js", "field-choice.js", "field-date.js", "field-entry.js"),
    *("field-multiple-choice.js", "field-number.js", "field.js", "idle.js", "label.js"),
    *("stage.js", "view-questions.js", "view-review.js", "view-start.js"),
)
"""Modules that build pages and read what is entered: they need a browser, and stand-ins answer."""

PEOPLE = 24
WORDS = 64
"""Words that a device's generator gives over and over; a divisor of the pool's size."""

PREFIX = 16
SEED = 20261124

FAILURES = (0, 503)
"""What the first posts are answered with: by nothing, then by a busy server."""

QUIET = {
    "credentials": "omit",
    "referrerPolicy": "no-referrer",
    "cache": "no-store",
    "redirect": "error",
}
POSTED = {
    **QUIET,
    "method": "POST",
    "headers": {"Content-Type": "application/json"},
    "keepalive": True,
}
CHECKS = (
    (
        "from the link to the acknowledgment",
        f"{PEOPLE} people: requests and storage as promised to the byte, the same again after a "
        "failure, then all forgotten",
    ),
    ("another survey than the link's", "nothing is asked, sent or kept"),
    ("a report made before", "the same is sent, and none after it"),
)
"""What each group of visits is called, and what is seen when it goes well."""

SENT = '{"state":"sent"}'
"""The mark that the outbox keeps once a report has arrived."""

PROBE = "survey-probe"
"""With what the outbox tries whether the device keeps as much as a report takes, twice over."""


@dataclass(frozen=True)
class Visit:
    """Who comes under which address to which device; and all that may be sent and kept then."""

    slug: str
    link: str
    person: Person
    words: Sequence[int]
    bodies: Sequence[str] = ()
    """The bodies that are posted, one after the other."""
    kept: Sequence[str] = ()
    """What the outbox keeps, one after the other."""
    failures: Sequence[int] = ()
    room: int = 0
    """Bytes of a report, once the definition is known."""
    stored: str = ""
    """What an earlier visit has left in the outbox."""
    meanwhile: str = ""
    """What another tab leaves there before this one sends."""

    @property
    def key(self) -> str:
        """Where the outbox keeps its one entry."""
        return f"survey-report:{self.slug}"

    def request(self) -> dict[str, Any]:
        """The visit to make."""
        return {
            "slug": self.slug,
            "hash": f"#d={self.link}",
            "answers": self.person.answers,
            "idBytes": list(self.person.id_bytes),
            "words": self.words,
            "failures": self.failures,
            "stored": [[self.key, self.stored]] if self.stored else [],
            "meanwhile": [[self.key, self.meanwhile]] if self.meanwhile else [],
        }

    def wrong(self, seen: Mapping[str, Any]) -> str:
        """What the device did beside what it must; "" when nothing."""
        asked = {"url": f"/s/{self.slug}/definition.json", **QUIET}
        posted = [{"url": f"/s/{self.slug}/reports", **POSTED, "body": b} for b in self.bodies]
        forgotten = {"url": f"/s/{self.slug}/sent", **QUIET, "credentials": "same-origin"}
        promised = [asked, *posted, *([forgotten] if self.bodies else [])]
        if seen["requests"] != promised:
            sent = [request.get("body", request["url"]) for request in seen["requests"]]
            return f"other requests than promised: {' | '.join(sent)[:240]}"
        probe = [PROBE, PROBE.ljust(2 * self.room, "x")]
        if seen["kept"] != [probe, *([self.key, entry] for entry in self.kept)]:
            return "the device keeps something else than the report, then the mark"
        if seen["remembered"]:
            return "answers are remembered after sending"
        return "words of the generator are left in memory" if seen["unwiped"] else ""


def visits(node: Node, definition: Definition) -> list[Check]:
    """People under the right link; under wrong ones; and on a device that had a report before."""
    rng = random.Random(SEED)  # noqa: S311  invented people, the same in every audit
    failing = [FAILURES[: at % (len(FAILURES) + 1)] for at in range(PEOPLE)]
    sending = [_sending(definition, rng, failures) for failures in failing]
    groups = [sending, _stopped(sending[0]), _resumed(sending[0])]
    asked = [visit.request() for every in groups for visit in every]
    seen = iter(node.ask(visits=[{"replaced": NOT_RUN, "people": asked}])["visits"][0])
    return [_check(*said, every, seen) for said, every in zip(CHECKS, groups, strict=True)]


def _check(
    name: str, detail: str, every: Sequence[Visit], seen: Iterator[Mapping[str, Any]]
) -> Check:
    found = [visit.wrong(next(seen)) for visit in every]
    wrong = next(filter(None, found), "")
    return Check(GROUP, name, not wrong, wrong or detail)


def _sending(definition: Definition, rng: random.Random, failures: Sequence[int]) -> Visit:
    """From the start page to the acknowledgment, perhaps after posts that fail."""
    form = json.loads(definition.canonical)
    person = invented(form, rng)
    words = [WORD_TOTAL - 1, *(rng.randrange(1, WORD_TOTAL) for _ in range(WORDS - 1))]
    body = _body(form, definition.sha256, person, words)
    return Visit(
        definition.slug,
        definition.sha256[:PREFIX],
        person,
        words,
        bodies=[body] * (len(failures) + 1),
        kept=[_pending(body), SENT],
        failures=failures,
        room=definition.report_bytes,
    )


def _body(form: Form, definition_id: str, person: Person, words: Sequence[int]) -> str:
    """The report of the same words, by the server's own channels; fresh pools begin anew."""
    sampling = form["sampling"]
    drawn = None
    if sampling:
        chosen = choose(sampling["groups"], sampling["draw"], below(cycle(words)))
        drawn = [question["id"] for question in questions(form) if question["id"] in chosen]
    alone = replace(person, drawn=drawn, stratum="", invitation="")
    return perturbed(form, definition_id, alone, below(cycle(words))).decode("utf-8")


def _stopped(visit: Visit) -> list[Visit]:
    """A link with another hash, and the survey under a second name: neither gets a report."""
    nothing = replace(visit, bodies=[], kept=[], room=0)
    return [replace(nothing, link="0" * PREFIX), replace(nothing, slug=f"{visit.slug}-again")]


def _resumed(visit: Visit) -> list[Visit]:
    """A report that waits is sent as it is, also another tab's; after one that arrived none is."""
    waiting = visit.bodies[0].replace(".", ",", 1)
    return [
        replace(visit, stored=_pending(waiting), bodies=[waiting], kept=[SENT]),
        replace(visit, meanwhile=_pending(waiting), bodies=[waiting], kept=[SENT]),
        replace(visit, stored=SENT, bodies=[], kept=[]),
        replace(visit, meanwhile=SENT, bodies=[], kept=[]),
    ]


def _pending(body: str) -> str:
    """A report as the outbox keeps it until it is acknowledged."""
    return json.dumps({"state": "pending", "body": body}, separators=(",", ":"), ensure_ascii=False)
