"""Draft to definition file, and definition file (or published version) to draft.

A question that states no privacy yet gets the standard level.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from itertools import count
from typing import Any

from survey.questionnaire.designs import DESIGNS, PRIVACY
from survey.questionnaire.drafts.draft import (
    AUTOMATIC,
    EMPTY_PLAN,
    EMPTY_QUESTION,
    EMPTY_SURVEY,
    QUESTION_TEXTS,
    DraftContent,
    DraftPage,
    Question,
    Texts,
    free_identifier,
    identifier,
    usual_label,
)
from survey.questionnaire.kinds import kind_of
from survey.questionnaire.kinds.base import (
    NONE_ID,
    NOT_APPLICABLE_ID,
    OPT_OUT_ID,
    SPECIAL,
    SPECIAL_KEYS,
    USUAL_KEYS,
)
from survey.questionnaire.texts import SURVEY_TEXTS, languages_in
from survey.questionnaire.validation import expand, own_language, special_in
from survey.respondent_texts import SOURCE, label_language, say

STANDARD_RATIO = 3
"""The odds factor of one report at the standard privacy level."""

STANDARD_EPSILON = "1.098"
"""ln 3 in thousandths, rounded down: the same level for designs that are stated by epsilon."""

WHOLE = re.compile(r"[+-]?[0-9]{1,15}")

NUMBERS = ("low", "high", "step", "max_ticks")


def definition_from(content: DraftContent) -> dict[str, Any]:
    """Return the draft in the form of a definition file, for `validation.check`.

    An automatic number of questions is left out: it depends on the channels, which only the check
    knows (`check.check_draft`).
    """
    survey = {
        name: _source_text(value, content) if name in SURVEY_TEXTS else value
        for name, value in content.survey.items()
        if name != "labels"  # each question states its own
    }
    draw = content.survey["questions_per_person"]
    survey["questions_per_person"] = "" if draw == AUTOMATIC else _parse_whole(draw)
    pages: list[dict[str, Any]] = [
        {
            "title": _source_text(page.title, content),
            "questions": [question_source(question, content) for question in page.questions],
        }
        for page in content.pages
    ]
    definition = {**_without_empty(survey), "pages": pages}
    # A language in which only the usual labels exist is not a language of the survey.
    reworded = (tag for texts in content.survey["labels"].values() for tag in texts)
    languages = {*languages_in(definition, content.own_language), *reworded}
    for page, source in zip(content.pages, pages, strict=True):
        source["questions"] = [
            {**written, **_usual_labels(question, content, languages)}
            for question, written in zip(page.questions, source["questions"], strict=True)
        ]
    return definition


def question_source(question: Question, content: DraftContent) -> dict[str, Any]:
    """Return one question in the form of a definition file, with its privacy stated.

    The usual labels are left out.
    """
    kind = kind_of(question)
    parts = {
        name: _part(question, name, content) for name in ("text", "help", "topic", *kind.fields)
    }
    if NONE_ID + "_label" in parts:
        parts[NONE_ID] = parts.pop(NONE_ID + "_label")
    source = {
        "id": question["id"],
        "type": kind.type,
        **parts,
        NOT_APPLICABLE_ID: _special_option(question, NOT_APPLICABLE_ID, content),
        "ask_if": question["ask_question"]
        and {"question": question["ask_question"], "options": list(question["ask_options"])},
        "mechanism": question["mechanism"],
        "parameters": parse_parameters(question["parameters"]),
        **({question["way"]: question["value"]} if question["way"] else {}),
    }
    opt_out = _special_option(question, OPT_OUT_ID, content)
    return with_standard_privacy({**_without_empty(source), OPT_OUT_ID: opt_out})


def nonempty_options(question: Question) -> list[Mapping[str, Any]]:
    """Return the options of a draft's question that have an id or a label, in order."""
    return [
        option for option in question["options"] if option["id"] or any(option["label"].values())
    ]


def option_ids(question: Question, language: str) -> dict[int, str]:
    """Return the id of each option by key: the written one, else one made from its label."""
    ids: dict[int, str] = {}
    existing = {str(option["id"]) for option in question["options"]}
    for number, option in enumerate(nonempty_options(question), 1):
        name = str(option["id"])
        if not name:
            base = identifier(option["label"].get(language, "")) or f"option_{number}"
            name = free_identifier(base, existing)
            existing.add(name)
        ids[option["key"]] = name
    return ids


def row_ids(question: Question, language: str) -> dict[int, str]:
    """Return the id of each row of a matrix by key: the written one, or one from the row's text."""
    ids: dict[int, str] = {}
    existing = {str(row["id"]) for row in question["rows"]}
    for number, row in enumerate(question["rows"], 1):
        name = str(row["id"])
        if not name:
            base = identifier(row["text"].get(language, ""))[:MAX_ROW_ID_LENGTH].strip("_")
            name = free_identifier(base or f"row_{number}", existing)
            existing.add(name)
        ids[row["key"]] = name
    return ids


