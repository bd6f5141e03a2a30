"""Search raw bytes for planted reports, private keys, and whatever links codes to a person.

Released blocks contain codes by right: 25 or more of a group side by side, in random order. A
report counts as recovered if its codes lie where more can be learned than that. Each statistic is
a bound on the probability that random order looks so; below `ALARM` it raises an alarm.
"""

from __future__ import annotations

import hashlib
import math
import struct
from base64 import urlsafe_b64encode
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import compress

import numpy as np

from survey.disclosure import MINIMUM_REPORTS
from tests.order import dependence

ALARM = 1e-9
"""Probability of a false alarm in one run of codes; an image has a few hundred runs."""

SIGMAS = 6.2
"""Standard deviations of a normal statistic that random order exceeds with a probability below
`ALARM`."""

REACH = 4096
"""Largest distance, in bytes, of neighbors: a page of SQLite, half a page of PostgreSQL."""

ROW_BYTES = 33
"""Bytes before an invitation's hash in its row: a header of 24, the survey, a length."""

CHUNK = 1 << 24
PREFIX = 8
"""Bytes that all needles of a search have at least."""


@dataclass(frozen=True)
class PlantedReport:
    """A report that was sent; `number` is its place in the order of arrival."""

    number: int
    id: bytes
    stratum: str
    codes: tuple[bytes, ...]
    token: str = ""

    @property
    def invitation(self) -> bytes:
        """The stored hash of the invitation's token, or no bytes."""
        return hashlib.sha256(self.token.encode()).digest() if self.token else b""


@dataclass(frozen=True)
class Label:
    """What a needle shows: a kind, and the number of a report or key."""

    kind: str
    number: int


@dataclass(frozen=True)
class Hit:
    """A place, in bytes, at which a needle was found."""

    place: int
    label: Label


class Needles:
    """Byte strings to search for, each with its label."""

    def __init__(self, labels: Mapping[bytes, Label]) -> None:
        assert all(len(needle) >= PREFIX for needle in labels)
        self._labels: defaultdict[int, list[tuple[bytes, Label]]] = defaultdict(list)
        # Two tables, one per pair of bytes, sort out nearly all places before the full comparison.
        self._tables = np.zeros((2, 1 << 16), bool)
        for needle, label in labels.items():
            first, second, prefix = (
                *struct.unpack_from("<HH", needle),
                *struct.unpack_from("<Q", needle),
            )
            self._labels[prefix].append((needle, label))
            self._tables[0, first] = self._tables[1, second] = True
        self._prefixes = np.array(sorted(self._labels), np.uint64)
        self._overlap = max(map(len, labels), default=PREFIX)

    def hits(self, content: bytes) -> list[Hit]:
        """Return all hits in the order of their places."""
        return [
            hit for start in range(0, len(content), CHUNK) for hit in self._part(content, start)
        ]

    def _part(self, content: bytes, start: int) -> Iterator[Hit]:
        part = np.frombuffer(content[start : start + CHUNK + PREFIX - 1], np.uint8)
        pairs = part[:-1].astype(np.uint16) | (part[1:].astype(np.uint16) << 8)
        places = np.flatnonzero(self._tables[0, pairs[: max(len(part) - PREFIX + 1, 0)]])
        places = places[self._tables[1, pairs[places + 2]]]
        prefixes = sum(
            part[places + byte].astype(np.uint64) << np.uint64(8 * byte) for byte in range(PREFIX)
        )
        is_known = np.isin(prefixes, self._prefixes)
        for place, prefix in zip(
            places[is_known].tolist(), np.asarray(prefixes)[is_known].tolist(), strict=True
        ):
            for needle, label in self._labels[prefix]:
                if content.startswith(needle, start + place):
                    yield Hit(start + place, label)


def spellings(secret: bytes) -> Iterator[bytes]:
    """Yield a byte string as files may have it: raw, in hexadecimal digits, in base64."""
    text = secret.hex()
    yield from (secret, text.encode(), text.upper().encode())
    yield urlsafe_b64encode(secret).rstrip(b"=")


