"""A SurveyJS form on a host's own page: only one randomized report leaves the device."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any, ClassVar

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from survey.collect.publication import publish
from survey.estimator import proportions
from survey.mechanism import channel_from_json
from survey.questionnaire.canonical import freeze
from survey.questionnaire.validation import check
from survey.settings import Caps
from survey.store import PublishedSurvey
from tests.browser.conftest import Device, Site, running_site
from tests.conftest import ROOT, free_port
from tests.own_forms import FORM, definition_of

pytestmark = [pytest.mark.web, pytest.mark.security]

CLIENT = ROOT / "client_js"
LAPTOP = {"viewport": {"width": 1280, "height": 2400}, "has_touch": False, "is_mobile": False}
"""So tall that nothing scrolls: SurveyJS closes an open list when the page scrolls."""

PAGE = """<!doctype html><title>opening</title>
<link rel="stylesheet" href="/node_modules/survey-core/survey-core.fontless.min.css">
<link rel="icon" href="data:,">
<script type="importmap">{"imports": {
  "survey-core": "/node_modules/survey-core/fesm/survey-core.mjs",
  "survey-js-ui": "/node_modules/survey-js-ui/fesm/survey-js-ui.mjs",
  "ldp-survey-client": "/npm/index.js",
  "ldp-survey-client/surveyjs": "/npm/surveyjs.js"
}}</script>
<div id="form"></div><pre id="error"></pre>
<script type="module">
import { Model } from "survey-core";
import "survey-js-ui";
import { openSurvey } from "ldp-survey-client";
import { AlreadyAnsweredError, privatize } from "ldp-survey-client/surveyjs";

