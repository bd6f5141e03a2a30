"""A matrix: several rows with one scale; publishing turns each row into a scale question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

from pydantic import Field, PrivateAttr, ValidationInfo, model_validator

from survey.errors import ChannelError
from survey.mechanism.exact_numbers import format_fraction
from survey.questionnaire.designs import DESIGNS
from survey.questionnaire.kinds.base import MatrixRow
from survey.questionnaire.kinds.question import BaseQuestion
from survey.questionnaire.kinds.scale import OrderedQuestion, Scale, ScaleQuestion
from survey.questionnaire.texts import Frozen, Identifier, Line

MAX_ROWS = 12
"""Maximum number of rows; the client has the same maximum."""

MAX_ROW_ID = 60
"""Maximum length of the id of a row's question: the matrix's id, "_" and the row's."""

MAX_TOPIC, MAX_TEXT = 60, 1_000
"""Maximum lengths of a topic and of a question's text."""

FINAL_MARKS = tuple("?:!.…;؟؛：？")
"""Marks at the end of a matrix's text after which a row's text follows without a colon."""


class Matrix(Scale):
    """Several rows that share a text and a scale, and divide one epsilon equally."""

    type = "matrix"
    label = "A matrix: several rows, one scale"
    icon = "M3 5h18v14H3zM3 12h18M10 5v14M16 5v14"
    is_matrix = True
    mechanisms = tuple(name for name in Scale.mechanisms if "epsilon" in DESIGNS[name].ways)
    fields = (*Scale.fields, "rows")

    def collect(
        self, forms: Sequence[Mapping[str, Any]], sources: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Return a matrix as a researcher could have written it.

        `forms` are the canonical forms of its rows, and `sources` the rows as separate questions,
        with an additional key "matrix" for the texts of `MatrixRow` in all languages.
        """
        first, matrix = sources[0], sources[0]["matrix"]
        topic = forms[0]["topic"]
        is_automatic = topic == automatic_topic(forms[0]["matrix"]["text"])
        prefix = f"{matrix['id']}_"
        return {
            **{name: value for name, value in first.items() if name not in ("matrix", "topic")},
            "id": matrix["id"],
            "type": self.type,
            "text": matrix["text"],
            **({} if is_automatic else {"topic": first["topic"]}),
            "rows": [
                {"id": source["id"].removeprefix(prefix), "text": source["matrix"]["row"]}
                for source in sources
            ],
            "epsilon": format_fraction(Fraction(first["epsilon"]) * len(sources)),
        }


class Row(Frozen):
    """One row; the id of its question is the id of the matrix, "_" and this `id`."""

    id: Identifier
    """End of the id of the row's question."""

    text: Line
    """What the row asks, after the text of the matrix."""


class MatrixQuestion(OrderedQuestion):
    """A matrix as a researcher writes it.

    Each person is asked all rows or none, because they are shown as one question. The rows are
    randomized independently, so the odds factor of the matrix is the product of the rows'
    e^epsilon, which is at most e^epsilon of the stated epsilon. All rows have one topic, so that
    respondents see the odds factor of the whole matrix.
    """

    type: Literal["matrix"]
    rows: tuple[Row, ...] = Field(min_length=2, max_length=MAX_ROWS)
    """Rows with this scale; all share the `epsilon`."""

    _published: tuple[ScaleQuestion, ...] = PrivateAttr()

    def _check(self) -> None:
        super()._check()
        for name in ("id", "text"):
            values = [getattr(row, name).casefold() for row in self.rows]
            repeated = next((value for value in values if values.count(value) > 1), None)
            if repeated is not None:
                raise ChannelError(f'rows must differ: "{repeated}" is the {name} of two rows')
        longest = max((row.id for row in self.rows), key=len)
        if len(self.id) + 1 + len(longest) > MAX_ROW_ID:
            raise ChannelError(
                f'rows have ids that are too long: "{self.id}_{longest}" has more than '
                f"{MAX_ROW_ID} characters"
            )

        length = max(len(joined_text(self.text, row.text)) for row in self.rows)
        if length > MAX_TEXT:
            raise ChannelError(
                "rows have texts that are too long: with the matrix's text, the longest has "
                f"{length:,} characters; at most {MAX_TEXT:,} fit"
            )

    @model_validator(mode="after")
    def _publish(self, info: ValidationInfo) -> MatrixQuestion:
        self._published = tuple(self._make_rows(info.context))
        return self

    def _make_rows(self, context: Any) -> Iterator[ScaleQuestion]:
        names = ("help", "prefer_not_to_say", "does_not_apply", "ask_if", "mechanism", "parameters")
        shared = {
            name: getattr(self, name)
            for name in (*names, "options", "low", "high", "low_label", "high_label")
        }
        for row in self.rows:
            question = ScaleQuestion.model_validate(
                {
                    **shared,
                    "id": f"{self.id}_{row.id}",
                    "type": Scale.type,
                    "text": joined_text(self.text, row.text),
                    "topic": self.topic or automatic_topic(self.text),
                    "epsilon": (self.epsilon or 0) / self.parts,
                },
                context=context,
            )
            question._matrix = MatrixRow(self.id, self.text, row.text)
            yield question

    @property
    def published(self) -> tuple[BaseQuestion, ...]:
        return self._published

    @property
    def parts(self) -> int:
        return len(self.rows)


def joined_text(text: str, row: str) -> str:
    """Return the text of a row's question where only one text is shown.

    >>> joined_text("Satisfied with", "Pay"), joined_text("How satisfied are you?", "Pay")
    ('Satisfied with: Pay', 'How satisfied are you? Pay')
    """
    return f"{text} {row}" if text.endswith(FINAL_MARKS) else f"{text}: {row}"


def automatic_topic(text: str) -> str:
    """Return the topic of a matrix without a stated one: the beginning of its text.

    >>> automatic_topic("Satisfied with"), len(automatic_topic("word " * 99))
    ('Satisfied with', 60)
    """
    line = " ".join(text.split())
    return line if len(line) <= MAX_TOPIC else f"{line[: MAX_TOPIC - 1].rstrip()}…"
