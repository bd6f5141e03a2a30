"""Release: shuffle what waits into blocks and add it to the counts; only then is it readable.

Reports are released at least `release_minimum` together, so that one more respondent changes
nothing that anyone can watch, and the order in which they came is gone.
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

from survey.collect.admission import GRACE, is_over
from survey.disclosure import secure_permutation
from survey.errors import StoreBusyError, SurveyError
from survey.questionnaire.kinds import PublishedQuestion
from survey.settings import Settings
from survey.store import (
    N_ASKED,
    BlockColumn,
    LastBlock,
    PendingReports,
    PublishedSurvey,
    ReleaseContent,
    Store,
)

BLOCK_SIZE = 65_536
"""Reports per block; a stratum's last block grows to this before the next one begins."""

POLL_SECONDS = 1.0

REWRITE_SECONDS = 30.0
"""How long after a reader was in the way a closed survey's tables are tried again."""

logger = logging.getLogger(__name__)

Codes = NDArray[np.uint8]
"""Reports as rows, the codes of all questions side by side, shape (n, bytes of a report)."""

Clock = Callable[[], date]


def utc_today() -> date:
    """The UTC date."""
    return datetime.now(UTC).date()


def bucket_of(survey: PublishedSurvey, released: date) -> str:
    """What is kept of the day of a release: nothing, the day, or its ISO week.

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
    """Shuffle each stratum's waiting reports together with its newest block.

    One permutation moves all codes of a report together: cross-tabs stay possible.
    """
    columns: list[BlockColumn] = []
    counts: Counter[tuple[str, str, int, int]] = Counter()
    widths = [question.code_bytes for question in questions]
    for group in groups:
        waiting = np.frombuffer(b"".join(group.codes), dtype=np.uint8).reshape(-1, sum(widths))
        for number, column in enumerate(_columns(waiting, widths)):
            asked, supports = questions[number].count(column)
            counts[group.stratum, group.bucket, number, N_ASKED] += asked
            for option in np.flatnonzero(supports).tolist():
                counts[group.stratum, group.bucket, number, option] += int(supports[option])
        columns.extend(_blocks(group, waiting, widths))
    return ReleaseContent(columns=columns, counts=counts)


def _columns(rows: Codes, widths: Sequence[int]) -> list[Codes]:
    """Each question's codes, shape (n, bytes of one)."""
    return np.split(rows, np.cumsum(widths)[:-1], axis=1)


def _blocks(group: PendingReports, waiting: Codes, widths: Sequence[int]) -> Iterator[BlockColumn]:
    """The newest block with the waiting reports, shuffled, cut into blocks again."""
    number, rows = 0, waiting
    if group.last is not None:
        number = group.last.number
        old = _rows(group.last, widths)
        if len(old) < BLOCK_SIZE:
            rows = np.concatenate([old, waiting])
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


def _rows(block: LastBlock, widths: Sequence[int]) -> Codes:
    """The reports of a block, put together again from its columns."""
    columns = [
        np.frombuffer(column, dtype=np.uint8).reshape(-1, width)
        for column, width in zip(block.columns, widths, strict=True)
    ]
    return np.concatenate(columns, axis=1)


def release(
    store: Store, survey: PublishedSurvey, minimum: int, *, clock: Clock = utc_today
) -> int:
    """Release what waits, if at least `minimum` reports do; returns how many.

    It goes in portions, between which senders are served, and ends with what waited at its
    beginning: under load there is always more.
    """
    n, waiting = 0, store.n_pending(survey.key)
    sealed = partial(compose_release, survey.definition.questions)
    while n < waiting:
        portion = store.release(survey.key, minimum, sealed, bucket=bucket_of(survey, clock()))
        if not portion:
            break
        n += portion
    if n:
        store.clean_up_after_release(survey.key)
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
    """Releases by itself what is due, for as long as a server runs and whatever fails.

    Several servers on one database each run one: the store lets one release at a time, and what
    one has released the others find gone.
    """

    def __init__(self, store: Store, settings: Settings, *, clock: Clock = utc_today) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._last: dict[int, tuple[int, float]] = {}
        self._tidied: date | None = None
        self._rewritten: set[int] = set()
        self._rewrite_from = 0.0

    def run(self, stop: Event) -> None:
        """Look once a second until `stop` is set; whatever fails is tried again."""
        while not stop.wait(POLL_SECONDS):
            try:
                self.look(monotonic())
                self.tidy(self._clock())
            except SurveyError as error:
                logger.warning("no release this time", exc_info=error)
            except Exception:
                # The thread must outlive a mistake of ours: without it nothing is released.
                logger.exception("no release this time")
        self._store.close_connections()

    def look(self, now: float) -> int:
        """Release every survey that is due at `now` (seconds); returns how many reports.

        A survey whose release fails keeps no other from its own; the first error is raised
        after all had their turn.
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
        if is_over(survey, self._clock()):
            self._store.close_survey(survey.slug, self._clock())
        waiting = self._store.n_pending(survey.key)
        if survey.state == "closed":
            return self._finish_close(survey) if waiting else 0
        released = self._store.n_released(survey.key)
        if self._last.get(survey.key, (-1, now))[0] != released:
            # Also when another server released it: those who wait came after that.
            self._last[survey.key] = (released, now)
        waited = now - self._last[survey.key][1]
        if not is_due(waiting, released, waited, self._settings):
            return 0
        n = release(self._store, survey, self._settings.release_minimum, clock=self._clock)
        self._last[survey.key] = (released + n, now)
        return n

    def _finish_close(self, survey: PublishedSurvey) -> int:
        """A close that was interrupted between its steps is finished here."""
        n = release(self._store, survey, 1, clock=self._clock)
        self._store.vacuum()
        return n

    def tidy(self, today: date) -> None:
        """Once a day, forget ids of surveys closed so long ago that nobody will send them again.

        What somebody's reading, or an end, kept a release from tidying is tidied whenever it can
        be, and what it kept a close from rewriting is rewritten.
        """
        self._store.retry_clean_up()
        closed = [survey for survey in self._store.surveys() if survey.state == "closed"]
        self._rewrite({survey.key for survey in closed if today - survey.changed <= GRACE})
        if today == self._tidied:
            return
        old = [survey for survey in closed if today - survey.changed > GRACE]
        for survey in old:
            self._store.forget_ids(survey.key)
            self._store.clean_up_after_release(survey.key)
        if old and self._store.has_free_pages():
            self._store.vacuum()
        self._tidied = today

    def _rewrite(self, closed: set[int]) -> None:
        """Rewrite the store once for surveys closed of late, by this process or another."""
        if closed <= self._rewritten or monotonic() < self._rewrite_from:
            return
        try:
            self._store.vacuum()
        except StoreBusyError:
            # Somebody reads all of it; nobody waits for this.
            self._rewrite_from = monotonic() + REWRITE_SECONDS
        else:
            self._rewritten |= closed
