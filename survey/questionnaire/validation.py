"""Check a parsed definition: a Survey, or every mistake in it with its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from survey import progress
from survey.questionnaire.definition import (
    MAX_PICTURES,
    MAX_QUESTIONS,
    Survey,
    joint_mistake,
    matrices_of,
    max_questions_asked,
    written_questions,
)
from survey.questionnaire.designs import DESIGNS, PRIVACY
from survey.questionnaire.error_messages import Mistake, Place, located, sentence, shortened
from survey.questionnaire.kinds import QUESTION_KEYS, WRITTEN_KINDS, BaseQuestion, kind_of
from survey.questionnaire.kinds.base import NONE_ID, NOT_APPLICABLE_ID, SPECIAL, SPECIAL_KEYS
from survey.questionnaire.kinds.question import MAX_OPTIONS, UntypedQuestion
from survey.questionnaire.limits import total_mistake, work_mistake
from survey.questionnaire.placeholders import PIPED_TEXTS, misplaced_in, mistakes_in, sources_of
from survey.questionnaire.privacy_loss import Questions
from survey.questionnaire.texts import in_language, languages_in, mistakes_in_tables, texts_in
from survey.respondent_texts import SOURCE, label_language, say
from survey.settings import Caps

INHERITED = tuple(SPECIAL)[1:]
"""Automatic options of every type of question: a survey may state them once for all."""


def check(raw: Mapping[str, Any], caps: Caps) -> Survey:
    """Check a parsed definition; raises DefinitionError with every mistake."""
    own = own_language(raw)
    if mistakes := list(mistakes_in_tables(raw, own)):
        raise located(raw, mistakes)
    survey = _check_own_language(with_default_texts(in_language(raw, own, own), own), caps)
    others = languages_in(raw, own)[1:]
    return survey.translated({tag: _check_translation(raw, tag, survey, caps) for tag in others})


def own_language(raw: Mapping[str, Any]) -> str:
    """Return the language of a file's texts; the default if it names none."""
    language = raw.get("language", SOURCE)
    return language if isinstance(language, str) else SOURCE


def _check_own_language(raw: Mapping[str, Any], caps: Caps) -> Survey:
    if too_many := list(_too_many(raw)):
        raise located(raw, too_many)
    survey, mistakes = _structure(raw, caps)
    mistakes += [*repeated_ids(raw), *repeated_labels(raw)]
    if survey and not mistakes:
        mistakes = [*_misplaced(raw, survey), *mistakes_between(survey, caps)]
    if survey is None or mistakes:
        raise located(raw, mistakes)
    return survey


def _check_translation(raw: Mapping[str, Any], language: str, survey: Survey, caps: Caps) -> Survey:
    """Check a valid survey in another of its languages: only texts can still be wrong."""
    in_own = with_default_texts(in_language(raw, language, survey.language), language)
    translated, mistakes = _structure(in_own, caps)
    mistakes += repeated_labels(in_own)
    if translated and not mistakes:
        mistakes = [*_misplaced(in_own, survey), *_translated_piping(translated, survey)]
    if translated is None or mistakes:
        raise located(in_own, [((*place, language), text) for place, text in mistakes])
    return translated


def _translated_piping(translated: Survey, survey: Survey) -> Iterator[Mistake]:
    """Yield the translated texts that show different earlier answers than their originals."""
    for i, (page, own_page) in enumerate(zip(translated.pages, survey.pages, strict=True)):
        questions = map(written_questions, (page.questions, own_page.questions))
        for j, ((question, *_), (own, *_)) in enumerate(zip(*questions, strict=True)):
            for name in own.piped_names:
                text, own_text = getattr(question, name), getattr(own, name)
                place: Place = ("pages", i, "questions", j, name)
                if mistakes := list(mistakes_in(text, ())):
                    yield place, mistakes[0]
                elif sorted({*sources_of(text)}) != (sources := sorted({*sources_of(own_text)})):
                    yield (
                        place,
                        (
                            f"must show the same earlier answers as in {survey.language}: "
                            f"{', '.join(sources) or 'none'}"
                        ),
                    )


def with_default_texts(raw: Mapping[str, Any], language: str) -> dict[str, Any]:
    """Expand the short forms, with the default labels of a language."""
    translated = label_language(language)
    return _map_questions(expand(raw), lambda question: with_default_labels(question, translated))


