"""Release: shuffle what waits into blocks and add it to the counts; only then is it readable.

Reports are released at least `release_minimum` together, so that one more respondent changes
nothing that anyone can watch, and the order in which they came is gone.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from functools import partial
from threading import Event
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from survey.collect.submission import GRACE
from survey.errors import SurveyError
from survey.questionnaire.published import PublishedQuestion
from survey.settings import Settings
from survey.store import ASKED, BlockColumn, PublishedSurvey, Sealed, Store, Waiting

BLOCK_SIZE = 65_536
"""Reports per block; a stratum's last block grows to this before the next one begins."""

POLL_SECONDS = 1.0

logger = logging.getLogger(__name__)

Codes = NDArray[np.uint8]
"""Reports as rows, the codes of all questions side by side, shape (n, bytes of a report)."""


def seal(questions: Sequence[PublishedQuestion], groups: Sequence[Waiting]) -> Sealed:
    """Shuffle each stratum's waiting reports together with its newest block.

    One permutation moves all codes of a report together: cross-tabs stay possible.
    """
    columns: list[BlockColumn] = []
    counts: Counter[tuple[str, int, int]] = Counter()
    widths = [question.code_bytes for question in questions]
    for group in groups:
        waiting = np.frombuffer(b"".join(group.codes), dtype=np.uint8).reshape(-1, sum(widths))
        for number, column in enumerate(_columns(waiting, widths)):
            asked, supports = questions[number].count(column)
            counts[group.stratum, number, ASKED] += asked
            for option in np.flatnonzero(supports).tolist():
                counts[group.stratum, number, option] += int(supports[option])
        columns.extend(_blocks(group, waiting, widths))
    return Sealed(columns=columns, counts=counts)


def _columns(rows: Codes, widths: Sequence[int]) -> list[Codes]:
    """Each question's codes, shape (n, bytes of one)."""
    return np.split(rows, np.cumsum(widths)[:-1], axis=1)


def _blocks(group: Waiting, waiting: Codes, widths: Sequence[int]) -> Iterator[BlockColumn]:
    """The newest block with the waiting reports, shuffled, cut into blocks again."""
    number, rows = 0, waiting
    if group.last is not None:
        number = group.last.number
        old = np.concatenate(
            [
                np.frombuffer(column, dtype=np.uint8).reshape(-1, width)
                for column, width in zip(group.last.columns, widths, strict=True)
            ],
            axis=1,
        )
        if len(old) < BLOCK_SIZE:
            rows = np.concatenate([old, waiting])
        else:
            number += 1
    rows = rows[secure_permutation(len(rows))]
    for start in range(0, len(rows), BLOCK_SIZE):
        part = rows[start : start + BLOCK_SIZE]
        for question, column in enumerate(_columns(part, widths)):
            yield BlockColumn(
                group.stratum, question, number + start // BLOCK_SIZE, len(part), column.tobytes()
            )


def secure_permutation(n: int) -> NDArray[np.intp]:
    """A random order of n things from the system's CSPRNG.

    Sorting random 64-bit keys; two of n are equal with chance below n^2 / 2^65.
    """
    keys = np.frombuffer(os.urandom(8 * n), dtype=np.uint64)
    return np.argsort(keys)


def release(store: Store, survey: PublishedSurvey, minimum: int) -> int:
    """Release what waits if at least `minimum` do; returns how many."""
    n = store.release(survey.key, minimum, partial(seal, survey.definition.questions))
    if n:
        # The log would go on holding single reports in the order of their arrival.
        store.truncate_log()
    return n


def is_due(waiting: int, released: int, seconds: float, settings: Settings) -> bool:
    """Whether a release should happen now: enough wait, and they are 1% or waited long enough.

    >>> settings = Settings()
    >>> [is_due(n, released, seconds, settings)
    ...  for n, released, seconds in ((25, 0, 0.0), (24, 0, 99.0), (30, 10_000, 3.0))]
    [True, False, False]
    """
    if waiting < settings.release_minimum:
        return False
    return 100 * waiting >= released or seconds >= settings.release_seconds


class ReleaseLoop:
    """Releases by itself what is due, for as long as a server runs."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._last: dict[int, float] = {}
        self._tidied: date | None = None

    def run(self, stop: Event) -> None:
        """Look once a second until `stop` is set; a disk that fails is tried again."""
        while not stop.wait(POLL_SECONDS):
            try:
                self.look(monotonic())
                self.tidy(datetime.now(UTC).date())
            except SurveyError as error:
                logger.warning("no release this time: %s", error)
        self._store.close_connections()

    def look(self, now: float) -> int:
        """Release every survey that is due at `now` (seconds); returns how many reports."""
        n = 0
        for survey in self._store.surveys():
            last = self._last.setdefault(survey.key, now)
            waiting = self._store.waiting(survey.key)
            released = self._store.released(survey.key)
            if survey.state == "closed":
                # A close that was interrupted between its steps is finished here.
                if waiting:
                    n += release(self._store, survey, 1)
                    self._store.vacuum()
            elif is_due(waiting, released, now - last, self._settings):
                n += release(self._store, survey, self._settings.release_minimum)
                self._last[survey.key] = now
        return n

    def tidy(self, today: date) -> None:
        """Once a day, forget ids of surveys closed so long ago that nobody will send them again.

        The log is cut whenever somebody's reading kept a release from doing so.
        """
        self._store.truncate_log(only_pending=True)
        if today == self._tidied:
            return
        old = [
            survey
            for survey in self._store.surveys()
            if survey.state == "closed" and today - survey.changed > GRACE
        ]
        for survey in old:
            self._store.forget_ids(survey.key)
        if old and self._store.has_free_pages():
            self._store.vacuum()
        elif old:
            self._store.truncate_log()
        self._tidied = today
