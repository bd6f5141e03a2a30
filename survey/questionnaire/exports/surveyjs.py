"""SurveyJS: a JSON file with pages of elements.

Source of the format: https://surveyjs.io/form-library/documentation/api-reference
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from survey.questionnaire.definition import Survey
from survey.questionnaire.exports.assembly import (
    Exported,
    Localized,
    TranslatedQuestion,
    languages_of,
    translated_pages,
)
from survey.questionnaire.imports.markup import plain_text
from survey.questionnaire.kinds import BaseQuestion
from survey.questionnaire.kinds.base import EPOCH, NONE_ID, NOT_APPLICABLE_ID, OPT_OUT_ID, Grid
from survey.questionnaire.placeholders import is_piped, parse_piped, sources_of

Form = dict[str, Any]

DEFAULT_LOCALE = "en"
"""The language whose texts SurveyJS stores under "default"."""

REFUSED, NONE = "refused", "none"
"""The answers of the options "Prefer not to say" and "None of these" in SurveyJS."""

MAX_NUMBERED = 20
"""SurveyJS shows no more points of a rating with two ends, but any number of listed points."""

RANDOMIZATION = "SurveyJS sends true answers: the randomization is not exported"

SURVEY_NOTES: Mapping[str, str] = {
    "consent": "the consent has no counterpart",
    "ethics": "the approval by an ethics committee has no counterpart",
    "helpline": "the helpline has no counterpart",
    "contact": "the contact has no counterpart",
    "organization": "the organization has no counterpart",
    "questions_per_person": "everybody is asked all questions",
    "together": "everybody is asked all questions, so none are declared as asked together",
    "quick_exit": "there is no button to leave the page quickly",
    "kiosk": "there is no mode for shared devices",
    "field_until": "there is no field mode",
    "theme": "the accent color has no counterpart",
}
"""Notes on keys of a survey that cannot be exported, if they are set."""

LOOKS_LIKE_HTML = "an import of this file takes parts of the text for HTML, and changes them"

USUAL_VALUES: Mapping[str, str] = {"bucket": "none", "access": "open"}

SETTING_NOTES: Mapping[str, str] = {
    "bucket": "the time of a release has no counterpart",
    "access": "SurveyJS has no invitations",
}
"""Notes on settings that differ from the usual value."""


def write(survey: Survey) -> Exported:
    """Return a survey as the JSON of SurveyJS."""
    writer = _Writer(survey)
    text = json.dumps(writer.form(), indent=2, ensure_ascii=False)
    media_type = "application/json; charset=utf-8"
    return Exported(f"{text}\n".encode(), ".json", tuple(writer.notes), media_type)


class _Writer:
    """Writes the elements of a survey, each by the method of its kind of answers.

    `_values` are the answers in SurveyJS by the ids of options, for each question.
    """

    def __init__(self, survey: Survey) -> None:
        self._survey = survey
        self._languages = languages_of(survey)
        self._values: dict[str, dict[str, Any]] = {}
        self._sources: dict[str, tuple[str, bool]] = {}
        self.notes = [RANDOMIZATION]

    def form(self) -> Form:
        """Return the survey as SurveyJS has it."""
        survey = self._survey
        form: Form = {
            "title": self._survey_text(lambda survey: survey.title),
            "description": self._survey_text(lambda survey: survey.introduction),
            "completedHtml": self._survey_text(lambda survey: _as_html(survey.thanks)),
            "locale": "" if survey.language == DEFAULT_LOCALE else _locale(survey.language),
            "questionsOnPageMode": "questionPerPage" if survey.layout == "questions" else "",
            "pages": [
                self._page(number, {tag: page.title for tag, page in pages.items()}, questions)
                for number, (pages, questions) in enumerate(translated_pages(survey), 1)
            ],
        }
        self._add_notes()
        self._note_markup(form)
        return _without_empty(form)

    def _add_notes(self) -> None:
        survey = self._survey
        for key, note in SURVEY_NOTES.items():
            if getattr(survey, key):
                self.notes.append(f"{key}: {note}")
        for key, note in SETTING_NOTES.items():
            if getattr(survey, key) != USUAL_VALUES[key]:
                self.notes.append(f"{key}: {note}")

    def _note_markup(self, form: Form) -> None:
        """Note texts that an import changes because they look like HTML."""
        parts = {key: form[key] for key in ("title", "description")}
        for page in form["pages"]:
            parts[page["name"]] = page.get("title")
            parts |= {element["name"]: element for element in page["elements"]}
        for name, part in parts.items():
            if any(plain_text(text).text.split() != text.split() for text in _strings(part)):
                self.notes.append(f"{name}: {LOOKS_LIKE_HTML}")

    def _page(self, number: int, title: Localized, questions: list[TranslatedQuestion]) -> Form:
        elements = [self._element(question) for question in questions]
        page = {"name": f"page{number}", "title": self._text(title), "elements": elements}
        return _without_empty(page)

    def _element(self, question: TranslatedQuestion) -> Form:
        """Return one element; the keys that all types have come first."""
        first = question.first
        element = {
            **self._typed(question),
            "visibleIf": self._condition(question),
            "isRequired": not first.prefer_not_to_say,
        }
        if first.topic and not question.is_matrix:
            self._note(question, "the topic has no counterpart")
        texts = {
            "name": question.id,
            "title": self._text(
                {
                    tag: rows[0].matrix.text if rows[0].matrix else rows[0].text
                    for tag, rows in question.versions.items()
                },
                question,
            ),
            "description": self._localized(question, lambda version: version.help),
        }
        return _without_empty({"type": element.pop("type"), **texts, **element})

    def _typed(self, question: TranslatedQuestion) -> Form:
        first, kind = question.first, question.first.kind
        if question.is_matrix:
            return self._matrix(question)
        if kind.is_numeric:
            return self._entry(question, first)
        if kind.is_binary:
            return self._boolean(question)
        return self._scale(question) if kind.is_ordered else self._list(question)

    # -- one method for each kind of answers

    def _boolean(self, question: TranslatedQuestion) -> Form:
        self._remember(question, {"yes": True, "no": False})
        return {
            "type": "boolean",
            "labelTrue": self._localized(question, lambda version: version.ordinary[0].label),
            "labelFalse": self._localized(question, lambda version: version.ordinary[1].label),
            "renderAs": "radio",
        }

    def _list(self, question: TranslatedQuestion) -> Form:
        """Return one or several of a list of options, or their order."""
        first, kind = question.first, question.first.kind
        form: Form = {"type": "checkbox" if kind.is_multiple else "radiogroup"}
        values = {option.id: option.id for option in first.ordinary}
        special = {option.id for option in first.special}
        if kind.is_ranking:
            form["type"] = "ranking"
        else:
            form |= self._special(question, special)
            values |= {OPT_OUT_ID: REFUSED} if OPT_OUT_ID in special else {}
            values |= {NONE_ID: NONE} if NONE_ID in special else {}
        choices = self._choices(question, lambda i: first.ordinary[i].id)
        if NOT_APPLICABLE_ID in special and not kind.is_ranking and not first.ask_if:
            label = self._localized(question, lambda version: _label(version, NOT_APPLICABLE_ID))
            alone = {"isExclusive": True} if kind.is_multiple else {}
            choices.append({"value": NOT_APPLICABLE_ID, "text": label, **alone})
            values[NOT_APPLICABLE_ID] = NOT_APPLICABLE_ID
        self._remember(question, values)
        if any(option.picture for option in first.ordinary):
            self._note(question, "the pictures of its options are left out")
        maximum = first.ticks if 0 < first.ticks < len(first.ordinary) else 0
        shuffled = {"choicesOrder": "random"} if first.shuffled else {}
        return {**form, "choices": choices, **shuffled, "maxSelectedChoices": maximum}

    def _special(self, question: TranslatedQuestion, special: set[str]) -> Form:
        """Return the properties for "Prefer not to say" and "None of these"."""
        form: Form = {}
        for id_, item in ((OPT_OUT_ID, "Refuse"), (NONE_ID, "None")):
            if id_ in special:
                form[f"show{item}Item"] = True
                form[f"{item.lower()}Text"] = self._label_of(question, id_)
        return form

    def _label_of(self, question: TranslatedQuestion, id_: str) -> Any:
        return self._localized(question, lambda version: _label(version, id_))

    def _scale(self, question: TranslatedQuestion) -> Form:
        form: Form = {"type": "rating"}
        points = self._points(question)
        low, high = _ends(question.first)
        if low is None:
            return {**form, "rateValues": points}
        if len(points) > MAX_NUMBERED:
            return {**form, "rateValues": points, "displayMode": "dropdown"}
        labels = {
            "minRateDescription": self._localized(
                question, lambda v: getattr(v, "low_label", "") or ""
            ),
            "maxRateDescription": self._localized(
                question, lambda v: getattr(v, "high_label", "") or ""
            ),
        }
        return {**form, "rateMin": low, "rateMax": high, **labels}

    def _points(self, question: TranslatedQuestion) -> list[Form]:
        """Return the points of a scale: numbers, or the ids of options."""
        first = question.first
        low, _ = _ends(first)
        values = [option.id if low is None else low + i for i, option in enumerate(first.ordinary)]
        ids = [option.id for option in first.ordinary]
        for row in question.rows:
            name = f"{question.id}.{_row_id(row)}" if row.matrix else row.id
            self._values[row.id] = dict(zip(ids, values, strict=True))
            self._sources[row.id] = name, False
        return self._choices(question, values.__getitem__)

    def _matrix(self, question: TranslatedQuestion) -> Form:
        rows = [
            {
                "value": _row_id(row),
                "text": self._text(
                    {
                        tag: matrix.row if (matrix := version[i].matrix) else ""
                        for tag, version in question.versions.items()
                    }
                ),
            }
            for i, row in enumerate(question.rows)
        ]
        return {"type": "matrix", "columns": self._points(question), "rows": rows}

    def _entry(self, question: TranslatedQuestion, first: BaseQuestion) -> Form:
        """Return a number or a day between two ends."""
        grid = first.grid
        if grid is None:
            return {"type": "text"}
        if first.kind.is_date:
            days = [EPOCH + timedelta(grid.low + i * grid.step) for i in (0, grid.points - 1)]
            dates: Form = {"min": days[0].isoformat(), "max": days[1].isoformat()}
            dates |= {"step": grid.step} if grid.step != 1 else {}
            return {"type": "text", "inputType": "date", **dates}
        low, high = _number(grid, 0), _number(grid, grid.points - 1)
        step = _exact(grid.step, grid.decimals)
        form: Form = {"type": "text", "min": low, "max": high, "step": step}
        if first.slider_labels is None:
            form |= {"inputType": "number"}
            if grid.unit:
                form["placeholder"] = self._localized(question, _unit)
                self._note(question, "the unit is only visible while the field is empty")
            return form
        if grid.unit:
            self._note(question, "the unit of the slider has no counterpart")
        if any(first.slider_labels):
            self._note(question, "the labels of the slider's ends have no counterpart")
        # An entry of the type "range" would record its middle when a respondent only tabs past it.
        return {**form, "type": "slider"}

    # -- parts

    def _choices(self, question: TranslatedQuestion, value: Callable[[int], Any]) -> list[Form]:
        """Return the ordinary options with their labels; `value` gives their answers by index."""
        return [
            {"value": value(i), "text": self._label_at(question, i)}
            for i in range(len(question.first.ordinary))
        ]

    def _label_at(self, question: TranslatedQuestion, i: int) -> Any:
        return self._localized(question, lambda version: version.ordinary[i].label)

    def _condition(self, question: TranslatedQuestion) -> str:
        """Return the expression for a question's condition; "" if everybody is asked it."""
        first = question.first
        names = {option.id for option in first.special}
        is_list = not (first.kind.is_numeric or first.kind.is_ordered or first.kind.is_binary)
        is_list = is_list and not first.kind.is_ranking
        if NOT_APPLICABLE_ID in names and not first.ask_if and not is_list:
            self._note(question, "“Does not apply” has no counterpart")
        if first.ask_if is None:
            return ""
        source, options = first.ask_if.question, first.ask_if.options
        name, is_multiple = self._sources[source]
        values = [self._values[source][id_] for id_ in options if id_ in self._values[source]]
        if len(values) < len(options):
            self._note(question, "its condition on an unanswered question has no counterpart")
        if not values:
            return ""
        words = [f"'{value}'" if isinstance(value, str) else str(value).lower() for value in values]
        if len(words) > 1:
            return f"{{{name}}} anyof [{', '.join(words)}]"
        return f"{{{name}}} {'contains' if is_multiple else '='} {words[0]}"

    def _remember(self, question: TranslatedQuestion, values: dict[str, Any]) -> None:
        """Store the answers of a question, for the conditions of later ones."""
        self._values[question.id] = values
        self._sources[question.id] = question.id, question.first.kind.is_multiple

    def _note(self, question: TranslatedQuestion, note: str) -> None:
        self.notes.append(f"{question.id}: {note}")

    # -- texts

    def _survey_text(self, text: Callable[[Survey], str]) -> Any:
        return self._text({tag: text(survey) for tag, survey in self._languages.items()})

    def _localized(self, question: TranslatedQuestion, text: Callable[[BaseQuestion], str]) -> Any:
        """Return a text of a question in all languages."""
        return self._text({tag: text(rows[0]) for tag, rows in question.versions.items()}, question)

    def _text(self, texts: Localized, question: TranslatedQuestion | None = None) -> Any:
        """Return a text, or a table of languages if it is translated."""
        if question and not question.is_matrix:
            if sources := sources_of(next(iter(texts.values()))):
                listed = ", ".join(dict.fromkeys(sources))
                note = f"the words for a missing answer to {listed} have no counterpart"
                self._note(question, note)
            if any(_has_braces(text) for text in texts.values()):
                self._note(question, "SurveyJS can read words in braces as the name of an answer")
            texts = {tag: _piped(text) for tag, text in texts.items()}
        first_text = next(iter(texts.values()))
        if all(text == first_text for text in texts.values()):
            return first_text
        return {
            "default" if tag == DEFAULT_LOCALE else _locale(tag): text
            for tag, text in texts.items()
        }


