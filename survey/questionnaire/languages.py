"""One survey in several languages: each text as one, or as a table of language = text.

A file with such tables is read once for each of its languages, as if it were written in it alone;
what is not translated falls back to the survey's own language.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from survey.questionnaire.mistakes import Mistake, Place, shortened
from survey.questionnaire.texts import Language

SURVEY_TEXTS = ("title", "introduction", "consent", "ethics", "helpline", "contact", "thanks")
"""The texts of a whole survey, which its definition carries by the same names."""

TEXTS = frozenset(
    (
        *SURVEY_TEXTS,
        *("text", "help", "unit", "label", "low_label", "high_label"),
        *("prefer_not_to_say", "does_not_apply", "none_of_these"),
    )
)
"""Keys whose value respondents read; only these may be tables of languages."""

MAX_LANGUAGES = 50

DEEPEST = 7
"""Steps to the innermost text: pages, 1, questions, 1, options, 1, label."""

_LANGUAGE: TypeAdapter[str] = TypeAdapter(Language)


def languages_in(raw: Mapping[str, Any], own: str) -> list[str]:
    """All languages that a file has texts in: its own, then the others in order of their tags."""
    found = {language for _, table in _tables(raw) for language in table}
    return [own, *sorted(found - {own})]


def in_language(value: Any, language: str, own: str, deep: int = DEEPEST) -> Any:
    """The file as if it were written in one of its languages."""
    if deep and isinstance(value, Mapping):
        return {
            key: entry.get(language, entry.get(own))
            if _is_table(key, entry)
            else in_language(entry, language, own, deep - 1)
            for key, entry in value.items()
        }
    if deep and _is_list(value):
        return [in_language(entry, language, own, deep - 1) for entry in value]
    return value


def mistakes_in_tables(raw: Mapping[str, Any], own: str) -> Iterator[Mistake]:
    """Tables of texts that lack the survey's own language or name something else."""
    for place, table in _tables(raw):
        for language in table:
            if not _is_language(language):
                yield (
                    (*place, language),
                    f'"{shortened(str(language))}" is no language; languages are written like '
                    '"es" or "pt-BR"',
                )
        if own not in table:
            yield place, f'lacks the text in the survey\'s own language, "{own}"'
    if (number := len(languages_in(raw, own))) > MAX_LANGUAGES:
        yield ("language",), f"{number} languages; the nearest allowed number is {MAX_LANGUAGES}"


def _tables(value: Any, place: Place = ()) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    if len(place) == DEEPEST:
        return
    if isinstance(value, Mapping):
        for key, entry in value.items():
            if _is_table(key, entry):
                yield (*place, key), entry
            else:
                yield from _tables(entry, (*place, key))
    elif _is_list(value):
        for i, entry in enumerate(value):
            yield from _tables(entry, (*place, i))


def _is_table(key: str, value: Any) -> bool:
    return key in TEXTS and isinstance(value, Mapping)


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _is_language(tag: Any) -> bool:
    try:
        _LANGUAGE.validate_python(tag)
    except ValidationError:
        return False
    return True
