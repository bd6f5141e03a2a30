"""Questionnaires from other tools, as drafts; a report names what became of each element.

Only what can be randomized on a device has a place here: free text, files and places are dropped
with their reason, and nothing is lost without a word.
"""

from __future__ import annotations

from survey.questionnaire.error_messages import refusal, shortened
from survey.questionnaire.imports import surveyjs
from survey.questionnaire.imports.assembly import Element, Imported


def import_questionnaire(content: bytes, name: str, *, skip_logic: bool = False) -> Imported:
    """Import a questionnaire from another tool, which its file name's ending names.

    Raises DefinitionError if the file is not a questionnaire.
    """
    if name.lower().endswith(".json"):
        try:
            return surveyjs.read(content, name, skip_logic=skip_logic)
        except RecursionError:
            raise refusal([(shortened(name), "is nested too deeply")]) from None
    raise refusal([(shortened(name), "is not a SurveyJS questionnaire, whose name ends in .json")])


__all__ = ["Element", "Imported", "import_questionnaire"]
