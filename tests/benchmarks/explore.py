"""Explore's pages over 10^6 released reports: `python -m tests.benchmarks.explore`.

The whole answer of a page is timed, from request to last byte, without the network: reading the
blocks, counting, estimating, writing. Two questions of eight options each, on SQLite; the median
of some turns after a first one, with the server's application made once.
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
    "a cross-tab, joint inversion": ("?first=q0&second=q1", CROSSTAB_MS),
    "a cross-tab, most likely table": ("?first=q0&second=q1&method=em", CROSSTAB_MS),
    "its CSV": ("/crosstab.csv?first=q0&second=q1", None),
    "a difference by another answer": (
        "/difference?question=q0&a=answer:q1:o0&b=answer:q1:o1",
        None,
    ),
    "weighted to the margins of an answer": (
        f"/weighting?question=q0&by=answer:q1&margins={UNIFORM}",
        None,
    ),
    "a regression on one question": ("/regression?question=q0&predictor=q1", None),
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
    """One line per page: first time, median, and the target where there is one."""
    store = open_store(url)
    store.migrate()
    store.add_researcher(EMAIL, Passwords(1).hash(PASSWORD))
    fill(store, n, url)
    settings = Settings(secret=SECRET, database=url, password_cost=1)
    client = create_app(settings, store).test_client()
    assert sign_in(client).status_code == 302
    print(f"{f'n = {n:,}, ms':<44}{'first':>9}{'median':>9}{'target':>9}{'ratio':>8}")
    for name, (query, target) in PAGES.items():
        taken = []
        for _ in range(1 + TURNS):
            start = time.perf_counter()
            answer = client.get(PAGE + query)
            taken.append(1000 * (time.perf_counter() - start))
            assert answer.status_code == 200, answer.text
        usual = median(taken[1:])
        goal = ""
        if target is not None:
            goal = f"{target:>9.0f}{usual / target:>8.2f}"
            goal += "  reached" if usual <= target else "  MISSED"
        print(f"{name:<44}{taken[0]:>9.0f}{usual:>9.0f}{goal}", flush=True)
    store.close_connections()


if __name__ == "__main__":
    main()
