"""What every question type can tell about itself; one subclass of `Kind` per type."""

from __future__ import annotations


class Kind:
    """Everything that the Python side knows about one question type.

    is_numeric    an answer is a number or a day on a grid; the options are only opt-outs
    is_date       the grid counts days since 1970-01-01
    is_multiple   an answer is a set of options
    is_ordered    the options have an order, and the grid holds their scores
    is_binary     the answers are yes and no
    """

    type: str
    is_numeric = False
    is_date = False
    is_multiple = False
    is_ordered = False
    is_binary = False

    @property
    def is_single(self) -> bool:
        """Whether an answer is exactly one of the options."""
        return not self.is_numeric and not self.is_multiple
