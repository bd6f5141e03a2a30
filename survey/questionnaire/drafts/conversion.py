"""What a draft would publish as, in the form that `loading.check` checks.

A question that states no privacy yet gets the usual one: a report multiplies odds by at most 3.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from itertools import count
from typing import Any

from survey.questionnaire.defaults import with_standard_privacy
from survey.questionnaire.designs import PRIVACY
from survey.questionnaire.drafts.draft import (
    EMPTY_PLAN,
    EMPTY_QUESTION,
    EMPTY_SURVEY,
    TEXTS_OF_A_QUESTION,
    DraftContent,
    DraftPage,
    Question,
    Texts,
    free,
    identifier,
)
from survey.questionnaire.kinds import kind_of
from survey.questionnaire.kinds.base import NONE_ID, NOT_APPLICABLE_ID, OPT_OUT_ID
from survey.questionnaire.loading import expand, own_language
from survey.questionnaire.texts import SURVEY_TEXTS, languages_in

WHOLE = re.compile(r"[+-]?[0-9]{1,15}")


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
    kind = kind_of(question)
    parts = {name: _part(question, name, content) for name in ("text", "help", *kind.fields)}
    if NONE_ID + "_label" in parts:
        parts[NONE_ID] = parts.pop(NONE_ID + "_label")
    written = {
        "id": question["id"],
        "type": kind.type,
        **parts,
        NOT_APPLICABLE_ID: _special(question, NOT_APPLICABLE_ID, content),
        **_condition(question),
        "mechanism": question["mechanism"],
        "parameters": parameters_of(question["parameters"]),
        **({question["way"]: question["value"]} if question["way"] else {}),
    }
    opt_out = _special(question, OPT_OUT_ID, content)
    return with_standard_privacy({**_without_empty(written), OPT_OUT_ID: opt_out})


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
    is_whole = name in kind_of(question).whole_fields
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


NUMBERS = ("low", "high", "step", "max_ticks")


def drafted(definition: Mapping[str, Any]) -> DraftContent:
    """The draft that says what a definition says; it must be one that `loading.check` takes."""
    raw = expand(definition)
    own = own_language(raw)
    reader = _Reader(own)
    survey = {
        name: reader.texts(raw.get(name)) if name in SURVEY_TEXTS else raw.get(name, usual)
        for name, usual in EMPTY_SURVEY.items()
    }
    survey["questions_per_person"] = _typed(survey["questions_per_person"])
    pages = tuple(reader.page(page) for page in raw["pages"])
    languages = tuple(languages_in(raw, own)[1:])
    return DraftContent(survey, languages, pages, EMPTY_PLAN, used=next(reader.keys) - 1)


class _Reader:
    """Gives every page, question and option a number of its own."""

    def __init__(self, own: str) -> None:
        self._own = own
        self.keys = count(1)

    def texts(self, value: Any) -> Texts:
        """A text as a table of languages."""
        if isinstance(value, Mapping):
            return {str(language): str(text) for language, text in value.items()}
        return {self._own: value} if isinstance(value, str) and value else {}

    def page(self, raw: Mapping[str, Any]) -> DraftPage:
        """A page with its questions."""
        key = next(self.keys)
        questions = tuple(self._question(question) for question in raw["questions"])
        return DraftPage(key, self.texts(raw.get("title")), questions)

    def _question(self, raw: Mapping[str, Any]) -> Question:
        way = next((name for name in PRIVACY if name in raw), "")
        condition = raw.get("ask_if") or {}
        labels = {
            f"{name}_label": raw.get(name) for name in (NONE_ID, NOT_APPLICABLE_ID, OPT_OUT_ID)
        }
        texts = {name: raw.get(name, labels.get(name)) for name in TEXTS_OF_A_QUESTION}
        return {
            **EMPTY_QUESTION,
            "key": next(self.keys),
            "id": raw["id"],
            "type": raw["type"],
            **{name: self.texts(value) for name, value in texts.items()},
            **{name: _typed(raw.get(name)) for name in NUMBERS},
            "options": tuple(self._option(option) for option in raw.get("options", ())),
            "shuffle_options": bool(raw.get("shuffle_options", False)),
            OPT_OUT_ID: raw.get(OPT_OUT_ID, True) is not False,
            NOT_APPLICABLE_ID: raw.get(NOT_APPLICABLE_ID, False) is not False,
            "ask_question": condition.get("question", ""),
            "ask_options": tuple(condition.get("options", ())),
            "mechanism": raw.get("mechanism") or "",
            "parameters": _parameters_text(raw.get("parameters") or {}),
            "way": way,
            "value": _typed(raw.get(way)) if way else "",
        }

    def _option(self, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"key": next(self.keys), "id": raw["id"], "label": self.texts(raw["label"])}


def _typed(value: Any) -> str:
    """A number or a day as somebody types it."""
    return "" if value is None else str(value)


def _parameters_text(parameters: Mapping[str, Any]) -> str:
    return "\n".join(f"{name} = {_entry(value)}" for name, value in parameters.items())


def _entry(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_entry, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)
