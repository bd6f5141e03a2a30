"""Whether the reports that wait, and the ids of those released, can all be right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from operator import itemgetter
from typing import cast

from survey.archive.pages import pages, rows
from survey.archive.published import Published
from survey.store import Row, Snapshot

ID_BYTES = 16
id_of = itemgetter(0, 1)


def waiting_mistakes(snapshot: Snapshot, surveys: dict[int, Published]) -> Iterator[str]:
    """Reports of wrong lengths or of no survey, reports both waiting and released, ids missing.

    No mistake says how many reports wait: that nobody should watch.
    """
    wrong: set[tuple[int, str]] = set()
    seen: Counter[int] = Counter()
    for row in rows(snapshot, "inbox"):
        _add_mistakes(wrong, surveys, row)
    for page in pages(snapshot, "seen"):
        seen.update(survey for survey, _ in cast("list[tuple[int, bytes]]", page))
    wrong.update((key, "it has reports, but is no survey") for key in seen.keys() - surveys.keys())
    wrong.update(_waiting_and_released(snapshot))
    for key, mistake in sorted(wrong):
        yield f"{surveys[key].name if key in surveys else f'survey number {key}'}: {mistake}"
    yield from _missing_ids(surveys, seen)


def _add_mistakes(wrong: set[tuple[int, str]], surveys: dict[int, Published], row: Row) -> None:
    """What is wrong with one report that waits."""
    key, name, _, codes = cast("tuple[int, bytes, str, bytes]", row)
    survey = surveys.get(key)
    if survey is None:
        wrong.add((key, "it has reports, but is no survey"))
        return
    if len(name) != ID_BYTES:
        wrong.add((key, f"a waiting report has an id of {len(name)} bytes, not {ID_BYTES}"))
    if survey.questions and len(codes) != survey.report_bytes:
        wrong.add(
            (key, f"a waiting report has {len(codes)} bytes of codes, not {survey.report_bytes}")
        )


def _waiting_and_released(snapshot: Snapshot) -> Iterator[tuple[int, str]]:
    """The surveys with an id that both tables hold: such a report would be counted twice."""
    waiting = map(id_of, rows(snapshot, "inbox"))
    each = next(waiting, None)
    for page in pages(snapshot, "seen"):
        released = set(page)
        # Both lie in the order of these two, and the rows of `seen` are nothing else.
        while each is not None and each <= page[-1]:
            if each in released:
                yield each[0], "a report waits that was released before"
            each = next(waiting, None)


def _missing_ids(surveys: dict[int, Published], seen: Counter[int]) -> Iterator[str]:
    """A released report whose id is not known could be sent again and be counted twice."""
    for key, survey in surveys.items():
        forgotten = survey.state == "closed" and not seen[key]
        if survey.released is not None and seen[key] != survey.released and not forgotten:
            yield (
                f"{survey.name}: {seen[key]:,} ids are known as released, "
                f"{survey.released:,} reports were"
            )
