"""Release pending reports: shuffle them into blocks and add them to the counts that are read.

At least `release_minimum` reports are released together, so that results never change by a single
respondent, and the order of arrival is lost.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime
from functools import partial
from threading import Event
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from survey.disclosure import secure_permutation
from survey.errors import StoreBusyError, SurveyError
from survey.questionnaire.kinds import PublishedQuestion
from survey.settings import Settings
from survey.store import (
    GRACE,
    N_ASKED,
    BlockColumn,
    PendingReports,
    PublishedSurvey,
    ReleaseContent,
    Store,
)

BLOCK_SIZE = 65_536
"""Reports per block; the last block of a stratum grows to this size before the next one."""

POLL_SECONDS = 1.0

REWRITE_SECONDS = 30.0
"""Pause before closed surveys' tables are rewritten again, after a reader prevented it."""

logger = logging.getLogger(__name__)

Codes = NDArray[np.uint8]
"""One row per report with the codes of all questions, shape (n, bytes of a report)."""

Clock = Callable[[], date]


def utc_today() -> date:
    """Return the current UTC date."""
    return datetime.now(UTC).date()


def bucket_of(survey: PublishedSurvey, released: date) -> str:
    """Return what is stored of the day of a release: nothing, the day, or its ISO week.

    >>> from types import SimpleNamespace
    >>> surveys = [
    ...     SimpleNamespace(definition=SimpleNamespace(bucket=bucket))
    ...     for bucket in ("none", "day", "week")
    ... ]
    >>> [bucket_of(survey, date(2027, 1, 1)) for survey in surveys]
    ['', '2027-01-01', '2026-W53']
    """
    match survey.definition.bucket:
        case "day":
            return released.isoformat()
        case "week":
            year, week, _ = released.isocalendar()
            return f"{year}-W{week:02}"
        case _:
            return ""


def compose_release(
    questions: Sequence[PublishedQuestion], groups: Sequence[PendingReports]
) -> ReleaseContent:
    """Shuffle each stratum's pending reports together with its newest block, and count them.

    One permutation moves all codes of a report together, which keeps cross-tabs possible.
    """
    columns: list[BlockColumn] = []
    counts: Counter[tuple[str, str, int, int]] = Counter()
    widths = [question.code_bytes for question in questions]
    for group in groups:
        rows = np.frombuffer(b"".join(group.codes), dtype=np.uint8).reshape(-1, sum(widths))
        for number, column in enumerate(_columns(rows, widths)):
            n_asked, supports = questions[number].count(column)
            counts[group.stratum, group.bucket, number, N_ASKED] += n_asked
            for option in np.flatnonzero(supports).tolist():
                counts[group.stratum, group.bucket, number, option] += int(supports[option])
        columns.extend(_blocks(group, rows, widths))
    return ReleaseContent(columns, counts)


def _columns(rows: Codes, widths: Sequence[int]) -> list[Codes]:
    """Return each question's codes, shape (n, bytes of a code)."""
    return np.split(rows, np.cumsum(widths)[:-1], axis=1)


def _blocks(group: PendingReports, new: Codes, widths: Sequence[int]) -> Iterator[BlockColumn]:
    """Yield blocks of the newest block's reports and the new ones, shuffled together."""
    number, rows = 0, new
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
            rows = np.concatenate([old, new])
        else:
            number += 1
    rows = rows[secure_permutation(len(rows))]
    for start in range(0, len(rows), BLOCK_SIZE):
        part = rows[start : start + BLOCK_SIZE]
        block = number + start // BLOCK_SIZE
        for question, column in enumerate(_columns(part, widths)):
            yield BlockColumn(
                group.stratum, group.bucket, question, block, len(part), column.tobytes()
            )


def release(
    store: Store, survey: PublishedSurvey, minimum: int, *, clock: Clock = utc_today
) -> int:
    """Release pending reports if there are at least `minimum`; return their number.

    Works in portions, between which new reports are accepted, and stops after as many reports as
    were pending at the start: under load there are always more.
    """
    n, n_pending = 0, store.n_pending(survey.key)
    compose = partial(compose_release, survey.definition.questions)
    while n < n_pending:
        portion = store.release(survey.key, minimum, compose, bucket=bucket_of(survey, clock()))
        if not portion:
            break
        n += portion
    if n:
        store.clean_up_after_release(survey.key)
    return n


