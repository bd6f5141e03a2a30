"""Measure how long an author waits for feedback on a question, in a small and a large survey.

    python -m tests.benchmarks.builder [--short]

Each measurement covers the whole request: the server reads the form, checks the draft and writes
the feedback. The baseline checks every question of the same draft once, as publishing does and as
the first request after a restart does; later requests only parse the questions that changed.
"""

from __future__ import annotations

import re
import statistics
import tempfile
import time
from collections.abc import Sequence
from http import HTTPStatus
from itertools import count
from pathlib import Path

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from survey.app import create_app
from survey.questionnaire.drafts import edits
from survey.questionnaire.drafts.conversion import definition_from
from survey.questionnaire.drafts.draft import DraftContent
from survey.questionnaire.kinds import parse_once
from survey.questionnaire.validation import check
from survey.settings import Caps, Settings
from survey.store import Store, open_store
from tests.benchmarks.short import benchmark_parser, reduced
from tests.conftest import EMAIL, SECRET, hashed_password
from tests.web.researchers import sign_in

TARGET_MS = 100
ROUNDS = 25
SIZES = (5, 60)
"""Numbers of questions."""

SHORT = {"ROUNDS": 1, "SIZES": (5,)}
NUMBERS = count()
LANGUAGES = ("es", "pt", "ar")


def large_draft(questions: int) -> DraftContent:
    """Return a draft with questions of every kind in four languages."""
    content = DraftContent.new("Large", "large")
    for language in LANGUAGES:
        content = edits.with_language(content, language)
    for number in range(questions):
        kind = ("single_choice", "scale", "multiple_choice", "number")[number % 4]
        content, key = edits.add_question(content, 1, kind)
        text = {tag: f"Question {number} in {tag}?" for tag in ("en", *LANGUAGES)}
        labels = ({tag: f"{tag} {n}" for tag in ("en", *LANGUAGES)} for n in range(5))
        options = tuple({"key": n, "id": f"o{n}", "label": label} for n, label in enumerate(labels))
        limits = {"low": "0", "high": "100", "options": ()} if kind == "number" else {}
        question = {**content.question(key), "text": text, "options": options, **limits}
        content = content.with_question(key, {**question, "way": "epsilon", "value": "0.3"})
    return content


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the median time of each request."""
    is_short = benchmark_parser(__doc__).parse_args(arguments).short
    with tempfile.TemporaryDirectory() as directory, reduced(__name__, SHORT, is_short):
        settings = Settings(
            secret=SECRET, database=f"sqlite:///{Path(directory) / 'b.db'}", password_cost=1
        )
        store = open_store(settings.database)
        store.migrate()
        ada = store.add_researcher(EMAIL, hashed_password()).key
        client = create_app(settings, store).test_client()
        sign_in(client)
        print(f"{'':<44}{'ms':>8}{'target':>8}{'ratio':>7}")
        for n in SIZES:
            measure(store, client, ada, n)


def measure(store: Store, client: FlaskClient, ada: int, n: int) -> None:
    """Print the times of feedback on one question and of one check of the whole draft of n."""
    content = large_draft(n)
    draft = store.add_draft(content.to_json(), EMAIL, 1, {ada: "owner"})
    definition = definition_from(content)

    def check_anew() -> None:
        parse_once.cache_clear()
        check(definition, Caps())

    check_ms = median(check_anew)
    print(f"{f'{n} questions, 4 languages: one check':<44}{check_ms:>8.1f}")
    path = f"/research/drafts/{draft.slug}/questions/{next(content.questions)['key']}"
    page = require_page(client.get(path))
    form = {name: field_value(page, name) for name in ("csrf_token", "revision")}
    form |= {
        "id": "q1",
        "text": "Do you?",
        "type": "single_choice",
        "way": "epsilon",
        "value": "0.4",
    }
    for number in range(5):
        form |= {f"options-{number}-label": f"L{number}", f"options-{number}-id": f"o{number}"}

    def look(do: str = "look") -> None:
        request_feedback(client, path, {**form, "do": do})

    def look_anew() -> None:
        parse_once.cache_clear()
        look()

    for request, name in (
        (look, "feedback while writing"),
        (look_anew, "feedback after a restart"),
        (lambda: look("autosave"), "automatic save"),
    ):
        ms = median(request)
        print(f"{f'{n} questions: {name}':<44}{ms:>8.1f}{TARGET_MS:>8}{ms / TARGET_MS:>7.2f}")


def request_feedback(client: FlaskClient, path: str, form: dict[str, str]) -> None:
    """Send a form and require feedback in the response."""
    # The server caches feedback, so every request needs a new text.
    response = client.post(path, data={**form, "text": f"Do you {next(NUMBERS)}?"})
    require_page(response)
    live = response.json["live"]
    if "epsilon 0.4" not in live["epsilon"]:
        raise RuntimeError(f"The response has no feedback on epsilon: {live}")


def require_page(response: TestResponse) -> str:
    """Return the text of a response; require its status."""
    if response.status_code != HTTPStatus.OK:
        raise RuntimeError(f"{response.request.path}: status {response.status_code}")
    return response.text


def median(work) -> float:  # type: ignore[no-untyped-def]
    """Return the median milliseconds of several runs after a warm-up."""
    work()
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def field_value(page: str, name: str) -> str:
    """Return the value of a hidden field of the page's draft form."""
    match = re.search(rf'name="{name}"[^>]*value="([^"]*)"', page[page.index("data-draft") :])
    if not match:
        raise RuntimeError(f"The page has no field {name}.")
    return match[1]


if __name__ == "__main__":
    main()