def digests(report: PlantedReport) -> Iterator[bytes]:
    """Yield digests from which a few guesses find the codes of a real report."""
    codes = b"".join(report.codes)
    for algorithm in ("sha256", "sha1", "md5", "blake2b", "sha512"):
        for message in (codes, report.id + codes, codes + report.id):
            yield hashlib.new(algorithm, message).digest()[:16]


def needles(reports: Sequence[PlantedReport], private_keys: Sequence[bytes]) -> Needles:
    """Return everything to search for; half of a private key is as good as all of it."""
    labels: dict[bytes, Label] = {}
    for report in reports:
        secrets: list[tuple[str, Iterable[bytes]]] = [
            *((f"code {place}", [code]) for place, code in enumerate(report.codes)),
            ("id", [report.id]),
            ("invitation", [report.invitation] if report.token else []),
            ("digest", digests(report)),
        ]
        for kind, strings in secrets:
            for string in strings:
                labels |= dict.fromkeys(spellings(string), Label(kind, report.number))
        if report.token:
            labels[report.token.encode()] = Label("invitation", report.number)
    for number, key in enumerate(private_keys):
        for half in (key[:16], key[16:]):
            labels |= dict.fromkeys(spellings(half), Label("private key", number))
    return Needles(labels)


@dataclass(frozen=True)
class Figures:
    """How many reports an image reveals: found at all, and by each way to link them to a person.

    `outside_blocks` are reports of which a code lies apart from 24 others of its group;
    `private_keys` is the number of keys found.
    """

    image: str
    megabytes: int
    n_found: int
    by_id: int
    in_order: int
    by_time: int
    by_invitation: int
    outside_blocks: int
    by_digest: int
    private_keys: int

    @property
    def leaks(self) -> dict[str, int]:
        """The figures that must be 0, if they are not."""
        names = [field.name for field in fields(self)][3:]
        return {name: n for name in names if (n := getattr(self, name))}