def _strings(part: Any) -> Iterator[str]:
    """Yield all texts in a part of a form."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, Mapping | list):
        for inner in part.values() if isinstance(part, Mapping) else part:
            yield from _strings(inner)


def _piped(text: str) -> str:
    """Return a text with earlier answers as SurveyJS has them.

    >>> _piped("At {job|your work}?"), _piped("At work?")
    ('At {job}?', 'At work?')
    """
    if not is_piped(text):
        return text
    parts = parse_piped(text)
    return "".join(part if isinstance(part, str) else f"{{{part.question}}}" for part in parts)


def _has_braces(text: str) -> bool:
    """Return whether a text has braces that are no placeholder.

    >>> _has_braces("At {job|your work} {{now}}?"), _has_braces("At {job|your work}?")
    (True, False)
    """
    parts = parse_piped(text) if is_piped(text) else [text]
    return any("{" in part for part in parts if isinstance(part, str))


def _ends(question: BaseQuestion) -> tuple[int | None, int | None]:
    """Return the ends of a numbered scale; None if its points are written out."""
    return getattr(question, "low", None), getattr(question, "high", None)


def _row_id(row: BaseQuestion) -> str:
    return row.id.removeprefix(f"{row.matrix.id}_") if row.matrix else row.id


def _label(question: BaseQuestion, id_: str) -> str:
    return next((option.label for option in question.special if option.id == id_), "")


def _unit(question: BaseQuestion) -> str:
    return question.grid.unit if question.grid else ""


def _number(grid: Grid, i: int) -> int | float:
    return _exact(grid.low + i * grid.step, grid.decimals)


def _exact(value: int, decimals: int) -> int | float:
    """Return value / 10^decimals; a number without decimals is whole.

    >>> _exact(25, 1), _exact(20, 1)
    (2.5, 2)
    """
    scale: int = 10**decimals
    whole, remainder = divmod(value, scale)
    return value / scale if remainder else whole


def _as_html(text: str) -> str:
    return html.escape(text, quote=False).replace("\n", "<br>")


def _locale(tag: str) -> str:
    """Return a language tag as SurveyJS writes it: pt-br."""
    return tag.lower()


def _without_empty(form: Mapping[str, Any]) -> Form:
    """Return a form without keys whose value is their default; 0 is a value of numbers."""
    return {
        key: value
        for key, value in form.items()
        if value not in ("", False, None, [], {}) or (key in ("min", "rateMin") and value == 0)
        if not (key == "maxSelectedChoices" and not value)
    }
