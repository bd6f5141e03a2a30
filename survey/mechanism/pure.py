"""What the channels with one p and one q share: "pure protocols" (Wang et al. 2017)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from functools import cached_property

from survey.mechanism.accounting import log_rounded_up


class Pure(ABC):
    """A channel whose estimates need two numbers: how often a report supports an option."""

    @property
    @abstractmethod
    def exact_p(self) -> Fraction:
        """P(the report supports an option | it is the truth, or ticked)."""

    @property
    @abstractmethod
    def exact_q(self) -> Fraction:
        """P(the report supports an option | it is not)."""

    @property
    @abstractmethod
    def ratio(self) -> Fraction:
        """e^epsilon: the largest factor by which one report can move anyone's odds."""

    @property
    def p(self) -> float:
        """`exact_p` as a float."""
        return float(self.exact_p)

    @property
    def q(self) -> float:
        """`exact_q` as a float."""
        return float(self.exact_q)

    @cached_property
    def epsilon(self) -> float:
        """ln of `ratio`, rounded up to the next float: never below the truth."""
        return log_rounded_up(self.ratio)
