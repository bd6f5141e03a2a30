"""The keeper releases pending reports; only the keeper holds the private keys that open them.

At fixed release times, the keeper publishes a multiple of 25 reports of each group, chosen at
random, and seals the others with a new key. Pages and commands set states; the keeper acts on them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import partial
from threading import Event
from time import monotonic

import numpy as np
from nacl.public import PrivateKey
from numpy.typing import NDArray

from survey.collect.incoming_reports import accept, parse
from survey.disclosure import (
    MINIMUM_REPORTS,
    OTHER_GROUPS,
    closing_names,
    merge_small_groups,
    n_to_release,
    release_time,
    secure_permutation,
)
from survey.errors import (
    ConflictError,
    DamagedBatchError,
    DamagedSurveyError,
    StoreBusyError,
    StoreError,
    SurveyError,
)
from survey.questionnaire.kinds import PublishedQuestion
from survey.store import (
    GRACE,
    MAX_RELEASED,
    N_ASKED,
    Batch,
    BlockColumn,
    ChosenReports,
    FieldKeys,
    PrivateKeys,
    PublishedSurvey,
    ReleaseContent,
    ReleaseFailure,
    Row,
    SealingKey,
    Store,
    StoredReport,
)
from survey.store.field_boxes import open_box
from survey.store.sealed_reports import (
    UNASSIGNED,
    UNASSIGNED_FIELD,
    forget_unreadable,
    lost_keys,
    open_batch,
    recover_batch,
    require_key,
    seal,
)

BLOCK_SIZE = 65_536
"""Reports per block; the last block of a stratum grows to this size before the next one."""

MAX_PACKED = 4_096
"""Maximum number of pending reports of several strata that one transaction releases together.

Each transaction rewrites most rows of released ids, so fewer transactions take less time. But each
one must hold the write lock only briefly.
"""

MAX_ROTATED = 32
"""Maximum number of surveys whose keys change in one transaction.

An interruption delays the releases of all of them."""

POLL_SECONDS = 1.0

PROBE_SECONDS = 10.0
"""Interval at which the keeper checks, and logs, whether the database accepts no reports."""

SPARE_KEYS = 8
"""Number of spare public keys, with which new surveys can accept reports at once."""

SPARE_FIELD_KEYS = 2
"""Number of spare field-mode keys, so that surveys can be published without waiting."""

REPEAT_SECONDS = 600.0
"""Minimum time until the log repeats an unchanged error of the keeper."""

NO_KEYS = "the private keys cannot be used"
RETRY = "the keeper failed and will retry"
NOT_WRITABLE = "reports cannot be stored for now"

REWRITE_SECONDS = 30.0
"""Pause before another attempt to rewrite the store, after a reader prevented one."""

logger = logging.getLogger(__name__)

Codes = NDArray[np.uint8]
"""One row per report with the codes of all questions, shape (n, bytes of a report)."""

KeeperState = tuple[int, int, date, tuple[Row, ...]]
"""The release time, the time of the last change of the keys' directory, the day, and the rows of
`Store.keeper_state`."""

Step = Callable[[], int | None]
"""A part of the keeper's work, which may return the number of released reports."""

Clock = Callable[[], float]
"""Returns the seconds since 1970, UTC."""


def utc_today() -> date:
    """Return the current UTC date."""
    return datetime.now(UTC).date()


def day_of(now: float) -> date:
    """Return the UTC date of a time."""
    return datetime.fromtimestamp(now, UTC).date()


def bucket_of(survey: PublishedSurvey, released: date) -> str:
    """Return what a survey stores about the day of a release: nothing, the day, or its ISO week.

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
    questions: Sequence[PublishedQuestion], *selections: ChosenReports
) -> ReleaseContent:
    """Shuffle the reports of each selection together with its newest block, and count them.

    One permutation moves all codes of a report together, which keeps cross-tabs possible.
    """
    if not selections:
        return ReleaseContent([], {})
    widths = [question.code_bytes for question in questions]
    codes = b"".join(code for reports in selections for code in reports.codes)
    rows = np.frombuffer(codes, dtype=np.uint8).reshape(-1, sum(widths))
    sizes = [len(reports.codes) for reports in selections]
    parts = np.split(rows, np.cumsum(sizes)[:-1])
    blocks = [
        block
        for reports, part in zip(selections, parts, strict=True)
        for block in _blocks(reports, part, widths)
    ]
    counts: dict[tuple[str, str, int, int], int] = {}
    for number, column in enumerate(_columns(rows, widths)):
        n_asked, supports = questions[number].count_segments(column, sizes)
        segments, options = np.nonzero(supports)
        for segment, option, n in zip(
            [*range(len(selections)), *segments.tolist()],
            [*[N_ASKED] * len(selections), *options.tolist()],
            [*n_asked.tolist(), *supports[segments, options].tolist()],
            strict=True,
        ):
            reports = selections[segment]
            counts[reports.stratum, reports.bucket, number, option] = n
    return ReleaseContent(blocks, counts)


def _columns(rows: Codes, widths: Sequence[int]) -> list[Codes]:
    """Return each question's codes, shape (n, bytes of a code)."""
    return np.split(rows, np.cumsum(widths)[:-1], axis=1)


