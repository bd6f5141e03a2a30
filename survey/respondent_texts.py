"""The respondents' texts in every language of the interface, from gettext catalogues."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "translations"
SOURCE = "en"
LANGUAGES = (SOURCE, "es", "pt", "ar")
"""Languages of the interface; the other catalogues translate the source's texts."""

SERVER_SECTIONS = ("option", "shell")
"""Sections of the catalogue that only the server uses; devices get the others."""

Text = str | tuple[str, ...]
"""One text, or one per plural form in gettext's order."""


@cache
def read_texts(language: str) -> Mapping[str, Text]:
    """Return all texts of a language by key, such as `start.heading`."""
    from babel.messages.pofile import read_po  # needs 5 MB, only while a catalogue is read

    path = FOLDER / language / "LC_MESSAGES" / "respondent.po"
    with path.open("rb") as file:
        messages = read_po(file, locale=language, abort_invalid=True)
    texts: dict[str, Text] = {}
    for message in messages:
        if isinstance(message.id, str) and isinstance(message.string, str):
            texts[message.id] = message.string
        elif message.string:
            texts[message.id[0]] = tuple(message.string)
    del texts[""]  # the catalogue's header
    return texts


def say(language: str, key: str) -> str:
    """Return the text of a key that has no plural forms.

    >>> say("es", "option.yes")
    'Sí'
    """
    text = read_texts(language)[key]
    if not isinstance(text, str):
        raise TypeError(f"the text {key} has plural forms")
    return text


def closest_language(tag: str) -> str | None:
    """Return the interface language of a language tag, whatever its region; None if there is none.

    >>> closest_language("es-MX"), closest_language("de")
    ('es', None)
    """
    base = tag.split("-")[0].lower()
    return base if base in LANGUAGES else None


def device_keys() -> list[str]:
    """Return the keys of the texts that devices get, in the order of `device_texts`."""
    return sorted(key for key in read_texts(SOURCE) if key.split(".")[0] not in SERVER_SECTIONS)


@cache
def device_texts(language: str) -> bytes:
    """Return a language's texts for devices: a JSON list in the order of `device_keys`."""
    texts = [read_texts(language)[key] for key in device_keys()]
    return json.dumps(texts, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
