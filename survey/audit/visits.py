"""Simulated visits: the client's requests, storage entries and address changes, in order.

A visit is a function of its circumstances, of the respondent's answers and of the draws. Everything
that leaves the page except the codes of the report must be the same for all answers, and equal to
what `expected_events` derives from the circumstances. The codes must be the server's own.

Each run chooses visits at random; the seed in its output repeats them.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date, timedelta
from itertools import cycle, product
from typing import Any
from urllib.parse import quote

from survey.audit.node import Check, Node
from survey.audit.random_generator import uniform_below
from survey.audit.respondents import (
    RARE_GROUPS,
    RARE_TOKENS,
    Form,
    Respondent,
    all_answers,
    questions,
    random_group,
    random_token,
    random_word,
    report_of,
)
from survey.audit.whole_reports import draw_questions
from survey.mechanism.channel import WORD_TOTAL
from survey.questionnaire import TEST_RUN_PREFIX, is_test_run
from survey.questionnaire.canonical import ROW_TEXTS, canonical_json, read_definition
from survey.questionnaire.definition import Definition
from survey.questionnaire.kinds import kind_of
from survey.questionnaire.kinds.base import EPOCH
from survey.questionnaire.kinds.matrix import joined_text
from survey.questionnaire.texts import SURVEY_TEXTS
from survey.respondent_texts import SOURCE, base_of

GROUP = "visits"

MANY_OPTIONS = 50
"""Surveys with more options get fewer visits, because their pages take longer to build."""

ANSWER_SETS = 3
"""Number of times each visit is repeated, with different answers and otherwise unchanged."""

WORDS = 64
"""Number of random words that a device's generator repeats; it divides the size of its pool."""

PREFIX = 32
"""Digits of the definition's hash in a link."""

WORDS_FILE = re.compile(r"words\.(.+)\.json")

LANGUAGES: Sequence[tuple[str, ...]] = [
    ("en",),
    ("de-AT", "de", "en"),
    ("ar-EG",),
    ("es-MX", "es"),
    ("fa", "pt-BR"),
    ("xx",),
    (),
]
"""Preferred languages of different visitors' browsers."""

PRIVATE = {
    "credentials": "omit",
    "referrerPolicy": "no-referrer",
    "cache": "no-store",
    "redirect": "error",
}
"""Options of requests that reveal nothing about the device."""

POST = {**PRIVATE, "method": "POST", "headers": {"Content-Type": "application/json"}}

PROBE = "survey-probe"
"""The key under which the outbox tests whether the device can store twice the size of a report."""

MEMORY = "survey-memory"
"""The storage key of the record of earlier surveys."""

STORAGE_DELAY = 100
TIMEOUT = 30_000
BACKOFF = (2, 5, 10, 20, 30)
"""Milliseconds until a new report is sent, milliseconds until a request fails, and seconds between
attempts; the last of them repeats."""

MAX_WAIT = 600

EMPTY_TITLE = "\u200e"
"""The title of a page that a respondent leaves: an invisible character."""

NEUTRAL_PAGE = "https://www.wikipedia.org/"
"""The destination of "Leave now" if the survey names no other."""

IDLE, IDLE_WITHOUT_DIALOG = 180_000, 120_000
"""Milliseconds after which an idle shared device restarts."""

MONTH, YEAR = 28, 365
"""Minimum days between the points of a date's grid for respondents to enter a month, or a year."""

TEMPORARY = (408, 425, 429)

FORBIDDEN = 403
"""The status with which a server refuses real reports to a test run; the device deletes them."""

EXTERNAL = ("speak", "silence", "fetch", "store", "remove", "address", "leave", "reload", "lock")
"""Events that leave the page or outlive it."""

INTERNAL = ("timer", "cancel", "fire", "random", "digest")
"""Other events that must not depend on the answers."""

VIEWS = ("start", "questions", "review")
"""The views before sending."""

HIDDEN, RESTORED, OTHER_LINK = ("pagehide",), ("pagehide", "pageshow"), ("hashchange",)
"""Events when a page is closed or left, when the browser restores a page that was left, and when
another link is pasted over the page's own."""

EMPTY_MAIN = '<main id="survey"></main>'

MAX_BLOCKS = 1_000
"""Maximum difference in executed blocks of code between sets of answers. Most surveys have none;
loops that change the timing of requests measurably execute many times more."""

SENT = '{"state":"sent"}'
"""The outbox entry after a report has arrived."""