class Image:
    """Raw bytes that a thief has, and what they reveal about planted reports."""

    def __init__(
        self, name: str, content: bytes, reports: Sequence[PlantedReport], keys: Sequence[bytes]
    ) -> None:
        self.name = name
        self.content = content
        self.reports = reports
        self._needles = needles(reports, keys)
        self._hits: defaultdict[str, list[Hit]] = defaultdict(list)
        for hit in self._needles.hits(content):
            self._hits[hit.label.kind].append(hit)

    @cached_property
    def spenders(self) -> set[tuple[int, int]]:
        """Invitations, by the numbers of their reports, with the transactions of their rows.

        A row of PostgreSQL begins with the transactions that wrote and replaced it, 33 bytes
        before the hash of its invitation.
        """
        return {
            (hit.label.number, transaction)
            for hit in self._hits["invitation"]
            if hit.place >= ROW_BYTES
            for transaction in struct.unpack_from("<II", self.content, hit.place - ROW_BYTES)
        }

    @cached_property
    def runs(self) -> list[list[Hit]]:
        """Codes of one question and group that are neighbors, each report once."""
        return [
            run
            for place in range(len(self.reports[0].codes))
            for run in split_runs(self._hits[f"code {place}"], self.reports)
        ]

    def figures(
        self,
        wal: Sequence[tuple[str, bytes]] = (),
        spenders: Collection[tuple[int, int]] = (),
    ) -> Figures:
        """Return what the image reveals.

        `wal` are the segments of PostgreSQL's log in it, `spenders` invitations with transactions
        that wrote them, as the tables' files show.
        """
        small = self._small_transactions(wal)
        return Figures(
            image=self.name,
            megabytes=len(self.content) >> 20,
            n_found=len({hit.label.number for run in self.runs for hit in run}),
            by_id=len(self._linked("id") | self._ordered([report.id for report in self.reports])),
            in_order=len(self._ordered([report.number for report in self.reports])),
            by_time=len(set().union(*small.values())),
            by_invitation=len(
                self._linked("invitation")
                | self._ordered([report.invitation for report in self.reports])
                | {number for number, spender in spenders if number in small.get(spender, ())}
            ),
            outside_blocks=len(
                {
                    hit.label.number
                    for place in range(len(self.reports[0].codes))
                    for hit in outside_blocks(self._hits[f"code {place}"], self.reports)
                }
            ),
            by_digest=len({hit.label.number for hit in self._hits["digest"]}),
            private_keys=len({hit.label.number for hit in self._hits["private key"]}),
        )

    def _ordered(self, labels: Sequence[int] | Sequence[bytes]) -> set[int]:
        """Return the reports whose codes lie in the order of their labels, or in reverse order."""
        ordered: set[int] = set()
        for run in self.runs:
            numbers = [hit.label.number for hit in run if labels[hit.label.number] != b""]
            rank = {number: at for at, number in enumerate(sorted(numbers, key=labels.__getitem__))}
            ranks = [rank[number] for number in numbers]
            for sequence in (ranks, [-at for at in ranks]):
                places = longest_increasing(sequence)
                if not is_random(sequence, len(places)):
                    ordered |= {numbers[place] for place in places}
        return ordered

    def _linked(self, kind: str) -> set[int]:
        """Return the reports of which codes have their own label as the nearest of this kind.

        In a run of n codes in random order, m given ones are next to their labels with a
        probability of (n - m)! / n!, so the expected number of such choices of m is at most 1/m!.
        A label of a lone code could belong to any of 25 reports.
        """
        labels = self._hits[kind]
        places = [hit.place for hit in labels]
        linked: set[int] = set()
        lone: list[bool] = []
        lone_linked: set[int] = set()
        for run in self.runs:
            pairs = [(hit, near) for hit in run if (near := _nearest(hit.place, labels, places))]
            right = {hit.label.number for hit, near in pairs if hit.label.number == near}
            if len(run) < MINIMUM_REPORTS:
                lone += [hit.label.number == near for hit, near in pairs]
                lone_linked |= right
            elif 1 / math.factorial(len(right)) < ALARM:
                linked |= right
        n_right = sum(lone)
        if math.comb(len(lone), n_right) / MINIMUM_REPORTS**n_right < ALARM:
            linked |= lone_linked
        return linked

    def _small_transactions(self, wal: Sequence[tuple[str, bytes]]) -> dict[int, set[int]]:
        """Return the transactions that wrote codes of fewer than 25 reports, and these reports.

        The log also tells the time at which each transaction was committed.
        """
        by_transaction: defaultdict[int, set[int]] = defaultdict(set)
        log, starts, transactions = bytearray(), [], []
        for transaction, record in wal_records(wal):
            starts.append(len(log))
            transactions.append(transaction)
            log += record
        for hit in self._needles.hits(bytes(log)):
            if hit.label.kind.startswith("code"):
                transaction = transactions[bisect_right(starts, hit.place) - 1]
                by_transaction[transaction].add(hit.label.number)
        return {
            transaction: group
            for transaction, group in by_transaction.items()
            if len(group) < MINIMUM_REPORTS
        }


def _nearest(place: int, labels: Sequence[Hit], places: Sequence[int]) -> int | None:
    """Return the number of the label nearest to a place, or None if none is within reach."""
    at = bisect_left(places, place)
    near = [(abs(hit.place - place), hit.label.number) for hit in labels[max(at - 1, 0) : at + 1]]
    distance, number = min(near, default=(REACH + 1, None))
    return number if distance <= REACH else None


def split_runs(hits: Iterable[Hit], reports: Sequence[PlantedReport]) -> list[list[Hit]]:
    """Split hits of codes into runs of one group's neighbors that contain each report once."""
    runs: list[list[Hit]] = []
    current: dict[str, dict[int, Hit]] = {}
    for hit in hits:
        stratum = reports[hit.label.number].stratum
        run = current.get(stratum, {})
        last = next(reversed(run.values()), None)
        if last is None or hit.place - last.place > REACH or hit.label.number in run:
            runs.append(list(run.values()))
            run = current[stratum] = {}
        run[hit.label.number] = hit
    return [run for run in [*runs, *(list(run.values()) for run in current.values())] if run]


