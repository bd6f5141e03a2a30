"""The privacy label's numbers, computed from the channel in integers as the client does.

`client_js/src/report.js` is the twin of this module; `tests/vectors/label.json` binds them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from survey.mechanism import SubsetSelection
from survey.mechanism.accounting import posterior_bound, total_ratio


@dataclass(frozen=True)
class Label:
    """What one channel means for a person.

    `own` and `other`: of 100 people with one answer (with another one), how many reports say
    it. `odds`: the most that a report multiplies anyone's odds by. `from10`, `from50`: what a
    suspicion of 10 and of 50 per cent can become at most, in whole per cent.
    """

    own: str
    other: str
    odds: str
    from10: int
    from50: int


def label(channel: SubsetSelection) -> Label:
    """Compute the label of a channel; frequencies rounded half up, risks rounded up.

    >>> label(SubsetSelection(k=2, d=1, T=3, L=1))
    Label(own='75', other='25', odds='3', from10=25, from50=75)
    """
    return Label(
        own=_tenths(math.floor(channel.exact_p * 1000 + Fraction(1, 2))),
        other=_tenths(math.floor(channel.exact_q * 1000 + Fraction(1, 2))),
        odds=_tenths(math.ceil(channel.ratio * 10)),
        from10=_percent_up(posterior_bound(Fraction(1, 10), channel.ratio)),
        from50=_percent_up(posterior_bound(Fraction(1, 2), channel.ratio)),
    )


def total_odds(channels: Iterable[SubsetSelection]) -> int:
    """The most that all answers of one person together multiply odds by, rounded up."""
    return math.ceil(total_ratio(channel.ratio for channel in channels))


def _tenths(tenths: int) -> str:
    whole, rest = divmod(tenths, 10)
    return f"{whole:,}.{rest}" if rest else f"{whole:,}"


def _percent_up(share: Fraction) -> int:
    """Whole per cent, rounded up: a bound must not be understated."""
    return math.ceil(share * 100)
