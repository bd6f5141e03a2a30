"""The true shares that were typed for a draft's try-out, kept with the draft."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

Shares = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Tried:
    """What was typed last, and what all simulated respondents of the try-out were drawn from.

    `typed` are the fields as they were sent, `shares` what they mean. `simulated` is whether the
    try-out that there is holds anybody drawn from them, `differed` whether others were drawn from
    other shares.
    """

    typed: Mapping[str, str]
    shares: Shares
    simulated: bool = False
    differed: bool = False

    def again(self, typed: Mapping[str, str], shares: Shares) -> Tried:
        """After one more simulation."""
        differs = self.simulated and (self.differed or self.form["shares"] != _listed(shares))
        return Tried(typed, _listed(shares), simulated=True, differed=differs)

    def anew(self) -> Tried:
        """The try-out was made anew, or is gone: what was typed stays, nobody was drawn from it."""
        return replace(self, simulated=False, differed=False)

    @property
    def form(self) -> dict[str, Any]:
        """For a store."""
        return {**self.__dict__, "typed": dict(self.typed), "shares": _listed(self.shares)}


NOTHING = Tried({}, {})


def _listed(shares: Shares) -> dict[str, list[float]]:
    return {name: list(each) for name, each in shares.items()}