def _blocks(chosen: ChosenReports, new: Codes, widths: Sequence[int]) -> Iterator[BlockColumn]:
    """Yield blocks of the newest block's reports and the new ones, shuffled together."""
    number, rows = 0, new
    if chosen.last is not None:
        number = chosen.last.number
        old = np.concatenate(
            [
                np.frombuffer(column, dtype=np.uint8).reshape(-1, width)
                for column, width in zip(chosen.last.columns, widths, strict=True)
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
                chosen.stratum, chosen.bucket, question, block, len(part), column.tobytes()
            )


def release_simulated(
    store: Store,
    survey: PublishedSurvey,
    reports: Sequence[StoredReport],
    stratum: str = "",
) -> None:
    """Publish simulated reports at once; they belong to nobody and need no pending state."""
    content = _content(store, survey, {stratum: reports}, "")
    store.release(survey.key, content, [report.id for report in reports])


def _content(
    store: Store,
    survey: PublishedSurvey,
    chosen: Mapping[str, Sequence[StoredReport]],
    bucket: str,
) -> ReleaseContent:
    """Return the content of a release of the reports chosen in each stratum."""
    strata = [stratum for stratum, reports in chosen.items() if reports]
    last = store.last_blocks(survey.key, strata, bucket)
    return compose_release(
        survey.definition.questions,
        *(
            ChosenReports(
                stratum, bucket, [report.codes for report in chosen[stratum]], last.get(stratum)
            )
            for stratum in strata
        ),
    )


def _by_stratum(reports: Iterable[StoredReport]) -> dict[str, list[StoredReport]]:
    """Return the reports grouped by stratum, in their original order."""
    by_stratum: dict[str, list[StoredReport]] = {}
    for report in reports:
        by_stratum.setdefault(report.stratum, []).append(report)
    return by_stratum


def _packs(sizes: Mapping[str, int], last_blocks: Mapping[str, int]) -> Iterator[list[str]]:
    """Yield lists of strata whose pending reports one transaction can release together.

    `sizes` contains the numbers of pending reports. A release also rewrites the last block of each
    stratum; `last_blocks` contains their numbers of reports. A stratum that is too large for one
    transaction is in a list with no others.

    >>> list(_packs({"a": 900, "b": 900, "c": 3_000, "d": 10_000}, {"c": 60_000, "a": 9_000}))
    [['a', 'b'], ['c'], ['d']]
    >>> list(_packs(dict.fromkeys("abc", 25), {"b": 60_000, "c": 9_000}))
    [['a', 'b'], ['c']]
    """
    pack: list[str] = []
    n_pending = n_rewritten = 0
    for stratum, n in sizes.items():
        n_pending += n
        n_rewritten += last_blocks.get(stratum, 0)
        if pack and (n_pending > MAX_PACKED or n_rewritten > BLOCK_SIZE):
            yield pack
            pack, n_pending, n_rewritten = [], n, last_blocks.get(stratum, 0)
        pack.append(stratum)
    if pack:
        yield pack


def merge_small_cells(store: Store, surveys: Iterable[PublishedSurvey]) -> None:
    """Merge the cells of earlier versions that have too few reports; others stay as they are.

    No private key is needed, so that a migration can do it before any page shows these cells.
    """
    for survey in surveys:
        if survey.is_test_run:
            continue
        sizes = store.cell_sizes(survey.key)
        members: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for cell, target in merge_small_groups(sizes).items():
            members.setdefault(target, []).append(cell)
        for target, cells in members.items():
            if cells == [target]:
                continue
            codes = [code for cell in cells for code in store.cell_codes(survey.key, cell)]
            content = compose_release(
                survey.definition.questions, ChosenReports(*target, codes, None)
            )
            merged = {cell: sizes[cell] for cell in cells}
            store.merge_cells(survey.key, merged, content)
            store.clean_up_after_release(survey.key)


class Keeper:
    """The process or thread that holds the private keys, releases reports and rotates keys.

    If one survey fails, the others are still served, and the database and the log name the one that
    failed. A damaged batch is set aside, and the others are released. After an interruption, the
    next pass seals the remaining reports again and releases none of them before the next release
    time. A crash therefore delays a release, but never repeats one.
    """

    def __init__(
        self, store: Store, keys: PrivateKeys, every: int, *, clock: Clock = time.time
    ) -> None:
        self._store = store
        self._keys = keys
        self._field_keys = FieldKeys(keys.directory)
        self._every = every
        self._clock = clock
        self._cleaned_up: date | None = None
        self._merged: set[int] = set()
        # The last release time for which this process checked the rows of pending batches.
        self._repaired = -1
        self._rewritten: set[int] = set()
        self._rewrite_from = 0.0
        self._is_rewritten = False
        self._settled: KeeperState | None = None
        # The surveys that have nothing to release in this pass although a release time passed.
        self._without_release: list[int] = []
        # The surveys to release in this pass, with their readable keys.
        self._due: list[tuple[PublishedSurvey, Sequence[SealingKey]]] = []
        # The errors of the last pass by the survey's key.
        self._failures: dict[int, str] | None = None
        # The last logged error of each survey and each message, and the time.
        self._logged: dict[int | str, tuple[str, float]] = {}
        # The errors of individual surveys in the last pass; only `_record` logs them.
        self._survey_errors: list[Exception] = []

    def run(self, stop: Event) -> None:
        """Do whatever is due once a second until `stop` is set; retry after errors."""
        is_waiting = False
        while not stop.is_set():
            try:
                with self._keys.lock():
                    is_waiting = False
                    self._logged.pop(NO_KEYS, None)
                    self._run_locked(stop)
            except ConflictError as error:
                # The server that this one replaces may still be stopping.
                if not is_waiting:
                    logger.warning("this process releases nothing: %s", error)
                is_waiting = True
            except SurveyError as error:
                self._log(NO_KEYS, error)
            stop.wait(POLL_SECONDS)
        self._store.close_connections()

    def _run_locked(self, stop: Event) -> None:
        probe_from = 0.0
        while not stop.is_set():
            if monotonic() >= probe_from:
                self._probe()
                probe_from = monotonic() + PROBE_SECONDS
            try:
                self.work()
                self._logged.pop(RETRY, None)
            except Exception as error:  # noqa: BLE001
                # The thread must survive a programming error; without it, nothing is released.
                if error not in self._survey_errors:
                    self._log(RETRY, error)
            stop.wait(POLL_SECONDS)

    def _log(self, message: str, error: Exception) -> None:
        """Log an error that may recur every second."""
        if self._should_log(message, repr(error)):
            level = logging.WARNING if isinstance(error, SurveyError) else logging.ERROR
            logger.log(level, message, exc_info=error)

    def _should_log(self, key: int | str, error: str) -> bool:
        """Record an error; return False if it repeats the last one of this key within a while."""
        last, since = self._logged.get(key, ("", 0.0))
        if error == last and monotonic() < since + REPEAT_SECONDS:
            return False
        self._logged[key] = error, monotonic()
        return True

    def _probe(self) -> None:
        """Log a warning if the database accepts no reports, whether or not any arrive.

        The servers do not log rejected reports, because a line would show when a device sent one.
        """
        try:
            self._store.check_writable()
            self._logged.pop(NOT_WRITABLE, None)
        except SurveyError as error:
            self._log(NOT_WRITABLE, error)

    def work(self) -> int:
        """Do whatever is due now; return the number of released reports.

        The caller must have locked the keys. If any survey fails, raise the first error after all
        surveys have been served.
        """
        now = self._clock()
        due = release_time(now, self._every)
        state = self._read_state(now)
        if state == self._settled:
            self._store.retry_clean_up()
            return 0
        self._settled = None
        self._without_release, self._due, self._survey_errors = [], [], []
        # The rest of an unfinished copy would need keys that this pass destroys.
        self._store.check_complete()
        surveys = self._store.surveys()
        times = self._store.release_times()
        self._check_keys()
        errors: list[Exception] = []
        failures: dict[int, Exception] = {}
        n = 0

        def attempt(step: Step, survey: int = UNASSIGNED) -> int:
            try:
                return step() or 0
            except Exception as error:  # noqa: BLE001  raised after the others
                # Even a programming error in one survey must not stop the others.
                if survey == UNASSIGNED:
                    errors.append(error)
                else:
                    failures[survey] = error
                return 0

        self._repair(surveys, due, attempt)
        attempt(lambda: self._provide_keys(surveys))
        attempt(self._provide_field_keys)
        attempt(self._seal_unsealed_reports)
        for survey in surveys:
            attempt(partial(self._merge_small_cells, survey), survey.key)
        periods = self._keys_by_survey()
        for survey in surveys:
            keys, served_until = periods.get(survey.key, []), times.get(survey.key, 0)
            n += attempt(partial(self._serve, survey, keys, served_until, now), survey.key)
        for start in range(0, len(self._due), MAX_ROTATED):
            together = self._due[start : start + MAX_ROTATED]
            n += attempt(
                partial(self._release_together, together, now, attempt), together[0][0].key
            )
        if self._without_release:
            # In one transaction, because one for each of many surveys would take most of the pass.
            attempt(lambda: self._store.set_release_time(due, *self._without_release))
        attempt(self._destroy_keys)
        attempt(self._destroy_field_keys)
        attempt(lambda: self.clean_up(day_of(now)))
        attempt(lambda: self._record(surveys, failures, int(now)))
        self._survey_errors = list(failures.values())
        if errors or failures:
            raise [*errors, *failures.values()][0]
        # Skip the next pass only if its initial state equals the initial state of this one.
        self._settled = state if self._is_rewritten else None
        return n

    def _read_state(self, now: float) -> KeeperState:
        """Return the state that determines whether a pass of the keeper has work to do.

        If a pass without errors leaves the state as it was, it changed nothing, and the next pass
        would change nothing either. A key file that is damaged rather than missing does not change
        the state, so the keeper detects it at the next release time.
        """
        try:
            names = self._keys.directory.stat().st_mtime_ns
        except OSError:
            # The pass reports this error.
            names = 0
        today = day_of(now)
        return release_time(now, self._every), names, today, self._store.keeper_state(today)

    def failing(self) -> list[str]:
        """Return the names of the surveys that could not be served in the last pass."""
        keys = self._failures or {}
        return [f"{s.slug} version {s.version}" for s in self._store.surveys() if s.key in keys]

    def _record(
        self, surveys: Iterable[PublishedSurvey], failures: Mapping[int, Exception], now: int
    ) -> None:
        """Record and log which surveys fail; write only changes since the last pass."""
        if self._failures is None:
            self._failures = {key: known.error for key, known in self._store.failures().items()}
        errors = {key: type(error).__name__ for key, error in failures.items()}
        slugs = {survey.key: survey.slug for survey in surveys}
        for key in self._failures.keys() | errors.keys():
            error = errors.get(key)
            if error is None:
                self._logged.pop(key, None)
            elif self._should_log(key, error):
                names = {"survey": slugs[key]}
                logger.warning("a survey cannot be served", exc_info=failures[key], extra=names)
            if error != self._failures.get(key):
                self._store.set_failure(key, ReleaseFailure(now, error) if error else None)
        self._failures = errors

    def take_over(self) -> int:
        """Delete pending reports whose private key is lost; return their number.

        Devices can then send them again.
        """
        self._store.check_complete()
        for missing in self._store.missing_keys():
            with suppress(DamagedSurveyError):
                self._repair_key(missing)
        n = forget_unreadable(self._store, self._keys)
        for survey in self._store.surveys():
            field = survey.definition.field
            if field and self._field_keys.find_field_key(field.key) is None:
                n += self._store.forget_arrivals(survey.key)
        return n

    def lost_keys(self) -> list[SealingKey]:
        """Return the keys of the database whose private keys this directory lacks."""
        return lost_keys(self._store, self._keys)

    def unused_keys(self) -> list[bytes]:
        """Return the private keys' public keys that the database lacks.

        Raises StoreError if the database uses none of this directory's keys: it is another one's.
        """
        self._store.check_complete()
        self._check_keys()
        known = {key.public_key for key in self._store.sealing_keys()}
        return [public_key for public_key in self._keys.public_keys() if public_key not in known]

    # -- keys

    def _keys_by_survey(self) -> dict[int, list[SealingKey]]:
        """Return the keys of each survey, oldest first."""
        by_survey: dict[int, list[SealingKey]] = {}
        for key in self._store.sealing_keys():
            by_survey.setdefault(key.survey, []).append(key)
        return by_survey

    def _check_keys(self) -> None:
        """Raise StoreError if this directory has none of the keys that the database lists.

        It belongs to another database, or its volume is missing: reports must not be sealed with
        keys that the right directory will lack.
        """
        known = self._store.sealing_keys()
        if known and not any(self._keys.find(key.public_key) for key in known):
            raise StoreError(
                f"{self._keys.directory} has none of this database's private keys; check "
                "SURVEY_KEYS. If the keys are permanently lost, run `survey keeper --take-over`"
            )

    def _repair(
        self,
        surveys: Iterable[PublishedSurvey],
        due: int,
        attempt: Callable[[Step, int], int],
    ) -> None:
        """Repair damage that prevents the keeper from finding batches or keys, where possible."""
        if due != self._repaired:
            attempt(self._repair_pending, UNASSIGNED)
            self._repaired = due
        known = {survey.key for survey in surveys}
        for missing in self._store.missing_keys():
            survey = missing.survey if missing.survey in known else UNASSIGNED
            attempt(partial(self._repair_key, missing), survey)

    def _repair_pending(self) -> None:
        if self._store.repair_pending():
            logger.error("damaged rows of pending batches were put in order")

    def _repair_key(self, missing: SealingKey) -> None:
        """Find the key of batches if the database stores it with a wrong survey or period."""
        batches = self._store.unreachable_batches(missing.survey)
        intact = [batch for batch in batches if batch.is_intact and batch.period == missing.period]
        if not intact:
            # The batches are damaged, not the row of their key.
            return
        for public_key in self._keys.public_keys():
            private_key = self._keys.find(public_key)
            with suppress(DamagedBatchError):
                if private_key and open_batch(private_key, intact[0]):
                    self._store.repair_key(replace(missing, public_key=public_key))
                    logger.warning("the survey or the period of a public key was repaired")
                    return
        raise DamagedSurveyError(
            "the public key of pending reports is missing from the database, and this keeper has "
            "no private key that opens them; if it is permanently lost, run "
            "`survey keeper --take-over`, so that devices can send these reports again"
        )

    def _provide_keys(self, surveys: Iterable[PublishedSurvey]) -> None:
        """Give a readable key to every survey that lacks one, and replenish the spare keys."""
        by_survey = self._keys_by_survey()
        for survey in surveys:
            if survey.state == "closed":
                continue
            self._ensure_readable_key(survey.key, by_survey.get(survey.key, []))
        spares = by_survey.get(UNASSIGNED, [])
        self._store.delete_keys([key for key in spares if self._keys.find(key.public_key) is None])
        for public_key in self._keys.create_several(SPARE_KEYS - len(spares)):
            self._store.add_spare_key(public_key)

    def _provide_field_keys(self) -> None:
        """Replenish the spare keys of field mode."""
        spares = self._store.spare_field_keys()
        find = self._field_keys.find_field_key
        self._store.delete_keys([key for key in spares if find(key.public_key) is None])
        for public_key in self._field_keys.create_several(SPARE_FIELD_KEYS - len(spares)):
            self._store.add_spare_key(public_key, UNASSIGNED_FIELD)

    def _destroy_field_keys(self) -> None:
        """Destroy the keys of field mode that no survey needs, so that nobody can open their boxes.

        A survey needs its key until the first release after it closes.
        """
        # Read the spare keys before the surveys: a new survey may take one in between.
        needed = {spare.public_key for spare in self._store.spare_field_keys()}
        if needed.issuperset(self._field_keys.public_keys()):
            return
        awaiting_release = {key.survey for key in self._store.sealing_keys()}
        for survey in self._store.surveys():
            if survey.definition.field and (
                survey.state != "closed" or survey.key in awaiting_release
            ):
                needed.add(survey.definition.field.key)
        for public_key in self._field_keys.public_keys():
            if public_key not in needed:
                self._field_keys.destroy(public_key)

    def _ensure_readable_key(self, survey: int, keys: Sequence[SealingKey]) -> SealingKey:
        """Return a survey's newest key, or a new one if it has none or the newest one is lost."""
        # From now on, no report may be sealed with a lost key.
        if not keys or self._keys.find(keys[-1].public_key) is None:
            return self._rotate([survey], time=0)[survey]
        return keys[-1]

    def _rotate(self, surveys: Sequence[int], time: int) -> dict[int, SealingKey]:
        """Create the next key of each survey for which no other keeper has processed `time`."""
        public_keys = dict(zip(surveys, self._keys.create_several(len(surveys)), strict=True))
        rotated = self._store.rotate_keys(public_keys, time)
        self._keys.destroy(*(public_keys[survey] for survey in surveys if survey not in rotated))
        return rotated

    def _destroy_keys(self) -> None:
        """Destroy the private keys that no report needs, and delete their public keys."""
        # Read before the surveys: a survey that is published meanwhile keeps its spare key.
        by_survey = self._keys_by_survey()
        surveys = self._store.surveys()
        accepting = {survey.key for survey in surveys if survey.state != "closed"}
        replaced = [
            key
            for survey, keys in by_survey.items()
            if survey != UNASSIGNED
            for key in (keys[:-1] if survey in accepting else keys)
        ]
        if not replaced or any(
            batch.is_intact
            for survey in {key.survey for key in self._store.missing_keys()}
            for batch in self._store.unreachable_batches(survey)
        ):
            # The missing key of a batch may be stored in the row of another survey.
            return
        # In a separate transaction, after the one that deleted the last sealed batch.
        unneeded = set(self._store.unneeded_keys())
        old = [key for key in replaced if key in unneeded]
        for start in range(0, len(old), MAX_ROTATED):
            part = old[start : start + MAX_ROTATED]
            self._keys.destroy(*(key.public_key for key in part))
            self._store.delete_keys(part)

    def _seal_unsealed_reports(self) -> None:
        """Seal the reports that an earlier version stored unsealed."""
        surveys = self._store.surveys_with_unsealed_reports()
        for survey in surveys:
            key = self._ensure_readable_key(survey, self._keys_by_survey().get(survey, []))
            accepted_ids = self._store.unsealed_ids(survey)
            while reports := self._store.unsealed_reports(survey, MAX_RELEASED):
                self._store.seal_unsealed_reports(key, reports, accepted_ids)
        if surveys:
            # Deleted rows stay in free pages of the file until it is rewritten.
            self._store.vacuum()

    def _merge_small_cells(self, survey: PublishedSurvey) -> None:
        """Merge a survey's small cells once per start, as the database may have been restored."""
        if survey.key not in self._merged:
            merge_small_cells(self._store, [survey])
            self._merged.add(survey.key)

    # -- releases

    def _serve(
        self, survey: PublishedSurvey, keys: Sequence[SealingKey], served_until: int, now: float
    ) -> int:
        """Do whatever is due for a survey; return the number of released reports."""
        survey.require_intact_dates()
        if len({key.period for key in keys}) < len(keys):
            # The keeper would seal again with a key of the same period, and never finish.
            raise DamagedSurveyError(
                f"two public keys of {survey.slug} version {survey.version} have the same period: "
                "the database is damaged; restore a backup"
            )
        if survey.state == "closed":
            # Closing a survey must not determine when its last reports are released.
            is_due = self._check_due(survey, served_until, now)
            if is_due and keys:
                return self._close(survey, keys, day_of(now))
            if is_due:
                # The readiness check can then detect a stopped keeper even if no survey is open.
                self._without_release.append(survey.key)
            return 0
        if survey.is_over(day_of(now)):
            self._store.close_survey(survey.slug, day_of(now))
            return 0
        lost = [key for key in keys if self._keys.find(key.public_key) is None]
        self._prepare_release(survey, [key for key in keys if key not in lost], served_until, now)
        for key in lost:
            if self._store.is_key_needed(key):
                require_key(self._keys, key)
        return 0

    def _check_due(self, survey: PublishedSurvey, served_until: int, now: float) -> bool:
        """Return whether an unprocessed release time has passed.

        For a new survey, or after a clock error, record the current release time instead.
        """
        due = release_time(now, self._every)
        if not served_until or served_until > due + self._every:
            # A new survey has its first release at the next time. A clock that was ahead must not
            # keep a survey waiting for that time.
            self._store.set_release_time(due, survey.key)
            return False
        return due > served_until

    def _prepare_release(
        self, survey: PublishedSurvey, keys: Sequence[SealingKey], served_until: int, now: float
    ) -> None:
        """Add an open survey and its readable keys to the releases of this pass, if it has one."""
        if len(keys) > 1:
            # A rotation was interrupted.
            self._drain(survey, keys, "", is_release=False)
        if not self._check_due(survey, served_until, now) or not keys:
            return
        sizes = self._store.pending_sizes(survey.key)
        # Check before the keys change, because then this release time counts as processed.
        due = {stratum: n for stratum, n in sizes.items() if n_to_release(n)}
        self._require_intact_blocks(survey, due, bucket_of(survey, day_of(now)))
        if due or self._store.has_arrivals(survey.key):
            self._due.append((survey, keys))
        else:
            self._without_release.append(survey.key)

    def _release_together(
        self,
        due: Sequence[tuple[PublishedSurvey, Sequence[SealingKey]]],
        now: float,
        attempt: Callable[[Step, int], int],
    ) -> int:
        """Change the keys of surveys in one transaction, and release the due reports of each.

        If one survey prevents that, serve them one by one. Raise the error if there is only one.
        """
        try:
            new_keys = self._rotate(
                [survey.key for survey, _ in due], release_time(now, self._every)
            )
        except Exception:
            if len(due) == 1:
                raise
            return sum(
                attempt(partial(self._release_together, [one], now, attempt), one[0].key)
                for one in due
            )
        return sum(
            attempt(partial(self._release, survey, keys, new_keys.get(survey.key), now), survey.key)
            for survey, keys in due
        )

    def _release(
        self,
        survey: PublishedSurvey,
        keys: Sequence[SealingKey],
        new_key: SealingKey | None,
        now: float,
    ) -> int:
        """Release the due reports of an open survey; return the number of released reports."""
        if new_key is None:
            raise ConflictError("another keeper has already processed this release time")
        bucket = bucket_of(survey, day_of(now))
        return self._drain(survey, [*keys, new_key], bucket, is_release=True)

    def _drain(
        self,
        survey: PublishedSurvey,
        keys: Sequence[SealingKey],
        bucket: str,
        *,
        is_release: bool,
    ) -> int:
        """Publish reports as the policy allows; seal all others with the newest key.

        Each portion publishes as many of its reports as the policy allows, chosen at random. The
        others join the next portion of the group. Without `is_release`, publish nothing.
        """
        *old, newest = keys
        # Nobody may seal with a key that only another directory has.
        require_key(self._keys, newest)
        self._open_unreachable(survey, keys)
        self._open_boxes(survey, old)
        periods = [key.period for key in old]
        private_keys = self._private_keys(keys)
        n_released = 0
        for strata in self._portions(survey, self._store.pending_sizes(survey.key), bucket):
            remainder: list[Batch] = []
            while batches := self._batches(survey, strata, periods, MAX_RELEASED):
                opened, reports = self._open(survey, private_keys, [*remainder, *batches])
                chosen: dict[str, Sequence[StoredReport]] = {}
                others: list[StoredReport] = []
                for stratum, members in _by_stratum(reports).items():
                    n = n_to_release(len(members)) if is_release else 0
                    chosen[stratum] = members[:n]
                    others += members[n:]
                    n_released += n
                remainder = self._publish(survey, opened, chosen, others, newest, bucket)
                remainder = remainder if is_release else []
        return n_released

    def _require_intact_blocks(
        self, survey: PublishedSurvey, sizes: Mapping[str, int], bucket: str
    ) -> None:
        """Raise DamagedSurveyError if a block to which a release would append is damaged."""
        for strata in self._portions(survey, sizes, bucket):
            self._store.last_blocks(survey.key, strata, bucket)

    def _portions(
        self, survey: PublishedSurvey, sizes: Mapping[str, int], bucket: str
    ) -> Iterator[list[str]]:
        """Yield the strata that one transaction can release; a large stratum takes several."""
        n_rewritten = self._store.last_block_sizes(survey.key, bucket) if len(sizes) > 1 else {}
        return _packs(sizes, n_rewritten)

    def _batches(
        self, survey: PublishedSurvey, strata: Sequence[str], periods: Sequence[int], n: int
    ) -> list[Batch]:
        """Return all batches of several strata, or enough batches of one for n reports."""
        if len(strata) > 1:
            return self._store.all_batches(survey.key, strata, periods)
        batches: list[Batch] = []
        for period in periods:
            missing = n - sum(batch.n for batch in batches)
            if missing > 0:
                batches += self._store.batches(survey.key, strata[0], period, missing)
        return batches

    def _open_boxes(self, survey: PublishedSurvey, keys: Sequence[SealingKey]) -> None:
        """Replace the boxes of field mode that have arrived with the reports that they contain.

        Drop dummies and boxes without a valid report.
        """
        if survey.definition.field is None:
            return
        for key in keys:
            while batches := self._store.arrived_batches(survey.key, key.period):
                batches, boxes = self._open(survey, self._private_keys([key]), batches)
                reports = self._reports_in(survey, boxes)
                valid = {report.id for report in reports}
                invalid = [box.id for box in boxes if box.id not in valid]
                self._store.replace_boxes(keys[-1], batches, reports, invalid)

    def _reports_in(
        self, survey: PublishedSurvey, boxes: Sequence[StoredReport]
    ) -> list[StoredReport]:
        """Return the valid reports in boxes, each with the id of its box."""
        definition = survey.definition
        if definition.field is None:
            return []
        private_key = self._field_keys.find_field_key(definition.field.key)
        if private_key is None:
            raise StoreError(
                f"the private key of {survey.slug}'s field mode is missing; if it is permanently "
                "lost, run `survey keeper --take-over`, and publish a new version for the tablets"
            )
        reports = []
        for box in boxes:
            try:
                submission = parse(open_box(private_key, definition, box.codes))
                report = accept(submission, definition)
            except SurveyError:
                continue
            if submission.definition == definition.sha256 and not submission.invitation:
                reports.append(StoredReport(box.id, report.stratum, report.codes))
        return reports

    def _private_keys(self, keys: Iterable[SealingKey]) -> dict[int, PrivateKey]:
        """Return the private keys by period, without destroyed keys that no batch needs.

        Raises StoreError if a key that pending reports need is lost, which may have happened since
        the last check.
        """
        private_keys = {}
        for key in keys:
            if self._keys.find(key.public_key) or self._store.is_key_needed(key):
                private_keys[key.period] = require_key(self._keys, key)
        return private_keys

    def _open(
        self,
        survey: PublishedSurvey,
        private_keys: Mapping[int, PrivateKey],
        batches: Sequence[Batch],
    ) -> tuple[list[Batch], list[StoredReport]]:
        """Open batches; return the intact ones, and their reports in random order.

        Repair damaged batches or set them aside, so that they do not stop the release of others.
        """
        opened: list[Batch] = []
        reports: list[StoredReport] = []
        for stored in batches:
            batch = stored if stored.is_intact else self._recover(survey, private_keys, stored)
            try:
                if batch is None:
                    raise DamagedBatchError("a sealed batch differs from its digest")
                reports += open_batch(private_keys[batch.period], batch)
            except DamagedBatchError as error:
                self._set_aside(survey, batch or stored, error)
            else:
                opened.append(batch)
        return opened, [reports[place] for place in secure_permutation(len(reports)).tolist()]

    def _recover(
        self, survey: PublishedSurvey, private_keys: Mapping[int, PrivateKey], damaged: Batch
    ) -> Batch | None:
        """Repair a damaged batch whose box and digest are intact; return it, or None."""
        strata = dict.fromkeys([damaged.stratum, "", *self._store.n_invited_by_stratum(survey.key)])
        recovered = recover_batch(private_keys, strata, damaged)
        if recovered is not None:
            self._store.repair_batch(damaged, recovered)
            names = {"survey": survey.slug, "row": damaged.batch.hex()}
            logger.warning("a damaged batch was repaired", extra=names)
        return recovered

    def _open_unreachable(self, survey: PublishedSurvey, keys: Sequence[SealingKey]) -> None:
        """Repair or set aside the damaged batches that no query by period and stratum finds."""
        damaged = [
            batch for batch in self._store.unreachable_batches(survey.key) if not batch.is_intact
        ]
        if damaged:
            self._open(survey, self._private_keys(keys), damaged)

    def _set_aside(self, survey: PublishedSurvey, batch: Batch, error: DamagedBatchError) -> None:
        self._store.set_aside(batch)
        names = {"survey": survey.slug, "row": batch.batch.hex()}
        logger.error("a damaged batch was set aside", exc_info=error, extra=names)

    def _open_intact(
        self,
        survey: PublishedSurvey,
        private_keys: Mapping[int, PrivateKey],
        batches: Sequence[Batch],
    ) -> list[StoredReport]:
        """Return the reports of batches; raise StoreError if one was damaged in the meantime."""
        opened, reports = self._open(survey, private_keys, batches)
        if len(opened) < len(batches):
            raise StoreError("a batch was damaged while its survey closed; the next pass continues")
        return reports

    def _publish(
        self,
        survey: PublishedSurvey,
        opened: Sequence[Batch],
        chosen: Mapping[str, Sequence[StoredReport]],
        others: Sequence[StoredReport],
        key: SealingKey,
        bucket: str,
    ) -> list[Batch]:
        """Publish the chosen reports of opened batches; return the new batches of the others.

        `chosen` maps strata to the reports that are published under them.
        """
        content = _content(self._store, survey, chosen, bucket)
        remainder = seal(key, others, is_resealed=True)
        ids = [report.id for reports in chosen.values() for report in reports]
        self._store.release(survey.key, content, ids, opened, remainder)
        return remainder

    def _close(self, survey: PublishedSurvey, keys: Sequence[SealingKey], today: date) -> int:
        """Publish all pending reports of a closed survey, as far as the policy allows."""
        self._open_unreachable(survey, keys)
        missing = [key for key in self._store.missing_keys() if key.survey == survey.key]
        for key in (*keys, *missing):
            if self._store.is_key_needed(key):
                require_key(self._keys, key)
        self._open_boxes(survey, keys)
        private_keys, bucket = self._private_keys(keys), bucket_of(survey, today)
        periods = list(private_keys)
        # Set damaged batches aside first: the sizes of strata decide which may be published.
        sizes = self._store.pending_sizes(survey.key)
        self._require_intact_blocks(survey, dict.fromkeys([*sizes, OTHER_GROUPS], 0), bucket)
        for strata in self._portions(survey, sizes, bucket):
            n = sum(sizes[stratum] for stratum in strata)
            self._open(survey, private_keys, self._batches(survey, strata, periods, n))
        sizes = self._store.pending_sizes(survey.key)
        names = closing_names(sizes)
        named = {stratum: n for stratum, n in sizes.items() if names.get(stratum) == stratum}
        n_released = 0
        for strata in self._portions(survey, named, bucket):
            n = sum(named[stratum] for stratum in strata)
            n_released += self._publish_all(survey, keys[-1], private_keys, strata, n, bucket)
        pooled = {stratum: n for stratum, n in sizes.items() if names.get(stratum) == OTHER_GROUPS}
        pool: list[Batch] = []
        for strata in _packs(pooled, {}):
            pool += self._batches(survey, strata, periods, MAX_RELEASED)
        if pool:
            # In one transaction, because a part of the pool could be too small.
            reports = self._open_intact(survey, private_keys, pool)
            self._publish(survey, pool, {OTHER_GROUPS: reports}, [], keys[-1], bucket)
            n_released += len(reports)
        self._store.delete_pending(survey.key)
        return n_released

    def _publish_all(
        self,
        survey: PublishedSurvey,
        key: SealingKey,
        private_keys: Mapping[int, PrivateKey],
        strata: Sequence[str],
        remaining: int,
        bucket: str,
    ) -> int:
        """Publish all pending reports of strata in portions that are never too small."""
        periods = list(private_keys)
        n_released = 0
        while opened := self._batches(survey, strata, periods, MAX_RELEASED):
            if 0 < remaining - sum(batch.n for batch in opened) < MINIMUM_REPORTS:
                opened = self._batches(survey, strata, periods, remaining)
            reports = self._open_intact(survey, private_keys, opened)
            self._publish(survey, opened, _by_stratum(reports), [], key, bucket)
            n_released += len(reports)
            remaining -= len(reports)
        return n_released

    def clean_up(self, today: date) -> None:
        """Remove the traces of releases, and of closed surveys after their last release.

        Repeat the clean-ups and rewrites that a reader or an interruption prevented. Once a day,
        delete the ids of surveys that closed so long ago that no device resends their reports.
        """
        self._store.retry_clean_up()
        awaiting_last_release = self._keys_by_survey().keys()
        closed = [
            survey
            for survey in self._store.surveys()
            if survey.state == "closed" and survey.key not in awaiting_last_release
        ]
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
        """Rewrite the store once after the last release of closed surveys."""
        self._is_rewritten = closed <= self._rewritten
        if self._is_rewritten or monotonic() < self._rewrite_from:
            return
        try:
            self._store.vacuum()
        except StoreBusyError:
            # A reader prevents the rewrite, which is not urgent.
            self._rewrite_from = monotonic() + REWRITE_SECONDS
        else:
            self._rewritten |= closed
