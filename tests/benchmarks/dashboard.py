"""Measure the dashboard: `python -m tests.benchmarks.dashboard [--short]`.

The first figures are the size of the first response for 10, 60 and 200 questions, and the CPU time
of the server's process in milliseconds, as medians of interleaved rounds. Before a cold request,
nothing is cached. The baseline is one page with all questions, the first response of earlier
versions. Each response must have its cards and an entry for each question in the table of contents.

The last figures, for 30 questions and 10^6 reports, are milliseconds to the first byte from
`survey serve` on SQLite, medians of one run. Cold: the first request to a new process, whose caches
are empty. Warm: later requests. `--short` takes small numbers, once, and starts no server.
"""

from __future__ import annotations

import functools
import gc
import os
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, OpenerDirector, build_opener

import numpy as np
from flask.testing import FlaskClient

from survey.app import create_app
from survey.collect.publication import publish
from survey.collect.release import BLOCK_SIZE
from survey.questionnaire.kinds import PublishedQuestion
from survey.questionnaire.loading import load
from survey.research.credentials import Passwords
from survey.settings import Caps, Settings
from survey.store import N_ASKED, Store, open_store
from survey.store.digests import row_digest
from tests.benchmarks.short import benchmark_parser
from tests.benchmarks.storage import today
from tests.browser.research import stored_code
from tests.conftest import EMAIL, PASSWORD, SECRET, SERVE, free_port, wait_until_up
from tests.store.databases import DirectAccess
from tests.web.researchers import sign_in as sign_in_to_app

QUESTIONS, REPORTS, TURNS = 30, 10**6, 5
DISTINCT = 1_000
"""Distinct reports of each question; the remaining reports repeat them."""

COLD_MS, WARM_MS = 1500, 300

SIZES = (10, 60, 200)
"""Numbers of questions whose first response is measured."""

FIRST_KB, FIRST_MS, FIRST_COLD_MS = 150, 60, 1000
FEW_REPORTS = 2_000
SHORT_SIZES = (10, 25)

PAGES = {
    "all questions": "",
    "one question": "/questions/q0",
    "a figure": "/figures/q4-middle.svg",
}

KINDS = (
    'type = "yes_no"',
    'type = "single_choice"\noptions = [{id = "a", label = "Never"}, {id = "b", label = "Rarely"},'
    ' {id = "c", label = "Often"}, {id = "d", label = "Always"}]',
    'type = "scale"\nlow = 1\nhigh = 7',
    'type = "multiple_choice"\noptions = [{id = "a", label = "Bus"}, {id = "b", label = "Train"},'
    ' {id = "c", label = "Car"}]',
    'type = "number"\nlow = 0\nhigh = 80\nstep = 5\nunit = "hours"',
)
"""Common types of question, used in turns."""


def definition(n_questions: int, slug: str) -> bytes:
    """Return a survey of common types of question."""
    questions = (
        f'[[questions]]\nid = "q{i}"\ntext = "Question {i}?"\n{KINDS[i % len(KINDS)]}\n'
        for i in range(n_questions)
    )
    return (f'slug = "{slug}"\ntitle = "Load"\nepsilon = 1\n' + "".join(questions)).encode()


Cells = Iterator[tuple[int | str | bytes, ...]]


def fill(store: Store, url: str, n: int, n_questions: int = QUESTIONS, slug: str = "load") -> None:
    """Publish a survey and insert n released reports directly, as restoring a backup does."""
    survey = publish(
        store, load(definition(n_questions, slug), "load.toml", Caps(survey=200)), today()
    )
    rng = np.random.default_rng(n)
    questions = survey.definition.questions
    columns = [codes(question, n, rng) for question in questions]

    def blocks() -> Cells:
        for number, column in enumerate(columns):
            for block, start in enumerate(range(0, n, BLOCK_SIZE)):
                part = column[start : start + BLOCK_SIZE]
                row = (survey.key, "", "", number, block, len(part), part.tobytes())
                yield *row, row_digest(row)

    def counts() -> Cells:
        for number, (question, column) in enumerate(zip(questions, columns, strict=True)):
            n_asked, supports = question.count(column)
            yield survey.key, "", "", number, N_ASKED, n_asked
            for place, count in enumerate(supports.tolist()):
                yield survey.key, "", "", number, place, count

    store.insert_rows("block", blocks())
    store.insert_rows("counts", sorted(counts()))
    DirectAccess(url).run("UPDATE release SET number = 1, n = ? WHERE survey = ?", [n, survey.key])


