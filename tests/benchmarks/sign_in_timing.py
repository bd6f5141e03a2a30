"""Known and unknown researchers' tries to sign in: `python -m tests.benchmarks.sign_in_timing`.

Milliseconds until `survey serve` refuses a wrong password of an account that is there, and a
password for an address that has none, in turns, each pair from an address of its own. Printed: both
medians, their ratio, and how often the account that is there took longer in a pair (one half, if
nobody can tell them apart; the target is four standard errors of so many throws of a coin).
"""

from __future__ import annotations

import argparse
import http.client
import math
import random
import statistics
import tempfile
import time
from pathlib import Path

from survey.research.credentials import Passwords
from survey.settings import Settings
from survey.store import open_store
from tests.benchmarks.overload import shipped
from tests.conftest import EMAIL, PASSWORD
from tests.web.visits import SIGN_IN, Visit

PAIRS = 300
ADDRESSES = {"known": EMAIL, "unknown": "nobody.is@example.org"}
MOST_RATIO = 1.05


def pair(port: int, number: int) -> dict[str, float]:
    """Milliseconds of one try of each, in random order, from one address of this machine."""
    source = f"127.{1 + number // 250}.0.{1 + number % 250}", 0
    visit = Visit(
        lambda: http.client.HTTPConnection("127.0.0.1", port, timeout=60, source_address=source)
    )
    token, taken = visit.token(), {}
    for name in random.sample(list(ADDRESSES), 2):
        form = {"csrf_token": token, "email": ADDRESSES[name], "password": f"{PASSWORD}, wrong"}
        start = time.perf_counter()
        assert visit.post(SIGN_IN, **form).status == 403
        taken[name] = 1000 * (time.perf_counter() - start)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    pairs = parser.parse_args().pairs
    with tempfile.TemporaryDirectory() as scratch:
        database = f"sqlite:///{Path(scratch) / 'survey.db'}"
        store = open_store(database)
        store.migrate()
        store.add_researcher(EMAIL, Passwords(Settings.password_cost).hash(PASSWORD))
        with shipped(database) as (url, _):
            taken = [pair(int(url.rpartition(":")[2]), number) for number in range(pairs)]
        store.close_connections()
    medians = {name: statistics.median(each[name] for each in taken) for name in ADDRESSES}
    print(f"{pairs} pairs: " + ", ".join(f"{name} {ms:.1f} ms" for name, ms in medians.items()))
    print(f"{'':24}{'figure':>10}{'target':>16}")
    ratio = medians["known"] / medians["unknown"]
    print(f"{'ratio of medians':24}{ratio:>10.3f}{f'{1 / MOST_RATIO:.3f} to {MOST_RATIO}':>16}")
    longer = sum(each["known"] > each["unknown"] for each in taken) / pairs
    margin = 4 * 0.5 / math.sqrt(pairs)
    print(
        f"{'known took longer':24}{longer:>10.3f}{f'{0.5 - margin:.3f} to {0.5 + margin:.3f}':>16}"
    )


if __name__ == "__main__":
    main()
