"""Released counts of each openly known group: small links together, as they may be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from survey.disclosure import merge_small_strata
from survey.results.grouped import OPEN_LINK
from survey.store import PublishedSurvey, Store, Tally


@dataclass(frozen=True, eq=False)
class StratumCounts:
    """Released reports of one group: how many, and of each question the asked and the counts."""

    name: str
    n: int
    asked: tuple[int, ...]
    counts: tuple[NDArray[np.int64], ...]


def counts_by_link(store: Store, survey: PublishedSurvey) -> list[StratumCounts]:
    """The groups of a survey's links, the largest first; buckets are added up."""
    tallies = store.tallies(survey.key)
    names = _names(tallies)
    found: dict[str, StratumCounts] = {}
    for (stratum, _), tally in tallies.items():
        one = StratumCounts(
            names[stratum],
            tally.n,
            tuple(tally.n_asked),
            tuple(np.asarray(counts, dtype=np.int64) for counts in tally.counts),
        )
        before = found.get(one.name)
        found[one.name] = one if before is None else _together(before, one)
    return sorted(found.values(), key=lambda one: (-one.n, one.name))


def readable_names(store: Store, survey: PublishedSurvey) -> dict[str, str]:
    """What each stratum is called where it is read."""
    return _names(store.tallies(survey.key))


def _names(tallies: Mapping[tuple[str, str], Tally]) -> dict[str, str]:
    sizes: dict[str, int] = {}
    for (stratum, _), tally in tallies.items():
        sizes[stratum] = sizes.get(stratum, 0) + tally.n
    return {stratum: name or OPEN_LINK for stratum, name in merge_small_strata(sizes).items()}


def _together(one: StratumCounts, other: StratumCounts) -> StratumCounts:
    return StratumCounts(
        one.name,
        one.n + other.n,
        tuple(a + b for a, b in zip(one.asked, other.asked, strict=True)),
        tuple(a + b for a, b in zip(one.counts, other.counts, strict=True)),
    )
