"""Questionnaires from other tools, as drafts; a report names what became of each element.

Only what can be randomized on a device has a place here: free text, files and places are dropped
with their reason, and nothing is lost without a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Protocol

from survey.questionnaire.error_messages import refusal, shortened
from survey.questionnaire.imports import surveyjs, xlsform
from survey.questionnaire.imports.assembly import Element, Imported


class Reader(Protocol):
    """Imports a file of one format; raises DefinitionError if it is none."""

    def __call__(self, content: bytes, name: str, *, skip_logic: bool = False) -> Imported:
        """Import a file."""


READERS: Mapping[str, tuple[str, Reader]] = {
    ".json": ("SurveyJS", surveyjs.read),
    ".xlsx": ("XLSForm", xlsform.read),
}
"""The format of each ending of a file's name, and its reader."""

REFUSED: Mapping[str, str] = {
    ".xls": "is in the old format of Excel; save it as .xlsx",
    ".xlsm": "may contain macros; save it as .xlsx",
    ".xlsb": "is in a binary format of Excel; save it as .xlsx",
    ".ods": "is a spreadsheet of another format; save it as .xlsx",
}
"""What to do about files of formats that are not read, by the ending of their name."""


def import_questionnaire(content: bytes, name: str, *, skip_logic: bool = False) -> Imported:
    """Import a questionnaire from another tool, which its file name's ending names.

    Raises DefinitionError if the file is not a questionnaire.
    """
    ending = PurePath(name.lower()).suffix
    if ending not in READERS:
        formats = ", ".join(f"{tool} ({suffix})" for suffix, (tool, _) in READERS.items())
        why = REFUSED.get(ending, f"is not a questionnaire of a known tool: {formats}")
        raise refusal([(shortened(name), why)])
    try:
        return READERS[ending][1](content, name, skip_logic=skip_logic)
    except RecursionError:
        raise refusal([(shortened(name), "is nested too deeply")]) from None


__all__ = ["Element", "Imported", "import_questionnaire"]
