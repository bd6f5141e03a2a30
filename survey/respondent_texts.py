"""The respondents' texts in every language of the interface, from gettext catalogues.

A comment above each translation quotes the English text that was translated. With these comments,

    python -m survey.respondent_texts

lists the missing translations and those whose English text has changed.
`python -m survey.respondent_texts --accept de` updates the comments of the German translations.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from babel.messages import Catalog, Message

FOLDER = Path(__file__).parent / "translations"
SOURCE = "en"
LANGUAGES = (SOURCE, "ar", "de", "es", "fr", "hi", "pt", "tr", "uk", "zh-Hans")
"""Languages of the interface; the other catalogues translate the source's texts."""

LABEL_LANGUAGES = (SOURCE, "es", "pt", "ar")
"""Languages in which definition files may leave out the usual labels, such as "Prefer not to say".

In other languages, these labels are English unless the file states them, as drafts do. Adding a
language here would change the definitions, and so the versions, that existing files produce.
"""

REVIEWER = "X-Reviewed-By"
"""The header that names the reviewer of a catalogue; without one, it is a machine translation."""

MACHINE_MADE = "footer.machine"
"""The key of the note on machine translation; the note is empty in a reviewed language."""

TRADITIONAL = re.compile(r"zh-(hant|tw|hk|mo)\b", re.IGNORECASE)
"""Tags of Chinese in traditional characters, which readers of simplified ones may not know."""

SERVER_SECTIONS = ("option", "poster", "shell")
"""Sections of the catalogue that only the server uses; devices get the others."""

Text = str | tuple[str, ...]
"""One text, or one per plural form in gettext's order."""

RESPONDENT = "respondent"

FIELDWORK = "fieldwork"
"""The catalogue of field mode; only the page of field mode loads its texts."""


@cache
def read_texts(language: str, catalogue: str = RESPONDENT) -> Mapping[str, Text]:
    """Return all texts of a language by key, such as `start.heading`."""
    messages = _messages(language, catalogue)
    texts: dict[str, Text] = {}
    for message in messages:
        string = message.string or ""
        texts[_key(message)] = string if isinstance(string, str) else tuple(string)
    del texts[""]  # the catalogue's header
    return texts


@cache
def is_reviewed(language: str) -> bool:
    """Return whether a native speaker has reviewed the texts of both catalogues."""
    files = [catalogue_file(language, catalogue) for catalogue in (RESPONDENT, FIELDWORK)]
    headers = [file.read_text(encoding="utf-8").partition("\n\n")[0] for file in files]
    return language == SOURCE or all(re.search(rf'"{REVIEWER}: *[^ \\]', h) for h in headers)


@cache
def _messages(language: str, catalogue: str) -> Catalog:
    from babel.messages.pofile import read_po  # needs 5 MB, only while a catalogue is read

    with catalogue_file(language, catalogue).open("rb") as file:
        return read_po(file, locale=language.replace("-", "_"), abort_invalid=True)


def _key(message: Message) -> str:
    return message.id if isinstance(message.id, str) else message.id[0]


def forms(text: Text) -> tuple[str, ...]:
    """Return a text's plural forms, or the text alone."""
    return (text,) if isinstance(text, str) else text


def catalogue_file(language: str, catalogue: str) -> Path:
    """Return the file of a language's catalogue."""
    return FOLDER / language / "LC_MESSAGES" / f"{catalogue}.po"


def say(language: str, key: str) -> str:
    """Return the text of a key that has no plural forms.

    >>> say("es", "option.yes")
    'Sí'
    """
    text = read_texts(language)[key]
    if not isinstance(text, str):
        raise TypeError(f"the text {key} has plural forms")
    return text


def interface_names() -> dict[str, str]:
    """Return the languages of the interface with their own names."""
    return {language: say(language, "shell.language") for language in LANGUAGES}


def label_language(tag: str) -> str:
    """Return the language of the usual labels that a definition file leaves out.

    >>> label_language("es-MX"), label_language("de")
    ('es', 'en')
    """
    return closest_language(tag, LABEL_LANGUAGES) or SOURCE


def closest_language(tag: str, among: Sequence[str] = LANGUAGES) -> str | None:
    """Return the interface language for a language tag of any region; None if there is none.

    `preferredLanguage` in `client_js/src/words.js` chooses the same language.

    >>> closest_language("es-MX"), closest_language("eo")
    ('es', None)
    """
    return next((language for language in among if base_of(language) == base_of(tag)), None)