@dataclass(frozen=True)
class Answer:
    """The server's answer to a request: a status, 0 without network, or -1 after a timeout."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""

    @property
    def is_final(self) -> bool:
        """Whether the client stops sending after this answer."""
        return self.status == 201 or (400 <= self.status < 500 and self.status not in TEMPORARY)

    def wait(self, attempt: int) -> int:
        """Return the milliseconds until the next attempt, the first being attempt 0."""
        text = self.headers.get("Retry-After", "")
        seconds = min(int(text), MAX_WAIT) if re.fullmatch("[0-9]{1,9}", text) else 0
        return 1000 * max(BACKOFF[min(attempt, len(BACKOFF) - 1)], seconds)


@dataclass(frozen=True)
class Circumstances:
    """Everything about a visit other than answers and draws; see `device.js` for each name."""

    slug: str = ""
    """The slug in the address; "" for the survey's own."""
    prefix: str | None = None
    """The hash in the link; None for the survey's own."""
    damaged_link: str = ""
    """The part of the link after "#" if it is incomplete."""
    collector: str = ""
    """The server that collects the reports if another host serves the page."""
    languages: tuple[str, ...] = ("en",)
    invitation: str = ""
    stratum: str = ""
    failures: tuple[Answer, ...] = ()
    waiting: tuple[str, ...] = ("timer",)
    after_refusal: tuple[str, ...] = ()
    storage: str = ""
    """Fault of the storage: `read`, `write`, `remove`, `denied` (all three) or `absent`."""
    locks: bool = True
    dialog: bool = True
    subtle: bool = True
    digest_fails: bool = False
    lacks_pictures: bool = False
    speaks: bool = False
    generator_fails: int = 0
    """Number of the generator call that fails; 0 for none."""
    definition: Answer | None = None
    """The server's answer instead of the definition."""
    stored: str = ""
    """The outbox entry from an earlier visit."""
    meanwhile: str = ""
    """The outbox entry that another tab stores before this one sends."""
    overtaken: str = ""
    """The outbox entry that another tab stores while this one sends."""
    remembered: str = ""
    """The device's record of earlier surveys."""
    exit_at: str = ""
    """The view at which the respondent presses "Leave now"."""
    switch_at: str = ""
    switch_to: str = ""
    interrupted_at: str = ""
    """The view at which the browser reports `interruptions`."""
    interruptions: tuple[str, ...] = ()
    idles: bool = False
    """Whether a shared device is idle after Start."""
    after_sent: tuple[str, ...] = ()
    """Buttons that the respondent presses after sending: `remember`, `forget` or `remove`."""
    counts: bool = False
    """Whether the blocks of code that run after Send are counted."""

    @property
    def requests_definition(self) -> bool:
        """Whether the link is complete and the device can protect answers."""
        return self.generator_fails != 1 and self.subtle and not self.damaged_link

    @property
    def sends_new(self) -> bool:
        """Whether a report of this visit's answers can be stored or sent."""
        stops = (self.slug, self.prefix is not None, not self.requests_definition)
        return not (
            any(stops)
            or self.digest_fails
            or self.generator_fails
            or self.definition
            or self.stored
            or self.meanwhile
            or self.exit_at
            or self.interrupted_at
            or self.idles
        )


