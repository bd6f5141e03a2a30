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
from survey.questionnaire.loading import parse

READERS: Mapping[str, Callable[..., Imported]] = {
    ".json": surveyjs.read,
    **dict.fromkeys((".lss", ".txt", ".tsv"), limesurvey.read),
}
"""The reader of each format, by the ending of the file's name."""

TOOLS = "SurveyJS (.json) or LimeSurvey (.lss, .txt, .tsv)"
"""The formats, for people."""


def is_definition(content: bytes, name: str) -> bool:
    """Return whether a file is a definition of this project, by its ending or its keys.

    Raises DefinitionError if a JSON file cannot be parsed.
    """
    ending = PurePath(name.lower()).suffix
    return ending == ".toml" or (
        ending == ".json" and not surveyjs.is_surveyjs(parse(content, name))
    )


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


__all__ = ["READERS", "TOOLS", "Element", "Imported", "import_questionnaire", "is_definition"]
