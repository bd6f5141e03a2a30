"""Load a definition file (TOML or JSON): a Survey, or every mistake in it with its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from survey.catalogue import SOURCE, closest_language
from survey.questionnaire.across import repeated_ids, repeated_labels, unfit_together
from survey.questionnaire.designs import DESIGNS, PRIVACY
from survey.questionnaire.languages import in_language, languages_in, mistakes_in_tables
from survey.questionnaire.mistakes import Mistake, Place, located, refusal, sentence
from survey.questionnaire.model import MAX_QUESTIONS, Survey
from survey.questionnaire.parse import MAX_FILE_BYTES, parse
from survey.questionnaire.question import MAX_OPTIONS, NOT_APPLICABLE_ID, SPECIAL
from survey.questionnaire.questions import TYPES
from survey.questionnaire.raw import questions_in
from survey.questionnaire.usual import with_usual_labels
from survey.settings import Caps

INHERITED = tuple(SPECIAL)[1:]
"""Options that are there by themselves in every type of question: a survey may state them once."""


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
    return read(parse(content, name), caps)


def read(written: Mapping[str, Any], caps: Caps) -> Survey:
    """Check a definition that was parsed; raises DefinitionError with every mistake found."""
    own = own_language(written)
    if wrong := list(mistakes_in_tables(written, own)):
        raise located(written, wrong)
    survey = _in_own_language(with_usual_texts(in_language(written, own, own), own), caps)
    return survey.translated(
        {
            language: _in_other_language(written, language, survey, caps)
            for language in languages_in(written, own)[1:]
        }
    )


def own_language(written: Mapping[str, Any]) -> str:
    """The language that a file says its texts are in, if it says one."""
    language = written.get("language", SOURCE)
    return language if isinstance(language, str) else SOURCE


def _in_own_language(raw: Mapping[str, Any], caps: Caps) -> Survey:
    if too_many := list(_too_many(raw)):
        raise located(raw, too_many)
    survey, mistakes = _structure(raw, caps)
    mistakes += [*repeated_ids(raw), *repeated_labels(raw)]
    mistakes += unfit_together(survey, caps) if survey and not mistakes else []
    if survey is None or mistakes:
        raise located(raw, mistakes)
    return survey


def _in_other_language(
    written: Mapping[str, Any], language: str, survey: Survey, caps: Caps
) -> Survey:
    """A survey that is right, in another of its languages: only texts can still be wrong."""
    raw = with_usual_texts(in_language(written, language, survey.language), language)
    translated, mistakes = _structure(raw, caps)
    mistakes += repeated_labels(raw)
    if translated is None or mistakes:
        raise located(raw, [((*place, language), text) for place, text in mistakes])
    return translated


def with_usual_texts(raw: Mapping[str, Any], language: str) -> dict[str, Any]:
    """Spell out the short forms, with the labels that are usual in a language."""
    usual = closest_language(language) or SOURCE
    return _each_question(spelled_out(raw), lambda one: with_usual_labels(one, usual))


def spelled_out(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Spell out the short forms: questions without pages, one privacy for the whole survey."""
    spelled = dict(raw)
    if "questions" in spelled and "pages" not in spelled:
        spelled["pages"] = [{"questions": spelled.pop("questions")}]
    defaults = {name: spelled.pop(name) for name in (*PRIVACY, *INHERITED) if name in spelled}
    return _each_question(spelled, lambda one: _complete(one, defaults))


def _each_question(raw: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """A definition with every question changed that stands where questions do."""
    pages = raw.get("pages")
    if not isinstance(pages, list):
        return raw
    changed = [
        {**page, "questions": [change(question) for question in page["questions"]]}
        if isinstance(page, Mapping) and isinstance(page.get("questions"), list)
        else page
        for page in pages
    ]
    return {**raw, "pages": changed}


def _complete(question: Any, defaults: Mapping[str, Any]) -> Any:
    """A question with what the survey states for all that do not state it themselves."""
    if not isinstance(question, Mapping):
        return question
    design = DESIGNS.get(str(question.get("mechanism")))
    states_itself = any(way in question for way in PRIVACY) or (design and design.states_itself)
    inherited = {
        name: value for name, value in defaults.items() if name in INHERITED or not states_itself
    }
    # A question that is not asked counts as one that does not apply.
    skippable = {NOT_APPLICABLE_ID: True} if "ask_if" in question else {}
    return {**inherited, **skippable, **question}


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
    for place, question in questions_in(raw):
        options = question.get("options")
        if isinstance(options, list) and len(options) > MAX_OPTIONS:
            yield (
                (*place, "options"),
                (f"has {len(options):,} entries; the nearest allowed number is {MAX_OPTIONS}"),
            )


def _structure(raw: Mapping[str, Any], caps: Caps) -> tuple[Survey | None, list[Mistake]]:
    """The survey, or what is wrong with its parts."""
    try:
        return Survey.model_validate(raw, context=caps), []
    except ValidationError as error:
        details = error.errors(include_url=False)
        return None, [
            (_place(detail), sentence(detail)) for detail in details if not _echoes_another(detail)
        ]


def _place(detail: ErrorDetails) -> Place:
    """Where a mistake is, without the names of types that pydantic tried."""
    place = tuple(
        step
        for at, step in enumerate(detail["loc"])
        if not (step in TYPES and at and isinstance(detail["loc"][at - 1], int))
    )
    for identifier in SPECIAL:
        if identifier in place:
            place = place[: place.index(identifier) + 1]
    return (*place, "type") if detail["type"].startswith("union_tag") else place


def _echoes_another(detail: ErrorDetails) -> bool:
    """Whether a mistake only repeats another.

    A list is called too short when its entries have mistakes of their own; a text is called no
    boolean where both may stand.
    """
    value, place = detail["input"], detail["loc"]
    if set(SPECIAL) & set(place) and place[-1] not in SPECIAL:
        return (place[-1] in ("bool", "literal[True]")) == isinstance(value, str)
    return (
        detail["type"] == "too_short"
        and isinstance(value, Sequence)
        and not isinstance(value, str)
        and len(value) >= detail["ctx"]["min_length"]
    )
