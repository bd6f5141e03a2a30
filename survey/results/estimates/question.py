"""What a reader sees of a question: its parts, each shown or not, and what is said of them."""

from __future__ import annotations

from dataclasses import dataclass

from survey.estimator import Disclosure
from survey.mechanism import BitVector
from survey.questionnaire.grid import Grid
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.estimates.details import Detail
from survey.results.estimates.table import Row
from survey.results.options import Wanted
from survey.results.wording import Amounts, amounts, in_words


@dataclass(frozen=True)
class Part:
    """Rows that are shown or hidden together, and about how many more reports if hidden.

    `told` is whether the question's design can tell them at all. `what` names them where a
    question has several parts.
    """

    rows: tuple[Row, ...]
    disclosure: Disclosure = "hide"
    more_needed: int = 0
    told: bool = True
    what: str = ""

    @property
    def is_listed(self) -> bool:
        """Whether there are rows to see: with numbers, or saying that the design tells none."""
        beside_another = not self.told and bool(self.what)
        return bool(self.rows) and (self.disclosure != "hide" or beside_another)

    def caveat(self, *, closed: bool) -> str:
        """What to say beside these rows, or instead of their numbers; empty when nothing.

        Where no more reports can come, how many it would have taken helps nobody.
        """
        if not self.rows or self.disclosure == "show":
            return ""
        if self.disclosure == "caution":
            it = f" {self.what}" if self.what else ""
            return f"Read{it} with caution: the intervals are still wide."
        if not self.told:
            return "" if self.what else "Nothing can be estimated from this question's design."
        of = f" for {self.what}" if self.what else ""
        if closed:
            return f"Not enough responses{of}."
        more = f"about {self.more_needed:,} more" if self.more_needed else "more"
        return f"Not enough responses yet{of}: {more} needed."


@dataclass(frozen=True)
class QuestionResult:
    """A question's parts, which decide about being shown each for itself.

    Shares among those who answered are never shown without those among all. `asked` of the `n`
    released reports hold an answer to it. `remarks` are lines about what is shown, `details` the
    numbers behind the shares that are shown.
    """

    question: PublishedQuestion
    shares_part: Part
    answered_part: Part
    spread_part: Part
    mean_part: Part
    median_part: Part
    asked: int
    n: int
    remarks: tuple[str, ...]
    details: tuple[Detail, ...]
    wanted: Wanted

    @property
    def parts(self) -> tuple[Part, ...]:
        """All parts in the order of the CSV."""
        return (
            self.shares_part,
            self.answered_part,
            self.spread_part,
            self.mean_part,
            self.median_part,
        )

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows in the order of the CSV."""
        return tuple(row for part in self.parts for row in part.rows)

    @property
    def shares(self) -> tuple[Row, ...]:
        """The rows of options, among all."""
        return self.shares_part.rows

    @property
    def answered(self) -> tuple[Row, ...]:
        """The rows of answers, among those who answered."""
        return self.answered_part.rows

    @property
    def spread(self) -> tuple[Row, ...]:
        """The rows of cells, of numbers and dates."""
        return self.spread_part.rows

    @property
    def mean(self) -> Row | None:
        """The row of the mean, of questions whose answers stand for numbers."""
        return next(iter(self.mean_part.rows), None)

    @property
    def median(self) -> Row | None:
        """The row of the median, of questions whose answers stand for numbers."""
        return next(iter(self.median_part.rows), None)

    @property
    def middles(self) -> tuple[Row, ...]:
        """The rows of mean and median that may be shown."""
        parts = (self.mean_part, self.median_part)
        return tuple(row for part in parts if part.is_listed for row in part.rows)

    @property
    def among_answered(self) -> dict[str, Row]:
        """The rows among those who answered that may be shown, by option."""
        rows = self.answered if self.answered_part.disclosure != "hide" else ()
        return {row.option_id: row for row in rows}

    def share_caveats(self, *, closed: bool) -> list[str]:
        """What to say beside the shares, or instead of them; among all first."""
        every, some = self.shares_part, self.answered_part
        said = [every.caveat(closed=closed)]
        if every.disclosure != "hide" and some.disclosure != every.disclosure:
            said.append(some.caveat(closed=closed))
        return [text for text in said if text]

    def middle_caveats(self, *, closed: bool) -> list[str]:
        """What to say beside mean and median, or instead of them."""
        if self.mean_part.disclosure == self.median_part.disclosure == "caution":
            return ["Read mean and median with caution: the intervals are still wide."]
        said = (part.caveat(closed=closed) for part in (self.mean_part, self.median_part))
        return [text for text in said if text]

    def caveats(self, *, closed: bool) -> list[str]:
        """All there is to say beside or instead of the question's numbers."""
        spread = self.spread_part.caveat(closed=closed)
        return [
            *self.share_caveats(closed=closed),
            *self.middle_caveats(closed=closed),
            *([spread] if spread else []),
        ]

    @property
    def disclosure(self) -> Disclosure:
        """That of the part which may be shown the most: "hide" when there is nothing to see."""
        order: tuple[Disclosure, ...] = ("show", "caution", "hide")
        return min((part.disclosure for part in self.parts), key=order.index)

    def amounts(self, row: Row) -> Amounts:
        """How the numbers of a mean or a median are written."""
        return amounts(self.question, row.statistic)

    def words(self, row: Row, *, closed: bool = False) -> str:
        """One of this question's rows as people say it."""
        return in_words(row, self.amounts(row), closed=closed)

    @property
    def spread_title(self) -> str:
        """What the cells are shares of."""
        unit = self.question.grid.unit if self.question.grid else ""
        of = "Of those who answered" if self.spread and self.spread[0].base == "answered" else "All"
        return f"{of}, in {unit}" if unit else of

    @property
    def notes(self) -> list[str]:
        """What a reader must know about who was asked and what the shares add up to."""
        notes = []
        if self.asked < self.n:
            notes.append(
                f"Asked to about {_about(self.asked)} of {self.n:,} respondents, at random."
            )
        if self.question.type == "multiple_choice":
            notes.append("Several answers possible: shares do not add up to 100%.")
        channel, grid = self.question.channel, self.question.grid
        if isinstance(channel, BitVector) and channel.sampled < channel.m:
            notes.append(
                f"Each report tells about {channel.sampled} of the {channel.m} answers, at random."
            )
        if self.question.type == "scale" and grid and self.mean:
            notes.append(_scores(self.question, grid))
        return notes


def _scores(question: PublishedQuestion, grid: Grid) -> str:
    """Which numbers a scale's options stand for, where their labels do not say it."""
    low, high = grid.values[0], grid.values[-1]
    first, last = question.options[0].label, question.options[grid.points - 1].label
    return f"Scores run from {low:g} ({first}) to {high:g} ({last})."


def _about(n: int) -> str:
    """A number of people to three significant digits."""
    return f"{round(n, 3 - len(str(n))):,}"
