"""Question types, one class each; code elsewhere asks the class and never compares type names.

Free text, files and places cannot be randomized, so there is no type for them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, get_args

from pydantic import Field, PlainValidator, TypeAdapter, ValidationInfo

from survey.questionnaire.kinds.base import KINDS, WRITTEN_KINDS, Kind, PublishedQuestion
from survey.questionnaire.kinds.choice import ChoiceQuestion, SingleChoice, YesNo
from survey.questionnaire.kinds.date import Date, DateQuestion
from survey.questionnaire.kinds.matrix import Matrix, MatrixQuestion
from survey.questionnaire.kinds.multiple_choice import MultipleChoice, MultipleChoiceQuestion
from survey.questionnaire.kinds.number import Number, NumberQuestion
from survey.questionnaire.kinds.question import BaseQuestion
from survey.questionnaire.kinds.ranking import Ranking, RankingQuestion
from survey.questionnaire.kinds.scale import Scale, ScaleQuestion
from survey.settings import Caps

ALL_KINDS = (YesNo(), SingleChoice(), MultipleChoice(), Scale(), Number(), Date(), Ranking())
KINDS.update({kind.type: kind for kind in ALL_KINDS})

MATRIX = Matrix()
"""The type that publishing turns into one question per row."""

WRITTEN_KINDS.update({**KINDS, MATRIX.type: MATRIX})

_AnyType = Annotated[
    ChoiceQuestion
    | ScaleQuestion
    | MatrixQuestion
    | MultipleChoiceQuestion
    | NumberQuestion
    | DateQuestion
    | RankingQuestion,
    Field(discriminator="type"),
]
_PARSER: TypeAdapter[BaseQuestion] = TypeAdapter(_AnyType)

QUESTION_KEYS = frozenset(
    key for model in get_args(get_args(_AnyType)[0]) for key in model.model_fields
)
"""Every key that a question of any type may have."""

CACHED_QUESTIONS = 2_048
"""Number of cached questions: a change to one leaves all others, in every language, as they are."""


@dataclass(frozen=True)
class _Raw:
    """A raw question, which is equal to another if their texts are."""

    text: str
    value: Any = field(compare=False)


@lru_cache(maxsize=CACHED_QUESTIONS)
def parse_once(raw: _Raw, caps: Caps | None) -> BaseQuestion:
    """Return a question as it is written; nobody may change it, because it is cached."""
    return _PARSER.validate_python(raw.value, context=caps)


def _parse(value: Any, info: ValidationInfo) -> BaseQuestion:
    if not isinstance(value, dict):
        # A question's text leaves out the joint response that it is part of.
        return _PARSER.validate_python(value, context=info.context)
    try:
        raw = _Raw(repr(value), value)
    except (ValueError, RecursionError):  # a number of thousands of digits, or deep nesting
        return _PARSER.validate_python(value, context=info.context)
    # Joint responses change a survey's questions, so each survey has its own.
    return parse_once(raw, info.context).model_copy()


Question = Annotated[BaseQuestion, PlainValidator(_parse, json_schema_input_type=_AnyType)]
"""A question as a researcher writes it, of any type."""

DEFAULT_KIND: Kind = KINDS["yes_no"]
"""The type of a new question."""

LIST_KIND: Kind = KINDS["single_choice"]
"""The type of a new question whose answers are given with it."""

_UNKNOWN = Kind()


def kind_of(form: Mapping[str, Any]) -> Kind:
    """Return the kind of a question that may be wrong: an empty one for an unknown type."""
    return WRITTEN_KINDS.get(str(form.get("type")), _UNKNOWN)


__all__ = [
    "DEFAULT_KIND",
    "KINDS",
    "LIST_KIND",
    "MATRIX",
    "QUESTION_KEYS",
    "WRITTEN_KINDS",
    "BaseQuestion",
    "Kind",
    "PublishedQuestion",
    "Question",
    "kind_of",
]