def codes(question: PublishedQuestion, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return a column of stored reports, shape (n, bytes per report)."""
    distinct = b"".join(stored_code(question, (0.5, 0.3, 0.15, 0.05), rng) for _ in range(DISTINCT))
    rows = np.frombuffer(distinct, dtype=np.uint8).reshape(DISTINCT, -1)
    return rows[rng.integers(0, DISTINCT, n)]


@contextmanager
def run_server(database: str) -> Iterator[str]:
    """Start a server; yield its address."""
    url = f"http://127.0.0.1:{(port := free_port())}"
    settings = {"SECRET": SECRET, "DATABASE": database, "PUBLIC_URL": url, "PASSWORD_COST": "1"}
    process = subprocess.Popen(
        [*SERVE, "--port", str(port), "--without-keeper"],
        env={**os.environ, **{f"SURVEY_{name}": value for name, value in settings.items()}},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait_until_up(url, process)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=90)


def sign_in(url: str) -> OpenerDirector:
    """Return a client with a researcher's session."""
    browser = build_opener(HTTPCookieProcessor(CookieJar()))
    address = f"{url}/research/sign-in"
    page = browser.open(address).read().decode()
    token = re.search(r'name="csrf_token" type="hidden" value="([^"]+)"', page)
    assert token
    form = {"csrf_token": token[1], "email": EMAIL, "password": PASSWORD}
    assert browser.open(address, urlencode(form).encode()).url == f"{url}/research/"
    return browser


def first_byte(browser: OpenerDirector, address: str) -> float:
    """Return milliseconds to the first byte of a page."""
    start = time.perf_counter()
    with browser.open(address) as response:
        assert response.read(1) == b"<"
        ms = 1000 * (time.perf_counter() - start)
        assert response.status == 200
    return ms


def page_times(database: str, page: str) -> tuple[float, float]:
    """Return the time of a new process's first response and the median of later ones."""
    with run_server(database) as url:
        browser, address = sign_in(url), f"{url}/research/surveys/load/1{page}"
        cold = first_byte(browser, address)
        return cold, statistics.median(first_byte(browser, address) for _ in range(TURNS))


def clear_caches() -> None:
    """Clear all cached results for a definition or its questions."""
    for item in gc.get_objects():
        if isinstance(item, functools._lru_cache_wrapper) and "survey." in item.__module__:
            item.cache_clear()


def measure_first_response(url: str, sizes: Sequence[int], rounds: int) -> None:
    """Print the size and the CPU time of the first response, and of all questions as baseline."""
    store = open_store(url)
    store.migrate()
    store.add_researcher(EMAIL, Passwords(1).hash(PASSWORD))
    for n_questions in sizes:
        fill(store, url, FEW_REPORTS, n_questions, f"load-{n_questions}")
    times: dict[str, list[float]] = {}
    kilobytes: dict[int, float] = {}
    for _ in range(rounds):
        for n_questions in sizes:
            app = create_app(Settings(secret=SECRET, database=url, password_cost=1), store)
            client = app.test_client()
            sign_in_to_app(client)
            address = f"/research/surveys/load-{n_questions}/1"
            client.get(f"{address}/questions/q0")
            for name, query in (("all questions", "?page=all"), ("first page", "")):
                clear_caches()
                for state in ("cold", "warm"):
                    ms, n_bytes = request_page(client, address + query, n_questions, not query)
                    times.setdefault(f"{n_questions} questions, {name}, {state}", []).append(ms)
            kilobytes[n_questions] = n_bytes / 1000
    store.close_connections()
    for n_questions, figure in kilobytes.items():
        print_line(f"{n_questions} questions, first page, kB", [figure], FIRST_KB)
    for label, figures in times.items():
        print_line(f"{label}, ms", figures, FIRST_COLD_MS if "cold" in label else FIRST_MS)


def request_page(
    client: FlaskClient, address: str, n_questions: int, is_first: bool
) -> tuple[float, int]:
    """Return the milliseconds of CPU and the bytes of a page; require its cards and entries."""
    # The cached result of the other page must not shorten this time.
    level = "&level=0.9" if "?" in address else "?level=0.9"
    start = time.process_time()
    response = client.get(address + ("" if is_first else level))
    ms = 1000 * (time.process_time() - start)
    n_cards = response.text.count('<section class="question"')
    n_entries = len(re.findall(r'<li(?: id="q-q\d+")?><a href="[^"]*#q-', response.text))
    expected = range(2, 15) if is_first and n_questions > 15 else [n_questions]
    # Short surveys need no table of contents.
    is_complete = n_entries >= n_questions or n_questions <= 12
    if response.status_code != 200 or n_cards not in expected or not is_complete:
        raise RuntimeError(f"{address}: {response.status_code}, {n_cards} cards, {n_entries} links")
    return ms, len(response.data)


def print_line(label: str, figures: Sequence[float], target: float) -> None:
    figure = statistics.median(figures)
    status = "yes" if figure <= target else "MISSED"
    print(f"{label:<40}{figure:>9.0f}{target:>9}{figure / target:>9.2f}  {status}", flush=True)


def main() -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("--reports", type=int, default=REPORTS)
    options = parser.parse_args()
    n = options.reports
    print(f"{'':<40}{'figure':>9}{'target':>9}{'ratio':>9}")
    with tempfile.TemporaryDirectory() as scratch:
        database = f"sqlite:///{Path(scratch) / 'first.db'}"
        measure_first_response(database, *((SHORT_SIZES, 1) if options.short else (SIZES, TURNS)))
    if options.short:
        return
    with tempfile.TemporaryDirectory() as scratch:
        database = f"sqlite:///{Path(scratch) / 'survey.db'}"
        store = open_store(database)
        store.migrate()
        store.add_researcher(EMAIL, Passwords(1).hash(PASSWORD))
        fill(store, database, n)
        store.close_connections()
        print(f"{f'{QUESTIONS} questions, n = {n:,}':<40}{'ms':>9}{'target':>9}{'ratio':>9}")
        for name, page in PAGES.items():
            cold, warm = zip(*(page_times(database, page) for _ in range(TURNS)), strict=True)
            print_line(f"{name}, cold", cold, COLD_MS)
            print_line(f"{name}, warm", warm, WARM_MS)


if __name__ == "__main__":
    main()