def base_of(tag: str) -> str:
    """Return the part of a language tag that readers must share; scripts matter for Chinese.

    >>> base_of("pt-BR"), base_of("zh-CN"), base_of("zh-TW")
    ('pt', 'zh', 'zh-hant')
    """
    return "zh-hant" if TRADITIONAL.match(tag) else tag.split("-")[0].lower()


def device_keys() -> list[str]:
    """Return the keys of the texts that devices get, in the order of `device_texts`."""
    return sorted(key for key in read_texts(SOURCE) if key.split(".")[0] not in SERVER_SECTIONS)


@cache
def device_texts(language: str) -> bytes:
    """Return a language's texts for devices: a JSON list in the order of `device_keys`."""
    texts = {**read_texts(language), **({MACHINE_MADE: ""} if is_reviewed(language) else {})}
    return _as_list([texts[key] for key in device_keys()])


@cache
def fieldwork_texts(language: str) -> bytes:
    """Return a language's texts of field mode: a JSON list in the order of their keys."""
    return _as_list([read_texts(language, FIELDWORK)[key] for key in fieldwork_keys()])


def fieldwork_keys() -> list[str]:
    """Return the keys of field mode's texts, in the order of `fieldwork_texts`."""
    return sorted(read_texts(SOURCE, FIELDWORK))


def _as_list(texts: list[Text]) -> bytes:
    return json.dumps(texts, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def outdated_texts(language: str, catalogue: str = RESPONDENT) -> Iterator[str]:
    """Describe each text that is missing, superfluous or translated from an older English text.

    A text is missing as well if one of its forms is empty, or if it is marked as fuzzy.
    """
    source, own = read_texts(SOURCE, catalogue), read_texts(language, catalogue)
    messages = _messages(language, catalogue)
    comments = {_key(message): message.auto_comments for message in messages}
    fuzzy = {_key(message) for message in messages if message.fuzzy}
    for key in source:
        if key in fuzzy or not all(forms(own.get(key, ""))):
            yield f"{key}: missing"
    for key in own.keys() - source.keys():
        yield f"{key}: not in English"
    for key in (key for key in source if key in own and language != SOURCE):
        if comments[key] != [original := _one_line(source[key])]:
            yield f"{key}: translated from a different English text than “{original}”"


def accept_texts(language: str, catalogue: str = RESPONDENT) -> str:
    """Return a catalogue with the current English text in a comment above each translation."""
    text = catalogue_file(language, catalogue).read_text(encoding="utf-8")
    text = re.sub(r"(?m)^#\. .*\n", "", text)
    for key, original in read_texts(SOURCE, catalogue).items():
        entry = f'msgid "{key}"\n'
        text = text.replace(f"\n{entry}", f"\n#. {_one_line(original)}\n{entry}", 1)
    return text


def _one_line(text: Text) -> str:
    return " | ".join(forms(text)).strip()


def clear_caches() -> None:
    """Clear the caches, so that changed catalogues are read again."""
    for function in (_messages, read_texts, is_reviewed, device_texts, fieldwork_texts):
        function.cache_clear()


def main(arguments: list[str] | None = None) -> int:
    """Report the outdated texts of all languages; return 1 if there are any."""
    parser = argparse.ArgumentParser(description="Report missing and outdated translations.")
    parser.add_argument("--accept", metavar="LANGUAGE", choices=LANGUAGES[1:])
    accepted = parser.parse_args(arguments).accept
    for catalogue in (RESPONDENT, FIELDWORK) if accepted else ():
        text = accept_texts(accepted, catalogue)
        catalogue_file(accepted, catalogue).write_text(text, encoding="utf-8")
    clear_caches()
    lines = [
        f"{language}/{catalogue}: {line}"
        for language in LANGUAGES
        for catalogue in (RESPONDENT, FIELDWORK)
        for line in sorted(outdated_texts(language, catalogue))
    ]
    states = (f"{tag} {'reviewed' if is_reviewed(tag) else 'machine-made'}" for tag in LANGUAGES)
    lines_and_sum = [*lines, f"{len(lines)} outdated texts; languages: {', '.join(states)}"]
    sys.stdout.write("\n".join(lines_and_sum) + "\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
