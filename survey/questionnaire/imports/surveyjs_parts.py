"""The parts of a SurveyJS file, whatever they contain: elements, lists, ends and scales."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from survey.questionnaire.imports.assembly import Form
from survey.questionnaire.imports.markup import Text
from survey.questionnaire.kinds.base import LARGEST


def is_surveyjs(form: Mapping[str, Any]) -> bool:
    """Return whether a JSON file is a questionnaire of SurveyJS and not a definition.

    Old questionnaires list questions as definitions do, but name them instead of giving ids.

    >>> is_surveyjs({"pages": [{"elements": []}]}), is_surveyjs({"questions": [{"name": "q"}]})
    (True, True)
    >>> is_surveyjs({"questions": [{"id": "q"}]}), is_surveyjs({"slug": "s", "elements": []})
    (False, False)
    """
    parts = (form, *objects(form.get("pages")))
    questions = [question for part in parts for question in objects(part.get("questions"))]
    is_old = any("name" in question for question in questions)
    is_own = "slug" in form or any("id" in question for question in questions)
    return not is_own and (is_old or any("elements" in part for part in parts))


def objects(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects of a list, whatever else it contains."""
    return [part for part in items_of(value) if isinstance(part, Mapping)]


def inner_elements(holder: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the elements of a page or panel: those of old files are called questions."""
    keys = ("elements", "questions", "templateElements")
    return [element for key in keys for element in objects(holder.get(key))]


def all_elements(holder: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the elements of a page or panel, each before those within it."""
    for element in inner_elements(holder):
        yield element
        yield from all_elements(element)


def name_and_type(element: Mapping[str, Any]) -> tuple[str, str]:
    """Return the name and the type of an element."""
    kind = str(element.get("type"))
    return str(element.get("name") or kind), kind


def conditions_of(holder: Mapping[str, Any]) -> list[str]:
    return [str(holder["visibleIf"])] if holder.get("visibleIf") else []


def items_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def tightest(
    choose: Callable[..., Any],
    ends: Sequence[Any],
) -> Any:
    """Return the highest or lowest end of those that are given, or the first if one is no number.

    >>> tightest(max, [None, 0, "3"])
    '3'
    """
    numbers = [end for end in ends if end not in (None, "")]
    try:
        return choose(numbers, key=float, default=None)
    except (TypeError, ValueError, OverflowError):
        return numbers[0]


def is_maximum(validator: Mapping[str, Any]) -> bool:
    """Return whether a validator only limits the number of ticks."""
    is_count = validator.get("type") == "answercount" and "minCount" not in validator
    return is_count and isinstance(validator.get("maxCount"), int)


def is_on(element: Mapping[str, Any], *keys: str) -> bool:
    return any(element.get(key) is True for key in keys)


def numbered_scale(points: Sequence[tuple[Any, Text]]) -> Form | None:
    """Return the ends of a scale whose points are whole numbers in order, with their labels.

    >>> numbered_scale([(1, "1 (No)"), (2, "2")])
    {'low': 1, 'high': 2, 'low_label': 'No'}
    >>> numbered_scale([(1, "No"), (2, "Yes")])
    """
    values = [value for value, _ in points]
    if not all(type(value) is int for value in values) or len(values) < 2:
        return None
    low, high = values[0], values[-1]
    if values != list(range(low, low + len(values))) or abs(low) > LARGEST:
        return None
    labels = [_number_label(value, text) for value, text in points]
    if any(label is None for label in labels) or any(labels[1:-1]):
        return None
    ends = {"low_label": labels[0], "high_label": labels[-1]}
    return {"low": low, "high": high, **{key: label for key, label in ends.items() if label}}


def _number_label(value: int, text: Text) -> Text | None:
    """Return the words in brackets after a number, "" for the number alone, or None."""
    if isinstance(text, Mapping):
        labels = {tag: _number_label(value, label) for tag, label in text.items()}
        texts = {tag: label for tag, label in labels.items() if isinstance(label, str)}
        if len(texts) < len(labels):
            return None
        return texts if any(texts.values()) else ""
    match = re.fullmatch(rf"{value}(?: \((.+)\))?", text)
    return (match[1] or "") if match else None