const say = (words) => { document.title = words; };
const { link, form } = await (await fetch("/form.json")).json();
let survey;
try {
  survey = await openSurvey(link);
  window.model = new Model(form);
  model.onComplete.add((sender) => {
    const values = sender.getPlainData().flatMap(({ value }) => value ?? []);
    window.handed = [sender.data, values];
  });
  privatize(model, survey, {
    onWaiting: () => say("waiting"),
    onSettled: ({ state }) => say(state),
  });
  model.render(document.getElementById("form"));
  say("ready");
} catch (error) {
  if (error instanceof AlreadyAnsweredError) say((await survey.resume(() => say("waiting"))).state);
  else {
    document.getElementById("error").textContent = error.message;
    say("refused");
  }
}
</script>
"""

EVERYWHERE = """async () => ({
  cookies: document.cookie,
  local: { ...localStorage },
  session: { ...sessionStorage },
  databases: (await indexedDB.databases()).map(({ name }) => name),
  caches: await caches.keys(),
})"""
"""All that a page has stored."""


class Handler(SimpleHTTPRequestHandler):
    """Send the host's page, the form and, from the client's folder, all modules."""

    protocol_version = "HTTP/1.1"
    extensions_map: ClassVar[dict[str, str]] = {
        **SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
    }
    form: bytes

    def do_GET(self) -> None:
        generated = {"/": ("text/html", PAGE.encode()), "/form.json": ("text/json", self.form)}
        if self.path not in generated:
            super().do_GET()
            return
        kind, content = generated[self.path]
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@dataclass
class Host:
    """The page of a host, on another origin than the server that collects the reports."""

    url: str
    collector: Site
    slugs: Iterator[int] = field(default_factory=lambda: iter(range(1, 100)))

    def publish(self, site: Site | None = None) -> PublishedSurvey:
        """Publish the survey that the import of the form makes."""
        definition = {**definition_of(FORM), "slug": f"form-{next(self.slugs)}"}
        store = (site or self.collector).store
        return publish(store, check(definition, Caps()), date(2026, 11, 21))

    def open(self, device: Device, link: str, form: dict[str, Any] = FORM) -> Page:
        Handler.form = json.dumps({"link": link, "form": form}).encode()
        return device.open(f"{self.url}/")


@pytest.fixture(scope="module")
def host(tmp_path_factory) -> Iterator[Host]:
    assert (CLIENT / "node_modules/survey-js-ui").exists(), "run npm install in client_js"
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with running_site(tmp_path_factory.mktemp("own"), SURVEY_CLIENT_ORIGINS=url) as collector:
        server = ThreadingHTTPServer(("127.0.0.1", port), partial(Handler, directory=str(CLIENT)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Host(url, collector)
        server.shutdown()
        server.server_close()


@pytest.fixture
def laptop(new_device) -> Device:
    return new_device(**LAPTOP)


def element(page: Page, name: str) -> Locator:
    return page.locator(f'[data-name="{name}"]')


def choose(page: Page, name: str, *labels: str) -> None:
    for label in labels:
        element(page, name).get_by_text(label, exact=True).click()


def pick(page: Page, name: str, *labels: str) -> None:
    """Choose from a list that opens."""
    element(page, name).locator(".sd-dropdown").click()
    for label in labels:
        page.get_by_role("option", name=label, exact=True).click()
    page.keyboard.press("Escape")


def answer_first_page(page: Page) -> None:
    choose(page, "threatened", "Yes")
    choose(page, "How often", "Twice")
    choose(page, "shift", "night")
    choose(page, "harms", "noise", "stress")
    pick(page, "helpers", "union", "doctor")
    page.get_by_role("button", name="Next").click()
    expect(element(page, "department").get_by_text("Response required.")).to_be_visible()
    pick(page, "department", "Care")
    page.get_by_role("button", name="Next").click()


def answer_second_page(page: Page) -> None:
    choose(page, "satisfied", "3")
    for row, column in enumerate(("much", "little")):
        cell = element(page, "trust").locator("tbody tr").nth(row)
        cell.locator(f'[data-responsive-title="{column}"]').click()
    element(page, "wishes").locator(".sv-ranking-item").nth(2).focus()
    page.keyboard.press("ArrowUp")
    element(page, "hours").locator("input").fill("38.5")
    slider = element(page, "tired").locator("input")
    slider.focus()
    page.keyboard.press("Tab")
    # Only moving it is an answer; SurveyJS reads `text, range` also when people only pass it.
    assert "tired" not in page.evaluate("model.data")
    slider.press("ArrowRight")
    slider.press("ArrowRight")
    element(page, "since").locator("input").focus()
    page.keyboard.type("02292024")
    page.keyboard.press("Tab")
    choose(page, "reported", "to nobody")


TRUTH = {
    "threatened": True,
    "How often": 2,
    "department": "Care",
    "shift": "night",
    "harms": ["noise", "stress"],
    "helpers": ["union", "doctor"],
    "satisfied": 3,
    "trust": {"boss": "much", "team": "little"},
    "wishes": ["pay", "safety", "time"],
    "hours": 38.5,
    "tired": 2,
    "since": "2024-02-29",
    "reported": "to nobody",
}


def complete(page: Page) -> None:
    """Answer everything and press Complete."""
    expect(page).to_have_title("ready")
    answer_first_page(page)
    answer_second_page(page)
    assert page.evaluate("model.data") == TRUTH
    page.get_by_role("button", name="Complete").click()


def test_all_types_are_answered_and_nothing_but_the_report_is_sent_or_stored(host, laptop):
    survey = host.publish()
    page = host.open(laptop, host.collector.link(survey))
    complete(page)
    expect(page).to_have_title("sent")
    assert host.collector.store.n_pending(survey.key) == 1
    assert page.evaluate("window.handed") == [{}, []]

    path = f"{host.collector.url}/s/{survey.slug}"
    others = [r for r in laptop.requests if not r.url.startswith(host.url)]
    asked = [(r.method, r.url) for r in others if r.method != "OPTIONS"]
    assert asked == [("GET", f"{path}/definition.json"), ("POST", f"{path}/reports")]
    assert not any({"cookie", "referer"} & request.all_headers().keys() for request in others)
    (body,) = laptop.bodies
    codes = json.loads(body)["codes"]
    assert len(codes) == 14
    assert None not in codes
    static = [request for request in laptop.requests if request.url.startswith(host.url)]
    assert all(request.method == "GET" and "?" not in request.url for request in static)

    outbox = f"survey-report:{path}"
    nothing = {"cookies": "", "session": {}, "databases": [], "caches": []}
    expected = {**nothing, "local": {outbox: '{"state":"sent"}'}}
    assert page.evaluate(EVERYWHERE) == expected
    page.reload()
    expect(page).to_have_title("sent")
    expect(page.locator("#form > *")).to_have_count(0)
    assert len(laptop.bodies) == 1
    assert laptop.messages == []


def test_after_a_dropped_connection_the_same_bytes_are_sent_again(host, laptop):
    survey = host.publish()
    page = host.open(laptop, host.collector.link(survey))
    page.route("**/reports", lambda route: route.abort())
    complete(page)
    expect(page).to_have_title("waiting")
    stored = page.evaluate(EVERYWHERE)["local"]
    (entry,) = map(json.loads, stored.values())
    assert entry == {"state": "pending", "body": laptop.bodies[0].decode()}
    page.evaluate("dispatchEvent(new Event('online'))")
    expect(page).to_have_title("waiting")
    page.reload()
    expect(page).to_have_title("waiting")
    page.unroute("**/reports")
    page.evaluate("dispatchEvent(new Event('online'))")
    expect(page).to_have_title("sent")
    assert len(laptop.bodies) >= 3
    assert set(laptop.bodies) == {entry["body"].encode()}
    assert host.collector.store.n_pending(survey.key) == 1


def test_a_form_with_free_text_is_refused_before_it_is_shown(host, laptop):
    survey = host.publish()
    comment = {"type": "comment", "name": "anything else"}
    form = {**FORM, "pages": [*FORM["pages"], {"name": "third", "elements": [comment]}]}
    page = host.open(laptop, host.collector.link(survey), {**form, "cookieName": "answered"})
    expect(page).to_have_title("refused")
    error = page.locator("#error").text_content()
    assert "- anything else: free text cannot be randomized" in error
    assert "- survey: cookieName: a cookie would show that this person has answered" in error
    expect(page.locator("#form > *")).to_have_count(0)
    assert laptop.bodies == []


def test_a_page_that_the_server_does_not_list_cannot_open_the_survey(host, site, laptop):
    page = host.open(laptop, site.link(host.publish(site)))
    expect(page).to_have_title("refused")
    expect(page.locator("#error")).to_contain_text("SURVEY_CLIENT_ORIGINS")


def simulated(n: int) -> list[dict[str, Any]]:
    """Return the answers of n people to some questions, in skewed shares; some leave one empty."""
    random = Random(7)

    def one_of(*values: Any) -> Any:
        return random.choices(values, [4**i for i in range(len(values))])[0]

    people = []
    for _ in range(n):
        person = {
            "threatened": one_of(True, False),
            "How often": one_of("refused", "more often", 2, "never"),
            "trust": {"boss": one_of("much", "little"), "team": one_of("little", "much")},
        }
        people.append({name: value for name, value in person.items() if random.random() < 0.9})
    return people


LABELS = {True: "Yes", False: "No", 2: "Twice"}
"""The labels of values that are not their own labels."""


def truth_of(question: dict[str, Any], person: dict[str, Any]) -> int:
    """Return the index of the option that is a person's true answer."""
    name = {"how_often": "How often"}.get(question["id"], question["id"])
    rows = {f"trust_{row}": value for row, value in person.get("trust", {}).items()}
    value = {**person, **rows}.get(name, "refused")
    if value == "refused":
        return [option["id"] for option in question["options"]].index(question["opt_out"])
    labels = [option["label"] for option in question["options"]]
    return labels.index(LABELS.get(value, value))


