"""Question types, one class each; code elsewhere asks the class and never compares type names.

Free text, files and places cannot be randomized, so there is no type for them.
"""

from collections.abc import Mapping
from typing import Annotated, Any, get_args

from pydantic import Field

from survey.questionnaire.kinds.base import KINDS, Kind, PublishedQuestion
from survey.questionnaire.kinds.choice import ChoiceQuestion, SingleChoice, YesNo
from survey.questionnaire.kinds.date import Date, DateQuestion
from survey.questionnaire.kinds.multiple_choice import MultipleChoice, MultipleChoiceQuestion
from survey.questionnaire.kinds.number import Number, NumberQuestion
from survey.questionnaire.kinds.question import BaseQuestion
from survey.questionnaire.kinds.scale import Scale, ScaleQuestion

ALL_KINDS = (YesNo(), SingleChoice(), MultipleChoice(), Scale(), Number(), Date())
KINDS.update({kind.type: kind for kind in ALL_KINDS})

Question = Annotated[
    ChoiceQuestion | ScaleQuestion | MultipleChoiceQuestion | NumberQuestion | DateQuestion,
    Field(discriminator="type"),
]
"""A question as a researcher writes it."""

QUESTION_KEYS = frozenset(
    key for model in get_args(get_args(Question)[0]) for key in model.model_fields
)
"""Every key that a question of any type may have."""

DEFAULT_KIND: Kind = KINDS["yes_no"]
"""The type of a new question."""

_UNKNOWN = Kind()


def kind_of(form: Mapping[str, Any]) -> Kind:
    """Return the kind of a question that may be wrong: an empty one for an unknown type."""
    return KINDS.get(str(form.get("type")), _UNKNOWN)


__all__ = [
    "DEFAULT_KIND",
    "KINDS",
    "QUESTION_KEYS",
    "BaseQuestion",
    "Kind",
    "PublishedQuestion",
    "Question",
    "kind_of",
]
