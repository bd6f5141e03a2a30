"""Small strata are read only together: a report among few would be too nearly somebody's."""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

FEWEST_OF_STRATUM = 25
"""Reports of a stratum that is read by its own name, and people for whom one may be planned."""

OTHER_LINKS = "other links"
"""The name under which small strata are read together; no stratum may be called so."""


def readable_strata(sizes: Mapping[str, int]) -> dict[str, str]:
    """The name by which the reports of each stratum are read, of a survey with these numbers.

    The smallest ones are joined until together they are large enough: what is missing from a
    total must not be one small stratum either.

    >>> readable_strata({"north": 400, "south": 300, "east": 20, "west": 3})
    {'west': 'other links', 'east': 'other links', 'south': 'other links', 'north': 'north'}
    >>> readable_strata({"": 7})
    {'': ''}
    """
    if len(sizes) < 2:
        return {stratum: stratum for stratum in sizes}
    names: dict[str, str] = {}
    joined = 0
    for stratum, n in sorted(sizes.items(), key=lambda each: (each[1], each[0])):
        is_small = n < FEWEST_OF_STRATUM or 0 < joined < FEWEST_OF_STRATUM
        names[stratum] = OTHER_LINKS if is_small else stratum
        joined += n if is_small else 0
    return names


def secure_permutation(n: int) -> NDArray[np.intp]:
    """A random order of n things from the system's CSPRNG.

    Sorting random 64-bit keys; two of n are equal with chance below n^2 / 2^65.
    """
    keys = np.frombuffer(os.urandom(8 * n), dtype=np.uint64)
    return np.argsort(keys)