@dataclass(frozen=True)
class Scenario:
    """Circumstances, a form of the survey, and the draws that all visits of the scenario share."""

    circumstances: Circumstances
    form: Form
    words: Sequence[int]
    id_bytes: bytes
    answer_sets: Sequence[Mapping[str, Any]]
    words_of: tuple[str, ...]
    """Languages whose texts the page lists, the source language first."""

    @property
    def canonical(self) -> bytes:
        """The definition that the server sends."""
        return canonical_json(dict(self.form))

    @property
    def sha256(self) -> str:
        """The definition's hash."""
        return hashlib.sha256(self.canonical).hexdigest()

    @property
    def slug(self) -> str:
        """The slug in the address."""
        return self.circumstances.slug or str(self.form["slug"])

    @property
    def server(self) -> str:
        """The start of the survey's addresses on the server that collects the reports."""
        return f"{self.circumstances.collector}/s/{self.slug}"

    @property
    def words_languages(self) -> list[str]:
        """Languages whose texts the device loads: the definition's, or all without a definition."""
        answer = self.circumstances.definition
        text = self.canonical.decode() if answer is None else answer.body
        has_definition = self.circumstances.requests_definition and (
            answer is None or answer.status == 200
        )
        if not has_definition or text == "":
            return list(self.words_of)
        form = json.loads(text)
        tags = [form["language"], *form.get("translations", {})]
        return list(dict.fromkeys(closest(tag, self.words_of) for tag in tags))

    @property
    def prefix(self) -> str:
        """The hash in the link."""
        prefix = self.circumstances.prefix
        return self.sha256[:PREFIX] if prefix is None else prefix

    @property
    def key(self) -> str:
        """The storage key of the outbox."""
        return f"survey-report:{self.slug}"

    @property
    def coarse_factor(self) -> str:
        """The odds factor of a whole report, rounded up to 1, 3, 10, 30 and so on."""
        ratio = read_definition(self.canonical).ratio
        steps = (step * 10**power for power in range(31) for step in (1, 3))
        return str(next(step for step in steps if ratio <= step))

    @property
    def is_kiosk(self) -> bool:
        """Whether the device is shared."""
        return bool(self.form.get("kiosk"))

    def request(self, answers: Mapping[str, Any]) -> dict[str, Any]:
        """Return one visit as `device.js` expects it."""
        c = self.circumstances
        slug = self.slug if c.collector else ""
        parts = {"slug": slug, "d": self.prefix, "i": c.invitation, "s": c.stratum}
        link = "&".join(f"{name}={quote(text, safe='')}" for name, text in parts.items() if text)
        stored = [[self.key, c.stored]] if c.stored else []
        if c.remembered:
            stored.append([MEMORY, c.remembered])
        return {
            "canonical": self.canonical.decode(),
            "pathname": "/folder/" if c.collector else f"/s/{self.slug}",
            "collector": c.collector,
            "hash": f"#{c.damaged_link or link}",
            "answers": answers,
            "words": self.words,
            "idBytes": list(self.id_bytes),
            "languages": c.languages,
            "failures": [asdict(answer) for answer in c.failures],
            "waiting": c.waiting,
            "afterRefusal": c.after_refusal,
            "storage": c.storage,
            "locks": c.locks,
            "dialog": c.dialog,
            "subtle": c.subtle,
            "digestFails": c.digest_fails,
            "lacksPictures": c.lacks_pictures,
            "speaks": c.speaks,
            "generatorFails": c.generator_fails,
            "definition": asdict(c.definition) if c.definition else None,
            "stored": stored,
            "meanwhile": [[self.key, c.meanwhile]] if c.meanwhile else [],
            "overtaken": [[self.key, c.overtaken]] if c.overtaken else [],
            "exitAt": c.exit_at,
            "switchAt": c.switch_at,
            "switchTo": c.switch_to,
            "interruptedAt": c.interrupted_at,
            "interruptions": c.interruptions,
            "idles": c.idles,
            "afterSent": c.after_sent,
            "counts": c.counts,
            # A reload, which this device only records, deletes the answers of a real page.
            "looksBack": c.interruptions != OTHER_LINK,
        }

    def body(self, answers: Mapping[str, Any]) -> str:
        """Return Python's report for the same random words; each new pool starts with the first."""
        sampling = self.form["sampling"]
        sample = None
        if sampling:
            draw = uniform_below(cycle(self.words))
            names = draw_questions(sampling["groups"], sampling["draw"], draw)
            sample = [q["id"] for q in questions(self.form) if q["id"] in names]
        c = self.circumstances
        entered = {q["id"]: q for q in questions(self.form) if q["id"] in answers}
        taken = {name: _entered_answer(q, answers[name]) for name, q in entered.items()}
        respondent = Respondent(taken, sample, self.id_bytes, c.stratum, c.invitation)
        draw = uniform_below(cycle(self.words))
        return report_of(self.form, self.sha256, respondent, draw).decode()


def _entered_answer(question: Form, answer: Any) -> Any:
    """Return the answer that the device stores when a respondent enters an answer.

    A month or year stands for the grid point nearest to its middle, so some points of such grids
    cannot be entered.
    """
    grid = question["grid"]
    if not kind_of(question).is_date or grid["step"] < MONTH or answer >= grid["points"]:
        return answer
    low, step, last = grid["low"], grid["step"], grid["points"] - 1
    is_year = step >= YEAR

    def entered(index: int) -> str:
        return (EPOCH + timedelta(low + index * step)).isoformat()[: 4 if is_year else 7]

    start = entered(answer)
    middle = date.fromisoformat(start + ("-07-01" if is_year else "-15"))
    within = min(max((middle - EPOCH).days - low, 0), last * step)
    nearest = (2 * within + step) // (2 * step)  # rounded half up
    return next(i for i in (nearest, nearest - 1, nearest + 1) if entered(i) == start)


def expected_events(scenario: Scenario, body: str) -> list[list[Any]]:
    """Return the expected requests, storage entries and address changes of a visit, in order."""
    c = scenario.circumstances
    events, loads = _loading(scenario)
    if c.stored:
        return [*events, *_resumption(scenario, c.stored, 0)]
    events += _pictures(scenario) if loads else []
    if not loads or c.generator_fails:
        return [*events, *_departure(scenario, "cannot", 0)]
    if (view := c.exit_at or c.interrupted_at) in VIEWS:
        return [*events, *_departure(scenario, view, 0)]
    if c.idles:
        return [*events, ["reload", IDLE if c.dialog else IDLE_WITHOUT_DIALOG]]
    if c.locks:
        events.append(["lock", scenario.slug])
    if c.meanwhile:
        return [*events, *_resumption(scenario, c.meanwhile, STORAGE_DELAY)]
    events += _entry(scenario, _pending_entry(body))
    if departure := _departure(scenario, "sending", 0):
        return [*events, *departure]
    return [*events, *_delivery(scenario, body, STORAGE_DELAY)]


