"""A draft of a definition: of a file, or of a survey that was published before."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from survey.questionnaire.designs import PRIVACY
from survey.questionnaire.drafts.content import (
    EMPTY_PLAN,
    EMPTY_QUESTION,
    EMPTY_SURVEY,
    TEXTS_OF_A_QUESTION,
    DraftContent,
    DraftPage,
    Question,
    Texts,
)
from survey.questionnaire.languages import SURVEY_TEXTS, languages_in
from survey.questionnaire.native import own_language, spelled_out
from survey.questionnaire.question import NONE_ID, NOT_APPLICABLE_ID, OPT_OUT_ID

NUMBERS = ("low", "high", "step", "max_ticks")


def drafted(definition: Mapping[str, Any]) -> DraftContent:
    """The draft that says what a definition says; it must be one that `native.read` takes."""
    raw = spelled_out(definition)
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
