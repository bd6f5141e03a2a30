"""SurveyJS: a JSON file with pages of elements.

Source of the format: https://surveyjs.io/form-library/documentation/api-reference
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from survey.mechanism.weight_table import MAX_RANKED, MIN_RANKED
from survey.questionnaire.error_messages import refusal, shortened
from survey.questionnaire.imports.assembly import (
    UNBOUNDED,
    Assembly,
    Form,
    Imported,
    joined_texts,
    language_tag,
    listed_options,
    matrix_forms,
)
from survey.questionnaire.imports.earlier_answers import References
from survey.questionnaire.imports.markup import Text, one_line, plain_text
from survey.questionnaire.imports.surveyjs_conditions import condition_of
from survey.questionnaire.imports.surveyjs_parts import (
    all_elements,
    conditions_of,
    inner_elements,
    is_maximum,
    is_on,
    items_of,
    name_and_type,
    numbered_scale,
    objects,
    tightest,
)
from survey.questionnaire.imports.surveyjs_terms import (
    DROPPED,
    END_LABELS,
    IMPORTED,
    LAYOUT,
    QUESTION_KEYS,
    SURVEY_KEYS,
    TABLES,
)
from survey.questionnaire.kinds.base import LARGEST, NONE_ID, NOT_APPLICABLE_ID, OPT_OUT_ID
from survey.questionnaire.kinds.scale import point_id
from survey.questionnaire.language_names import language_name
from survey.questionnaire.loading import parse

CONTENTS = ("pages", "elements", "questions")

MAX_REPEATED = 10_000
"""Maximum number of characters that are repeated in each item of an element."""

HIDDEN = "is hidden: respondents do not see it"

DEFAULT_LOCALE = "en"
"""The language of texts under "default", unless they are the only ones in the own language."""

REFERENCES = References(re.compile(r"\{([^{}]{1,200})\}"), str.strip)
"""The value of a question or a variable in a text."""

MOST_POINTS = 100
"""Maximum number of points of a rating."""

ONE_QUESTION_MODES = ("questionPerPage", "questionOnPage")
"""The names for one question at a time, the second one before version 2."""


Reader = Callable[["_Reader", str, Mapping[str, Any]], None]


def read(content: bytes, name: str, *, skip_logic: bool = False) -> Imported:
    """Import a questionnaire of SurveyJS; raises DefinitionError if it is none."""
    form = parse(content, name)
    if not any(key in form for key in CONTENTS):
        raise refusal([(shortened(name), "is not a SurveyJS questionnaire: it has no pages")])
    locale = str(form.get("locale") or DEFAULT_LOCALE)
    language = language_tag(locale) or DEFAULT_LOCALE
    reader = _Reader(Assembly(language, skip_logic=skip_logic, references=REFERENCES), locale)
    return reader.read(form)


class _Reader:
    """Reads the elements of a questionnaire, each by the method of its type."""

    def __init__(self, assembly: Assembly, locale: str) -> None:
        self._to, self._locale = assembly, locale
        self._unknown_locales: set[str] = set()
        self._losses: set[str] = set()
        """What the texts of the current element contained beside text."""
        self._around: Text = ""
        """The title of the element that the current one is an item of."""

    def read(self, form: Mapping[str, Any]) -> Imported:
        texts = {
            "title": self._text(form.get("title")),
            "introduction": self._text(form.get("description"), line=False),
            "thanks": self._text(form.get("completedHtml"), line=False),
        }
        self._to.texts |= {key: text for key, text in texts.items() if text}
        if form.get("questionsOnPageMode") in ONE_QUESTION_MODES:
            self._to.settings["layout"] = "questions"
        self._report_losses("survey")
        self._report_keys("survey", form, SURVEY_KEYS)
        for page in objects(form.get("pages")):
            self._read_page(page)
        self._to.add_page()
        self._read_elements(form, ())
        for locale in sorted(self._unknown_locales):
            self._to.drop(locale, "language", "is no language tag")
        return self._to.finish()

    def _read_page(self, page: Mapping[str, Any]) -> None:
        name = str(page.get("name") or "page")
        if page.get("visible") is False:
            self._drop_all(name, "page", page, HIDDEN)
            return
        self._to.add_page(self._text(page.get("title")))
        self._report_losses(name)
        self._report_texts(name, page, ("description",))
        self._read_elements(page, ())

    def _drop_all(self, name: str, kind: str, holder: Mapping[str, Any], why: str) -> None:
        """Report a page or an element that is dropped, and the questions in it."""
        self._to.drop(name, kind, why)
        why = f"is in {shortened(name)}: {why}"
        for inner in all_elements(holder):
            self._to.drop(*name_and_type(inner), why)
        for part in items_of(holder.get("columns" if kind in TABLES else "items")):
            cell = part if isinstance(part, Mapping) else {"name": part}
            cell_type = cell.get("cellType") or cell.get("inputType") or "item"
            self._to.drop(f"{shortened(name)}.{cell.get('name')}", str(cell_type), why)

    def _report_losses(self, name: str) -> None:
        """Report what the texts of the survey or of a page contained beside text."""
        for loss in sorted(self._losses):
            self._to.drop(name, "texts", loss)
        self._losses = set()

    def _report_texts(self, name: str, holder: Mapping[str, Any], dropped: Sequence[str]) -> None:
        """Report texts of a page or panel that have no place, and its other properties."""
        for key in dropped:
            if self._text(holder.get(key)):
                self._to.drop(name, key, "only questions and pages have texts; pages have a title")
        self._report_keys(name, holder, QUESTION_KEYS)

    def _read_elements(self, holder: Mapping[str, Any], conditions: Sequence[str]) -> None:
        conditions_here = conditions_of(holder)
        for element in inner_elements(holder):
            self._read_element(element, (*conditions, *conditions_here))

    def _read_element(self, element: Mapping[str, Any], conditions: Sequence[str]) -> None:
        name, kind = name_and_type(element)
        if element.get("visible") is False:
            self._drop_all(name, kind, element, HIDDEN)
            return
        if kind in ("panel", "paneldynamic"):
            if kind == "panel":
                self._to.keep(name, kind)
            elif inner_elements(element):
                self._to.change(name, kind, "is asked once")
            else:
                self._to.drop(name, kind, "has no questions")
            self._report_texts(name, element, ("title", "description"))
            self._read_elements(element, conditions)
            return
        if kind in DROPPED:
            self._drop_all(name, kind, element, DROPPED[kind])
            return
        reader = _READERS.get(kind)
        if reader is None:
            self._drop_all(name, kind, element, "is of a type that has no counterpart")
            return
        conditions_here, self._losses, self._around = conditions_of(element), set(), ""
        reader(self, name, {**element, "conditions": [*conditions, *conditions_here]})

    # -- one method for each type

    def _boolean(self, name: str, element: Mapping[str, Any]) -> None:
        labels = [self._text(element.get(key)) for key in ("labelTrue", "labelFalse")]
        true, false = element.get("valueTrue", True), element.get("valueFalse", False)
        options = (
            {
                "options": [
                    {"id": id_, "label": label or usual}
                    for id_, label, usual in zip(("yes", "no"), labels, ("Yes", "No"), strict=True)
                ]
            }
            if any(labels)
            else {}
        )
        self._add(name, element, {"type": "yes_no", **options}, {"yes": true, "no": false})

    def _single(self, name: str, element: Mapping[str, Any]) -> None:
        self._add_list(name, element, {"type": "single_choice"})

    def _multiple(self, name: str, element: Mapping[str, Any]) -> None:
        validators = objects(element.get("validators"))
        maxima = [validator["maxCount"] for validator in validators if is_maximum(validator)]
        maximum = element.get("maxSelectedChoices") or min(maxima, default=None)
        remaining = [validator for validator in validators if not is_maximum(validator)]
        element = {**element, "validators": remaining}
        none = self._text(element.get("noneText"))
        self._add_list(
            name,
            element,
            {
                "type": "multiple_choice",
                **({"max_ticks": maximum} if isinstance(maximum, int) and maximum > 0 else {}),
                **({"none_of_these": none} if none else {}),
            },
            none_is_usual=True,
        )

    def _picker(self, name: str, element: Mapping[str, Any]) -> None:
        (self._multiple if element.get("multiSelect") else self._single)(name, element)

    def _ranking(self, name: str, element: Mapping[str, Any]) -> None:
        n = len(self._choices(element))
        if not MIN_RANKED <= n <= MAX_RANKED:
            why = f"has {n} options; {MIN_RANKED} to {MAX_RANKED} can be ranked"
            self._to.drop(name, "ranking", why)
            return
        self._add_list(name, element, {"type": "ranking"})

    def _rating(self, name: str, element: Mapping[str, Any]) -> None:
        values = element.get("rateValues")
        step = element.get("rateStep", 1)
        low, n = element.get("rateMin", 1), element.get("rateCount", 0)
        ends = {
            key: text
            for key, property_name in END_LABELS.items()
            if (text := self._text(element.get(property_name)))
        }
        if isinstance(values, list) and values:
            if self._to.drop_if_too_long(name, "rating", len(values)):
                return
            self._add_points(name, element, [self._choice(value) for value in values], ends)
            return
        numbers = [low, n, step, element.get("rateMax", 0)]
        if (
            not all(type(number) is int and abs(number) <= LARGEST for number in numbers)
            or step < 1
        ):
            self._to.drop(name, "rating", "its points are no whole numbers of a usual size")
            return
        high = element.get("rateMax", low + (n - 1) * step if n else 5)
        points = range(low, high + 1, step)
        if not 2 <= len(points) <= MOST_POINTS:
            why = f"has {len(points)} points; a scale has 2 to {MOST_POINTS}"
            self._to.drop(name, "rating", why)
        elif step == 1:
            by_id = {point_id(point): point for point in points}
            self._add(name, element, {"type": "scale", "low": low, "high": high, **ends}, by_id)
        else:
            self._add_points(name, element, [(point, str(point)) for point in points], ends)

    def _add_points(
        self,
        name: str,
        element: Mapping[str, Any],
        points: Sequence[tuple[Any, Text]],
        ends: Mapping[str, Text],
    ) -> None:
        """Add a scale whose points are listed: as two ends if they are numbers in a row."""
        options, values = listed_options(points)
        if numbers := numbered_scale(points):
            by_id = {point_id(value): value for value, _ in points}
            self._add(name, element, {"type": "scale", **numbers, **ends}, by_id)
            return
        changes = ["the descriptions of its ends are left out"] if ends else []
        self._add(name, element, {"type": "scale", "options": options}, values, changes)

    def _matrix(self, name: str, element: Mapping[str, Any]) -> None:
        rows = [self._choice(row) for row in items_of(element.get("rows"))]
        columns = [self._choice(column) for column in items_of(element.get("columns"))]
        if self._to.drop_if_too_long(name, "matrix", len(rows), len(columns)):
            return
        if not rows or len(columns) < 2:
            self._to.drop(name, "matrix", "has no rows, or fewer than two columns")
            return
        scale = numbered_scale(columns) or {"options": listed_options(columns)[0]}
        lines, _ = listed_options(rows)
        title = self._text(element.get("title"), has_answers=True) or name
        for form, changes in matrix_forms(title, lines, scale, self._to.language):
            self._add(name, element, form, {}, changes)

    def _items(self, name: str, element: Mapping[str, Any]) -> None:
        """Read the entries of an element as separate questions."""
        title = self._text(element.get("title"), line=False, has_answers=True)
        if len(name) + len(str(title)) > MAX_REPEATED:
            why = "its name and title are too long to be repeated in each item"
            self._drop_all(name, "multipletext", element, why)
            return
        self._to.change(name, "multipletext", "each of its items is a separate question")
        self._report_texts(name, element, ("description",))
        self._report_losses(name)
        for item in objects(element.get("items")):
            item_name = f"{name}.{item.get('name')}"
            part = {"title": item.get("name"), **item, "type": "text"}
            self._around, self._losses = title, set()
            self._entry(item_name, {**part, "conditions": element["conditions"]})

    def _entry(self, name: str, element: Mapping[str, Any]) -> None:
        kind, changes = str(element.get("inputType", "text")), []
        low, high = element.get("min"), element.get("max")
        validators = objects(element.get("validators"))
        ranges = [validator for validator in validators if validator.get("type") == "numeric"]
        if ranges and kind in ("text", "number"):
            changes = [] if kind == "number" or "step" in element else ["asks for whole numbers"]
            kind, remaining = (
                "number",
                [validator for validator in validators if validator not in ranges],
            )
            low = tightest(max, [low, *(validator.get("minValue") for validator in ranges)])
            high = tightest(min, [high, *(validator.get("maxValue") for validator in ranges)])
            element = {**element, "validators": remaining}
        if kind not in ("number", "range", "date"):
            self._to.drop(name, f"text, {shortened(kind)}", "free text cannot be randomized")
        elif low in (None, "") or high in (None, ""):
            self._to.drop(name, f"text, {kind}", UNBOUNDED)
        elif kind == "date":
            step = element.get("step", 1)
            days = {"step": step} if type(step) is int and step > 1 else {}
            self._add(name, element, {"type": "date", "low": str(low), "high": str(high), **days})
        else:
            self._number(name, element, (low, high), slider=kind == "range", changes=changes)

    def _slider(self, name: str, element: Mapping[str, Any]) -> None:
        if element.get("sliderType", "single") != "single":
            self._to.drop(name, "slider", "an answer of two values has no counterpart")
            return
        ends = element.get("min", 0), element.get("max", 100)
        self._number(name, element, ends, slider=True)

    def _number(
        self,
        name: str,
        element: Mapping[str, Any],
        ends: tuple[Any, Any],
        *,
        slider: bool,
        changes: Sequence[str] = (),
    ) -> None:
        low, high = map(str, ends)
        grid = {"low": low, "high": high, "step": str(element.get("step", 1))}
        extra = {"slider": True} if slider else {}
        self._add(name, element, {"type": "number", **grid, **extra}, changes=changes)

    # -- parts

    def _add_list(
        self,
        name: str,
        element: Mapping[str, Any],
        question: Form,
        *,
        none_is_usual: bool = False,
    ) -> None:
        """Add a question with a list of options."""
        kind = str(element["type"])
        for key in ("choicesByUrl", "choicesFromQuestion"):
            if element.get(key):
                self._to.drop(name, kind, "its options come from elsewhere")
                return
        if self._to.drop_if_too_long(name, kind, len(items_of(element.get("choices")))):
            return
        choices, changes = self._listed(element, none_is_usual=none_is_usual)
        special, special_values = self._special(element, choices, none_is_usual=none_is_usual)
        choices = [choice for choice in choices if choice[0] != NOT_APPLICABLE_ID]
        if len(choices) < 2:
            self._to.drop(name, kind, "has fewer than two options")
            return
        options, values = listed_options(choices)
        order = element.get("choicesOrder", "none")
        if order in ("asc", "desc"):
            options.sort(key=lambda option: str(option["label"]), reverse=order == "desc")
        shuffled = {"shuffle_options": True} if order == "random" else {}
        form = {**question, "options": options, **shuffled, **special}
        self._add(name, element, form, values | special_values, changes)

    def _listed(
        self, element: Mapping[str, Any], *, none_is_usual: bool
    ) -> tuple[list[tuple[Any, Text]], list[str]]:
        """Return the options of a list, with those that SurveyJS adds, and what changed."""
        choices, changes = self._choices(element), _choice_changes(element)
        if is_on(element, "showOtherItem", "hasOther"):
            choices.append(("other", self._text(element.get("otherText")) or "Other"))
            changes.append("the option for other answers has no field for text")
        if is_on(element, "showNoneItem", "hasNone") and not none_is_usual:
            choices.append(("none", self._text(element.get("noneText")) or "None"))
        if is_on(element, "showDontKnowItem"):
            label = self._text(element.get("dontKnowText")) or "Don't know"
            choices.append(("dontknow", label))
        if any(choice.get("imageLink") for choice in objects(element.get("choices"))):
            changes.append("its pictures are left out; upload them in the builder")
        return choices, changes

    def _special(
        self,
        element: Mapping[str, Any],
        choices: Sequence[tuple[Any, Text]],
        *,
        none_is_usual: bool,
    ) -> tuple[Form, dict[str, Any]]:
        """Return the options that this project adds itself, and their answers in SurveyJS."""
        special: Form = {}
        values: dict[str, Any] = {NONE_ID: "none"} if none_is_usual else {}
        if is_on(element, "showRefuseItem") or element.get("refuseText"):
            special[OPT_OUT_ID] = self._text(element.get("refuseText")) or True
            values[OPT_OUT_ID] = "refused"
        labels = [label for value, label in choices if value == NOT_APPLICABLE_ID]
        if labels:
            special[NOT_APPLICABLE_ID] = labels[0]
            values[NOT_APPLICABLE_ID] = NOT_APPLICABLE_ID
        return special, values

    def _add(
        self,
        name: str,
        element: Mapping[str, Any],
        question: Form,
        values: Mapping[str, Any] | None = None,
        changes: Sequence[str] = (),
    ) -> None:
        """Add a question with the texts and properties that all types share."""
        kind = str(element["type"])
        text = self._text(element.get("title"), line=False, has_answers=True) or name
        around = self._around
        texts = {"text": joined_texts(around, text, self._to.language) if around else text}
        if help_text := self._text(element.get("description"), line=False, has_answers=True):
            texts["help"] = help_text
        condition, why = condition_of(element["conditions"])
        self._to.add(
            name,
            kind,
            {**texts, **question},
            values=values,
            changes=[*changes, *sorted(self._losses)],
            condition=condition,
        )
        if why:
            self._to.drop(name, "condition", f"{why}; everybody is asked this")
        self._report_keys(name, element, QUESTION_KEYS)

    def _report_keys(
        self, name: str, holder: Mapping[str, Any], reasons: Mapping[str, str]
    ) -> None:
        """Report the properties that are not imported, except those of the layout."""
        for key, value in holder.items():
            is_set = value is not None and value is not False and value not in ("", [], {})
            if is_set and key not in IMPORTED | LAYOUT:
                self._to.drop(name, shortened(key), reasons.get(key, "has no counterpart"))

    def _choices(self, element: Mapping[str, Any]) -> list[tuple[Any, Text]]:
        return [self._choice(choice) for choice in items_of(element.get("choices"))]

    def _choice(self, choice: Any) -> tuple[Any, Text]:
        """Return the value and the label of an option, a row or a column."""
        if isinstance(choice, Mapping):
            value = choice.get("value", "")
            return value, self._text(choice.get("text")) or str(value)
        return choice, str(choice)

    def _text(self, value: Any, *, line: bool = True, has_answers: bool = False) -> Text:
        """Return a text without markup, or a table of languages; "" if there is none.

        `has_answers` keeps references to earlier answers, which questions can show.
        """
        if isinstance(value, Mapping):
            texts = {
                str(key): self._clean(text, line, has_answers)
                for key, text in value.items()
                if text
            }
            default, own_text = texts.pop("default", ""), texts.pop(self._locale, "")
            if default and own_text:
                texts.setdefault(DEFAULT_LOCALE, default)
            # A text that lacks the survey's own language has the first of the others instead.
            own_text = own_text or default
            if not own_text and any(texts.values()):
                own_text = next(filter(None, texts.values()))
                language = language_name(self._to.language)
                self._losses.add(f"a text that lacks {language} is shown in another language")
            self._unknown_locales |= {key for key in texts if not language_tag(key)}
            tagged = {
                language_tag(key): text for key, text in texts.items() if language_tag(key) and text
            }
            in_languages = tagged | {self._to.language: own_text}
            ordered = {self._to.language: own_text} | in_languages
            return ordered if own_text and len(ordered) > 1 else own_text
        return self._clean(value, line, has_answers) if isinstance(value, str) else ""

    def _clean(self, markup: Any, line: bool, has_answers: bool) -> str:
        """Return a text without HTML and, unless it has them, without the answers of others."""
        text, losses = plain_text(str(markup))
        self._losses |= {f"its {loss} are left out" for loss in losses}
        if not has_answers:
            self._losses |= REFERENCES.left_out(text)
            text = REFERENCES.without(text)
        return one_line(text) if line else text


_READERS: Mapping[str, Reader] = {
    "boolean": _Reader._boolean,
    **dict.fromkeys(("radiogroup", "dropdown", "buttongroup"), _Reader._single),
    **dict.fromkeys(("checkbox", "tagbox"), _Reader._multiple),
    "imagepicker": _Reader._picker,
    "ranking": _Reader._ranking,
    "rating": _Reader._rating,
    "matrix": _Reader._matrix,
    "slider": _Reader._slider,
    "text": _Reader._entry,
    "multipletext": _Reader._items,
}


CHOICE_KEYS = {"value", "text", "imageLink"}
"""Properties of options that arrive, or whose loss is reported with the question."""


def _choice_changes(element: Mapping[str, Any]) -> list[str]:
    """Return what is said about properties of options that have no counterpart."""
    choices = objects(element.get("choices"))
    ordinary = (choice for choice in choices if choice.get("value") != NOT_APPLICABLE_ID)
    keys = {str(key) for choice in ordinary for key in choice.keys() - CHOICE_KEYS}
    listed = ", ".join(map(shortened, sorted(keys)))
    return [f"properties of its options are left out: {shortened(listed)}"] if keys else []
