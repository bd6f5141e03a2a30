"""The texts of a survey: which characters they may hold, and texts in several languages.

A text is a string, or a table of language = text. A file with such tables is read once for each of
its languages, as if it were written in that language alone; a text that is not translated falls
back to the survey's own language.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from survey.questionnaire import TEST_RUN_PREFIX
from survey.questionnaire.error_messages import Mistake, Place, shortened

BLANKS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
"""Characters that are invisible although Unicode calls them letters, marks or symbols."""


def _reject_control_characters(text: str) -> str:
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]", text):
        raise ValueError("must not contain control characters")
    # Direction controls reorder text, so a label could display the opposite of its meaning.
    if re.search(r"[\u202a-\u202e\u2066-\u2069]", text):
        raise ValueError(
            "must not contain direction control characters (U+202A to U+202E, U+2066 to U+2069)"
        )
    return text


def _blank_if_invisible(text: str) -> str:
    return text if any(_is_visible(character) for character in text) else ""


def _is_visible(character: str) -> bool:
    return (
        unicodedata.category(character) not in ("Cc", "Cf", "Zl", "Zp", "Zs")
        and character not in BLANKS
        and not re.match(r"[\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]", character)
    )


def _trim(value: Any) -> Any:
    return value.replace("\r\n", "\n").strip() if isinstance(value, str) else value


Text = Annotated[
    str,
    BeforeValidator(_trim),
    AfterValidator(_reject_control_characters),
    AfterValidator(_blank_if_invisible),
]
LINE = r"^[^\n]*$"
"""The pattern of texts without a line break."""

Line = Annotated[Text, StringConstraints(min_length=1, max_length=300, pattern=LINE)]
Passage = Annotated[Text, StringConstraints(max_length=10_000)]


def _refuse_test_run(slug: str) -> str:
    if slug.startswith(TEST_RUN_PREFIX):
        raise ValueError(
            f'short names that begin with "{TEST_RUN_PREFIX}" are reserved for test runs'
        )
    return slug


Slug = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=60),
    AfterValidator(_refuse_test_run),
]
Identifier = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)]
LANGUAGE_PATTERN = r"^[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?$"
"""Language, script, region: a browser rejects a tag that is not well-formed."""

Language = Annotated[str, StringConstraints(pattern=LANGUAGE_PATTERN)]


class Frozen(BaseModel):
    """Base of all parts of a survey: immutable, without unknown keys.

    The text below a key explains it to researchers: editors show it.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", arbitrary_types_allowed=True, use_attribute_docstrings=True
    )


PICTURE_TYPE = "image/webp"
"""The media type of all stored pictures: uploads of other types are converted."""

PICTURE_HASH = r"[0-9a-f]{64}"


class Option(Frozen):
    """One answer that can be chosen."""

    id: Identifier
    """Name of the option in results, downloads and conditions."""

    label: Line
    """What respondents read."""

    picture: Annotated[str, StringConstraints(pattern=rf"^({PICTURE_HASH})?$")] = ""
    """SHA-256 of a picture stored on the instance, in hex."""

    picture_alt: Annotated[Text, StringConstraints(max_length=300, pattern=LINE)] = ""
    """Description of the picture for people who cannot see it."""

    @model_validator(mode="after")
    def _check_description(self) -> Option:
        if self.picture and not self.picture_alt:
            raise ValueError("picture_alt must describe the picture for people who cannot see it")
        if self.picture_alt and not self.picture:
            raise ValueError("picture_alt describes no picture; leave it out")
        return self


SURVEY_TEXTS = (
    *("title", "introduction", "consent", "ethics", "helpline", "contact", "organization"),
    "thanks",
)
"""The texts of a whole survey, under the same names in its definition."""

TEXTS = frozenset(
    (
        *SURVEY_TEXTS,
        *("text", "help", "topic", "unit", "label", "low_label", "high_label", "picture_alt"),
        *("prefer_not_to_say", "does_not_apply", "none_of_these"),
    )
)
"""Keys whose value respondents read; only these may be tables of languages."""

MAX_LANGUAGES = 50

MAX_DEPTH = 7
"""Number of steps in the longest path to a text: pages, 1, questions, 1, options, 1, label."""

_LANGUAGE: TypeAdapter[str] = TypeAdapter(Language)


def languages_in(raw: Mapping[str, Any], own_language: str) -> list[str]:
    """Return the languages of a file's texts: its own, then the others sorted by tag."""
    languages = {language for _, table in _tables(raw) for language in table}
    return [own_language, *sorted(languages - {own_language})]


def in_language(value: Any, language: str, own_language: str, depth: int = MAX_DEPTH) -> Any:
    """Return the file as if it were written in one of its languages alone."""
    if depth and isinstance(value, Mapping):
        return {
            key: entry.get(language, entry.get(own_language))
            if _is_table(key, entry)
            else in_language(entry, language, own_language, depth - 1)
            for key, entry in value.items()
        }
    if depth and isinstance(value, list | tuple):
        return [in_language(entry, language, own_language, depth - 1) for entry in value]
    return value


def mistakes_in_tables(raw: Mapping[str, Any], own_language: str) -> Iterator[Mistake]:
    """Yield the tables of texts that lack the survey's own language or have an unknown one."""
    for place, table in _tables(raw):
        for language in table:
            if not _is_language(language):
                yield (
                    (*place, language),
                    f'"{shortened(str(language))}" is not a language tag; '
                    'write a tag such as "es" or "pt-BR"',
                )
        if own_language not in table:
            yield place, f'lacks the text in the survey\'s own language, "{own_language}"'
    if (number := len(languages_in(raw, own_language))) > MAX_LANGUAGES:
        yield ("language",), f"{number} languages; the nearest allowed number is {MAX_LANGUAGES}"


def _tables(raw: Mapping[str, Any]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    return ((place, text) for place, text in texts_in(raw) if isinstance(text, Mapping))


def texts_in(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield what a file has in place of each text, with its place: a text, a table or a mistake."""
    if len(place) == MAX_DEPTH:
        return
    if isinstance(value, Mapping):
        for key, entry in value.items():
            if key in TEXTS:
                yield (*place, key), entry
            else:
                yield from texts_in(entry, (*place, key))
    elif isinstance(value, list | tuple):
        for i, entry in enumerate(value):
            yield from texts_in(entry, (*place, i))


def _is_table(key: str, value: Any) -> bool:
    return key in TEXTS and isinstance(value, Mapping)


def _is_language(tag: Any) -> bool:
    try:
        _LANGUAGE.validate_python(tag)
    except ValidationError:
        return False
    return True