MAX_ROW_ID_LENGTH = 24
"""Maximum length of a row's id made from its text, because the matrix's id comes before it."""


def parse_parameters(text: str) -> dict[str, Any]:
    """Parse parameters, one per line; a value that is not JSON is a text.

    >>> parse_parameters("p = 0.7\\nforced = [0.5, 0.5]\\n\\nyes")
    {'p': Decimal('0.7'), 'forced': [Decimal('0.5'), Decimal('0.5')], 'yes': ''}
    """
    lines = (line.partition("=") for line in text.splitlines() if line.strip())
    return {name.strip(): _parse_value(value.strip()) for name, _, value in lines}


def _parse_value(text: str) -> Any:
    try:
        return json.loads(text, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError):
        return text


def _part(question: Question, name: str, content: DraftContent) -> Any:
    if name == "options":
        ids = option_ids(question, content.own_language)
        return [
            {
                "id": ids[option["key"]],
                "label": _source_text(option["label"], content),
                **_picture_source(question, option, content),
            }
            for option in nonempty_options(question)
        ]
    if name == "rows":
        ids = row_ids(question, content.own_language)
        return [
            {"id": ids[row["key"]], "text": _source_text(row["text"], content)}
            for row in question["rows"]
        ]
    if name == "topic":
        return _source_text(content.topic_texts(question), content)
    if name in QUESTION_TEXTS:
        return _source_text(question[name], content)
    is_whole = name in kind_of(question).whole_fields
    return _parse_whole(question[name]) if is_whole else question[name]


def _picture_source(
    question: Question, option: Mapping[str, Any], content: DraftContent
) -> dict[str, Any]:
    """Return the keys of an option's picture; {} if the type of question has no pictures."""
    if not option.get("picture") or not kind_of(question).has_pictures:
        return {}
    alt = _source_text(option["picture_alt"], content)
    return {"picture": option["picture"], "picture_alt": alt}


def _special_option(question: Question, name: str, content: DraftContent) -> Any:
    """Return False to leave out an automatic option, True for its default label, or its label."""
    return question[name] and (_source_text(question[f"{name}_label"], content) or True)


def _usual_labels(
    question: Question, content: DraftContent, languages: Collection[str]
) -> dict[str, Any]:
    """Return the keys for a question's usual labels; {} if these are the default labels anyway."""
    labels = {name: content.usual_labels[name] for name in content.usual_in(question)}
    if all(
        texts.get(tag, texts[content.own_language]) == say(label_language(tag), USUAL_KEYS[name])
        for name, texts in labels.items()
        for tag in languages
    ):
        return {}
    written = {
        name: {tag: texts[tag] for tag in languages if tag in texts}
        for name, texts in labels.items()
    }
    special = {name: label for name, label in written.items() if name in SPECIAL_KEYS}
    options = [{"id": name, "label": written[name]} for name in written if name not in special]
    return {**special, **({"options": options} if options else {})}


def _source_text(texts: Texts, content: DraftContent) -> str | dict[str, str]:
    """Return a text, or a table of the draft's languages when it is translated."""
    text = texts.get(content.own_language, "")
    translations = {name: texts[name] for name in content.languages if texts.get(name)}
    return {content.own_language: text, **translations} if translations else text


def _parse_whole(text: str) -> int | str:
    """Return a whole number, or the text unchanged, which the loader then reports."""
    return int(text) if WHOLE.fullmatch(str(text).strip()) else text


def _without_empty(form: Mapping[str, Any]) -> dict[str, Any]:
    """Return the form without empty values; the number 0 is not empty."""
    return {
        name: value
        for name, value in form.items()
        if value or (isinstance(value, int) and not isinstance(value, bool))
    }


def draft_from(definition: Mapping[str, Any]) -> DraftContent:
    """Return the draft of a definition that `validation.check` accepts."""
    raw = expand(definition)
    language = own_language(raw)
    languages = tuple(languages_in(raw, language))
    reader = _Reader(languages)
    survey = {
        name: reader.texts(raw.get(name)) if name in SURVEY_TEXTS else raw.get(name, default)
        for name, default in EMPTY_SURVEY.items()
    }
    survey["questions_per_person"] = _field_text(survey["questions_per_person"])
    survey["together"] = tuple(survey["together"])
    pages = tuple(reader.page(page) for page in raw["pages"])
    survey["labels"] = {name: texts for name, texts in reader.labels.items() if texts}
    last_key = next(reader.keys) - 1
    return DraftContent(survey, languages[1:], pages, EMPTY_PLAN, last_key)


