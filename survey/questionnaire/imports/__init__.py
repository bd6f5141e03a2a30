"""Questionnaires from other tools, as drafts; a report names what became of each element.

Only what can be randomized on a device has a place here: free text, files and places are dropped
with their reason, and nothing is lost without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath

from survey.questionnaire.error_messages import refusal, shortened
from survey.questionnaire.imports import limesurvey, surveyjs
from survey.questionnaire.imports.assembly import Element, Imported

READERS: Mapping[str, Callable[..., Imported]] = {
    ".json": surveyjs.read,
    **dict.fromkeys((".lss", ".txt", ".tsv"), limesurvey.read),
}
"""The reader of each format, by the ending of the file's name."""

TOOLS = "SurveyJS (.json) or LimeSurvey (.lss, .txt, .tsv)"
"""The formats, for people."""


def import_questionnaire(content: bytes, name: str, *, skip_logic: bool = False) -> Imported:
    """Import a questionnaire from another tool, which its file name's ending names.

    Raises DefinitionError if the file is not a questionnaire.
    """
    reader = READERS.get(PurePath(name.lower()).suffix)
    if reader is None:
        raise refusal([(shortened(name), f"is not a questionnaire of {TOOLS}")])
    try:
        return reader(content, name, skip_logic=skip_logic)
    except RecursionError:
        raise refusal([(shortened(name), "is nested too deeply")]) from None


__all__ = ["READERS", "TOOLS", "Element", "Imported", "import_questionnaire"]
