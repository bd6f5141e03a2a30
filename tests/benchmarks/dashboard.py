"""Measure the dashboard of 30 questions and 10^6 reports: `python -m tests.benchmarks.dashboard`.

The figures are milliseconds to the first byte from `survey serve` on SQLite, medians of one run.
Cold: the first request to a new process, whose caches are empty. Warm: later requests.
"""

from __future__ import annotations

import argparse
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

from survey.collect.publication import publish
from survey.collect.release import BLOCK_SIZE
from survey.questionnaire.kinds import PublishedQuestion
from survey.questionnaire.loading import load
from survey.research.credentials import Passwords
from survey.settings import Caps
from survey.store import N_ASKED, Store, open_store
from survey.store.digests import row_digest
from tests.benchmarks.storage import today
from tests.browser.research import stored_code
from tests.conftest import EMAIL, PASSWORD, SECRET, SERVE, free_port, wait_until_up
from tests.store.databases import DirectAccess

QUESTIONS, REPORTS, TURNS = 30, 10**6, 5
DISTINCT = 1_000
"""Distinct reports of each question; the remaining reports repeat them."""

COLD_MS, WARM_MS = 1500, 300
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


def definition(n_questions: int) -> bytes:
    """Return a survey of common types of question."""
    questions = (
        f'[[questions]]\nid = "q{i}"\ntext = "Question {i}?"\n{KINDS[i % len(KINDS)]}\n'
        for i in range(n_questions)
    )
    return ('slug = "load"\ntitle = "Load"\nepsilon = 1\n' + "".join(questions)).encode()


Cells = Iterator[tuple[int | str | bytes, ...]]


def fill(store: Store, url: str, n: int, n_questions: int = QUESTIONS) -> None:
    """Publish a survey and insert n released reports directly, as restoring a backup does."""
    survey = publish(store, load(definition(n_questions), "load.toml", Caps(survey=200)), today())
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


def print_line(label: str, figures: Sequence[float], target: float) -> None:
    figure = statistics.median(figures)
    status = "yes" if figure <= target else "MISSED"
    print(f"{label:<40}{figure:>9.0f}{target:>9}{figure / target:>9.2f}  {status}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=REPORTS)
    n = parser.parse_args().reports
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
