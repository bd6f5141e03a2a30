"""Questionnaires for other tools, with notes on what their formats cannot express."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from survey.questionnaire.definition import Survey
from survey.questionnaire.exports import xlsform
from survey.questionnaire.exports.file import Exported

WRITERS: Mapping[str, Callable[[Survey], Exported]] = {"xlsform": xlsform.write}
"""The writer of each format."""


def export_questionnaire(survey: Survey, form: str) -> Exported:
    """Return a survey in a format of `WRITERS`, in all its languages."""
    return WRITERS[form](survey)


__all__ = ["WRITERS", "Exported", "export_questionnaire"]
