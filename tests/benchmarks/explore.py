"""Measure the pages of Explore over 10^6 released reports.

    python -m tests.benchmarks.explore [--short]

Each time covers a whole response from request to last byte, without the network: reading the
blocks, counting, estimating and rendering. The survey has two questions of eight options on SQLite.
Each figure is a median of several rounds. Cold: the first request of a new application whose caches
are empty, which has the target. Warm: the same request again, whose result is cached.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from statistics import median

from flask.testing import FlaskClient

from survey.app import create_app
from survey.research.credentials import Passwords
from survey.settings import Settings
from survey.store import Store, open_store
from tests.benchmarks.dashboard import clear_caches, sign_in_to_app
from tests.benchmarks.short import benchmark_parser, reduced
from tests.benchmarks.storage import fill
from tests.conftest import EMAIL, PASSWORD, SECRET

TURNS = 5
REPORTS = 10**6

CROSSTAB_MS = 500
PAGE = "/research/surveys/load/explore"
WARM_UP = "?first=q2&second=q3"
UNIFORM = "%0A".join(f"o{i},12.5" for i in range(8))

PAGES: dict[str, tuple[str, float | None]] = {
    "cross-tab, joint inversion": ("?first=q0&second=q1", CROSSTAB_MS),
    "cross-tab, maximum likelihood": ("?first=q0&second=q1&method=em", CROSSTAB_MS),
    "cross-tab as CSV": ("/crosstab.csv?first=q0&second=q1", None),
    "difference between groups by an answer": (
        "/difference?question=q0&a=answer:q1:o0&b=answer:q1:o1",
        None,
    ),
    "weighting to the margins of an answer": (
        f"/weighting?question=q0&by=answer:q1&margins={UNIFORM}",
        None,
    ),
    "regression on one question": ("/regression?question=q0&predictor=q1", None),
}

SHORT = {
    "TURNS": 1,
    "REPORTS": 2_000,
    "PAGES": {name: PAGES[name] for name in ("cross-tab, joint inversion", "cross-tab as CSV")},
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("--n", type=int, help="number of reports")
    options = parser.parse_args(arguments)
    directory = Path(tempfile.mkdtemp())
    try:
        with reduced(__name__, SHORT, options.short):
            measure(f"sqlite:///{directory / 'explore.db'}", options.n or REPORTS)
    finally:
        shutil.rmtree(directory)


def measure(url: str, n: int) -> None:
    """Print the medians of cold and warm requests and the target, if any, of each page."""
    store = open_store(url)
    store.migrate()
    store.add_researcher(EMAIL, Passwords(1).hash(PASSWORD))
    fill(store, n, url)
    print(f"{f'n = {n:,}, ms':<44}{'cold':>9}{'warm':>9}{'target':>9}{'ratio':>8}")
    for name, (query, target) in PAGES.items():
        rounds = []
        for _ in range(TURNS):
            client = cold_client(store, url)
            rounds.append([request_page(client, query) for _ in ("cold", "warm")])
        cold, warm = map(median, zip(*rounds, strict=True))
        comparison = ""
        if target is not None:
            comparison = f"{target:>9.0f}{cold / target:>8.2f}"
            comparison += "  reached" if cold <= target else "  MISSED"
        print(f"{name:<44}{cold:>9.0f}{warm:>9.0f}{comparison}", flush=True)
    store.close_connections()


def cold_client(store: Store, url: str) -> FlaskClient:
    """Return a researcher's client of a new application that has computed no result."""
    app = create_app(Settings(secret=SECRET, database=url, password_cost=1), store)
    client = app.test_client()
    sign_in_to_app(client)
    # The first page of an application also compiles templates.
    request_page(client, WARM_UP)
    clear_caches()
    return client


def request_page(client: FlaskClient, query: str) -> float:
    """Return the milliseconds of a page; require its status."""
    start = time.perf_counter()
    response = client.get(PAGE + query)
    ms = 1000 * (time.perf_counter() - start)
    if response.status_code != HTTPStatus.OK:
        raise RuntimeError(f"{PAGE}{query}: status {response.status_code}")
    return ms


if __name__ == "__main__":
    main()
