"""Measure the researchers' home page: `python -m tests.benchmarks.home [--short]`.

There are 900 published surveys and 100 drafts of 20 revisions, on SQLite and on PostgreSQL. The
figures are the CPU time of the server's process in milliseconds, as medians of interleaved rounds.
The elapsed time, which includes the work of the database, is in brackets. Before a cold request, no
definition, draft or margin is cached. The baseline is the work of the page in earlier versions,
which listed all surveys at once: it reads every definition, number of responses and draft. Each
page must have its rows.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from flask.testing import FlaskClient

from survey.app import create_app
from survey.demo import DEFINITION
from survey.questionnaire.canonical import freeze, read_definition
from survey.questionnaire.drafts.conversion import draft_from
from survey.questionnaire.drafts.draft import DraftContent
from survey.questionnaire.loading import load, parse
from survey.research import home
from survey.research.home import ROWS_PER_PAGE
from survey.settings import Caps, Settings
from survey.store import Plan, Schedule, Store, open_store
from tests.benchmarks.ingestion import postgresql
from tests.benchmarks.short import benchmark_parser
from tests.benchmarks.storage import today
from tests.conftest import EMAIL, SECRET, hashed_password
from tests.store.databases import DirectAccess
from tests.web.researchers import sign_in

TARGET_MS, TARGET_KB = 60, 60
ADMIN = "admin@example.org"


@dataclass(frozen=True)
class Size:
    """The number of surveys, drafts, revisions of each draft, and rounds."""

    published: int
    drafts: int
    revisions: int
    rounds: int

    @property
    def n_pages(self) -> int:
        """The number of pages of the whole list."""
        return -(-(self.published + self.drafts) // ROWS_PER_PAGE)

    @property
    def pages(self) -> dict[str, tuple[str, int]]:
        """The query of each measured page, and the number of rows that it must show."""
        n, numbers = self.published + self.drafts, range(self.published)
        sought, n_open = sum("5" in str(i) for i in numbers), sum(bool(i % 4) for i in numbers)
        return {
            "first page": ("", min(n, ROWS_PER_PAGE)),
            "last page, by title": (
                f"?sort=title&page={self.n_pages}",
                n - ROWS_PER_PAGE * (self.n_pages - 1),
            ),
            "search": ("?q=working+5", min(sought, ROWS_PER_PAGE)),
            "open, by closing date": ("?state=open&sort=closes", min(n_open, ROWS_PER_PAGE)),
            "drafts": ("?state=draft", min(self.drafts, ROWS_PER_PAGE)),
        }


FULL = Size(900, 100, 20, 5)
SHORT = Size(28, 3, 2, 1)


def fill(store: Store, url: str, researcher: int, size: Size) -> None:
    """Publish copies of the demo's survey with responses and plans, and add drafts of it."""
    text = DEFINITION.read_bytes()
    survey, content = load(text, DEFINITION.name, Caps()), draft_from(parse(text, DEFINITION.name))
    released = []
    for number in range(size.published):
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
    for number in range(size.drafts):
        titled = replace(content, survey={**content.survey, "title": {"en": f"Draft {number}"}})
        draft = store.add_draft(titled.to_json(), EMAIL, number, {researcher: "owner"})
        for _ in range(size.revisions - 1):
            draft = store.save_draft(draft, titled.to_json(), EMAIL, number)


def list_everything(store: Store) -> None:
    """Read what a list of all surveys needs, with no definition cached."""
    read_definition.cache_clear()
    for survey in store.surveys():
        store.n_released(survey.key)
        survey.definition.epsilon  # noqa: B018  computed on first use
    for draft in store.drafts():
        DraftContent.from_json(draft.content)


Times = list[tuple[float, float]]
"""The CPU time and the elapsed time of several requests, in milliseconds."""


def measure(kind: str, url: str, size: Size) -> None:
    """Print the figures of one database."""
    settings = Settings(secret=SECRET, database=url, password_cost=1)
    store = open_store(url)
    store.migrate()
    store.add_researcher(ADMIN, hashed_password())
    fill(store, url, store.add_researcher(EMAIL, hashed_password()).key, size)
    times: dict[str, Times] = {}
    for _ in range(size.rounds):
        times.setdefault("baseline: read all surveys", []).append(
            timed(lambda: list_everything(store))
        )
        for name, email in (("member", EMAIL), ("administrator", ADMIN)):
            request_pages(create_app(settings, store).test_client(), email, size, name, times)
    for label, figures in times.items():
        cpu, clock = map(statistics.median, zip(*figures, strict=True))
        print_figure(f"{kind}: {label} ({clock:.0f} ms in all)", cpu, "ms", TARGET_MS)
    client = create_app(settings, store).test_client()
    sign_in(client, EMAIL)
    n_bytes = len(client.get("/research/").data)
    print_figure(f"{kind}: first page, uncompressed", n_bytes / 1000, "kB", TARGET_KB)
    store.close_connections()


def request_pages(
    client: FlaskClient, email: str, size: Size, name: str, times: dict[str, Times]
) -> None:
    """Add the times of each page, cold and warm."""
    sign_in(client, email)
    # An empty result compiles the templates and reads no definition.
    request_page(client, "?q=nothing", 0)
    for page, (query, n_rows) in size.pages.items():
        read_definition.cache_clear()
        home._typical_margin.cache_clear()
        for state in ("cold", "warm"):
            label = f"{name}: {page}, {state}"
            figures = timed(lambda query=query, n=n_rows: request_page(client, query, n))
            times.setdefault(label, []).append(figures)


def request_page(client: FlaskClient, query: str, n_rows: int) -> None:
    """Request the page and require its rows."""
    response = client.get(f"/research/{query}")
    n = response.text.count('<h2 dir="auto">')
    if (response.status_code, n) != (200, n_rows):
        raise RuntimeError(f"{query}: status {response.status_code}, {n} rows instead of {n_rows}")


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return the CPU time of this process and the elapsed time of some work, in milliseconds."""
    cpu, start = time.process_time(), time.perf_counter()
    work()
    return 1000 * (time.process_time() - cpu), 1000 * (time.perf_counter() - start)


def print_figure(label: str, figure: float, unit: str, target: float) -> None:
    status = "yes" if figure <= target else "MISSED"
    ratio = figure / target
    print(f"{label:<72}{figure:>9.1f} {unit:<3}{target:>6}{ratio:>8.2f}  {status}", flush=True)


def main() -> None:
    """Measure both databases."""
    parser = benchmark_parser(__doc__)
    size = SHORT if parser.parse_args().short else FULL
    print(f"{f'{size.published} surveys, {size.drafts} drafts':72}{'figure':>9}    {'target':>6}")
    with ExitStack() as stack:
        scratch = Path(tempfile.mkdtemp(dir=os.environ.get("TMPDIR")))
        stack.callback(shutil.rmtree, scratch)
        (server := scratch / "pg").mkdir()
        measure("SQLite", f"sqlite:///{scratch / 'home.db'}", size)
        measure("PostgreSQL", stack.enter_context(postgresql(server)), size)


if __name__ == "__main__":
    main()
