"""Load a definition file (TOML or JSON): a Survey, or every mistake in it with its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from survey.questionnaire.mistakes import Mistake, Place, located, refusal, sentence, shortened
from survey.questionnaire.model import (
    MAX_OPTIONS,
    MAX_QUESTIONS,
    OPT_OUT_ID,
    OPT_OUT_LABEL,
    YES_NO,
    Question,
    Survey,
)
from survey.questionnaire.parse import MAX_FILE_BYTES, parse
from survey.questionnaire.privacy import PRIVACY, total_mistake
from survey.settings import Caps


def load_file(path: Path, caps: Caps) -> Survey:
    """Read and check a definition file; its ending says whether it is TOML or JSON."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise refusal([(str(path), f"cannot be read: {error.strerror}")]) from None
    return load(content, path.name, caps)


def load(content: bytes, name: str, caps: Caps) -> Survey:
    """Parse and check a definition; raises DefinitionError with every mistake found."""
    raw = with_survey_defaults(parse(content, name))
    if too_many := list(_too_many(raw)):
        raise located(raw, too_many)
    mistakes = [
        *_structure(raw, caps),
        *_repeated_ids(raw),
        *_repeated_labels(raw),
        *_total(raw, caps),
    ]
    if mistakes:
        raise located(raw, mistakes)
    return Survey.model_validate(raw, context=caps)


def with_survey_defaults(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Spell out the short forms: questions without pages, one privacy for the whole survey."""
    spelled = dict(raw)
    if "questions" in spelled and "pages" not in spelled:
        spelled["pages"] = [{"questions": spelled.pop("questions")}]
    defaults = {name: spelled.pop(name) for name in (*PRIVACY, OPT_OUT_ID) if name in spelled}

    def complete(question: Any) -> Any:
        if not isinstance(question, Mapping):
            return question
        inherited = {
            name: value
            for name, value in defaults.items()
            if name == OPT_OUT_ID or not any(stated in question for stated in PRIVACY)
        }
        return {**inherited, **question}

    pages = spelled.get("pages")
    if isinstance(pages, list):
        spelled["pages"] = [
            {**page, "questions": [complete(question) for question in page["questions"]]}
            if isinstance(page, Mapping) and isinstance(page.get("questions"), list)
            else page
            for page in pages
        ]
    return spelled


def _too_many(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    """Counts above the limits, taken before anything is done for each entry."""
    pages = raw.get("pages")
    pages = pages if isinstance(pages, list) else []
    questions = sum(
        len(page["questions"])
        for page in pages
        if isinstance(page, Mapping) and isinstance(page.get("questions"), list)
    )
    for count, what in ((len(pages), "pages"), (questions, "questions")):
        if count > MAX_QUESTIONS:
            yield ("pages",), f"has {count:,} {what}; at most {MAX_QUESTIONS} are allowed"
            return
    for place, question in _questions(raw):
        options = question.get("options")
        if isinstance(options, list) and len(options) > MAX_OPTIONS:
            yield (
                (*place, "options"),
                (f"has {len(options):,} entries; the nearest allowed number is {MAX_OPTIONS}"),
            )


def _structure(raw: Mapping[str, Any], caps: Caps) -> Iterator[Mistake]:
    try:
        Survey.model_validate(raw, context=caps)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            place = detail["loc"]
            if OPT_OUT_ID in place:  # pydantic goes on with the names of both types it tried
                place = place[: place.index(OPT_OUT_ID) + 1]
            if not _echoes_another(detail):
                yield place, sentence(detail)


def _echoes_another(detail: ErrorDetails) -> bool:
    """Whether a mistake only repeats another.

    A list is called too short when its entries have mistakes of their own; a text is called no
    boolean where both may stand.
    """
    value, place = detail["input"], detail["loc"]
    if OPT_OUT_ID in place and place[-1] != OPT_OUT_ID:
        return (place[-1] == "bool") == isinstance(value, str)
    return (
        detail["type"] == "too_short"
        and isinstance(value, Sequence)
        and not isinstance(value, str)
        and len(value) >= detail["ctx"]["min_length"]
    )


def _questions(raw: Mapping[str, Any]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """Every question that is an object, with its place, whatever else is wrong."""
    pages = raw.get("pages")
    for i, page in enumerate(pages if isinstance(pages, list) else []):
        questions = page.get("questions") if isinstance(page, Mapping) else None
        for j, question in enumerate(questions if isinstance(questions, list) else []):
            if isinstance(question, Mapping):
                yield ("pages", i, "questions", j), question


def _options(place: Place, question: Mapping[str, Any], key: str) -> list[tuple[Place, Any]]:
    """The place and the value of one key of every option, as far as they are options."""
    options = question.get("options", YES_NO if question.get("type") == "yes_no" else None)
    return [
        ((*place, "options", i, key), option.get(key))
        for i, option in enumerate(options if isinstance(options, Sequence) else [])
        if isinstance(option, Mapping)
    ]


def _repeated_ids(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    questions = list(_questions(raw))
    yield from _repeats([((*place, "id"), question.get("id")) for place, question in questions])
    for place, question in questions:
        entries = _options(place, question, "id")
        if question.get(OPT_OUT_ID, True):
            entries.insert(0, ((*place, "id"), OPT_OUT_ID))
        yield from _repeats(entries)


def _repeats(entries: Sequence[tuple[Place, Any]]) -> Iterator[Mistake]:
    taken: set[str] = set()
    every = {identifier for _, identifier in entries if isinstance(identifier, str)}
    for place, identifier in entries:
        if not isinstance(identifier, str):
            continue
        if identifier in taken:
            free = next(
                f"{identifier}_{n}"
                for n in range(2, len(every) + 3)
                if f"{identifier}_{n}" not in every
            )
            reason = (
                " (the option to prefer not to say is there by itself; "
                "write prefer_not_to_say = false to leave it out)"
                if identifier == OPT_OUT_ID
                else ""
            )
            yield (
                place,
                f'"{shortened(identifier)}" is used twice; the nearest free id '
                f'is "{shortened(free)}"{reason}',
            )
        taken.add(identifier)


def _repeated_labels(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    """Options that respondents could not tell apart."""
    for place, question in _questions(raw):
        entries = _options(place, question, "label")
        opt_out = question.get(OPT_OUT_ID, True)
        if isinstance(opt_out, str):
            entries.append(((*place, OPT_OUT_ID), opt_out))
        elif opt_out:
            entries.insert(0, (place, OPT_OUT_LABEL))
        taken: set[str] = set()
        for where, label in entries:
            if not isinstance(label, str):
                continue
            seen = " ".join(label.split()).casefold()
            if seen and seen in taken:
                yield where, f'"{shortened(label)}" is the label of another option already'
            taken.add(seen)


def _total(raw: Mapping[str, Any], caps: Caps) -> Iterator[Mistake]:
    """What is too weak about all questions together."""
    channels = []
    for _, data in _questions(raw):
        try:
            channels.append(Question.model_validate(data, context=caps).channel)
        except ValidationError:
            continue
    if channels and (mistake := total_mistake(channels, caps)):
        yield ("pages",), mistake