class _Reader:
    """Reads pages, questions and options, and gives each a key; `labels` are a draft's."""

    def __init__(self, languages: Sequence[str]) -> None:
        self._language, self._languages = languages[0], languages
        self.keys = count(1)
        self.labels: dict[str, Texts] = {}

    def texts(self, value: Any) -> Texts:
        """Return a text as a table of languages."""
        if isinstance(value, Mapping):
            return {str(language): str(text) for language, text in value.items()}
        return {self._language: value} if isinstance(value, str) and value else {}

    def _label(self, name: str, value: Any) -> Texts:
        """Return the wording of an option with a usual label; {} if `labels` has its wording."""
        own, key, texts = self._language, USUAL_KEYS[name], self.texts(value)
        usual = usual_label(name, own) or say(SOURCE, key)
        if texts.get(own, usual) not in (usual, say(label_language(own), key)) and name in SPECIAL:
            return texts
        # Versions and files without stated labels keep their present ones in all their languages.
        shown = {
            tag: texts.get(tag) or texts.get(own) or say(label_language(tag), key)
            for tag in self._languages
        }
        reworded = {
            tag: text
            for tag, text in shown.items()
            if text != (usual_label(name, tag) or shown[own])
        }
        return {} if self.labels.setdefault(name, reworded) == reworded else shown

    def page(self, raw: Mapping[str, Any]) -> DraftPage:
        """Read a page with its questions."""
        key = next(self.keys)
        questions = tuple(self._question(question) for question in raw["questions"])
        return DraftPage(key, self.texts(raw.get("title")), questions)

    def _question(self, raw: Mapping[str, Any]) -> Question:
        way = next((name for name in PRIVACY if name in raw), "")
        condition = raw.get("ask_if") or {}
        labels = {
            f"{name}_label": self._label(name, value) for name, value in special_in(raw).items()
        }
        for option in kind_of(raw).default_options():
            written = {entry["id"]: entry["label"] for entry in raw.get("options", ())}
            self._label(option["id"], written.get(option["id"]))
        texts = {name: self.texts(raw.get(name)) for name in QUESTION_TEXTS}
        return {
            **EMPTY_QUESTION,
            "key": next(self.keys),
            "id": raw["id"],
            "type": raw["type"],
            **texts,
            **labels,
            **{name: _field_text(raw.get(name)) for name in NUMBERS},
            "options": tuple(
                {
                    "key": next(self.keys),
                    "id": option["id"],
                    "label": self.texts(option["label"]),
                    "picture": option.get("picture", ""),
                    "picture_alt": self.texts(option.get("picture_alt")),
                }
                for option in raw.get("options", ())
            ),
            "rows": tuple(
                {"key": next(self.keys), "id": row["id"], "text": self.texts(row["text"])}
                for row in raw.get("rows", ())
            ),
            "shuffle_options": bool(raw.get("shuffle_options", False)),
            "slider": bool(raw.get("slider", False)),
            OPT_OUT_ID: raw.get(OPT_OUT_ID, True) is not False,
            NOT_APPLICABLE_ID: raw.get(NOT_APPLICABLE_ID, False) is not False,
            "ask_question": condition.get("question", ""),
            "ask_options": tuple(condition.get("options", ())),
            "mechanism": raw.get("mechanism") or "",
            "parameters": "\n".join(
                f"{name} = {_parameter_text(value)}"
                for name, value in (raw.get("parameters") or {}).items()
            ),
            "way": way,
            "value": _field_text(raw.get(way)) if way else "",
        }


def _field_text(value: Any) -> str:
    """Return a number or a day as the text of a form field."""
    return "" if value is None else str(value)


def _parameter_text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_parameter_text, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)


# The standard privacy level


def with_standard_privacy(question: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question with the standard privacy level, unless it states its own.

    With generalized randomized response of k options p = 3/(k+2), so that p/q = 3: 3/5 for yes/no
    with "prefer not to say".
    """
    mechanism = question.get("mechanism", "grr")
    design = DESIGNS.get(str(mechanism))
    if (design and design.has_own_statement) or any(way in question for way in PRIVACY):
        return dict(question)
    k = _count_ordinary_options(question) + len(special_in(question))
    kind = kind_of(question)
    if kind.is_single and not kind.is_matrix and mechanism == "grr" and k >= 2:
        return {**question, "truth_probability": f"{STANDARD_RATIO}/{k + STANDARD_RATIO - 1}"}
    return {**question, "epsilon": STANDARD_EPSILON}


def _count_ordinary_options(question: Mapping[str, Any]) -> int:
    """Return how many options are answers, as far as the question says."""
    if defaults := kind_of(question).default_options():
        return len(defaults)
    low, high = question.get("low"), question.get("high")
    if isinstance(low, int) and isinstance(high, int):
        return max(high - low + 1, 0)
    return len(question.get("options", ()))
