"""What somebody who writes waits for: feedback on a question, in a small and in a large survey.

    python -m tests.benchmarks.builder

Each answer is the whole request: the form is read, the draft checked, the words made. The
baseline is the same draft check and checked once, as publishing would.
"""

from __future__ import annotations

import re
import statistics
import tempfile
import time
from itertools import count
from pathlib import Path

from flask.testing import FlaskClient

from survey.app import create_app
from survey.questionnaire.drafts import edits
from survey.questionnaire.drafts.conversion import definition_from
from survey.questionnaire.drafts.draft import DraftContent
from survey.questionnaire.loading import check
from survey.settings import Caps, Settings
from survey.store import Store, open_store
from tests.conftest import EMAIL, SECRET, hashed_password
from tests.web.researchers import sign_in

TARGET_MS = 100
ROUNDS = 25
WORDS = count()
LANGUAGES = ("es", "pt", "ar")


def large(questions: int) -> DraftContent:
    """A draft of many questions of every kind in four languages."""
    content = DraftContent.new("Large", "large")
    for language in LANGUAGES:
        content = edits.with_language(content, language)
    for number in range(questions):
        kind = ("single_choice", "scale", "multiple_choice", "number")[number % 4]
        content, key = edits.add_question(content, 1, kind)
        text = {tag: f"Question {number} in {tag}?" for tag in ("en", *LANGUAGES)}
        labels = ({tag: f"{tag} {n}" for tag in ("en", *LANGUAGES)} for n in range(5))
        options = tuple({"key": n, "id": f"o{n}", "label": each} for n, each in enumerate(labels))
        more = {"low": "0", "high": "100", "options": ()} if kind == "number" else {}
        question = {**content.question(key), "text": text, "options": options, **more}
        content = content.with_question(key, {**question, "way": "epsilon", "value": "0.3"})
    return content


def main() -> None:
    """Print the median of each."""
    with tempfile.TemporaryDirectory() as directory:
        settings = Settings(
            secret=SECRET, database=f"sqlite:///{Path(directory) / 'b.db'}", password_cost=1
        )
        store = open_store(settings.database)
        store.migrate()
        ada = store.add_researcher(EMAIL, hashed_password()).key
        client = create_app(settings, store).test_client()
        sign_in(client)
        print(f"{'':<44}{'ms':>8}{'target':>8}{'ratio':>7}")
        for n in (5, 60):
            measure(store, client, ada, n)


def measure(store: Store, client: FlaskClient, ada: int, n: int) -> None:
    """Feedback on the first question of a draft of n, beside one check of all of it."""
    content = large(n)
    draft = store.add_draft(content.to_json(), EMAIL, 1, {ada: "owner"})
    definition = definition_from(content)
    checked = median(lambda: check(definition, Caps()))
    print(f"{f'{n} questions, 4 languages: checked once':<44}{checked:>8.1f}")
    path = f"/research/drafts/{draft.slug}/questions/{next(content.questions)['key']}"
    page = client.get(path).text
    sent = {name: find(page, name) for name in ("csrf_token", "revision")}
    sent |= {
        "id": "q1",
        "text": "Do you?",
        "type": "single_choice",
        "way": "epsilon",
        "value": "0.4",
    }
    for number in range(5):
        sent |= {f"options-{number}-label": f"L{number}", f"options-{number}-id": f"o{number}"}
    for what in ("look", "autosave"):
        took = median(lambda what=what: answered(client, path, {**sent, "do": what}))
        name = {"look": "feedback while writing", "autosave": "saved by itself"}[what]
        print(f"{f'{n} questions: {name}':<44}{took:>8.1f}{TARGET_MS:>8}{took / TARGET_MS:>7.2f}")


def answered(client: FlaskClient, path: str, sent: dict[str, str]) -> None:
    """One request, which must be answered with feedback."""
    # Other words each time, as somebody writes them: what was asked before is remembered.
    live = client.post(path, data={**sent, "text": f"Do you {next(WORDS)}?"}).json["live"]
    if "epsilon 0.4" not in live["epsilon"]:
        raise RuntimeError(f"this is no feedback: {live}")


def median(work) -> float:  # type: ignore[no-untyped-def]
    """Milliseconds, after one that is not counted."""
    work()
    took = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        took.append(1000 * (time.perf_counter() - start))
    return statistics.median(took)


def find(page: str, name: str) -> str:
    """The value of a hidden field."""
    found = re.search(rf'name="{name}"[^>]*value="([^"]*)"', page[page.index("data-draft") :])
    if not found:
        raise RuntimeError(f"the page has no {name}")
    return found[1]


if __name__ == "__main__":
    main()
