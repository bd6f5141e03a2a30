"""Question types, one class each; code elsewhere asks the class and never compares type names."""

from collections.abc import Mapping
from types import MappingProxyType

from survey.questionnaire.kinds.base import Kind
from survey.questionnaire.kinds.choice import SingleChoice, YesNo
from survey.questionnaire.kinds.date import Date
from survey.questionnaire.kinds.multiple_choice import MultipleChoice
from survey.questionnaire.kinds.number import Number
from survey.questionnaire.kinds.scale import Scale

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        kind.type: kind
        for kind in (YesNo(), SingleChoice(), Scale(), MultipleChoice(), Number(), Date())
    }
)
"""Every question type by its name in definitions."""

__all__ = ["KINDS", "Kind"]