def _loading(scenario: Scenario) -> tuple[list[list[Any]], bool]:
    """Return the events until the first view, and whether the survey has loaded by then."""
    c = scenario.circumstances
    is_refused = c.slug or c.prefix is not None or c.digest_fails or c.definition is not None
    loads = c.requests_definition and not is_refused
    events: list[list[Any]] = []
    if c.requests_definition:
        events.append(["fetch", f"{scenario.server}/definition.json", PRIVATE, 0])
    for language in scenario.words_languages:
        options = {**PRIVATE, "cache": "default", "integrity": f"sha256-{language}"}
        events.append(["fetch", f"/words.{language}.json", options, 0])
    if c.storage != "absent":
        room = int(scenario.form["report_bytes"]) if loads else 0
        events += [["store", PROBE, PROBE.ljust(2 * room, "x")], ["remove", PROBE]]
    if loads and (c.invitation or c.stratum):
        path = "/folder/#slug=" + scenario.slug + "&" if c.collector else f"/s/{scenario.slug}#"
        events.append(["address", None, "", f"{path}d={scenario.prefix}&i="])
    return events, loads


def _pictures(scenario: Scenario) -> Iterator[list[Any]]:
    """Yield the requests for all pictures of the survey; they depend on the survey only."""
    options = [option for question in questions(scenario.form) for option in question["options"]]
    for sha256 in dict.fromkeys(o["picture"]["sha256"] for o in options if "picture" in o):
        digest = base64.b64encode(bytes.fromhex(sha256)).decode("ascii")
        asked = {**PRIVATE, "cache": "default", "integrity": f"sha256-{digest}"}
        yield ["fetch", f"{scenario.circumstances.collector}/pictures/{sha256}", asked, 0]


def _resumption(scenario: Scenario, entry: str, now: int) -> Iterator[list[Any]]:
    """Yield the events after an outbox entry has been read; an unreadable one only blocks."""
    form = json.loads(entry)
    state, body = form["state"], form.get("body", "")
    press = next(iter(scenario.circumstances.after_refusal), "")
    if state == "refused" and body and press == "remove":
        yield from _entry(scenario, SENT)
    elif state == "refused" and body and press == "again":
        yield from _entry(scenario, _pending_entry(body))
        yield from _delivery(scenario, body, now)
    elif state == "pending":
        yield from _delivery(scenario, body, now)


def _entry(scenario: Scenario, entry: str) -> list[list[Any]]:
    stores = scenario.circumstances.storage != "absent" and not scenario.is_kiosk
    return [["store", scenario.key, entry]] if stores else []


def _delivery(scenario: Scenario, body: str, now: int) -> Iterator[list[Any]]:
    """Yield the attempts to send a report from time `now` on, and the effects of the answers."""
    c = scenario.circumstances
    presses = iter(c.after_refusal)
    attempt = waits = 0
    for answer in [*c.failures, Answer(201)] if body else []:
        options = {**POST, "body": body, "keepalive": len(body) < 60_000}
        yield ["fetch", f"{scenario.server}/reports", options, now]
        if answer.is_final:
            press = "" if answer.status == 201 else next(presses, "")
            yield from _outcome(scenario, body, answer, press, now)
            if press != "again":
                return
            attempt = 0
            continue
        now += TIMEOUT if answer.status == -1 else 0
        if departure := _departure(scenario, "waiting", now):
            yield from departure
            return
        end = c.waiting[waits % len(c.waiting)]
        now += answer.wait(attempt) if end == "timer" else 0
        attempt, waits = attempt + 1, waits + 1


def _outcome(
    scenario: Scenario, body: str, answer: Answer, press: str, now: int
) -> Iterator[list[Any]]:
    """Yield the effects of a final answer and of the button that the respondent then presses."""
    c = scenario.circumstances
    # Another tab's report stays as it is.
    if answer.status == 201:
        yield from [] if c.overtaken else _entry(scenario, SENT)
        if not c.collector:
            forget = {**PRIVATE, "credentials": "same-origin"}
            yield ["fetch", f"{scenario.server}/sent", forget, now]
        for button in c.after_sent:
            yield from _button_events(scenario, button)
        yield from _departure(scenario, "sent", now)
    elif is_test_run(scenario.slug) and answer.status == FORBIDDEN:
        yield from [] if c.overtaken else [["remove", scenario.key]]
    else:
        yield from _entry(scenario, _refused_entry(body, answer))
        next_entry = {"remove": SENT, "again": _pending_entry(body)}.get(press)
        yield from _entry(scenario, next_entry) if next_entry else []


def _departure(scenario: Scenario, view: str, now: int) -> list[list[Any]]:
    """Return the event by which the page is left or restarts at a view, if any."""
    c = scenario.circumstances
    if c.exit_at == view and not scenario.is_kiosk:
        return [["leave", scenario.form.get("exit") or NEUTRAL_PAGE]]
    # A report on its way may be stored nowhere else, so only a page that has lost it restarts.
    can_restart = view not in ("sending", "waiting")
    restarts = c.interrupted_at == view and (
        c.interruptions == RESTORED or (c.interruptions == OTHER_LINK and can_restart)
    )
    return [["reload", now]] if restarts or (c.exit_at == view and can_restart) else []


def _button_events(scenario: Scenario, press: str) -> list[list[Any]]:
    """Return the storage events of a button on the page after sending."""
    if press == "remember":
        return [["store", MEMORY, _json({"surveys": 1, "factor": scenario.coarse_factor})]]
    return [["remove", MEMORY], *([["remove", scenario.key]] if press == "remove" else [])]


