"""Definitions that may still be wrong anywhere: their questions, and what they leave to defaults.

The defaults are the labels of common options, and the privacy level of a new question.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from survey.catalogue import SOURCE, say
from survey.questionnaire.designs import DESIGNS, PRIVACY
from survey.questionnaire.kinds import kind_of
from survey.questionnaire.kinds.base import SPECIAL, SPECIAL_KEYS
from survey.questionnaire.mistakes import Place

STANDARD_RATIO = 3
"""The odds factor of one report at the standard privacy level."""

STANDARD_EPSILON = "1.098"
"""ln 3 in thousandths, rounded down: the same level for designs that are stated by epsilon."""


def questions_in(raw: Mapping[str, Any]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """Yield every question that is an object, with its place, whatever else is wrong."""
    pages = raw.get("pages")
    for i, page in enumerate(pages if isinstance(pages, list) else []):
        questions = page.get("questions") if isinstance(page, Mapping) else None
        for j, question in enumerate(questions if isinstance(questions, list) else []):
            if isinstance(question, Mapping):
                yield ("pages", i, "questions", j), question


def options_in(place: Place, question: Mapping[str, Any], key: str) -> list[tuple[Place, Any]]:
    """Return the place and the value of one key of every option that is an object."""
    options = question.get("options", kind_of(question).default_options())
    return [
        ((*place, "options", i, key), option.get(key))
        for i, option in enumerate(options if isinstance(options, Sequence) else [])
        if isinstance(option, Mapping)
    ]


def special_in(question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are added automatically: id to the label written for it, or True."""
    defaults = kind_of(question).default_special
    values = {name: question.get(name, defaults.get(name, False)) for name in SPECIAL}
    return {name: value for name, value in values.items() if value}


def with_standard_privacy(question: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question with the standard privacy level, unless it states its own.

    With generalized randomized response of k options p = 3/(k+2), so that p/q = 3: 3/5 for yes/no
    with "prefer not to say".
    """
    mechanism = question.get("mechanism", "grr")
    design = DESIGNS.get(str(mechanism))
    if (design and design.has_own_statement) or any(way in question for way in PRIVACY):
        return dict(question)
    k = _count_ordinary(question) + len(special_in(question))
    if kind_of(question).is_single and mechanism == "grr" and k >= 2:
        return {**question, "truth_probability": f"{STANDARD_RATIO}/{k + STANDARD_RATIO - 1}"}
    return {**question, "epsilon": STANDARD_EPSILON}


def _count_ordinary(question: Mapping[str, Any]) -> int:
    """Return how many options are answers, as far as the question says."""
    if defaults := kind_of(question).default_options():
        return len(defaults)
    low, high = question.get("low"), question.get("high")
    if isinstance(low, int) and isinstance(high, int):
        return max(high - low + 1, 0)
    return len(question.get("options", ()))


def with_default_labels(question: Any, language: str) -> Any:
    """Return a question whose default labels are in a language; they are in `SOURCE` already."""
    if not isinstance(question, Mapping) or language == SOURCE:
        return question
    kind = kind_of(question)
    labels = {
        name: say(language, key)
        for name, key in SPECIAL_KEYS.items()
        if question.get(name, kind.default_special.get(name, False)) is True
    }
    options = kind.default_options(language) if "options" not in question else []
    return {**question, **labels, **({"options": options} if options else {})}
