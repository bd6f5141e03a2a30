"""The usual labels of options that a researcher need not write: yes, no, prefer not to say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from survey.questionnaire.question import NONE_ID, NOT_APPLICABLE_ID, OPT_OUT_ID
from survey.words import SOURCE, say

USUAL = {
    NONE_ID: "option.noneOfThese",
    NOT_APPLICABLE_ID: "option.doesNotApply",
    OPT_OUT_ID: "option.preferNotToSay",
}


def with_usual_labels(question: Any, language: str) -> Any:
    """A question whose unwritten labels are in a language; in the source's they are already."""
    if not isinstance(question, Mapping) or language == SOURCE:
        return question
    labels = {
        name: say(language, key)
        for name, key in USUAL.items()
        if question.get(name, _is_there(name, question)) is True
    }
    yes_no = question.get("type") == "yes_no" and "options" not in question
    return {**question, **labels, **({"options": _yes_no(language)} if yes_no else {})}


def _is_there(name: str, question: Mapping[str, Any]) -> bool:
    """Whether an option is there when nothing is written of it."""
    return name == OPT_OUT_ID or (name == NONE_ID and question.get("type") == "multiple_choice")


def _yes_no(language: str) -> list[dict[str, str]]:
    return [{"id": name, "label": say(language, f"option.{name}")} for name in ("yes", "no")]
