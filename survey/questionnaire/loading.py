"""Definition files (TOML or JSON): parse one, and write a published definition back as one."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import reduce
from itertools import groupby
from operator import getitem
from pathlib import Path
from typing import Any, NoReturn

from survey.errors import naming_file
from survey.questionnaire.canonical import ROW_TEXTS
from survey.questionnaire.definition import (
    Definition,
    Survey,
    drawn_together,
    groups_of,
    matrices_of,
)
from survey.questionnaire.designs import PRIVACY
from survey.questionnaire.error_messages import quoted, refusal, shortened
from survey.questionnaire.kinds import MATRIX, kind_of
from survey.questionnaire.kinds.base import SPECIAL
from survey.questionnaire.placeholders import PIPED_TEXTS
from survey.questionnaire.texts import SURVEY_TEXTS
from survey.questionnaire.validation import check
from survey.settings import Caps

MAX_FILE_BYTES = 1_000_000

DOTTED = re.compile(
    r"""(?:(?<![\w-])[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
    r"""(?:[ \t]*+\.[ \t]*+(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')){50}""",
    re.ASCII,
)
"""A TOML key with so many parts that tomllib, whose time grows with their square, would hang."""


def load_file(path: Path, caps: Caps) -> Survey:
    """Read and check a definition file in TOML or JSON, by its file name extension."""
    with naming_file(path):
        return load(read_file(path), path.name, caps)


def read_file(path: Path) -> bytes:
    """Return the content of a file, or its beginning if the file is too large; `parse` says so."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise refusal([(str(path), f"cannot be read: {error.strerror}")]) from None


def load(content: bytes, name: str, caps: Caps) -> Survey:
    """Parse and check a definition; raises DefinitionError with every mistake."""
    return check(parse(content, name), caps)


def parse(content: bytes, name: str) -> dict[str, Any]:
    """Read TOML or JSON, by the ending of the file's name; raises DefinitionError."""
    if len(content) > MAX_FILE_BYTES:
        raise refusal([(shortened(name), f"is larger than {MAX_FILE_BYTES:,} bytes")])
    try:
        raw = _decode(content.decode("utf-8-sig"), name)
        _refuse_surrogates(raw)
    except UnicodeDecodeError as error:
        raise refusal([(shortened(name), f"is not UTF-8 text (byte {error.start})")]) from None
    except RecursionError:
        raise refusal([(shortened(name), "is nested too deeply")]) from None
    except ValueError as error:  # from both parsers, with line and column
        line = _line_of(error)
        raise refusal([(shortened(name), f"cannot be parsed: {error}")], line=line) from None
    if not isinstance(raw, dict):
        raise refusal([(shortened(name), "must hold one object with slug, title, pages")])
    # Editors find the schema of a JSON file by this key.
    return {key: value for key, value in raw.items() if key != "$schema"}


def _line_of(error: ValueError) -> int | None:
    """Return the line that a parser states; tomllib does so only at the end of its message."""
    if isinstance(error, json.JSONDecodeError):
        return error.lineno
    stated = re.search(r"\(at line ([0-9]+), column [0-9]+\)$", str(error))
    return int(stated[1]) if stated and isinstance(error, tomllib.TOMLDecodeError) else None


def _decode(text: str, name: str) -> Any:
    if name.lower().endswith(".json"):
        return json.loads(
            text,
            parse_float=_parse_decimal,
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
        )
    if not name.lower().endswith(".toml"):
        raise refusal([(shortened(name), "a definition file ends in .toml or .json")])
    if dotted := DOTTED.search(text):
        raise ValueError(f"the key {quoted(dotted[0])} has too many parts")
    return tomllib.loads(text, parse_float=_parse_decimal)


def _parse_decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:  # its exponent has more than 18 digits
        raise ValueError(f"the number {shortened(text)} is too long") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for key, value in pairs:
        if key in entries:
            raise ValueError(f"the key {quoted(key)} is given twice in one object")
        entries[key] = value
    return entries


def _refuse_surrogates(raw: Any) -> None:
    """Refuse halves of surrogate pairs, which cannot be encoded as UTF-8 later."""
    values = [raw]
    while values:
        value = values.pop()
        if isinstance(value, str):
            if half := re.search("[\ud800-\udfff]", value):
                raise ValueError(
                    f"{ascii(half[0])[1:-1]} in {quoted(value)} is half of a Unicode character"
                )
        elif isinstance(value, list):
            values += value
        elif isinstance(value, dict):
            values += [*value, *value.values()]


# A published definition as its researcher could have written it

SETTINGS = ("bucket", "access", "kiosk", "layout", "theme", "allow_skip_logic")


def source_of(definition: Definition) -> dict[str, Any]:
    """Return the definition as plain values that `validation.check` accepts.

    Publishing them gives the same definition. Parameters that only the channel knows (forced
    chances, a utility table) are left out: the researcher has to state them again.
    """
    form = json.loads(definition.canonical)
    language, translations = form["language"], form.get("translations", {})
    texts = {
        name: _in_languages(language, form[name], _part(translations, name))
        for name in SURVEY_TEXTS
        if form.get(name)
    }
    return {
        "slug": form["slug"],
        "language": language,
        **texts,
        **{name: form[name] for name in SETTINGS if form.get(name)},
        **({"field_until": form["field"]["until"]} if form.get("field") else {}),
        **({"quick_exit": form["exit"]} if form.get("exit") else {}),
        **({"questions_per_person": form["sampling"]["draw"]} if form["sampling"] else {}),
        **({"together": together} if (together := _together_source(definition)) else {}),
        "pages": [
            {
                "title": _in_languages(
                    language, page["title"], _part(translations, "pages", i, "title")
                ),
                "questions": list(
                    _collect_matrices(
                        page["questions"],
                        [
                            _question_source(
                                language, question, _part(translations, "pages", i, "questions", j)
                            )
                            for j, question in enumerate(page["questions"])
                        ],
                    )
                ),
            }
            for i, page in enumerate(form["pages"])
        ],
    }


def _together_source(definition: Definition) -> list[dict[str, Any]]:
    """Return the declarations of questions that belong together; those without effect are lost."""
    joint = {q.joint.questions: q.joint for q in definition.questions if q.joint}
    questions = definition.questions
    own = [tuple(group) for group in groups_of(questions, drawn_together(questions))]
    # Name the matrix instead of its rows: the next version may not have all of them.
    matrix_of = {id_: matrix for matrix, ids in matrices_of(questions).items() for id_ in ids}
    drawn = [
        tuple(dict.fromkeys(matrix_of.get(id_, id_) for id_ in group))
        for group in definition.groups
        if definition.is_sampled and group not in own
    ]
    return [
        *(
            {"questions": list(ids), "joint": True}
            | ({"mechanism": joint[ids].mechanism} if joint[ids].mechanism != "grr" else {})
            for ids in sorted(joint)
        ),
        *({"questions": list(ids)} for ids in drawn),
    ]


def _collect_matrices(
    forms: Sequence[Mapping[str, Any]], sources: Sequence[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield the questions of a page as researchers wrote them, with rows collected in a matrix."""
    pairs = zip(forms, sources, strict=True)
    for matrix, group in groupby(pairs, lambda pair: _matrix_of(pair[0])):
        members = list(group)
        if matrix:
            yield MATRIX.collect([form for form, _ in members], [source for _, source in members])
        else:
            yield from (source for _, source in members)


def _matrix_of(form: Mapping[str, Any]) -> str:
    return str(form["matrix"]["id"]) if "matrix" in form else ""


def _question_source(
    language: str, form: Mapping[str, Any], translations: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a question with its options, its grid and its privacy, without defaults."""

    def text(name: str, value: str) -> Any:
        return _in_languages(language, value, _part(translations, name))

    labels = {
        option["id"]: _in_languages(language, option["label"], _part(translations, "options", i))
        for i, option in enumerate(form["options"])
    }
    pictures = [
        _picture_source(language, option, _part(translations, "pictures", i))
        if "picture" in option
        else {}
        for i, option in enumerate(form["options"])
    ]
    ordinary = [
        {"id": name, "label": label, **picture}
        for (name, label), picture in zip(labels.items(), pictures, strict=True)
        if name not in SPECIAL
    ]
    grid = form["grid"] and {**form["grid"], "unit": text("unit", form["grid"]["unit"])}
    ends = {
        end: _in_languages(language, label, _part(translations, "slider", end))
        for end, label in form.get("slider", {}).items()
    }
    stated = form["stated"]
    question: dict[str, Any] = {
        "id": form["id"],
        "type": form["type"],
        **{
            name: _in_languages(
                language, form["piped"][name], _part(_part(translations, "piped"), name)
            )
            if name in form.get("piped", ())
            else text(name, form[name])
            for name in PIPED_TEXTS
        },
        "topic": text("topic", form["topic"]) if "topic" in form else "",
        "prefer_not_to_say": False,
        **{name: label for name, label in labels.items() if name in SPECIAL},
        **kind_of(form).source({**form, "options": ordinary, "grid": grid, "slider": ends}),
        "ask_if": form["ask_if"],
        "shuffle_options": form.get("shuffled"),
        "mechanism": form["mechanism"],
        "parameters": {way: value for way, value in stated.items() if way not in PRIVACY},
        **{way: stated[way] for way in PRIVACY if way in stated},
    }
    if "matrix" in form:
        row = {name: form["matrix"][name] for name in ROW_TEXTS}
        row_texts = _part(translations, "matrix")
        question["matrix"] = {"id": form["matrix"]["id"]} | {
            name: _in_languages(language, value, _part(row_texts, name))
            for name, value in row.items()
        }
    return {name: value for name, value in question.items() if value not in ("", None, {})}


def _picture_source(
    language: str, option: Mapping[str, Any], translations: Mapping[str, str]
) -> dict[str, Any]:
    """Return the keys of an option's picture."""
    picture = option["picture"]
    alt = _in_languages(language, picture["alt"], translations)
    return {"picture": picture["sha256"], "picture_alt": alt}


def _part(translations: Mapping[str, Any], *steps: str | int) -> dict[str, Any]:
    """Return the same part of every translation, by language."""
    return {tag: reduce(getitem, steps, texts) for tag, texts in translations.items()}


def _in_languages(language: str, text: str, translations: Mapping[str, str]) -> Any:
    """Return a text, or a table of its languages when it is translated."""
    translated = {tag: translation for tag, translation in translations.items() if translation}
    return {language: text, **translated} if translated else text
