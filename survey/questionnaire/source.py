"""A published definition as its researcher could have written it.

Loading and publishing the result gives the same definition. Parameters that only the channel knows
(forced chances, a utility table) are left out: the researcher has to state them again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from survey.questionnaire.definition import Definition
from survey.questionnaire.designs import PRIVACY
from survey.questionnaire.kinds import kind_of
from survey.questionnaire.kinds.base import SPECIAL
from survey.questionnaire.texts import SURVEY_TEXTS

SETTINGS = ("bucket", "access", "kiosk", "theme", "allow_skip_logic")


def source_of(definition: Definition) -> dict[str, Any]:
    """Return the definition as plain values that `loading.check` accepts."""
    form = json.loads(definition.canonical)
    translations: Mapping[str, Any] = form.get("translations", {})
    language = form["language"]

    def text(name: str) -> Any:
        translated = {language: texts[name] for language, texts in translations.items()}
        return _in_languages(language, form.get(name, ""), translated)

    survey = {
        "slug": form["slug"],
        "language": language,
        **{name: text(name) for name in SURVEY_TEXTS if form.get(name)},
        **{name: form[name] for name in SETTINGS if form.get(name)},
        **({"quick_exit": form["exit"]} if form.get("exit") else {}),
        **({"questions_per_person": form["sampling"]["draw"]} if form["sampling"] else {}),
    }
    pages = [
        _page(language, page, {tag: texts["pages"][i] for tag, texts in translations.items()})
        for i, page in enumerate(form["pages"])
    ]
    return {**survey, "pages": pages}


def _page(
    language: str, page: Mapping[str, Any], translations: Mapping[str, Any]
) -> dict[str, Any]:
    titles = {tag: texts["title"] for tag, texts in translations.items()}
    questions = [
        _question(
            language, form, {tag: texts["questions"][i] for tag, texts in translations.items()}
        )
        for i, form in enumerate(page["questions"])
    ]
    return {"title": _in_languages(language, page["title"], titles), "questions": questions}


def _question(
    language: str, form: Mapping[str, Any], translations: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a question with its options, its grid and its privacy, without defaults."""

    def text(name: str, value: str) -> Any:
        return _in_languages(
            language, value, {tag: texts[name] for tag, texts in translations.items()}
        )

    options = [
        {
            "id": option["id"],
            "label": _in_languages(
                language,
                option["label"],
                {tag: texts["options"][i] for tag, texts in translations.items()},
            ),
        }
        for i, option in enumerate(form["options"])
    ]
    special = {option["id"]: option["label"] for option in options if option["id"] in SPECIAL}
    ordinary = [option for option in options if option["id"] not in SPECIAL]
    question: dict[str, Any] = {
        "id": form["id"],
        "type": form["type"],
        "text": text("text", form["text"]),
        "help": text("help", form["help"]),
        "prefer_not_to_say": False,
        **special,
        **kind_of(form).source(form, ordinary, lambda unit: text("unit", unit)),
        "ask_if": form["ask_if"],
        "shuffle_options": form.get("shuffled"),
        "mechanism": form["mechanism"],
        **_privacy(form["stated"]),
    }
    return {name: value for name, value in question.items() if value not in ("", None)}


def _privacy(stated: Mapping[str, str]) -> dict[str, Any]:
    parameters = {way: value for way, value in stated.items() if way not in PRIVACY}
    return {
        **{way: stated[way] for way in PRIVACY if way in stated},
        **({"parameters": parameters} if parameters else {}),
    }


def _in_languages(language: str, text: str, translations: Mapping[str, str]) -> Any:
    """Return a text, or a table of its languages when it is translated."""
    translated = {
        language: translation for language, translation in translations.items() if translation
    }
    return {language: text, **translated} if translated else text
