"""Measure the researchers' home page with 1,000 surveys: `python -m tests.benchmarks.home`.

The figures are milliseconds of server time, medians of one run, for a member of all surveys and
for an administrator. Cold is the first request to a new application. The baseline does what the
page did while it listed all surveys at once: it reads every definition, number of responses and
draft.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from flask.testing import FlaskClient

from survey.app import create_app
from survey.demo import DEFINITION
from survey.questionnaire.canonical import freeze, read_definition
from survey.questionnaire.drafts.conversion import draft_from
from survey.questionnaire.drafts.draft import DraftContent
from survey.questionnaire.loading import load, parse
from survey.settings import Caps, Settings
from survey.store import Plan, Schedule, Store, open_store
from tests.benchmarks.storage import today
from tests.conftest import EMAIL, SECRET, hashed_password
from tests.store.databases import DirectAccess
from tests.web.researchers import sign_in

PUBLISHED, DRAFTS = 900, 100
TARGET_MS = 60
ROUNDS = 25
ADMIN = "admin@example.org"

PAGES = {
    "first page": "",
    "last page, by title": "?sort=title&page=40",
    "search": "?q=survey+5",
    "open surveys, by closing date": "?state=open&sort=closes",
    "drafts": "?state=draft",
}


def fill(store: Store, url: str, researcher: int) -> None:
    """Publish copies of the demo's survey with responses and plans, and add drafts of it."""
    text = DEFINITION.read_bytes()
    survey, content = load(text, DEFINITION.name, Caps()), draft_from(parse(text, DEFINITION.name))
    released = []
    for number in range(PUBLISHED):
        update = {"slug": f"work-{number}", "title": f"Working life, survey {number}"}
        closes = today() + timedelta(days=number % 90) if number % 3 else None
        published = store.publish(
            freeze(survey.model_copy(update=update), 1),
            today() - timedelta(days=number % 400),
            Schedule(closes=closes),
            {researcher: "owner"},
        )
        store.set_plan(published.key, Plan(2_000))
        released.append((25 * (number % 80), published.key))
        if number % 4 == 0:
            store.close_survey(published.slug, today())
    for n, key in released:
        DirectAccess(url).run("UPDATE release SET number = 20, n = ? WHERE survey = ?", [n, key])
    for number in range(DRAFTS):
        titled = replace(content, survey={**content.survey, "title": {"en": f"Draft {number}"}})
        store.add_draft(titled.to_json(), EMAIL, number, {researcher: "owner"})


def list_everything(store: Store) -> None:
    """Read what a list of all surveys needs, with no definition cached."""
    read_definition.cache_clear()
    for survey in store.surveys():
        store.n_released(survey.key)
        survey.definition.epsilon  # noqa: B018  computed on first use
    for draft in store.drafts():
        DraftContent.from_json(draft.content)


def main() -> None:
    """Print the time of the baseline and of each address."""
    with tempfile.TemporaryDirectory() as directory:
        settings = Settings(
            secret=SECRET, database=f"sqlite:///{Path(directory) / 'h.db'}", password_cost=1
        )
        store = open_store(settings.database)
        store.migrate()
        store.add_researcher(ADMIN, hashed_password())
        fill(store, settings.database, store.add_researcher(EMAIL, hashed_password()).key)
        heading = f"{PUBLISHED} published surveys, {DRAFTS} drafts"
        print(f"{heading:<44}{'ms':>8}{'target':>8}{'ratio':>7}")
        print(f"{'baseline: read all surveys':<44}{median(lambda: list_everything(store)):>8.1f}")
        for name, email in (("member", EMAIL), ("administrator", ADMIN)):
            client = create_app(settings, store).test_client()
            sign_in(client, email)
            measure(client, name)
        store.close_connections()


def measure(client: FlaskClient, name: str) -> None:
    """Print the time of the first request and the median of later ones."""
    for page, query in PAGES.items():
        cold = milliseconds(lambda query=query: request_page(client, query))
        ms = median(lambda query=query: request_page(client, query))
        label = f"{name}: {page} (first {cold:.0f})"
        print(f"{label:<44}{ms:>8.1f}{TARGET_MS:>8}{ms / TARGET_MS:>7.2f}", flush=True)


def request_page(client: FlaskClient, query: str) -> None:
    """Request the page and require rows in it."""
    response = client.get(f"/research/{query}")
    if response.status_code != 200 or '<ol class="surveys"' not in response.text:
        raise RuntimeError(f"The page {query} shows no survey.")


def milliseconds(work: Callable[[], object]) -> float:
    """Return the milliseconds of one run."""
    start = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - start)


def median(work: Callable[[], object]) -> float:
    """Return the median milliseconds of several runs."""
    return statistics.median(milliseconds(work) for _ in range(ROUNDS))


if __name__ == "__main__":
    main()
