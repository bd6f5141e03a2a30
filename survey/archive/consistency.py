"""Check the consistency of a store: compare all digests, and recount the codes in the blocks.

The check reads one snapshot. Its memory grows with the numbers of questions and pending reports,
not of released ones.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from heapq import merge
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import cast

import numpy as np

from survey.errors import ChannelError, StoreError, SurveyError
from survey.questionnaire.canonical import read_definition
from survey.questionnaire.kinds import PublishedQuestion
from survey.store import INCOMPLETE_COPY, N_ASKED, TABLES, Batch, Row, Snapshot, Store, Table
from survey.store.digests import NO_ROWS, row_digest
from survey.store.field_boxes import box_bytes
from survey.store.report_identities import TAIL_BYTES, identities_of, identity, ids_digest
from survey.store.titles import as_column

PAGE, BLOCKS = 5_000, 16
"""Rows read at once; fewer blocks, because each contains up to 65,536 answers."""


def pages(snapshot: Snapshot, name: str) -> Iterator[list[Row]]:
    """Yield all rows of a table in the order of its key, page by page."""
    after = None
    while page := snapshot.rows(name, after, BLOCKS if name == "block" else PAGE):
        yield page
        after = key_of(TABLES[name], page[-1])


def rows(snapshot: Snapshot, name: str) -> Iterator[Row]:
    """Yield all rows of a table in the order of its key, one by one."""
    for page in pages(snapshot, name):
        yield from page


def key_of(table: Table, row: Row) -> Row:
    """Return the primary key of a row.

    >>> key_of(TABLES["release"], (7, 3, 90, 0))
    (7,)
    """
    return tuple(row[table.column_names.index(column)] for column in table.key)


MAX_MISTAKES = 1_000
"""The check stops after this many mistakes."""

UNKNOWN_SURVEY = "it has reports, but the survey does not exist"

Place = tuple[int, str, str, int]
"""The survey, stratum, bucket and question of a column."""

place_of = itemgetter(0, 1, 2, 3)


@dataclass(frozen=True)
class SurveyVersion:
    """A published version; without questions if its definition is not the published one.

    `released` is the number of released reports, or None if no row states it.
    """

    slug: str
    version: int
    state: str
    released: int | None
    questions: tuple[PublishedQuestion, ...]
    mistakes: tuple[str, ...]
    pictures: tuple[str, ...] = ()
    box_bytes: int = 0
    """The length of a box of field mode, 0 if the version has no field mode."""
    ids_digest: bytes = NO_ROWS
    """The stored digest of the ids of its released reports."""

    @property
    def name(self) -> str:
        """The name of the version in messages."""
        return f'survey "{self.slug}" version {self.version}'

    @property
    def report_bytes(self) -> int:
        """The number of bytes of one report's stored codes."""
        return sum(question.code_bytes for question in self.questions)

    def question(self, number: int) -> str:
        """Return a question's name in messages, or its number if it is not in the definition."""
        if 0 <= number < len(self.questions):
            return f'question "{self.questions[number].id}"'
        return f"question number {number}"


def read_versions(snapshot: Snapshot) -> dict[int, SurveyVersion]:
    """Return every version of every survey by its key."""
    releases = {cast("int", row[0]): row for row in rows(snapshot, "release")}
    versions = {}
    for key, slug, version, definition, sha256, state, _, title in rows(snapshot, "survey"):
        release = releases.get(cast("int", key))
        versions[cast("int", key)] = _version(
            cast("str", slug),
            cast("int", version),
            cast("str", state),
            cast("tuple[int, bytes]", (release[2], release[4])) if release else None,
            cast("bytes", definition),
            cast("str", sha256),
            cast("str", title),
        )
    return versions


def _version(
    slug: str,
    version: int,
    state: str,
    release: tuple[int, bytes] | None,
    definition: bytes,
    sha256: str,
    title: str,
) -> SurveyVersion:
    name, mistakes = f'survey "{slug}" version {version}', []
    questions: tuple[PublishedQuestion, ...] = ()
    n_box_bytes = 0
    pictures: tuple[str, ...] = ()
    digest = hashlib.sha256(definition).hexdigest()
    if digest == sha256:
        published = read_definition(definition)
        questions, pictures = published.questions, tuple(published.pictures)
        if (published.slug, published.version) != (slug, version):
            mistakes.append(
                f'{name}: its definition is that of "{published.slug}" version {published.version}'
            )
        if as_column(published.title) != title:
            mistakes.append(f'{name}: its title is "{published.title}", but lists show "{title}"')
        n_box_bytes = box_bytes(published) if published.field else 0
    else:
        mistakes.append(f"{name}: its definition has the SHA-256 {digest}, not {sha256}")
    released, ids_digest = release or (None, NO_ROWS)
    if released is None:
        mistakes.append(f"{name}: the number of released reports is missing; {INCOMPLETE_COPY}")
    return SurveyVersion(
        slug,
        version,
        state,
        released,
        questions,
        tuple(mistakes),
        pictures,
        n_box_bytes,
        ids_digest,
    )