def test_the_reports_of_2000_completed_forms_debias_to_the_true_shares(node, tmp_path):
    names = {"threatened", "How often", "trust"}
    every = [element for page in FORM["pages"] for element in page["elements"]]
    form = {"elements": [element for element in every if element["name"] in names]}
    definition = definition_of(form, epsilon="1.4")
    version = freeze(check(definition, Caps()), 1)
    people = simulated(2_000)
    link = f"https://survey.example/s/{definition['slug']}#d={version.sha256}"
    given = {"link": link, "definition": version.canonical.decode(), "form": form}
    (tmp_path / "input.json").write_text(json.dumps({**given, "people": people}))
    (tmp_path / "node_modules").symlink_to(CLIENT / "node_modules")
    shutil.copy(ROOT / "tests/browser/completions.mjs", tmp_path)
    command = [node, "completions.mjs", str(CLIENT), "input.json"]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert process.returncode == 0, process.stderr
    reports = [json.loads(body) for body in json.loads(process.stdout)]
    assert len({report["report_id"] for report in reports}) == len(people)
    questions = [
        one for page in json.loads(version.canonical)["pages"] for one in page["questions"]
    ]
    assert len(questions) == 4
    for at, question in enumerate(questions):
        channel = channel_from_json(question["channel"])
        truths = Counter(truth_of(question, person) for person in people)
        shares = [truths[option] / len(people) for option in range(len(question["options"]))]
        codes = [report["codes"][at] for report in reports]
        counts = np.bincount(codes, minlength=len(shares))
        # The chance that one of the 4 questions misses its truth is below 1 in 100,000.
        estimate = proportions(counts, channel, level=1 - 1e-6, simultaneous=True)
        covered = (estimate.conf_low <= shares) & (shares <= estimate.conf_high)
        assert covered.all(), (question["id"], shares, estimate)
