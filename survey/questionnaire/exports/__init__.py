"""Definitions in the formats of other tools, with notes on what each format cannot express."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from survey.questionnaire.definition import Survey
from survey.questionnaire.exports import surveyjs, xlsform
from survey.questionnaire.exports.assembly import Exported

WRITERS: Mapping[str, Callable[[Survey], Exported]] = {
    "surveyjs": surveyjs.write,
    "xlsform": xlsform.write,
}
"""The writer of each format, by the format's name."""

NAMES: Mapping[str, str] = {"surveyjs": "SurveyJS", "xlsform": "XLSForm"}
"""The formats, for people, by their name."""


def export_questionnaire(survey: Survey, form: str) -> Exported:
    """Return a survey in the format of another tool; raises KeyError for an unknown format."""
    return WRITERS[form](survey)


__all__ = ["NAMES", "WRITERS", "Exported", "export_questionnaire"]
