"""Checks of whole visits, from the link to the acknowledgment: requests, storage and memory."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

from survey.audit.node import Check, Node
from survey.audit.random_generator import uniform_below
from survey.audit.respondents import Form, Respondent, questions, random_respondent, report_of
from survey.audit.whole_reports import draw_questions
from survey.mechanism.channel import WORD_TOTAL
from survey.questionnaire.definition import Definition

GROUP = "visits"

NOT_RUN = (
    *("display.js", "dom.js", "field-choice.js", "field-date.js", "field-entry.js"),
    *("field-multiple-choice.js", "field-number.js", "field.js"),
    *("privacy-label.js", "view-questions.js"),
    "view-start.js",
)
"""Modules that need a browser: they build pages and read input. Stand-ins replace them."""

RESPONDENTS = 24
WORDS = 64
"""Words that a device's generator repeats; a divisor of the size of its pool."""

PREFIX = 32
SEED = 20261124

FAILURES = (0, 503)
"""The answers to the first attempts to send: none, then a busy server."""

PRIVATE = {
    "credentials": "omit",
    "referrerPolicy": "no-referrer",
    "cache": "no-store",
    "redirect": "error",
}
"""Options of a request that tells the server nothing about the device."""

POST = {
    **PRIVATE,
    "method": "POST",
    "headers": {"Content-Type": "application/json"},
    "keepalive": True,
}

CHECKS = (
    (
        "from the link to the acknowledgment",
        f"{RESPONDENTS} respondents: every byte of requests and storage as expected, the same "
        "report after a failure, then everything forgotten",
    ),
    ("a link to another survey", "the client asks, sends and stores nothing"),
    ("a report from an earlier visit", "the client sends that report unchanged, and no second one"),
)
"""The name of each group of visits, and its summary if all of them pass."""

SENT_ENTRY = '{"state":"sent"}'
"""The outbox entry after a report has arrived."""

PROBE = "survey-probe"
"""The key under which the outbox tests whether the device can store twice the size of a report."""


@dataclass(frozen=True)
class Visit:
    """One respondent's visit: the address, the device, and the expected requests and storage."""

    slug: str
    link: str
    respondent: Respondent
    words: Sequence[int]
    bodies: Sequence[str] = ()
    """The bodies that the client posts, in order."""
    entries: Sequence[str] = ()
    """The entries that the outbox stores, in order."""
    failures: Sequence[int] = ()
    report_bytes: int = 0
    """The length of a report once the definition is loaded."""
    stored: str = ""
    """The outbox entry from an earlier visit."""
    meanwhile: str = ""
    """The outbox entry that another tab stores before this one sends."""

    @property
    def key(self) -> str:
        """The storage key of the outbox."""
        return f"survey-report:{self.slug}"

    def request(self) -> dict[str, Any]:
        """Return the request to the client."""
        return {
            "slug": self.slug,
            "hash": f"#d={self.link}",
            "answers": self.respondent.answers,
            "idBytes": list(self.respondent.id_bytes),
            "words": self.words,
            "failures": self.failures,
            "stored": [[self.key, self.stored]] if self.stored else [],
            "meanwhile": [[self.key, self.meanwhile]] if self.meanwhile else [],
        }

    def mismatch(self, record: Mapping[str, Any]) -> str:
        """Return the first difference between the record of a visit and the expectation, or ""."""
        load = {"url": f"/s/{self.slug}/definition.json", **PRIVATE}
        posts = [{"url": f"/s/{self.slug}/reports", **POST, "body": body} for body in self.bodies]
        forget = {"url": f"/s/{self.slug}/sent", **PRIVATE, "credentials": "same-origin"}
        if record["requests"] != [load, *posts, *([forget] if self.bodies else [])]:
            requests = [request.get("body", request["url"]) for request in record["requests"]]
            return f"other requests than expected: {' | '.join(requests)[:240]}"
        probe = [PROBE, PROBE.ljust(2 * self.report_bytes, "x")]
        if record["storageWrites"] != [probe, *([self.key, entry] for entry in self.entries)]:
            return "the device stores something other than the report and then the mark"
        if record["remembered"]:
            return "the client remembers answers after sending"
        return "words of the generator remain in memory" if record["unwiped"] else ""


def check_visits(node: Node, definition: Definition) -> list[Check]:
    """Check visits with the right link, with wrong links, and after an earlier report."""
    rng = random.Random(SEED)  # noqa: S311  the same respondents in every audit
    failures = [FAILURES[: number % (len(FAILURES) + 1)] for number in range(RESPONDENTS)]
    sending = [_sending(definition, rng, statuses) for statuses in failures]
    groups = [sending, _with_wrong_links(sending[0]), _with_earlier_report(sending[0])]
    requests = [visit.request() for group in groups for visit in group]
    records = iter(node.ask(visits=[{"replaced": NOT_RUN, "visitors": requests}])["visits"][0])
    checks = []
    for (name, detail), group in zip(CHECKS, groups, strict=True):
        mismatches = [visit.mismatch(next(records)) for visit in group]
        mismatch = next(filter(None, mismatches), "")
        checks.append(Check(GROUP, name, not mismatch, mismatch or detail))
    return checks


def _sending(definition: Definition, rng: random.Random, failures: Sequence[int]) -> Visit:
    """Return a visit from the start page to the acknowledgment, after failed attempts if any."""
    form = json.loads(definition.canonical)
    respondent = random_respondent(form, rng)
    words = [WORD_TOTAL - 1, *(rng.randrange(1, WORD_TOTAL) for _ in range(WORDS - 1))]
    body = _body(form, definition.sha256, respondent, words)
    return Visit(
        definition.slug,
        definition.sha256[:PREFIX],
        respondent,
        words,
        bodies=[body] * (len(failures) + 1),
        entries=[_pending(body), SENT_ENTRY],
        failures=failures,
        report_bytes=definition.report_bytes,
    )


def _body(form: Form, definition_id: str, respondent: Respondent, words: Sequence[int]) -> str:
    """Return the server's report for the same words; every new pool begins with the first word."""
    sampling = form["sampling"]
    sample = None
    if sampling:
        draw = uniform_below(cycle(words))
        names = draw_questions(sampling["groups"], sampling["draw"], draw)
        sample = [question["id"] for question in questions(form) if question["id"] in names]
    plain = replace(respondent, sample=sample, stratum="", invitation="")
    return report_of(form, definition_id, plain, uniform_below(cycle(words))).decode("utf-8")


def _with_wrong_links(visit: Visit) -> list[Visit]:
    """Return visits with another hash and with another name; neither may send a report."""
    silent = replace(visit, bodies=[], entries=[], report_bytes=0)
    return [replace(silent, link="0" * PREFIX), replace(silent, slug=f"{visit.slug}-again")]


def _with_earlier_report(visit: Visit) -> list[Visit]:
    """Return visits in which this tab or another one has already stored or sent a report.

    The client sends a stored report unchanged; if a report was already sent, it sends nothing.
    """
    earlier = visit.bodies[0].replace(".", ",", 1)
    return [
        replace(visit, stored=_pending(earlier), bodies=[earlier], entries=[SENT_ENTRY]),
        replace(visit, meanwhile=_pending(earlier), bodies=[earlier], entries=[SENT_ENTRY]),
        replace(visit, stored=SENT_ENTRY, bodies=[], entries=[]),
        replace(visit, meanwhile=SENT_ENTRY, bodies=[], entries=[]),
    ]


def _pending(body: str) -> str:
    """Return the outbox entry of a report that is not acknowledged yet."""
    return json.dumps({"state": "pending", "body": body}, separators=(",", ":"), ensure_ascii=False)
