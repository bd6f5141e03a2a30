"""Released reports as they may be read: small strata joined, all of one release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice

import numpy as np

from survey.questionnaire.published import PublishedQuestion
from survey.store.protocol import BlockColumn, PublishedSurvey, Store, Tally
from survey.store.strata import OTHER_LINKS, readable_strata, secure_permutation

Block = list[BlockColumn]
"""One column per question, of the same reports in the same order."""

STRATUM, BUCKET = "_stratum", "_bucket"
"""Columns beside the questions of exported reports, by names that no question can have."""

Names = Mapping[tuple[str, str], str]
"""By which name the reports of a (stratum, bucket) are read."""


def readable_reports(store: Store, survey: PublishedSurvey) -> tuple[Tally, Iterator[Block]]:
    """A release, and its blocks in one consistent reading, one in memory at a time.

    The reading begins with the first block. When the release was the same before and after
    that, it is the one that is read; otherwise one came in between, and it begins again.
    """
    questions = survey.definition.questions
    while True:
        before = store.tally(survey.key)
        names = names_of(store.tallies(survey.key))
        blocks = store.block_columns(survey.key, range(len(questions)))
        first = list(islice(blocks, 1))
        if store.tally(survey.key).release == before.release:
            return before, readable(chain(first, blocks), names, questions)


def names_of(tallies: Mapping[tuple[str, str], Tally]) -> dict[tuple[str, str], str]:
    """The readable names of every stratum in every bucket: each bucket is read by itself too."""
    found: dict[tuple[str, str], str] = {}
    for bucket in {bucket for _, bucket in tallies}:
        sizes = {stratum: tally.n for (stratum, of), tally in tallies.items() if of == bucket}
        for stratum, name in readable_strata(sizes).items():
            found[stratum, bucket] = name
    return found


def readable(
    blocks: Iterator[Block], names: Names, questions: Sequence[PublishedQuestion]
) -> Iterator[Block]:
    """The blocks as they may be read; those of small strata come joined, at the end."""
    held: dict[str, list[Block]] = {}
    for block in blocks:
        stratum, bucket = block[0].stratum, block[0].bucket
        if names[stratum, bucket] == stratum:
            yield block
        else:
            held.setdefault(bucket, []).append(block)
    for bucket, several in held.items():
        yield _joined(several, bucket, questions)


def _joined(several: Sequence[Block], bucket: str, questions: Sequence[PublishedQuestion]) -> Block:
    """One block of all their reports, in an order that tells nothing of where each came from."""
    n = sum(block[0].n for block in several)
    order = secure_permutation(n)
    joined = []
    for at, question in enumerate(questions):
        stored = np.frombuffer(b"".join(block[at].data for block in several), dtype=np.uint8)
        codes = stored.reshape(n, question.code_bytes)[order]
        joined.append(BlockColumn(OTHER_LINKS, bucket, at, 0, n, codes.tobytes()))
    return joined