def is_due(n_pending: int, n_released: int, seconds: float, settings: Settings) -> bool:
    """Return whether to release now: enough reports are pending, for long enough or 1% of all.

    >>> settings = Settings()
    >>> [is_due(n, released, seconds, settings)
    ...  for n, released, seconds in ((25, 0, 0.0), (24, 0, 99.0), (30, 10_000, 3.0))]
    [True, False, False]
    """
    if n_pending < settings.release_minimum:
        return False
    return 100 * n_pending >= n_released or seconds >= settings.release_seconds


class ReleaseLoop:
    """Releases reports when they are due, as long as a server runs and whatever fails.

    Several servers on one database each run a loop: the store admits one release at a time, and
    released reports are no longer pending for the others.
    """

    def __init__(self, store: Store, settings: Settings, *, clock: Clock = utc_today) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._last: dict[int, tuple[int, float]] = {}
        self._cleaned_up: date | None = None
        self._rewritten: set[int] = set()
        self._rewrite_from = 0.0

    def run(self, stop: Event) -> None:
        """Release once a second until `stop` is set; repeat what failed."""
        while not stop.wait(POLL_SECONDS):
            try:
                self.release_due(monotonic())
                self.clean_up(self._clock())
            except SurveyError as error:
                logger.warning("no release this time", exc_info=error)
            except Exception:
                # The thread must survive a programming error: without it nothing is released.
                logger.exception("no release this time")
        self._store.close_connections()

    def release_due(self, now: float) -> int:
        """Release every survey that is due at `now` (seconds); return the number of reports.

        If releases fail, raises the first error after all surveys had their turn.
        """
        n, errors = 0, []
        for survey in self._store.surveys():
            try:
                n += self._release_if_due(survey, now)
            except SurveyError as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return n

    def _release_if_due(self, survey: PublishedSurvey, now: float) -> int:
        if survey.is_over(self._clock()):
            self._store.close_survey(survey.slug, self._clock())
        n_pending = self._store.n_pending(survey.key)
        if survey.state == "closed":
            if not n_pending:
                return 0
            # A close was interrupted between its steps.
            n = release(self._store, survey, 1, clock=self._clock)
            self._store.vacuum()
            return n
        n_released = self._store.n_released(survey.key)
        if self._last.get(survey.key, (-1, now))[0] != n_released:
            # Another server may have released it: the pending reports came after that.
            self._last[survey.key] = (n_released, now)
        seconds = now - self._last[survey.key][1]
        if not is_due(n_pending, n_released, seconds, self._settings):
            return 0
        n = release(self._store, survey, self._settings.release_minimum, clock=self._clock)
        self._last[survey.key] = (n_released + n, now)
        return n

    def clean_up(self, today: date) -> None:
        """Remove what releases and closed surveys have left behind.

        Repeats the clean-ups and rewrites that readers or interruptions have prevented. Once a
        day, deletes the ids of surveys that were closed so long ago that nobody sends them again.
        """
        self._store.retry_clean_up()
        closed = [survey for survey in self._store.surveys() if survey.state == "closed"]
        self._rewrite({survey.key for survey in closed if today - survey.changed <= GRACE})
        if today == self._cleaned_up:
            return
        old = [survey for survey in closed if today - survey.changed > GRACE]
        for survey in old:
            self._store.forget_ids(survey.key)
            self._store.clean_up_after_release(survey.key)
        if old and self._store.has_free_pages():
            self._store.vacuum()
        self._cleaned_up = today

    def _rewrite(self, closed: set[int]) -> None:
        """Rewrite the store once for recently closed surveys, closed by any process."""
        if closed <= self._rewritten or monotonic() < self._rewrite_from:
            return
        try:
            self._store.vacuum()
        except StoreBusyError:
            # A reader prevents it, and nobody waits for it.
            self._rewrite_from = monotonic() + REWRITE_SECONDS
        else:
            self._rewritten |= closed