def _refused_entry(body: str, answer: Answer) -> str:
    """Return the outbox entry of a report that the server has refused."""
    name, detail = "", ""
    if answer.body:
        problem = json.loads(answer.body)
        name, detail = problem["type"].removeprefix("urn:survey:"), problem["detail"]
    entry = {"state": "refused", "body": body, "status": answer.status}
    return _json({**entry, "name": name, "detail": detail})


def _pending_entry(body: str) -> str:
    """Return the outbox entry of a report that the server has not acknowledged yet."""
    return _json({"state": "pending", "body": body})


def _json(form: Mapping[str, Any]) -> str:
    return json.dumps(form, separators=(",", ":"), ensure_ascii=False)


# Comparison of visits with the expectation and with each other


def mismatch(scenario: Scenario, body: str, record: Mapping[str, Any]) -> str:
    """Describe the first difference between a visit and the expectation, or return ""."""
    if record["violations"]:
        return f"uses what no visit needs: {record['violations'][0]}"
    if record["globals"]:
        return f"makes the global {record['globals'][0]}"
    if record["isStuck"]:
        return "does not end"
    events = [event for event in record["events"] if event[0] in EXTERNAL]
    expected = json.loads(json.dumps(expected_events(scenario, body)))
    for event, expected_event in zip(events, expected, strict=False):
        if event != expected_event:
            return difference(event, expected_event)
    if len(events) != len(expected):
        rest = events[len(expected) :] or expected[len(events) :]
        kind = "unexpected" if len(events) > len(expected) else "missing"
        return f"{kind} event: {_event_text(rest[0])}"
    if record["failure"]:
        return f"fails: {record['failure']}"
    return _remains(scenario, record)


def _remains(scenario: Scenario, record: Mapping[str, Any]) -> str:
    """Describe data that a visit leaves in the browser's history or memory, or return ""."""
    titles = {event[1] for event in record["events"] if event[0] == "title"}
    if unexpected_titles := titles - _titles(scenario.form) - {EMPTY_TITLE}:
        return f"an unexpected title in the browser's history: {min(unexpected_titles)}"
    if record.get("remembered"):
        return "remembers answers after sending or leaving"
    c = scenario.circumstances
    leaves = c.exit_at in VIEWS or (c.interrupted_at in VIEWS and "pagehide" in c.interruptions)
    if leaves and record["page"][2] != EMPTY_MAIN:
        return "the page keeps its content after leaving"
    return "words of the generator remain in memory" if record["unwiped"] else ""


def _titles(form: Form) -> set[str]:
    translations = form.get("translations", {}).values()
    return {"", form["title"], *(translation["title"] for translation in translations)}


def difference(event: Sequence[Any], expected: Sequence[Any]) -> str:
    """Describe an event that differs from the expected one.

    >>> difference(["fetch", "/s/a/reports?x", {}, 100], ["fetch", "/s/a/reports", {}, 100])
    'fetch: address /s/a/reports?x instead of /s/a/reports'
    """
    if event[0] != expected[0]:
        return f"{_event_text(event)} instead of {_event_text(expected)}"
    names = {"fetch": ("address", "options", "time")}.get(event[0], ("",) * len(event))
    pairs = zip(names, event[1:], expected[1:], strict=False)
    name, part, expected_part = next(pair for pair in pairs if pair[1] != pair[2])
    if isinstance(part, dict):
        key = next(
            key for key in [*part, *expected_part] if part.get(key) != expected_part.get(key)
        )
        name, part, expected_part = key, part.get(key), expected_part.get(key)
    return f"{event[0]}: {name} {_text_difference(str(part), str(expected_part))}".replace(
        "  ", " "
    )


def _text_difference(text: str, expected: str) -> str:
    """Quote two texts from shortly before their first difference.

    >>> _text_difference("abc" * 20 + "d", "abc" * 20 + "e")
    '...abcabcabcabcabcabcabcabcabcabcd instead of ...abcabcabcabcabcabcabcabcabcabce'
    """
    pairs = enumerate(zip(text, expected, strict=False))
    at = max(next((i for i, (a, b) in pairs if a != b), 0) - 30, 0)
    start = "..." if at else ""
    return f"{start}{text[at : at + 90]} instead of {start}{expected[at : at + 90]}"


def _event_text(event: Sequence[Any]) -> str:
    return " ".join(map(str, event))[:200]


def interference(
    scenario: Scenario, bodies: Sequence[str], records: Sequence[Mapping[str, Any]]
) -> str:
    """Describe a difference between visits with the same draws but other answers, or return ""."""
    traces = [_internal(record) for record in records]
    for trace in traces[1:]:
        if trace != traces[0]:
            pairs = zip(trace, traces[0], strict=False)
            first = next((pair for pair in pairs if pair[0] != pair[1]), ("one more event", ""))
            return f"other answers change its timing or draws: {first[0]} instead of {first[1]}"
    for counts in zip(*(record["blocks"] for record in records), strict=False):
        if max(counts) - min(counts) > MAX_BLOCKS:
            return (
                f"other answers take more time: {min(counts):,} to {max(counts):,} blocks of code"
            )
    ends = [(record["view"], record["leaves"], record["address"]) for record in records]
    if len(set(ends)) > 1:
        return f"other answers lead to another end: {ends[0]} and {ends[1:]}"
    pages = {body: record["page"] for body, record in zip(bodies, records, strict=True)}
    for body, record in zip(bodies, records, strict=True):
        if scenario.circumstances.sends_new and record["page"] != pages[body]:
            return "the page after sending depends on the answers"
    return ""


