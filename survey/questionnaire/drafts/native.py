"""What a draft would publish as, in the form that `native.read` checks.

A question that states no privacy yet gets the usual one: a report multiplies odds by at most 3.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from survey.questionnaire.drafts.content import (
    TEXTS_OF_A_QUESTION,
    DraftContent,
    Question,
    Texts,
)
from survey.questionnaire.drafts.identifiers import free, identifier
from survey.questionnaire.languages import SURVEY_TEXTS
from survey.questionnaire.question import NONE_ID, NOT_APPLICABLE_ID, OPT_OUT_ID
from survey.questionnaire.usual import with_usual_privacy

WHOLE = re.compile(r"[+-]?[0-9]{1,15}")

OF_TYPE: Mapping[str, Sequence[str]] = {
    "yes_no": (),
    "single_choice": ("options", "shuffle_options"),
    "scale": ("options", "low", "high", "low_label", "high_label"),
    "multiple_choice": ("options", "max_ticks", "shuffle_options", "none_of_these_label"),
    "number": ("low", "high", "step", "unit"),
    "date": ("low", "high", "step"),
}
"""What a question of a type has besides what all have; the rest of a draft's stays for others."""

WHOLE_NUMBERS: Mapping[str, Sequence[str]] = {
    "scale": ("low", "high"),
    "multiple_choice": ("max_ticks",),
    "date": ("step",),
}


def definition_of(content: DraftContent) -> dict[str, Any]:
    """What the draft says, in the form of a definition file."""
    survey = {
        name: _written(value, content) if name in SURVEY_TEXTS else value
        for name, value in content.survey.items()
    }
    survey["questions_per_person"] = _number(content.survey["questions_per_person"])
    pages = [
        {
            "title": _written(page.title, content),
            "questions": [asked(question, content) for question in page.questions],
        }
        for page in content.pages
    ]
    return {**_without_empty(survey), "pages": pages}


def asked(question: Question, content: DraftContent) -> dict[str, Any]:
    """One question in the form of a definition, its privacy stated."""
    kind = str(question["type"])
    parts = {name: _part(question, name, content) for name in ("text", "help", *OF_TYPE[kind])}
    if NONE_ID + "_label" in parts:
        parts[NONE_ID] = parts.pop(NONE_ID + "_label")
    written = {
        "id": question["id"],
        "type": kind,
        **parts,
        NOT_APPLICABLE_ID: _special(question, NOT_APPLICABLE_ID, content),
        **_condition(question),
        "mechanism": question["mechanism"],
        "parameters": parameters_of(question["parameters"]),
        **({question["way"]: question["value"]} if question["way"] else {}),
    }
    opt_out = _special(question, OPT_OUT_ID, content)
    return with_usual_privacy({**_without_empty(written), OPT_OUT_ID: opt_out})


def options_written(question: Question) -> list[Mapping[str, Any]]:
    """The options of a draft's question that say anything, in their order."""
    return [one for one in question["options"] if one["id"] or any(one["label"].values())]


def option_ids(question: Question, own: str) -> dict[int, str]:
    """The id of each option by its number: what was written, else one made of its label."""
    ids: dict[int, str] = {}
    taken = {str(option["id"]) for option in question["options"]}
    for number, option in enumerate(options_written(question), 1):
        name = str(option["id"])
        if not name:
            made = identifier(option["label"].get(own, "")) or f"option_{number}"
            name = free(made, taken)
            taken.add(name)
        ids[option["key"]] = name
    return ids


def parameters_of(text: str) -> dict[str, Any]:
    """Parameters as they are typed, a line each; what is no JSON value is a text.

    >>> parameters_of("p = 0.7\\nforced = [0.5, 0.5]\\n\\nyes")
    {'p': Decimal('0.7'), 'forced': [Decimal('0.5'), Decimal('0.5')], 'yes': ''}
    """
    lines = (line.partition("=") for line in text.splitlines() if line.strip())
    return {name.strip(): _value(value.strip()) for name, _, value in lines}


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError):
        return text


def _part(question: Question, name: str, content: DraftContent) -> Any:
    if name == "options":
        ids = option_ids(question, content.own)
        return [
            {"id": ids[one["key"]], "label": _written(one["label"], content)}
            for one in options_written(question)
        ]
    if name in TEXTS_OF_A_QUESTION:
        return _written(question[name], content)
    is_whole = name in WHOLE_NUMBERS.get(str(question["type"]), ())
    return _number(question[name]) if is_whole else question[name]


def _special(question: Question, name: str, content: DraftContent) -> Any:
    """An option that is there by itself: left out, with its usual label, or with its own."""
    return question[name] and (_written(question[f"{name}_label"], content) or True)


def _condition(question: Question) -> dict[str, Any]:
    if not question["ask_question"]:
        return {}
    return {
        "ask_if": {"question": question["ask_question"], "options": list(question["ask_options"])}
    }


def _written(texts: Texts, content: DraftContent) -> str | dict[str, str]:
    """A text alone, or as a table of the languages that the draft has."""
    own = texts.get(content.own, "")
    others = {name: texts[name] for name in content.languages if texts.get(name)}
    return {content.own: own, **others} if others else own


def _number(text: str) -> int | str:
    """A whole number where one is written; else what is written, for the mistake to say."""
    return int(text) if WHOLE.fullmatch(str(text).strip()) else text


def _without_empty(written: Mapping[str, Any]) -> dict[str, Any]:
    """Without what was not said; the number 0 was."""
    return {
        name: value
        for name, value in written.items()
        if value or (isinstance(value, int) and not isinstance(value, bool))
    }