def _state_mistakes(snapshot: Snapshot, surveys: dict[int, SurveyVersion]) -> Iterator[str]:
    """Yield mistakes in states and days of surveys that the application cannot have written."""
    newest: dict[str, int] = {}
    for survey in surveys.values():
        newest[survey.slug] = max(survey.version, newest.get(survey.slug, 0))
    for survey in surveys.values():
        is_newest = survey.version == newest[survey.slug]
        if survey.state == ("superseded" if is_newest else "open"):
            yield (
                f'{survey.name}: its state is "{survey.state}", although it is '
                f"{'' if is_newest else 'not '}the newest version"
            )
    for key, *_, changed, _ in rows(snapshot, "survey"):
        if not _is_day(changed):
            yield f'{surveys[cast("int", key)].name}: "{changed}" is not the day of a change'
    for key, opens, closes, _ in rows(snapshot, "schedule"):
        if not all(day == "" or _is_day(day) for day in (opens, closes)):
            name = surveys[cast("int", key)].name if key in surveys else f"survey number {key}"
            yield f'{name}: its schedule from "{opens}" to "{closes}" is not one of days'


def _is_day(text: object) -> bool:
    try:
        return date.fromisoformat(str(text)).isoformat() == text
    except ValueError:
        return False


def _picture_mistakes(snapshot: Snapshot, surveys: dict[int, SurveyVersion]) -> Iterator[str]:
    """Yield pictures whose content has another hash, and pictures that are missing."""
    stored = set()
    for sha256, content in cast("Iterator[tuple[str, bytes]]", rows(snapshot, "picture")):
        stored.add(sha256)
        if (digest := hashlib.sha256(content).hexdigest()) != sha256:
            yield f"the picture stored as {sha256} has the SHA-256 {digest}"
    for survey in surveys.values():
        for sha256 in survey.pictures:
            if sha256 not in stored:
                yield f"{survey.name}: the picture {sha256} is missing"


@dataclass
class Column:
    """The stored counts, and the counts rebuilt from the blocks, by place in the vector of counts.

    `sizes` holds the number of reports in each block; `mistakes` describes unreadable blocks.
    """

    rebuilt: Counter[int] = field(default_factory=Counter)
    stored: Counter[int] = field(default_factory=Counter)
    sizes: dict[int, int] = field(default_factory=dict)
    mistakes: list[str] = field(default_factory=list)


def columns(
    snapshot: Snapshot, surveys: dict[int, SurveyVersion]
) -> Iterator[tuple[Place, Column]]:
    """Yield every column with blocks or counts, with one block in memory at a time."""
    # Both tables are sorted by these four values, and both databases sort texts by code point.
    all_rows = merge(
        (("block", row) for row in rows(snapshot, "block")),
        (("counts", row) for row in rows(snapshot, "counts")),
        key=lambda entry: place_of(entry[1]),
    )
    for key, entries in groupby(all_rows, key=lambda entry: place_of(entry[1])):
        place, column = cast("Place", key), Column()
        question = _question(surveys, place, column)
        for table, row in entries:
            if table == "counts":
                column.stored[cast("int", row[4])] += cast("int", row[5])
            else:
                _read_block(row, question, column)
        yield place, column


def _question(
    surveys: dict[int, SurveyVersion], place: Place, column: Column
) -> PublishedQuestion | None:
    survey = surveys.get(place[0])
    if survey is None:
        column.mistakes.append("there is no such survey")
    elif 0 <= place[3] < len(survey.questions):
        return survey.questions[place[3]]
    else:
        column.mistakes.append("its definition has no such question")
    return None


def _read_block(row: Row, question: PublishedQuestion | None, column: Column) -> None:
    """Add a block's codes to the rebuilt counts."""
    block, n, codes, digest = cast("tuple[int, int, bytes, bytes]", row[4:])
    column.sizes[block] = n
    if digest != row_digest(row[:-1]):
        column.mistakes.append(f"block {block} differs from its digest")
    if question is None:
        return
    if n < 1 or len(codes) != n * question.code_bytes:
        column.mistakes.append(
            f"block {block} of {n:,} reports has {len(codes):,} bytes, "
            f"not {n * question.code_bytes:,}"
        )
        return
    stored = np.frombuffer(codes, dtype=np.uint8).reshape(n, question.code_bytes)
    try:
        n_asked, supports = question.count(stored)
    except ChannelError:
        column.mistakes.append(f"block {block} contains a code that its question does not have")
        return
    column.rebuilt[N_ASKED] += n_asked
    for place in np.flatnonzero(supports).tolist():
        column.rebuilt[place] += int(supports[place])


