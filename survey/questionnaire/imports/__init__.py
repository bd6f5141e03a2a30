"""Questionnaires from other tools, as drafts; a report names what became of each element.

Only what can be randomized on a device has a place here: free text, files and places are dropped
with their reason, and nothing is lost without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from survey.questionnaire.error_messages import refusal, shortened
from survey.questionnaire.imports import limesurvey, surveyjs, xlsform
from survey.questionnaire.imports.assembly import Element, Imported
from survey.questionnaire.imports.surveyjs_parts import is_surveyjs
from survey.questionnaire.loading import parse


@dataclass(frozen=True)
class Tool:
    """A survey tool: the endings of its files' names, and their reader."""

    name: str
    endings: tuple[str, ...]
    read: Callable[..., Imported]


TOOLS = (
    Tool("SurveyJS", (".json",), surveyjs.read),
    Tool("XLSForm", (".xlsx",), xlsform.read),
    Tool("LimeSurvey", (".lss", ".txt", ".tsv"), limesurvey.read),
)
"""The tools whose questionnaires can be imported."""


def is_definition(content: bytes, name: str) -> bool:
    """Return whether a file is a definition of this project, by its ending or its keys.

    Raises DefinitionError if a JSON file cannot be parsed.
    """
    ending = PurePath(name.lower()).suffix
    return ending == ".toml" or (ending == ".json" and not is_surveyjs(parse(content, name)))


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
    tool = next((tool for tool in TOOLS if ending in tool.endings), None)
    if tool is None:
        *names, last = (f"{tool.name} ({', '.join(tool.endings)})" for tool in TOOLS)
        listed = f"{', '.join(names)} or {last}"
        why = REFUSED.get(ending, f"is not a questionnaire of {listed}")
        raise refusal([(shortened(name), why)])
    try:
        return tool.read(content, name, skip_logic=skip_logic)
    except RecursionError:
        raise refusal([(shortened(name), "is nested too deeply")]) from None


__all__ = ["TOOLS", "Element", "Imported", "Tool", "import_questionnaire", "is_definition"]
