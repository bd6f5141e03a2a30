"""Division of the results of long surveys into pages with a common table of contents.

A page has as many questions as fit into its number of lines, so that the first page is as small and
fast for 200 questions as for 10. Every page has an anchor for each question. For a question on
another page, the anchor is its entry in the table of contents, which links to that page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode

from survey.questionnaire.kinds import PublishedQuestion
from survey.research.forms import whole_number

MAX_LINES = 120
"""Maximum number of lines of charts on a page, unless a single question has more."""

LINES_PER_CARD = 3
"""Number of lines of a question's card in addition to its chart."""

LINES_OF_NUMBERS = 12
"""Number of lines of a histogram with the mean and the median."""

MAX_TEXT = 100
"""Maximum number of characters of a question in the table of contents."""

ALL = "all"
"""The page number that shows all questions, for printing or searching."""


class Entry(NamedTuple):
    """A question in the table of contents."""

    id: str
    text: str
    address: str
    is_here: bool


@dataclass(frozen=True)
class ResultPages:
    """The pages of a survey's questions, and the current page.

    Pages are ranges of places; `number` counts from 1, and is 0 if all questions are shown.
    """

    questions: Sequence[PublishedQuestion]
    pages: Sequence[range]
    number: int
    query: Mapping[str, str]

    @classmethod
    def of(
        cls, questions: Sequence[PublishedQuestion], page: str, query: Mapping[str, str]
    ) -> ResultPages:
        """Read the parameter `page` of an address; `query` contains its other parameters."""
        pages = split(questions)
        is_whole = page == ALL or len(pages) == 1
        number = 0 if is_whole else min(max(whole_number(page, 1), 1), len(pages))
        return cls(questions, pages, number, query)

    @property
    def places(self) -> range:
        """The places of the questions on the current page."""
        return self.pages[self.number - 1] if self.number else range(len(self.questions))

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of links to the same page with other options."""
        return {"page": str(self.number)} if self.number > 1 else {}

    def address(self, number: int | str) -> str:
        """Return the address of a page, relative to any other page."""
        return f"?{urlencode({**self.query, **({'page': number} if number != 1 else {})})}"

    def link(self, question_id: str) -> str:
        """Return the address of a question's card."""
        place = next(i for i, question in enumerate(self.questions) if question.id == question_id)
        return self._link(place)

    def _link(self, place: int) -> str:
        anchor = f"#q-{self.questions[place].id}"
        if place in self.places:
            return anchor
        number = next(n for n, page in enumerate(self.pages, 1) if place in page)
        return f"{self.address(number)}{anchor}"

    @property
    def contents(self) -> list[Entry]:
        """The table of contents: all questions in order."""
        return [
            Entry(question.id, _shorten(question.text), self._link(place), place in self.places)
            for place, question in enumerate(self.questions)
        ]


def split(questions: Sequence[PublishedQuestion]) -> list[range]:
    """Divide questions into pages."""
    starts, lines = [0], 0
    for place, question in enumerate(questions):
        added = _lines(question)
        if place > starts[-1] and lines + added > MAX_LINES:
            starts.append(place)
            lines = 0
        lines += added
    return [range(*ends) for ends in zip(starts, [*starts[1:], len(questions)], strict=True)]


def _lines(question: PublishedQuestion) -> int:
    """Return the approximate number of lines of a question's card."""
    numbers = LINES_OF_NUMBERS if question.kind.is_numeric else 0
    return LINES_PER_CARD + len(question.options) + numbers


def _shorten(text: str) -> str:
    """Return the beginning of a long text.

    >>> _shorten("word " * 30)[-11:]
    'word word …'
    """
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT].rsplit(' ', 1)[0]} …"