def _pending_mistakes(snapshot: Snapshot, surveys: dict[int, SurveyVersion]) -> Iterator[str]:
    """Yield the mistakes in pending reports that show without a private key.

    No message states the number of pending reports, because that number must stay secret.
    """
    pending, mistakes = _pending_ids(snapshot, surveys)
    n_released: Counter[int] = Counter()
    digests: dict[int, bytes] = {}
    ordered = sorted(pending)
    for page in pages(snapshot, "released_ids"):
        for key, members in groupby(page, key=itemgetter(0)):
            group = list(members)
            digests[key] = ids_digest(group, digests.get(key, NO_ROWS))
            n_released[key] += sum(len(tails) for *_, tails in group) // TAIL_BYTES
            if _has_any(group, ordered):
                mistakes.add((key, "a pending report has already been released"))
    for page in pages(snapshot, "pending_id"):
        for place in page:
            if pending.pop(cast("tuple[int, bytes]", place), 0) != 1:
                mistake = "a pending id has no report, or several"
                mistakes.add((cast("int", place[0]), mistake))
    mistakes.update((key, "a pending report has no recorded id") for key, _ in pending)
    mistakes.update((key, UNKNOWN_SURVEY) for key in n_released.keys() - surveys.keys())
    mistakes.update(
        (key, "the ids of its released reports differ from their digest")
        for key, survey in surveys.items()
        if survey.released is not None and digests.get(key, NO_ROWS) != survey.ids_digest
    )
    for key, mistake in sorted(mistakes):
        yield f"{surveys[key].name if key in surveys else f'survey number {key}'}: {mistake}"
    yield from _missing_ids(surveys, n_released)


def _has_any(group: Sequence[Row], places: Sequence[tuple[int, bytes]]) -> bool:
    """Return whether adjacent rows of `released_ids` contain one of the sorted identities."""
    starts = [(row[0], row[1]) for row in group]
    last = (group[-1][0], identities_of(group[-1])[-1])
    inside = places[bisect_left(places, starts[0]) : bisect_right(places, last)]
    return any(
        place[1] in identities_of(group[bisect_right(starts, place) - 1]) for place in inside
    )


def _pending_ids(
    snapshot: Snapshot, surveys: dict[int, SurveyVersion]
) -> tuple[Counter[tuple[int, bytes]], set[tuple[int, str]]]:
    """Return how often each pending report is stored, and the mistakes in sealed batches."""
    periods = {row[:2] for row in rows(snapshot, "sealing_key")}
    pending: Counter[tuple[int, bytes]] = Counter()
    mistakes: set[tuple[int, str]] = set()
    for key, report_id, _, codes in rows(snapshot, "inbox"):
        pending[cast("int", key), identity(cast("bytes", report_id))] += 1
        survey = surveys.get(cast("int", key))
        if survey and survey.questions and len(cast("bytes", codes)) != survey.report_bytes:
            mistakes.add((cast("int", key), "a pending report has codes of the wrong length"))
    for batch in map(Batch.from_row, rows(snapshot, "pending")):
        pending.update((batch.survey, identity(report_id)) for report_id in batch.report_ids)
        if not batch.is_intact:
            row = batch.batch.hex()
            mistakes.add((batch.survey, f"the sealed batch {row} differs from its digest"))
        survey = surveys.get(batch.survey)
        if (batch.survey, batch.period) not in periods:
            mistakes.add((batch.survey, "a sealed batch has no key"))
        # Reports of a survey with field mode arrive in boxes, which the keeper opens.
        has_boxes = survey and survey.box_bytes and not batch.is_resealed
        length = survey and (survey.box_bytes if has_boxes else survey.report_bytes)
        if survey and survey.questions and (mistake := batch.mistake(length or 0)):
            mistakes.add((batch.survey, mistake))
    mistakes.update((key, UNKNOWN_SURVEY) for key, _ in pending if key not in surveys)
    return pending, mistakes


