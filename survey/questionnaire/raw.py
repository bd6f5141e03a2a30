"""Looking into a definition that may be wrong anywhere: what is there, with its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from survey.questionnaire.mistakes import Place
from survey.questionnaire.question import NONE_ID, OPT_OUT_ID, SPECIAL
from survey.questionnaire.questions import YES_NO


def questions_in(raw: Mapping[str, Any]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """Every question that is an object, with its place, whatever else is wrong."""
    pages = raw.get("pages")
    for i, page in enumerate(pages if isinstance(pages, list) else []):
        questions = page.get("questions") if isinstance(page, Mapping) else None
        for j, question in enumerate(questions if isinstance(questions, list) else []):
            if isinstance(question, Mapping):
                yield ("pages", i, "questions", j), question


def options_in(place: Place, question: Mapping[str, Any], key: str) -> list[tuple[Place, Any]]:
    """The place and the value of one key of every option, as far as they are options."""
    options = question.get("options", YES_NO if question.get("type") == "yes_no" else None)
    return [
        ((*place, "options", i, key), option.get(key))
        for i, option in enumerate(options if isinstance(options, Sequence) else [])
        if isinstance(option, Mapping)
    ]


def special_in(question: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are there by themselves: id to what is written for it, or True."""
    usual = {OPT_OUT_ID: True, NONE_ID: question.get("type") == "multiple_choice"}
    found = {name: question.get(name, usual.get(name, False)) for name in SPECIAL}
    return {name: value for name, value in found.items() if value}