def expand(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Expand the short forms: questions without pages, one privacy for the whole survey."""
    full = dict(raw)
    if "questions" in full and "pages" not in full:
        full["pages"] = [{"questions": full.pop("questions")}]
    defaults = {name: full.pop(name) for name in (*PRIVACY, *INHERITED) if name in full}
    return _map_questions(full, lambda question: _complete(question, defaults))


def _map_questions(raw: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a definition with every question changed, whatever else is wrong."""
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


def _complete(question: Any, defaults: Mapping[str, Any]) -> Any:
    """Return a question with the survey's defaults for what it does not state itself."""
    if not isinstance(question, Mapping):
        return question
    design = DESIGNS.get(str(question.get("mechanism")))
    has_privacy = any(way in question for way in PRIVACY) or (design and design.has_own_statement)
    inherited = {
        name: value for name, value in defaults.items() if name in INHERITED or not has_privacy
    }
    # A skipped question counts as one that does not apply.
    skippable = {NOT_APPLICABLE_ID: True} if "ask_if" in question else {}
    return {**inherited, **skippable, **question}


def _too_many(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield counts above the limits, before any work is done for each entry."""
    pages = raw.get("pages")
    pages = pages if isinstance(pages, list) else []
    lists = [page.get("questions") for page in pages if isinstance(page, Mapping)]
    questions = sum(
        len(entries) + sum(map(_count_further_rows, entries))
        for entries in lists
        if isinstance(entries, list)
    )
    for count, name in ((len(pages), "pages"), (questions, "questions")):
        if count > MAX_QUESTIONS:
            yield ("pages",), f"has {count:,} {name}; at most {MAX_QUESTIONS} are allowed"
            return
    values = [kind_of(question).count_values(question) for _, question in questions_in(raw)]
    if mistake := work_mistake([n for n in values if n]):
        yield ("pages",), mistake
    progress.start(questions)
    pictures = {
        picture
        for place, question in questions_in(raw)
        for _, picture in options_in(place, question, "picture")
        if isinstance(picture, str) and picture
    }
    if len(pictures) > MAX_PICTURES:
        yield ("pages",), f"has {len(pictures)} pictures; at most {MAX_PICTURES} are allowed"
    for place, question in questions_in(raw):
        options = question.get("options")
        if isinstance(options, list) and len(options) > MAX_OPTIONS:
            yield (
                (*place, "options"),
                f"has {len(options):,} entries; the nearest allowed number is {MAX_OPTIONS}",
            )


def _count_further_rows(question: Any) -> int:
    """Return the number of published questions of a matrix after its first row; else 0."""
    rows = question.get("rows") if isinstance(question, Mapping) else None
    return len(rows) - 1 if isinstance(rows, list) and rows and kind_of(question).is_matrix else 0


def _structure(raw: Mapping[str, Any], caps: Caps) -> tuple[Survey | None, list[Mistake]]:
    """Return the survey, or what is wrong with its parts."""
    try:
        return Survey.model_validate(raw, context=caps), []
    except ValidationError as error:
        mistakes = _mistakes(error)
    for place, question in questions_in(raw):
        if not kind_of(question).type:
            mistakes += [((*place, *rest), text) for rest, text in _untyped_mistakes(question)]
    return None, mistakes


def _untyped_mistakes(question: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield what is wrong with a question of an unknown type, apart from the type."""
    for key in question.keys() - QUESTION_KEYS:
        yield (key,), "is not a known key"
    try:
        UntypedQuestion.model_validate(question)
    except ValidationError as error:
        yield from _mistakes(error)


def _mistakes(error: ValidationError) -> list[Mistake]:
    details = (d for d in error.errors(include_url=False) if not _repeats_another(d))
    return [(_place(detail), sentence(detail)) for detail in details]


def _place(detail: ErrorDetails) -> Place:
    """Return where a mistake is, without the type names that pydantic adds to the place."""
    place = tuple(
        step
        for at, step in enumerate(detail["loc"])
        if not (step in WRITTEN_KINDS and at and isinstance(detail["loc"][at - 1], int))
    )
    for identifier in SPECIAL:
        if identifier in place:
            place = place[: place.index(identifier) + 1]
    return (*place, "type") if detail["type"].startswith("union_tag") else place


def _repeats_another(detail: ErrorDetails) -> bool:
    """Whether a mistake only repeats another.

    Pydantic calls a list too short when its entries have mistakes, and reports a text as no boolean
    where both are allowed.
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


# Questions that may still be wrong


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


# Between questions


def repeated_ids(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield the ids that two questions, or two options of one question, share."""
    questions = list(questions_in(raw))
    rows = [
        ((*place, "rows"), f"{question.get('id')}_{row.get('id')}")
        for place, question in questions
        if kind_of(question).is_matrix and isinstance(question.get("rows"), list)
        for row in question["rows"]
        if isinstance(row, Mapping)
    ]
    ids = [((*place, "id"), question.get("id")) for place, question in questions]
    yield from _repeats([*ids, *rows])
    for place, question in questions:
        special = [((*place, "id"), identifier) for identifier in special_in(question)]
        yield from _repeats([*special, *options_in(place, question, "id")])


def _repeats(entries: Sequence[tuple[Place, Any]]) -> Iterator[Mistake]:
    seen_ids: set[str] = set()
    identifiers = {identifier for _, identifier in entries if isinstance(identifier, str)}
    for place, identifier in entries:
        if not isinstance(identifier, str):
            continue
        if identifier in seen_ids:
            free = next(
                f"{identifier}_{n}"
                for n in range(2, len(identifiers) + 3)
                if f"{identifier}_{n}" not in identifiers
            )
            yield (
                place,
                f'"{shortened(identifier)}" is used twice; the nearest free id '
                f'is "{shortened(free)}"{_reason(identifier)}',
            )
        seen_ids.add(identifier)


def _reason(identifier: str) -> str:
    if identifier not in SPECIAL:
        return ""
    # "None of these" cannot be left out.
    remedy = "" if identifier == NONE_ID else f"; write {identifier} = false to leave it out"
    return f' (the option "{SPECIAL[identifier]}" is added automatically{remedy})'


def repeated_labels(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield options that respondents could not tell apart."""
    for place, question in questions_in(raw):
        entries = options_in(place, question, "label")
        for identifier, label in special_in(question).items():
            if isinstance(label, str):
                entries.append(((*place, identifier), label))
            else:
                entries.insert(0, (place, SPECIAL[identifier]))
        labels: set[str] = set()
        for label_place, label in entries:
            if not isinstance(label, str):
                continue
            folded = " ".join(label.split()).casefold()
            if folded and folded in labels:
                yield label_place, f'"{shortened(label)}" is already the label of another option'
            labels.add(folded)


SHARED_AND_INVITED = (
    'needs access = "open": an invitation belongs to one person, and the next person on a shared '
    "device could use it"
)
"""Why a survey is for shared devices or by invitation, but not both."""


FIELD_AND_NOT_SHARED = (
    "needs kiosk = true: in field mode, many people answer one after another on a shared tablet"
)
"""The reason why a survey with field mode must be for shared devices."""


def mistakes_between(survey: Survey, caps: Caps) -> list[Mistake]:
    """Return what is wrong between questions that are each right."""
    mistakes = [*_skip_logic(survey), *_together(survey), *_sampling(survey), *_piping(survey)]
    if survey.kiosk and survey.access == "invitation":
        mistakes.append((("kiosk",), SHARED_AND_INVITED))
    if survey.field_until and not survey.kiosk:
        mistakes.append((("field_until",), FIELD_AND_NOT_SHARED))
    if not mistakes:
        n_questions = max_questions_asked(survey.groups, survey.drawn)
        total = total_mistake(survey.total_ratio, n_questions, caps)
        if total and (draw := Questions.of(survey).proposed_draw(caps)):
            total += f"; or ask each person {draw} of them (questions_per_person = {draw})"
        mistakes = [(("pages",), total)] if total else []
    return mistakes


def _skip_logic(survey: Survey) -> Iterator[Mistake]:
    earlier: dict[str, BaseQuestion] = {}
    for i, page in enumerate(survey.pages):
        for j, (question, *_) in enumerate(written_questions(page.questions)):
            if mistake := _condition_mistake(survey, question, earlier):
                part, reason = mistake
                yield ("pages", i, "questions", j, "ask_if", *part), reason
        earlier |= {question.id: question for question in page.questions}


def _condition_mistake(
    survey: Survey, question: BaseQuestion, earlier: Mapping[str, BaseQuestion]
) -> Mistake | None:
    """Return which part of a question's condition is wrong and why, or None."""
    if question.ask_if is None:
        return None
    if not survey.allow_skip_logic:
        return (), (
            "needs allow_skip_logic = true for the survey: the time a respondent takes can then "
            "reveal which questions were skipped, and the privacy label says so"
        )
    if not question.not_applicable:
        return (), "needs the option does_not_apply, which stands for a skipped question"
    parent = earlier.get(question.ask_if.question)
    if parent is None or not parent.kind.is_listed:
        return ("question",), (
            f'"{question.ask_if.question}" is not a question with options on an earlier page'
            + _list_names([q.id for q in earlier.values() if q.kind.is_listed])
        )
    ids = [option.id for option in parent.all_options]
    unknown = [name for name in question.ask_if.options if name not in ids]
    reason = f'"{unknown[0]}" is not an option of {parent.id}{_list_names(ids)}' if unknown else ""
    return (("options",), reason) if unknown else None


def _piping(survey: Survey) -> Iterator[Mistake]:
    """Yield the mistakes in texts that show earlier answers."""
    earlier: dict[str, BaseQuestion] = {}
    ids = {question.id for question in survey.questions}
    for i, page in enumerate(survey.pages):
        for j, (question, *_) in enumerate(written_questions(page.questions)):
            for name in question.piped_names:
                text = getattr(question, name)
                mistakes = list(mistakes_in(text, ids))
                for mistake in mistakes or _source_mistakes(survey, question, text, earlier):
                    yield ("pages", i, "questions", j, name), mistake
        earlier |= {question.id: question for question in page.questions}


def _misplaced(raw: Mapping[str, Any], survey: Survey) -> Iterator[Mistake]:
    """Yield earlier answers in texts that would show their placeholder to respondents."""
    ids = {question.id for question in survey.questions}
    for place, text in texts_in(raw):
        match place:
            case ("pages", int(i), "questions", int(j), name) if name in PIPED_TEXTS:
                if not kind_of(raw["pages"][i]["questions"][j]).is_matrix:
                    continue
        if isinstance(text, str) and (placeholder := misplaced_in(text, ids)):
            yield (
                place,
                f'cannot show an earlier answer (found "{shortened(placeholder)}"); only the text '
                "and the help of a question can, and not those of a matrix",
            )


def _source_mistakes(
    survey: Survey, question: BaseQuestion, text: str, earlier: Mapping[str, BaseQuestion]
) -> Iterator[str]:
    possible = [other.id for other in earlier.values() if not other.kind.is_multiple]
    for source in sources_of(text):
        if not survey.allow_skip_logic:
            yield (
                f"shows the answer to {source}, which needs allow_skip_logic = true for the survey"
            )
        elif source not in possible:
            yield (
                f'"{source}" must be a question with one answer, on an earlier page'
                + _list_names(possible)
            )
        elif not any({source, question.id} <= set(group) for group in survey.groups) and (
            survey.questions_per_person is not None
        ):
            yield (
                f"shows the answer to {source}, which is not always asked with {question.id}: "
                "declare in together that each person is asked both or neither"
            )


def _list_names(names: Sequence[str]) -> str:
    listed = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    return f"; available: {listed}" if names else ""


def _together(survey: Survey) -> Iterator[Mistake]:
    """Yield what is wrong with the declarations of questions that belong together."""
    by_id = {question.id: question for question in survey.questions}
    matrices = matrices_of(survey.questions)
    joint_ids: set[str] = set()
    for i, declared in enumerate(survey.together):
        place: Place = ("together", i, "questions")
        ids = declared.questions
        if unknown := [name for name in ids if name not in by_id and name not in matrices]:
            yield place, f'"{unknown[0]}" is not a question{_list_names(list(by_id))}'
        elif declared.joint and (matrix := next((name for name in ids if name in matrices), "")):
            yield place, f'"{matrix}" cannot be randomized jointly: it is a matrix'
        elif len(set(ids)) < len(ids):
            yield place, "lists a question twice"
        elif declared.mechanism != "grr" and not declared.joint:
            yield ("together", i, "mechanism"), "needs joint = true"
        elif declared.joint and (mistake := joint_mistake(ids, by_id, declared.mechanism)):
            yield place, mistake
        elif declared.joint and (repeated := joint_ids & set(ids)):
            yield place, f'"{min(repeated)}" is already randomized jointly with other questions'
        joint_ids |= set(ids) if declared.joint else set()


def _sampling(survey: Survey) -> Iterator[Mistake]:
    number, groups = survey.questions_per_person, len(survey.groups)
    if number is None or 1 <= number < groups:
        return
    place: Place = ("questions_per_person",)
    if groups < 2:
        yield place, f"{number} of {groups} question cannot be drawn at random; leave it out"
        return
    nearest = min(max(number, 1), groups - 1)
    depending = groups < len(list(survey.questions))
    yield (
        place,
        f"{number} is not fewer than the {groups} questions"
        + (" (questions that depend on each other or belong together count once)" * depending)
        + f"; the nearest allowed value is {nearest}",
    )
