"""Compare sign-in times of known and unknown accounts: `python -m tests.benchmarks.sign_in_timing`.

A pair has two attempts from the same network address: a wrong password for an existing account, and
a password for an unknown e-mail address. The output gives the median milliseconds until
`survey serve` rejects either, their ratio, and how often the existing account took longer within a
pair. That share is one half if nobody can tell the two apart; the target allows for four standard
errors of a fair coin.
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
from tests.benchmarks.overload import run_server
from tests.conftest import PASSWORD
from tests.web.clients import SIGN_IN, WebClient

PAIRS = 300
NAMES = ("known", "unknown")
MAX_RATIO = 1.05


def address_of(name: str, number: int) -> str:
    """Return an address of its own for each attempt: guesses at one account are slowed down."""
    return f"{name.rjust(7, 'x')}.{number}@example.org"


def time_pair(port: int, number: int) -> dict[str, float]:
    """Return the milliseconds of both attempts, in random order, from one loopback address."""
    source = f"127.{1 + number // 250}.0.{1 + number % 250}", 0
    client = WebClient(
        lambda: http.client.HTTPConnection("127.0.0.1", port, timeout=60, source_address=source)
    )
    token, times = client.token(), {}
    for name in random.sample(NAMES, 2):
        form = {
            "csrf_token": token,
            "email": address_of(name, number),
            "password": f"{PASSWORD}, wrong",
        }
        start = time.perf_counter()
        assert client.post(SIGN_IN, **form).status == 403
        times[name] = 1000 * (time.perf_counter() - start)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    n_pairs = parser.parse_args().pairs
    with tempfile.TemporaryDirectory() as scratch:
        database = f"sqlite:///{Path(scratch) / 'survey.db'}"
        store = open_store(database)
        store.migrate()
        password_hash = Passwords(Settings.password_cost).hash(PASSWORD)
        for number in range(n_pairs):
            store.add_researcher(address_of("known", number), password_hash)
        with run_server(database, Path(scratch) / "keys") as (url, _):
            pairs = [time_pair(int(url.rpartition(":")[2]), number) for number in range(n_pairs)]
        store.close_connections()
    medians = {name: statistics.median(pair[name] for pair in pairs) for name in NAMES}
    print(f"{n_pairs} pairs: " + ", ".join(f"{name} {ms:.1f} ms" for name, ms in medians.items()))
    print(f"{'':24}{'figure':>10}{'target':>16}")
    ratio = medians["known"] / medians["unknown"]
    print(f"{'ratio of medians':24}{ratio:>10.3f}{f'{1 / MAX_RATIO:.3f} to {MAX_RATIO}':>16}")
    longer = sum(pair["known"] > pair["unknown"] for pair in pairs) / n_pairs
    margin = 4 * 0.5 / math.sqrt(n_pairs)
    print(
        f"{'known took longer':24}{longer:>10.3f}{f'{0.5 - margin:.3f} to {0.5 + margin:.3f}':>16}"
    )


if __name__ == "__main__":
    main()