def _internal(record: Mapping[str, Any]) -> list[Any]:
    return [event for event in record["events"] if event[0] in INTERNAL]


# The visits of an audit


def check_visits(
    node: Node,
    files: Mapping[str, bytes],
    definition: Definition,
    seed: int,
    most: int | None = None,
) -> Iterator[Check]:
    """Make all visits, or a limited number in each group, and check each group."""
    rng = random.Random(seed)  # noqa: S311  only the choice of visits
    form: Form = json.loads(definition.canonical)
    every = 1 + sum(len(question["options"]) for question in questions(form)) // MANY_OPTIONS
    for name, all_scenarios in _Plan(form, tuple(_texts(files)), rng).groups():
        n = -(-len(all_scenarios) // every)
        scenarios = rng.sample(all_scenarios, n if most is None else min(n, most))
        yield _check_group(node, files, f"{name}, seed {seed}", scenarios)


def closest(tag: str, languages: Sequence[str]) -> str:
    """Return the language with a tag, whatever its region, or else the first one."""
    same_base = [language for language in languages if base_of(language) == base_of(tag)]
    return next(iter([tag] if tag in languages else same_base or languages))


def _texts(files: Mapping[str, bytes]) -> dict[str, str]:
    matches = ((WORDS_FILE.fullmatch(name), content) for name, content in files.items())
    texts = {match[1]: content.decode() for match, content in matches if match}
    # As the page lists them: the source language first.
    return {SOURCE: texts.pop(SOURCE), **texts}


def _check_group(
    node: Node, files: Mapping[str, bytes], name: str, scenarios: Sequence[Scenario]
) -> Check:
    visitors = [
        scenario.request(answers) for scenario in scenarios for answers in scenario.answer_sets
    ]
    records = iter(node.ask(visits=[{"texts": _texts(files), "visitors": visitors}])["visits"][0])
    for scenario in scenarios:
        bodies = [scenario.body(answers) for answers in scenario.answer_sets]
        scenario_records = [next(records) for _ in bodies]
        for body, record in zip(bodies, scenario_records, strict=True):
            if fault := mismatch(scenario, body, record):
                return Check(GROUP, name, False, f"{fault} ({_description(scenario)})")
        if fault := interference(scenario, bodies, scenario_records):
            return Check(GROUP, name, False, f"{fault} ({_description(scenario)})")
    detail = f"{len(visitors)} visits: all events as expected, whatever the answers"
    return Check(GROUP, name, True, detail)


def _description(scenario: Scenario) -> str:
    """Describe the circumstances that differ from the default ones."""
    usual, values = asdict(Circumstances()), asdict(scenario.circumstances)
    unusual = [f"{name} {values[name]}"[:90] for name in values if values[name] != usual[name]]
    return "; ".join(unusual) or "default circumstances"


class _Plan:
    """The scenarios of an audit, by group; their details are random."""

    def __init__(self, form: Form, languages: tuple[str, ...], rng: random.Random) -> None:
        self.form, self.available, self.rng = form, languages, rng
        self.translated = with_translations(form, languages)
        self.kiosk = {**form, "kiosk": True}
        self.leaving = {**form, "exit": "https://www.example.org/weather"}

    def groups(self) -> Iterator[tuple[str, list[Scenario]]]:
        """Yield the name and the scenarios of each group.

        The fastest groups come first, so that a client that breaks the promise is rejected sooner.
        """
        yield "links", list(self._links())
        yield "another host", list(self._other_host())
        yield "obstacles", list(self._obstacles())
        yield "devices", list(self._devices())
        yield "interruptions", list(self._interruptions())
        yield "leaving", list(self._leaving())
        yield "shared devices", list(self._shared())
        yield "failures", list(self._failures())
        yield "earlier reports", list(self._earlier())
        yield "invitations and groups", list(self._invitations())
        yield "computing", [self._scenario(counts=True, failures=(Answer(503),)) for _ in range(5)]
        yield "refusals", list(self._refusals())
        yield "languages", list(self._languages())

    def _scenario(self, form: Form | None = None, **circumstances: Any) -> Scenario:
        form = self.form if form is None else form
        return Scenario(
            Circumstances(**circumstances),
            form,
            [WORD_TOTAL - 1, *(self.rng.randrange(1, WORD_TOTAL) for _ in range(WORDS - 1))],
            self.rng.randbytes(16),
            [all_answers(form, self.rng) for _ in range(ANSWER_SETS)],
            self.available,
        )

    def _generator_calls(self) -> int:
        """Return the calls before a report is sent: a test, names, questions, id and draws."""
        all_questions = questions(self.form)
        draws_first = self.form["sampling"] or any(q.get("shuffled") for q in all_questions)
        return 1 + len(all_questions) + bool(draws_first) + 2

    def _some_failures(self, n: int) -> tuple[Answer, ...]:
        return tuple(_temporary(self.rng) for _ in range(n))

    def _languages(self) -> Iterator[Scenario]:
        for languages in LANGUAGES:
            for form in (self.form, self.translated):
                yield self._scenario(form, languages=languages)
        for view in VIEWS:
            for language in self.translated["translations"]:
                switch = {"switch_at": view, "switch_to": language}
                yield self._scenario(self.translated, **switch)

    def _invitations(self) -> Iterator[Scenario]:
        invited = {**self.form, "access": "invitation"}
        for form in (self.form, invited, self.translated) * 2:
            for group in ("", random_group(self.rng), random_group(self.rng)):
                failures = self._some_failures(self.rng.randrange(3))
                token = random_token(self.rng)
                yield self._scenario(form, invitation=token, stratum=group, failures=failures)
        for token, group in product(RARE_TOKENS, RARE_GROUPS):
            yield self._scenario(invitation=token, stratum=group)

    def _other_host(self) -> Iterator[Scenario]:
        collector = "https://collector.example"
        for form in (self.form, self.translated, self.kiosk):
            yield self._scenario(form, collector=collector, failures=self._some_failures(2))
        token, group = random_token(self.rng), random_group(self.rng)
        yield self._scenario(collector=collector, invitation=token, stratum=group)

    def _failures(self) -> Iterator[Scenario]:
        for n in range(11):
            failures = self._some_failures(n)
            yield self._scenario(failures=failures)
            waiting = tuple(self.rng.choice(("timer", "online", "now")) for _ in range(3))
            yield self._scenario(failures=failures, waiting=waiting)

    def _refusals(self) -> Iterator[Scenario]:
        for status in (400, 401, 403, 404, 405, 409, 410, 411, 413, 415, 421, 422, 451):
            kind = f"urn:survey:r-{random_word(self.rng)}"
            problem = _json({"type": kind, "detail": random_word(self.rng)})
            refusal = Answer(status, body=self.rng.choice((problem, "")))
            first = self._some_failures(self.rng.randrange(3))
            yield self._scenario(failures=(*first, refusal))
            twice = (refusal, refusal)
            yield self._scenario(failures=twice, after_refusal=("again", "again"))
            yield self._scenario(failures=(*first, refusal), after_refusal=("remove",))

    def _earlier(self) -> Iterator[Scenario]:
        """Yield visits in which this tab or another one has already stored or sent a report.

        The client sends a stored report unchanged; if one was already sent, it sends nothing.
        """
        base = self._scenario()
        body = base.body(base.answer_sets[0]).replace(".", ",", 1)
        earlier, refused = _pending_entry(body), _refused_entry(body, Answer(422))
        for n in range(5):
            yield self._scenario(stored=earlier, failures=self._some_failures(n))
            yield self._scenario(meanwhile=earlier, failures=self._some_failures(n))
        for press in ((), ("again",), ("remove",)):
            yield self._scenario(stored=refused, after_refusal=press)
        for unreadable in ("pending", "refused", "removed"):
            yield self._scenario(stored=_json({"state": unreadable}))
        yield self._scenario(stored=earlier.replace("pending", "removed"))
        yield self._scenario(stored=earlier, definition=Answer(410))
        yield self._scenario(stored=earlier, storage="write")
        yield self._scenario(stored=SENT)
        yield self._scenario(meanwhile=SENT)
        yield self._scenario(overtaken=earlier)
        test_run = {**self.form, "slug": f"{TEST_RUN_PREFIX}run"}
        for overtaken in ("", earlier, SENT):
            yield self._scenario(test_run, failures=(Answer(FORBIDDEN),), overtaken=overtaken)
        yield self._scenario(test_run, failures=(Answer(422),))

    def _devices(self) -> Iterator[Scenario]:
        for storage in ("read", "write", "remove", "denied", "absent"):
            failures = self._some_failures(self.rng.randrange(4))
            yield self._scenario(storage=storage, failures=failures)
        yield self._scenario(locks=False)
        yield self._scenario(speaks=True)
        yield self._scenario(self.translated, speaks=True, switch_at="questions", switch_to="es")
        yield self._scenario(dialog=False, failures=(Answer(-1),))
        yield self._scenario(remembered='{"surveys":2,"factor":"30"}')
        yield self._scenario(after_sent=("remember",))
        yield self._scenario(after_sent=("remember", "forget"))
        yield self._scenario(after_sent=("remember", "remove"))

    def _shared(self) -> Iterator[Scenario]:
        translated = {**self.kiosk, "translations": self.translated["translations"]}
        for form in (self.kiosk, translated):
            for n in (0, 1, 4, 10):
                failures = self._some_failures(n)
                yield self._scenario(form, failures=failures)
            yield self._scenario(form, failures=(Answer(422),), after_refusal=("again",))
            yield self._scenario(form, dialog=False, storage="denied")
            yield self._scenario(form, idles=True)
            yield self._scenario(form, idles=True, dialog=False)

    def _leaving(self) -> Iterator[Scenario]:
        for form in (self.form, self.leaving, self.kiosk):
            for view in VIEWS:
                yield self._scenario(form, exit_at=view)
            yield self._scenario(form, interrupted_at="review", interruptions=HIDDEN)
            for view in ("sending", "waiting", "sent"):
                yield self._scenario(form, exit_at=view, failures=(Answer(503),))

    def _interruptions(self) -> Iterator[Scenario]:
        for interruptions in (RESTORED, OTHER_LINK):
            interrupted: dict[str, Any] = {
                "interruptions": interruptions,
                "failures": (Answer(503),),
            }
            for view in (*VIEWS, "sending", "waiting", "sent"):
                for form in (self.form, self.kiosk):
                    yield self._scenario(form, interrupted_at=view, **interrupted)
            yield self._scenario(prefix="0" * PREFIX, interrupted_at="cannot", **interrupted)

    def _links(self) -> Iterator[Scenario]:
        digest = self._scenario().sha256
        whole, token, group = f"d={digest[:PREFIX]}", random_token(self.rng), "g" * 60
        for damaged in (
            *(f"d={digest[: PREFIX - 1]}", f"d={digest.upper()}", f"i={token}"),
            *(f"{whole}&i={token[:-1]}", f"{whole}&i={token[:-1]}B", f"{whole}&i="),
            *(f"{whole}&s={group}", f"{whole}&i={token}&s={group}g", f"{whole}&i={token}&s=%00"),
        ):
            yield self._scenario(damaged_link=damaged)
        if self.form["format"] > 1:
            yield self._scenario(prefix=digest[: PREFIX // 2])
        yield self._scenario(invitation=token, stratum=group)

    def _obstacles(self) -> Iterator[Scenario]:
        yield self._scenario(prefix="0" * PREFIX)
        yield self._scenario(slug=f"{self.form['slug']}-again")
        yield self._scenario(subtle=False)
        yield self._scenario(digest_fails=True)
        yield self._scenario(lacks_pictures=True)
        for call in range(1, self._generator_calls() + 1):
            yield self._scenario(generator_fails=call)
        for status in (0, 200, 403, 404, 410, 429, 500, 503):
            yield self._scenario(definition=Answer(status))
        other_version = canonical_json({**self.form, "version": 999}).decode()
        yield self._scenario(definition=Answer(200, body=other_version))


def _temporary(rng: random.Random) -> Answer:
    status = rng.choice((0, -1, 408, 425, 429, 500, 502, 503, 504, 200, 202, 204, 302))
    headers = {"Retry-After": str(rng.choice((1, 7, 120, 5000)))} if rng.random() < 0.3 else {}
    return Answer(status, headers if status > 0 else {})


def with_translations(form: Form, languages: Sequence[str]) -> Form:
    """Return the survey with its translations, or with artificial ones in all languages."""
    if form.get("translations"):
        return form
    optional = {"organization"} - form.keys()
    texts = [name for name in SURVEY_TEXTS if name not in optional]

    def mark(language: str, text: str) -> str:
        return f"{text} ({language})" if text else ""

    def translation(language: str) -> dict[str, Any]:
        return {
            **{name: mark(language, form.get(name, "")) for name in texts},
            "pages": [
                {
                    "title": mark(language, page["title"]),
                    "questions": [
                        _translated_question(q, language, mark) for q in page["questions"]
                    ],
                }
                for page in form["pages"]
            ],
        }

    other_languages = [language for language in languages if language != form["language"]]
    return {
        **form,
        "translations": {language: translation(language) for language in other_languages},
    }


def _translated_question(question: Form, language: str, mark: Any) -> dict[str, Any]:
    grid = question["grid"] or {}
    ends = question.get("slider", {})
    slider_labels = {end: mark(language, label) for end, label in ends.items()}
    pictures = [option.get("picture", {}).get("alt", "") for option in question["options"]]
    # The device requires that the text without earlier answers is the marked one.
    piped = {name: mark(language, text) for name, text in question.get("piped", {}).items()}
    text, row = mark(language, question["text"]), {}
    if "matrix" in question:
        row = {name: mark(language, question["matrix"][name]) for name in ROW_TEXTS}
        text = joined_text(**row)
    return {
        "text": text,
        "help": mark(language, question["help"]),
        "unit": mark(language, grid.get("unit", "")),
        "options": [mark(language, option["label"]) for option in question["options"]],
        **({"topic": mark(language, question["topic"])} if "topic" in question else {}),
        **({"slider": slider_labels} if slider_labels else {}),
        **({"pictures": [mark(language, alt) for alt in pictures]} if any(pictures) else {}),
        **({"matrix": row} if row else {}),
        **({"piped": piped} if piped else {}),
    }
