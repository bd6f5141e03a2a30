"""A published definition written again as its researcher could have written it.

Reading and publishing the result gives the same definition. Parameters of a mechanism that only
its channel knows (forced chances, a utility table) are left out: they have to be stated anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from fractions import Fraction
from typing import Any

from survey.mechanism.design import format_fraction
from survey.questionnaire.definition import Definition
from survey.questionnaire.designs import PRIVACY
from survey.questionnaire.grid import EPOCH
from survey.questionnaire.languages import SURVEY_TEXTS
from survey.questionnaire.question import SPECIAL

SAID = ("bucket", "access", "kiosk", "theme", "allow_skip_logic")
POINT = re.compile(r"value_(?:minus_)?[0-9]+")
ENDS = re.compile(r"-?[0-9]+(?: \((?P<label>.*)\))?", re.DOTALL)


def rewritten(definition: Definition) -> dict[str, Any]:
    """The definition as plain values, of the form that `native.read` takes."""
    form = json.loads(definition.canonical)
    translations: Mapping[str, Any] = form.get("translations", {})
    own = form["language"]

    def text(name: str) -> Any:
        told = {language: texts[name] for language, texts in translations.items()}
        return _in_languages(own, form.get(name, ""), told)

    written = {
        "slug": form["slug"],
        "language": own,
        **{name: text(name) for name in SURVEY_TEXTS if form.get(name)},
        **{name: form[name] for name in SAID if form.get(name)},
        **({"quick_exit": form["exit"]} if form.get("exit") else {}),
        **({"questions_per_person": form["sampling"]["draw"]} if form["sampling"] else {}),
    }
    pages = [
        _page(own, page, {tag: texts["pages"][i] for tag, texts in translations.items()})
        for i, page in enumerate(form["pages"])
    ]
    return {**written, "pages": pages}


def _page(own: str, page: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    titles = {tag: texts["title"] for tag, texts in told.items()}
    questions = [
        _question(own, one, {tag: texts["questions"][i] for tag, texts in told.items()})
        for i, one in enumerate(page["questions"])
    ]
    return {"title": _in_languages(own, page["title"], titles), "questions": questions}


def _question(own: str, form: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """A question with its options, its grid and its privacy; defaults are left out."""

    def text(name: str, value: str) -> Any:
        return _in_languages(own, value, {tag: texts[name] for tag, texts in told.items()})

    labels = [
        _in_languages(
            own, option["label"], {tag: texts["options"][i] for tag, texts in told.items()}
        )
        for i, option in enumerate(form["options"])
    ]
    written: dict[str, Any] = {
        "id": form["id"],
        "type": form["type"],
        "text": text("text", form["text"]),
        "help": text("help", form["help"]),
        **_options(form, labels),
        **_numbers(form, lambda unit: text("unit", unit)),
        "ask_if": form["ask_if"],
        "shuffle_options": form.get("shuffled"),
        "mechanism": form["mechanism"],
        **_privacy(form["stated"]),
    }
    return {name: value for name, value in written.items() if value not in ("", None)}


def _options(form: Mapping[str, Any], labels: Sequence[Any]) -> dict[str, Any]:
    """Ordinary options as a list, those that are there by themselves by their names."""
    options = list(zip((option["id"] for option in form["options"]), labels, strict=True))
    special = {name: label for name, label in options if name in SPECIAL}
    ordinary = [{"id": name, "label": label} for name, label in options if name not in SPECIAL]
    written: dict[str, Any] = {"prefer_not_to_say": False, **special}
    if form["type"] == "scale" and all(POINT.fullmatch(option["id"]) for option in ordinary):
        return {**written, **_ends([option["label"] for option in ordinary], form["grid"])}
    if ordinary:
        written["options"] = ordinary
    if form["type"] == "multiple_choice" and form["max_ticks"] != len(ordinary):
        written["max_ticks"] = form["max_ticks"]
    return written


def _ends(labels: Sequence[Any], grid: Mapping[str, Any]) -> dict[str, Any]:
    """A numbered scale: its ends, and what they are called."""
    high = grid["low"] + grid["points"] - 1
    named = {"low_label": _end(labels[0]), "high_label": _end(labels[-1])}
    return {"low": grid["low"], "high": high, **{k: v for k, v in named.items() if v}}


def _end(label: Any) -> Any:
    """What stands in brackets behind an end's number, in every language."""
    if isinstance(label, Mapping):
        found = {language: _end(text) for language, text in label.items()}
        return found if any(found.values()) else ""
    match = ENDS.fullmatch(label)
    return (match["label"] or "") if match else ""


def _numbers(form: Mapping[str, Any], unit: Any) -> dict[str, Any]:
    grid = form["grid"]
    if not grid or form["type"] not in ("number", "date"):
        return {}
    low, step, last = grid["low"], grid["step"], grid["low"] + grid["step"] * (grid["points"] - 1)
    if form["type"] == "date":
        days = {
            name: (EPOCH + timedelta(day)).isoformat()
            for name, day in (("low", low), ("high", last))
        }
        return {**days, "step": step}
    scale = 10 ** grid["decimals"]
    numbers = {"low": low, "high": last, "step": step}
    return {
        **{name: format_fraction(Fraction(value, scale)) for name, value in numbers.items()},
        "unit": unit(grid["unit"]),
    }


def _privacy(stated: Mapping[str, str]) -> dict[str, Any]:
    own = {way: value for way, value in stated.items() if way not in PRIVACY}
    return {
        **{way: stated[way] for way in PRIVACY if way in stated},
        **({"parameters": own} if own else {}),
    }


def _in_languages(own: str, text: str, told: Mapping[str, str]) -> Any:
    """A text alone, or as a table of its languages."""
    others = {language: other for language, other in told.items() if other}
    return {own: text, **others} if others else text
