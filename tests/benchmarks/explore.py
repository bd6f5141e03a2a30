"""Measure the pages of Explore over 10^6 released reports: `python -m tests.benchmarks.explore`.

Each time covers a whole response from request to last byte, without the network: reading the
blocks, counting, estimating and rendering. The survey has two questions of eight options on SQLite.
One application serves all requests; the median leaves out the first request of each page.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median

from survey.app import create_app
from survey.research.credentials import Passwords
from survey.settings import Settings
from survey.store import open_store
from tests.benchmarks.storage import fill
from tests.conftest import EMAIL, PASSWORD, SECRET
from tests.web.researchers import sign_in

TURNS = 5
CROSSTAB_MS = 500
PAGE = "/research/surveys/load/explore"
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=10**6)
    n = parser.parse_args().n
    directory = Path(tempfile.mkdtemp())
    try:
        measure(f"sqlite:///{directory / 'explore.db'}", n)
    finally:
        shutil.rmtree(directory)


def measure(url: str, n: int) -> None:
    """Print the first time, the median and the target, if any, of each page."""
    store = open_store(url)
    store.migrate()
    store.add_researcher(EMAIL, Passwords(1).hash(PASSWORD))
    fill(store, n, url)
    settings = Settings(secret=SECRET, database=url, password_cost=1)
    client = create_app(settings, store).test_client()
    assert sign_in(client).status_code == 302
    print(f"{f'n = {n:,}, ms':<44}{'first':>9}{'median':>9}{'target':>9}{'ratio':>8}")
    for name, (query, target) in PAGES.items():
        times = []
        for _ in range(1 + TURNS):
            start = time.perf_counter()
            response = client.get(PAGE + query)
            times.append(1000 * (time.perf_counter() - start))
            assert response.status_code == 200, response.text
        ms = median(times[1:])
        comparison = ""
        if target is not None:
            comparison = f"{target:>9.0f}{ms / target:>8.2f}"
            comparison += "  reached" if ms <= target else "  MISSED"
        print(f"{name:<44}{times[0]:>9.0f}{ms:>9.0f}{comparison}", flush=True)
    store.close_connections()


if __name__ == "__main__":
    main()
