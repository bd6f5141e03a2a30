"""Compare sign-in times of known and unknown accounts: `python -m tests.benchmarks.sign_in_timing`.

A pair has two attempts from the same network address: a wrong password for an existing account, and
a password for an unknown e-mail address. The output gives the median milliseconds until
`survey serve` rejects either, their ratio, and how often the existing account took longer within a
pair. That share is one half if nobody can tell the two apart; the target allows for four standard
errors of a fair coin.
"""

from __future__ import annotations

import http.client
import math
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from survey.research.credentials import Passwords
from survey.settings import Settings
from survey.store import open_store
from tests.benchmarks.overload import run_server
from tests.benchmarks.short import benchmark_parser, reduced
from tests.conftest import PASSWORD
from tests.web.clients import SIGN_IN, WebClient

PAIRS, SHORT_PAIRS = 300, 1
NAMES = ("known", "unknown")
MAX_RATIO = 1.05


def address_of(name: str, number: int) -> str:
    """Return a different address for each attempt, because guesses at one account are slowed."""
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
        if (status := client.post(SIGN_IN, **form).status) != 403:
            raise RuntimeError(f"the sign-in of {form['email']} got {status}")
        times[name] = 1000 * (time.perf_counter() - start)
    return times


def main(arguments: Sequence[str] | None = None) -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    options = parser.parse_args(arguments)
    n_pairs = SHORT_PAIRS if options.short else options.pairs
    with tempfile.TemporaryDirectory() as scratch:
        database = f"sqlite:///{Path(scratch) / 'survey.db'}"
        store = open_store(database)
        store.migrate()
        password_hash = Passwords(Settings.password_cost).hash(PASSWORD)
        for number in range(n_pairs):
            store.add_researcher(address_of("known", number), password_hash)
        with (
            reduced(run_server.__module__, {"WORKERS": 1}, options.short),
            run_server(database, Path(scratch) / "keys") as (url, _),
        ):
            pairs = [time_pair(int(url.rpartition(":")[2]), number) for number in range(n_pairs)]
        store.close_connections()
    medians = {name: statistics.median(pair[name] for pair in pairs) for name in NAMES}
    print(f"{n_pairs} pairs: " + ", ".join(f"{name} {ms:.1f} ms" for name, ms in medians.items()))
    print(f"{'baseline: unknown account':28}{'figure':>10}{'target':>16}{'ratio':>8}")
    ratio = medians["known"] / medians["unknown"]
    print_figure("known / unknown, medians", ratio, 1 / MAX_RATIO, MAX_RATIO)
    longer = sum(pair["known"] > pair["unknown"] for pair in pairs) / n_pairs
    margin = 4 * 0.5 / math.sqrt(n_pairs)
    print_figure("known took longer", longer, 0.5 - margin, 0.5 + margin)


def print_figure(label: str, figure: float, low: float, high: float) -> None:
    """Print a figure, the range that is its target, and its ratio to the middle of this range."""
    status = "yes" if low <= figure <= high else "MISSED"
    target, ratio = f"{low:.3f} to {high:.3f}", 2 * figure / (low + high)
    print(f"{label:28}{figure:>10.3f}{target:>16}{ratio:>8.2f}  {status}")


if __name__ == "__main__":
    main()