def outside_blocks(hits: Iterable[Hit], reports: Sequence[PlantedReport]) -> list[Hit]:
    """Return the hits of codes that are not in a run of 25 different reports of their stratum.

    A disk may contain old and new copies of a block side by side, so a hit can belong to several
    runs; one of them must be long enough.
    """
    outside: list[Hit] = []
    groups: defaultdict[str, list[Hit]] = defaultdict(list)
    for hit in hits:
        groups[reports[hit.label.number].stratum].append(hit)
    for group in groups.values():
        is_outside = [True] * len(group)
        start = 0
        for end, hit in enumerate(group):
            if end and hit.place - group[end - 1].place > REACH:
                start = end
            numbers = [other.label.number for other in group[start:end]]
            if hit.label.number in numbers:
                start += numbers.index(hit.label.number) + 1
            if end + 1 - start >= MINIMUM_REPORTS:
                is_outside[start : end + 1] = [False] * (end + 1 - start)
        outside += compress(group, is_outside)
    return outside


def longest_increasing(sequence: Sequence[int]) -> list[int]:
    """Return the places of a longest increasing subsequence.

    >>> longest_increasing([3, 0, 1, 4, 2])
    [1, 2, 4]
    """
    ends: list[int] = []
    before: list[int] = []
    for place, rank in enumerate(sequence):
        at = bisect_left(ends, rank, key=sequence.__getitem__)
        before.append(ends[at - 1] if at else -1)
        ends[at:] = [place, *ends[at + 1 :]]
    places = ends[-1:]
    while places and before[places[-1]] >= 0:
        places.append(before[places[-1]])
    return places[::-1]


def is_random(sequence: Sequence[int], longest: int) -> bool:
    """Return whether n different numbers may be in random order.

    n numbers in random order have C(n, k) / k! increasing subsequences of length k on average,
    which bounds the probability of any. The share of pairs in order has the standard deviation
    sqrt((2 n + 5) / (18 n (n - 1))), that of neighbors in order a smaller one (tests/order.py).

    >>> is_random(range(25), 25), is_random([5, 1, 4, 0, 3, 2], 2)
    (False, True)
    """
    n = len(sequence)
    if math.comb(n, longest) / math.factorial(longest) < ALARM:
        return False
    if n < MINIMUM_REPORTS:
        return True
    deviation = math.sqrt((2 * n + 5) / (18 * n * (n - 1)))
    return dependence(range(n), sequence) < SIGMAS * deviation


# -- PostgreSQL's log

WAL_PAGE, WAL_SEGMENT = 8192, 1 << 24
LONG_HEADER = 2


def wal_records(segments: Sequence[tuple[str, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Yield the transaction and the bytes of each record in segments, given by name.

    Layout: src/include/access/xlog_internal.h and xlogrecord.h of PostgreSQL.
    """
    stream = bytearray()
    position = None
    for name, content in sorted(dict(segments).items()):
        for start in range(0, len(content), WAL_PAGE):
            page = content[start : start + WAL_PAGE]
            _, flags, _, address, remaining = struct.unpack_from("<HHIQI", page)
            if address != _wal_address(name) + start:
                # A recycled segment still has its old content.
                break
            header = 40 if flags & LONG_HEADER else 24
            if address != position:
                # The log has a gap here: go on with the first record that begins on this page.
                stream = bytearray()
                header += -(-remaining // 8) * 8
                if header >= WAL_PAGE:
                    continue
            stream += page[header:]
            position = address + WAL_PAGE
            yield from _pop_records(stream)
        if stream and not any(stream[:24]):
            # A switch leaves the rest of its segment empty.
            position = None


def _wal_address(name: str) -> int:
    return (int(name[8:16], 16) << 32) + int(name[16:24], 16) * WAL_SEGMENT


def _pop_records(stream: bytearray) -> Iterator[tuple[int, bytes]]:
    """Yield complete records and remove them from the stream."""
    while len(stream) >= 24:
        length, transaction = struct.unpack_from("<II", stream)
        if length < 24:
            break
        padded = -(-length // 8) * 8
        if padded > len(stream):
            break
        yield transaction, bytes(stream[:length])
        del stream[:padded]