def _missing_ids(surveys: dict[int, SurveyVersion], n_ids: Counter[int]) -> Iterator[str]:
    """Yield surveys with missing ids: a repeated report would be counted twice."""
    for key, survey in surveys.items():
        if survey.released is None or n_ids[key] == survey.released:
            continue
        # Closing deletes reports that are too few to publish; later, all ids are deleted.
        if survey.state != "closed" or 0 < n_ids[key] < survey.released:
            yield (
                f"{survey.name}: {n_ids[key]:,} ids are recorded as released, but "
                f"{survey.released:,} reports were released"
            )


@dataclass(frozen=True)
class CheckResult:
    """The result of a check: published surveys, released reports, and contradictions."""

    surveys: int
    reports: int
    mistakes: tuple[str, ...]

    def require_consistency(self) -> CheckResult:
        """Return the result itself; StoreError if the check found mistakes.

        >>> CheckResult(surveys=1, reports=30, mistakes=()).require_consistency().reports
        30
        """
        if self.mistakes:
            raise StoreError(
                f"this store contradicts itself ({len(self.mistakes):,} times; "
                f"`survey check-store` lists them): {self.mistakes[0]}"
            )
        return self


def check_store(store: Store) -> CheckResult:
    """Run the database's own checks, and then `check` if they find no damage."""
    if damage := store.find_damage():
        # The rows of a damaged file may be unreadable.
        return CheckResult(surveys=0, reports=0, mistakes=tuple(damage))
    with store.snapshot() as snapshot:
        return check(snapshot)


def check(snapshot: Snapshot) -> CheckResult:
    """Rebuild the counts of every survey, stratum, bucket and question, and compare them.

    Also compare the number of released reports, the sizes of blocks, the lengths of codes, the ids
    of reports, the digests of blocks, sealed batches and ids, the hash of each definition and
    picture, and the states and schedules of each survey. The check reads every row once. Raises
    StoreError if rows are too damaged to be read.
    """
    try:
        return _check(snapshot)
    except SurveyError:
        raise
    except Exception as error:
        # A damaged row can have values of any type.
        raise StoreError(f"the check cannot read all rows ({type(error).__name__})") from error


def _check(snapshot: Snapshot) -> CheckResult:
    surveys = read_versions(snapshot)
    mistakes = chain(
        *(survey.mistakes for survey in surveys.values()),
        _state_mistakes(snapshot, surveys),
        _released_mistakes(snapshot, surveys),
        _pending_mistakes(snapshot, surveys),
        _picture_mistakes(snapshot, surveys),
    )
    return CheckResult(
        surveys=len({survey.slug for survey in surveys.values()}),
        reports=sum(survey.released or 0 for survey in surveys.values()),
        mistakes=tuple(islice(mistakes, MAX_MISTAKES)),
    )


def _released_mistakes(snapshot: Snapshot, surveys: dict[int, SurveyVersion]) -> Iterator[str]:
    """Compare counts with blocks, the questions of a group with each other, and with `release`."""
    totals: Counter[tuple[int, int]] = Counter()
    group: tuple[object, ...] = ()
    sizes: dict[int, int] = {}
    for place, column in columns(snapshot, surveys):
        survey, *_, question = place
        yield from (f"{_place_name(place, surveys)}: {mistake}" for mistake in column.mistakes)
        yield from _count_mistakes(place, column.rebuilt, column.stored, surveys)
        if place[:3] != group:
            group, sizes = place[:3], column.sizes
        elif column.sizes != sizes:
            yield f"{_place_name(place, surveys)}: its block sizes differ from the first question's"
        totals[survey, question] += sum(column.sizes.values())
    for key, version in surveys.items():
        for number in range(len(version.questions)):
            if totals[key, number] != version.released:
                yield (
                    f"{version.name}, {version.question(number)}: the blocks contain "
                    f"{totals[key, number]:,} reports, {version.released or 0:,} were released"
                )


def _count_mistakes(
    place: Place, rebuilt: Counter[int], stored: Counter[int], surveys: dict[int, SurveyVersion]
) -> Iterator[str]:
    for option in sorted(rebuilt.keys() | stored.keys()):
        if rebuilt[option] != stored[option]:
            counts = "reports asked" if option == N_ASKED else f"place {option}"
            yield (
                f"{_place_name(place, surveys)}, {counts}: the blocks contain "
                f"{rebuilt[option]:,}, the counts say {stored[option]:,}"
            )


def _place_name(place: Place, surveys: dict[int, SurveyVersion]) -> str:
    key, stratum, bucket, question = place
    survey = surveys.get(key)
    name = f"{survey.name}, {survey.question(question)}" if survey else f"survey number {key}"
    groups = (("link", stratum), ("released", bucket))
    return ", ".join([name, *(f'{label} "{value}"' for label, value in groups if value)])
