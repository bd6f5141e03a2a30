"""A hundred reports a second for an hour: `python -m tests.benchmarks.soak [--minutes 60]`.

The shipped server with two workers on SQLite, releases included, and a dashboard read every ten
seconds. Printed: how much memory its processes take more at the end than after the first tenth,
in which caches and pools fill, the open files, and every answer that was not 201.
"""

from __future__ import annotations

import argparse
import http.client
import secrets
import shutil
import tempfile
import threading
import time
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from survey.collect.publication import publish
from survey.questionnaire.definition import report_body
from survey.questionnaire.native import load
from survey.settings import Caps
from survey.store import PublishedSurvey, open_store
from tests.benchmarks.ingestion import DEFINITION
from tests.benchmarks.overload import check_all_there, shipped
from tests.faults.processes import children_of
from tests.faults.reports import send

PER_SECOND, SENDERS = 100, 4
MOST_GROWTH_MB = 20
WARM_UP = 0.1
LOOK_SECONDS = 10.0


def memory_mb(pids: list[int]) -> float:
    """Memory that the processes have for themselves alone (PSS would move with others)."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith(("Private_Clean:", "Private_Dirty:")):
                total += int(line.split()[1])
    return total / 1024


def open_files(pids: list[int]) -> int:
    return sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in pids)


def body_of(survey: PublishedSurvey) -> bytes:
    return report_body(
        survey.sha256,
        secrets.token_urlsafe(16),
        [0] * 10,
        length=survey.definition.report_bytes,
    )


def sender(
    port: int, survey: PublishedSurvey, stop: threading.Event, answers: Counter[str]
) -> None:
    """Reports at a steady pace, over connections of a hundred reports each."""
    due = time.monotonic()
    while not stop.is_set():
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
            for _ in range(100):
                if stop.wait(max(due - time.monotonic(), 0)):
                    return
                due += SENDERS / PER_SECOND
                try:
                    answers[str(send(connection, survey, body_of(survey)).status)] += 1
                except (OSError, http.client.HTTPException) as error:
                    answers[type(error).__name__] += 1
                    break


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    seconds = 60 * parser.parse_args().minutes
    scratch = Path(tempfile.mkdtemp())
    database = f"sqlite:///{scratch / 'survey.db'}"
    store = open_store(database)
    store.migrate()
    survey = publish(
        store, load(DEFINITION.encode(), "load.toml", Caps()), datetime.now(UTC).date()
    )
    answers: Counter[str] = Counter()
    with shipped(database) as (url, server):
        stop, port = threading.Event(), int(url.rpartition(":")[2])
        threads = [
            threading.Thread(target=sender, args=[port, survey, stop, answers])
            for _ in range(SENDERS)
        ]
        for thread in threads:
            thread.start()
        pids = [server.pid, *children_of(server.pid)]
        begin, first = time.monotonic(), None
        while (passed := time.monotonic() - begin) < seconds:
            time.sleep(min(LOOK_SECONDS, seconds))
            if first is None and passed >= WARM_UP * seconds:
                first = memory_mb(pids), open_files(pids)
        last = memory_mb(pids), open_files(pids)
        stop.set()
        for thread in threads:
            thread.join()
    assert first is not None
    growth, errors = last[0] - first[0], sum(answers.values()) - answers["201"]
    pace = answers["201"] / seconds
    print(f"{seconds / 60:g} minutes, {pace:.1f} reports a second: {dict(answers)}")
    print(f"{'':24}{'figure':>10}{'target':>10}{'ratio':>8}")
    ratio = growth / MOST_GROWTH_MB
    print(f"{'memory growth, MB':24}{growth:>10.1f}{MOST_GROWTH_MB:>10}{ratio:>8.2f}")
    print(f"{'memory at the end, MB':24}{last[0]:>10.1f}")
    print(f"{'open files, more':24}{last[1] - first[1]:>10}{0:>10}")
    print(f"{'errors':24}{errors:>10}{0:>10}")
    check_all_there(store, survey, answers["201"])
    shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
