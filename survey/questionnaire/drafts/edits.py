"""Edits of a draft: the buttons of its outline, its forms, and the merging of concurrent edits.

Each edit makes a new draft from an old one. A sheet is the form of one part of a draft. A field
that only one researcher changed keeps that change; a field that both changed is a clash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from survey.errors import DesignError
from survey.mechanism.joint_response import JointMechanism
from survey.questionnaire.definition import MAX_QUESTIONS
from survey.questionnaire.drafts.conversion import option_ids, row_ids
from survey.questionnaire.drafts.draft import (
    EMPTY_OPTION,
    EMPTY_QUESTION,
    EMPTY_SURVEY,
    OPTION_TEXTS,
    QUESTION_TEXTS,
    DraftContent,
    DraftPage,
    Question,
    Texts,
    free_identifier,
    usual_label,
)
from survey.questionnaire.kinds import KINDS, LIST_KIND, kind_of
from survey.questionnaire.kinds.base import NOT_APPLICABLE_ID, OPT_OUT_ID, USUAL_KEYS
from survey.questionnaire.texts import SURVEY_TEXTS

NO_LEVEL: Mapping[str, str] = dict.fromkeys(("way", "value", "mechanism", "parameters"), "")
"""The fields of a question that states no privacy level and thus has the standard one."""


OPT_OUT_FIELDS = tuple(
    f"{name}{suffix}" for name in (OPT_OUT_ID, NOT_APPLICABLE_ID) for suffix in ("", "_label")
)
"""The fields of a question about its opt-out answers."""


def add_page(content: DraftContent) -> DraftContent:
    """Add a page at the end."""
    _check_room(len(content.pages), "pages")
    key = content.last_key + 1
    return replace(content, pages=(*content.pages, DraftPage(key, {}, ())), last_key=key)


def remove_page(content: DraftContent, key: int) -> DraftContent:
    """Remove a page; its questions move to the page before it, or to the next one."""
    page = content.page(key)
    place = content.pages.index(page)
    if len(content.pages) == 1:
        raise DesignError("a survey needs at least one page")
    remaining = [other for other in content.pages if other.key != key]
    heir = remaining[max(place - 1, 0)]
    questions = (*heir.questions, *page.questions) if place else (*page.questions, *heir.questions)
    return replace(content, pages=tuple(remaining)).with_page(replace(heir, questions=questions))


def move_page(content: DraftContent, key: int, by: int) -> DraftContent:
    """Move a page one place up (-1) or down (1), unless it is at that end."""
    pages = list(content.pages)
    _swap(pages, pages.index(content.page(key)), by)
    return replace(content, pages=tuple(pages))


def add_question(content: DraftContent, page_key: int, kind: str) -> tuple[DraftContent, int]:
    """Add a question at the end of a page; return the draft and the question's key."""
    _check_room(sum(1 for _ in content.questions), "questions")
    key = content.last_key + 1
    identifier = free_identifier("q1", _question_ids(content))
    question = {**EMPTY_QUESTION, "key": key, "type": kind, "id": identifier}
    page = content.page(page_key)
    extended = content.with_page(replace(page, questions=(*page.questions, question)))
    return replace(extended, last_key=key), key


ANSWER_MARKS = ("-", "*", "•", "–")
"""Marks in front of an answer in a written list of questions."""


def add_question_list(content: DraftContent, page_key: int, text: str) -> DraftContent:
    """Add questions from a text: one per line, each answer on a line below it after a hyphen.

    A question without answers becomes a yes/no question. Raises DesignError for answers without a
    question, and for more questions than a survey can have.
    """
    page, last_key = content.page(page_key), content.last_key
    used, questions = _question_ids(content), list[Question]()
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip()
        if not words.strip("".join(ANSWER_MARKS)):
            continue
        last_key += 1
        if not words.startswith(ANSWER_MARKS):
            identifier = free_identifier("q1", used)
            used.add(identifier)
            own = {"key": last_key, "id": identifier, "text": _in_own(content, words)}
            questions.append({**EMPTY_QUESTION, **own})
        elif questions:
            label = _in_own(content, words[1:].strip())
            options = (*questions[-1]["options"], {"key": last_key, "id": "", "label": label})
            questions[-1] = {**questions[-1], "type": LIST_KIND.type, "options": options}
        else:
            raise DesignError(f"line {number} is an answer: write its question on the line above")
    if not questions:
        raise DesignError("write at least one question")
    n_questions = sum(1 for _ in content.questions) + len(questions)
    if n_questions > MAX_QUESTIONS:
        raise DesignError(f"the draft would have {n_questions} questions; at most {MAX_QUESTIONS}")
    extended = content.with_page(replace(page, questions=(*page.questions, *questions)))
    extended = replace(extended, last_key=last_key)
    for question in questions:
        extended = with_ids(extended, question["key"])
    return extended


def _in_own(content: DraftContent, text: str) -> Texts:
    return {content.own_language: text}


def duplicate_question(content: DraftContent, key: int) -> tuple[DraftContent, int]:
    """Copy a question behind itself under a new id; return the draft and the copy's key."""
    _check_room(sum(1 for _ in content.questions), "questions")
    original, new_key = content.question(key), content.last_key + 1
    identifier = free_identifier(str(original["id"]) or "q1", _question_ids(content))
    copy: dict[str, Any] = {**original, "key": new_key, "id": identifier}

    def add_copy(page: DraftPage) -> DraftPage:
        questions: list[Question] = []
        for question in page.questions:
            questions += [question, copy] if question["key"] == key else [question]
        return replace(page, questions=tuple(questions))

    return replace(content.map_pages(add_copy), last_key=new_key), new_key


def add_copy(
    content: DraftContent, page_key: int, question: Question, language: str
) -> tuple[DraftContent, int]:
    """Add a copy of another survey's question at the end of a page; return the draft and its key.

    The copy has the texts in the languages of the draft. A text that is missing in the draft's own
    language stays in that of the other survey, `language`, until somebody translates it. The
    copy has no condition on another question.
    """
    _check_room(sum(1 for _ in content.questions), "questions")
    own, page = content.own_language, content.page(page_key)
    tags = {own, *content.languages}

    def adapt(texts: Texts) -> Texts:
        known = {tag: text for tag, text in texts.items() if tag in tags}
        return known if own in known or language not in texts else {**known, own: texts[language]}

    key = content.last_key + 1
    copy: dict[str, Any] = {
        **question,
        **{name: adapt(question[name]) for name in QUESTION_TEXTS},
        "key": key,
        "id": free_identifier(str(question["id"]) or "q1", _question_ids(content)),
        "options": tuple(
            {
                **option,
                "key": key + place,
                **{name: adapt(option.get(name, {})) for name in OPTION_TEXTS},
            }
            for place, option in enumerate(question["options"], 1)
        ),
        "rows": tuple(
            {**row, "key": key + len(question["options"]) + place, "text": adapt(row["text"])}
            for place, row in enumerate(question["rows"], 1)
        ),
        "ask_question": "",
        "ask_options": (),
    }
    extended = content.with_page(replace(page, questions=(*page.questions, copy)))
    last_key = key + len(question["options"]) + len(question["rows"])
    return replace(extended, last_key=last_key), key


def remove_question(content: DraftContent, key: int) -> DraftContent:
    """Remove a question; raises NotFoundError if there is none."""
    id_ = str(content.question(key)["id"])
    remaining = content.map_pages(
        lambda page: replace(page, questions=tuple(q for q in page.questions if q["key"] != key))
    )
    return _map_together(remaining, lambda name: None if name == id_ else name)


def move_question(content: DraftContent, key: int, by: int) -> DraftContent:
    """Move a question one place up (-1) or down (1), at an end of its page to the next page."""
    question = content.question(key)
    at = next(i for i, page in enumerate(content.pages) if question in page.questions)
    questions = list(content.pages[at].questions)
    place = questions.index(question)
    if 0 <= place + by < len(questions):
        _swap(questions, place, by)
        return content.with_page(replace(content.pages[at], questions=tuple(questions)))
    if not 0 <= at + by < len(content.pages):
        return content
    target = content.pages[at + by]
    extended = (question, *target.questions) if by > 0 else (*target.questions, question)
    del questions[place]
    without = content.with_page(replace(content.pages[at], questions=tuple(questions)))
    return without.with_page(replace(target, questions=extended))


def place_question(content: DraftContent, key: int, target: str) -> DraftContent:
    """Move a question to a place in the order of all questions, or to an empty page ("page 3").

    It comes to stand on the page of the question that has this place now.
    """
    question, order = content.question(key), [other["key"] for other in content.questions]
    empty = {f"page {page.key}": page.key for page in content.pages if not page.questions}
    place = int(target) - 1 if target.isascii() and target.isdecimal() and len(target) < 9 else -1
    if target not in empty and not 0 <= place < len(order):
        raise DesignError(f"choose a place from 1 to {len(order)}")
    neighbor, page_key = (0, empty[target]) if target in empty else (order[place], 0)
    if neighbor == key:
        return content
    is_behind = place > order.index(key)

    def move(page: DraftPage) -> DraftPage:
        questions = [question] if page.key == page_key else []
        for other in page.questions:
            if other["key"] == neighbor:
                questions += [other, question] if is_behind else [question, other]
            elif other["key"] != key:
                questions.append(other)
        return replace(page, questions=tuple(questions))

    return content.map_pages(move)


def undo(content: DraftContent, before: DraftContent, after: DraftContent) -> DraftContent:
    """Undo what the change from `before` to `after` added, removed, moved or set.

    Edits since then stay. Raises DesignError if the same list or setting has changed again, or if
    an added part has been edited: undoing would delete what was written.
    """
    _check_unedited(content.questions, before.questions, after.questions, "question")
    _check_unedited(_titles(content), _titles(before), _titles(after), "page")
    if _outline(before) != _outline(after):
        if _outline(content) != _outline(after):
            raise DesignError("the pages or questions have changed again since then")
        pages = {page.key: page for page in content.pages}
        questions = {question["key"]: question for question in content.questions}
        restored = tuple(
            DraftPage(
                page.key,
                pages.get(page.key, page).title,
                tuple(questions.get(question["key"], question) for question in page.questions),
            )
            for page in before.pages
        )
        content = replace(content, pages=restored)
        if content.survey["together"] != after.survey["together"]:
            # Somebody has declared other questions since then: the declarations stay.
            together = {"together": before.survey["together"]}
            after = replace(after, survey={**after.survey, **together})
    old = {question["key"]: question for question in before.questions}
    new = {question["key"]: question for question in after.questions}
    titles_before, titles_after = (
        {page.key: page.title for page in draft.pages} for draft in (before, after)
    )

    def revert_question(question: Question) -> Question:
        key = question["key"]
        return _reverted(question, old[key], new[key]) if key in old and key in new else question

    def revert_page(page: DraftPage) -> DraftPage:
        title = page.title
        if page.key in titles_before and page.key in titles_after:
            title = _reverted(title, titles_before[page.key], titles_after[page.key])
        return DraftPage(page.key, title, tuple(map(revert_question, page.questions)))

    languages = _reverted(content.languages, before.languages, after.languages)
    survey = _reverted(content.survey, before.survey, after.survey)
    return replace(content, survey=survey, languages=languages).map_pages(revert_page)


def _reverted(value: Any, before: Any, after: Any) -> Any:
    """Return a value with the change from `before` to `after` undone, part by part.

    >>> _reverted({"a": 2, "b": 9}, {"a": 1, "b": 1}, {"a": 2, "b": 1})
    {'a': 1, 'b': 9}
    """
    if before == after:
        return value
    if value == after:
        return before
    if all(isinstance(part, Mapping) for part in (value, before, after)):
        names = dict.fromkeys((*value, *before))
        parts = {
            name: _reverted(value.get(name), before.get(name), after.get(name)) for name in names
        }
        return {name: part for name, part in parts.items() if part is not None}
    if all(_has_keys(part) for part in (value, before, after)):
        return _reverted_list(value, before, after)
    raise DesignError("the same setting has changed again since then")


def _has_keys(value: Any) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(part, Mapping) and "key" in part for part in value
    )


def _reverted_list(
    value: Sequence[Mapping[str, Any]],
    before: Sequence[Mapping[str, Any]],
    after: Sequence[Mapping[str, Any]],
) -> tuple[Mapping[str, Any], ...]:
    """Undo a change of a question's answers and of their order."""
    if _keys(before) != _keys(after) != _keys(value):
        raise DesignError("the answers of this question have changed again since then")
    _check_unedited(value, before, after, "answer")
    now, old, new = ({part["key"]: part for part in parts} for parts in (value, before, after))
    order = _keys(value) if _keys(before) == _keys(after) else _keys(before)
    return tuple(
        _reverted(now[key], old[key], new[key])
        if key in now and key in old and key in new
        else now.get(key, old.get(key, {}))
        for key in order
    )


def _titles(content: DraftContent) -> list[dict[str, Any]]:
    return [{"key": page.key, "title": page.title} for page in content.pages]


def _check_unedited(
    value: Iterable[Mapping[str, Any]],
    before: Iterable[Mapping[str, Any]],
    after: Iterable[Mapping[str, Any]],
    name: str,
) -> None:
    """Raise DesignError if a part that the change added has been edited since then."""
    old = {part["key"] for part in before}
    added = {part["key"]: part for part in after if part["key"] not in old}
    if any(part != added.get(part["key"], part) for part in value):
        raise DesignError(f"an added {name} has been edited since then: remove it instead")


def _outline(content: DraftContent) -> list[tuple[int, list[int]]]:
    return [(page.key, _keys(page.questions)) for page in content.pages]


def _keys(parts: Sequence[Mapping[str, Any]]) -> list[int]:
    return [part["key"] for part in parts]


def ask_some(content: DraftContent, n: int) -> DraftContent:
    """Ask each respondent n questions, chosen at random."""
    if n < 1:
        raise DesignError("each respondent must be asked at least one question")
    n_questions = len(list(content.questions))
    if n > n_questions:
        raise DesignError(f"the survey has {n_questions} questions, fewer than {n}")
    return replace(content, survey={**content.survey, "questions_per_person": str(n)})


def ask_all(content: DraftContent) -> DraftContent:
    """Ask each respondent all questions."""
    return replace(content, survey={**content.survey, "questions_per_person": ""})


def with_levels(content: DraftContent, levels: Mapping[int, str]) -> DraftContent:
    """Set the named privacy levels of questions by key, with the mechanism of their type.

    A level is an epsilon, or "" for the standard one.
    """

    def change(question: Question) -> Question:
        if question["key"] not in levels:
            return question
        epsilon = levels[question["key"]]
        level = {"way": "epsilon", "value": epsilon} if epsilon else {}
        return {**question, **NO_LEVEL, **level}

    return content.map_pages(
        lambda page: replace(page, questions=tuple(map(change, page.questions)))
    )


def with_epsilons(content: DraftContent, levels: Mapping[int, tuple[str, str]]) -> DraftContent:
    """Set the mechanism and epsilon of questions by key; "" is the type's default mechanism."""

    def change(question: Question) -> Question:
        if question["key"] not in levels:
            return question
        mechanism, epsilon = levels[question["key"]]
        parameters = question["parameters"] if mechanism == question["mechanism"] else ""
        level = {"way": "epsilon", "value": epsilon, "mechanism": mechanism}
        return {**question, **level, "parameters": parameters}

    return content.map_pages(
        lambda page: replace(page, questions=tuple(map(change, page.questions)))
    )


def with_groups(
    content: DraftContent,
    together: Sequence[tuple[Sequence[str], JointMechanism | None]],
    drawn: int,
) -> DraftContent:
    """Declare the questions that belong together, and how many groups each person is asked.

    Each declaration has the ids, and the mechanism if the answers are randomized jointly. With 0,
    each person is asked all groups.
    """
    declared = tuple(
        {"questions": list(ids), "joint": mechanism is not None}
        | ({"mechanism": mechanism} if mechanism == "half_space" else {})
        for ids, mechanism in together
    )
    draws = {"questions_per_person": str(drawn or ""), "together": declared}
    return replace(content, survey={**content.survey, **draws})


COMPANION_FIELDS = ("together_with", "joint")
"""Fields of the question form that the draft stores among the settings of the survey."""


def with_companion(
    content: DraftContent, key: int, *, together_with: str = "", joint: bool = False
) -> DraftContent:
    """Declare that a question belongs together with another, by its id, or with none."""
    name = str(content.question(key)["id"])
    before = content.companion(name)
    if (together_with, joint and bool(together_with)) == before:
        return content
    alone = _map_together(content, lambda id_: None if id_ == name else id_)
    if not together_with:
        return alone
    declared, is_added = [], False
    for group in alone.survey["together"]:
        fits = together_with in group["questions"] and bool(group.get("joint", False)) == joint
        members = [*group["questions"], name] if fits and not is_added else group["questions"]
        is_added |= fits
        declared.append({**group, "questions": members})
    if not is_added:
        declared.append({"questions": [together_with, name], "joint": joint})
    return replace(alone, survey={**alone.survey, "together": tuple(declared)})


def with_ranges(
    content: DraftContent, key: int, labels: Sequence[str], epsilon: str
) -> DraftContent:
    """Replace a number or date by a choice among ordered ranges, at this epsilon."""
    question, last_key = content.question(key), content.last_key
    options = tuple(
        {"key": last_key + place, "id": "", "label": {content.own_language: label}}
        for place, label in enumerate(labels, 1)
    )
    kept = ("key", "id", "text", "help", "topic", *OPT_OUT_FIELDS, "ask_question", "ask_options")
    changed = {
        **EMPTY_QUESTION,
        **{name: question[name] for name in kept},
        "type": next(kind.type for kind in KINDS.values() if kind.is_ordered),
        "options": options,
        "way": "epsilon",
        "value": epsilon,
    }
    return replace(content, last_key=last_key + len(labels)).with_question(key, changed)


def with_picture(
    content: DraftContent, key: int, option_key: int, sha256: str | None, alt: str
) -> DraftContent:
    """Give an option a picture with a description; "" removes it, None keeps the old one.

    Raises DesignError if the option was removed or a picture has no description.
    """
    question = content.question(key)
    old = next((option for option in question["options"] if option["key"] == option_key), None)
    if old is None:
        raise DesignError("Nothing changed: this answer has been removed from the draft")
    picture = old["picture"] if sha256 is None else sha256
    if alt and not picture:
        raise DesignError("Choose a picture")
    if picture and not alt:
        raise DesignError("Describe the picture for people who cannot see it")
    # A translation of the old description would describe the new picture wrongly.
    texts = old["picture_alt"] if picture == old["picture"] else {}
    changed = {
        **old,
        "picture": picture,
        "picture_alt": _with_text(texts, content.own_language, alt),
    }
    options = tuple(changed if option is old else option for option in question["options"])
    return content.with_question(key, {**question, "options": options})


def with_language(content: DraftContent, language: str) -> DraftContent:
    """Add a language for translations."""
    if language == content.own_language or language in content.languages:
        raise DesignError(f"{language} is already a language of the survey")
    return replace(content, languages=(*content.languages, language))


def without_language(content: DraftContent, language: str) -> DraftContent:
    """Remove a language with all texts in it."""
    if language == content.own_language:
        raise DesignError(f"the survey is written in {language}; change that first")
    if language not in content.languages:
        raise DesignError("the survey has no such language")
    remaining = tuple(other for other in content.languages if other != language)
    return rename_language(replace(content, languages=remaining), language, None)


def rename_language(content: DraftContent, old: str, new: str | None) -> DraftContent:
    """Move all texts of a language to another tag, or delete them when `new` is None."""

    def rename(texts: Texts) -> Texts:
        renamed = {new if name == old else name: text for name, text in texts.items()}
        return {name: text for name, text in renamed.items() if name is not None}

    return content.map_texts(rename)


def _map_together(content: DraftContent, change: Callable[[str], str | None]) -> DraftContent:
    """Change or remove ids of questions that belong together; groups of one are removed."""
    declared = []
    for group in content.survey["together"]:
        ids = [name for id_ in group["questions"] if (name := change(id_)) is not None]
        if len(ids) > 1:
            declared.append({**group, "questions": ids})
    return replace(content, survey={**content.survey, "together": tuple(declared)})


def _question_ids(content: DraftContent) -> set[str]:
    return {str(question["id"]) for question in content.questions}


def _check_room(number: int, name: str) -> None:
    if number >= MAX_QUESTIONS:
        raise DesignError(f"a survey has at most {MAX_QUESTIONS} {name}")


def _swap(entries: list[Any], place: int, by: int) -> None:
    if 0 <= place + by < len(entries):
        entries[place], entries[place + by] = entries[place + by], entries[place]


# Sheets, and the merging of two edits of one sheet

Values = Mapping[str, Any]
"""The values of a sheet's fields, by name."""


class Sheet(Protocol):
    """The part of a draft that one form edits, in the survey's own language."""

    def values(self, content: DraftContent) -> Values:
        """Return the values of its fields; raises NotFoundError if the part was removed."""

    def apply(self, content: DraftContent, values: Values) -> DraftContent:
        """Return the draft with these values; translations stay."""


@dataclass(frozen=True)
class Merge:
    """Two edits of one sheet, merged.

    `clashes` are the fields that both changed, with the other editor's value; `theirs` names the
    fields that only the other editor changed.
    """

    values: Values
    clashes: Values
    theirs: tuple[str, ...]


def merge(base: Values, mine: Values, theirs: Values) -> Merge:
    """Merge two edits of a sheet that both began from `base`; clashing fields keep `mine`.

    >>> base = {"a": 1, "b": 1, "c": 1}
    >>> result = merge(base, {"a": 2, "b": 1, "c": 2}, {"a": 1, "b": 3, "c": 3})
    >>> result.values, result.clashes, result.theirs
    ({'a': 2, 'b': 3, 'c': 2}, {'c': 3}, ('b',))
    """
    by_me = {name for name, value in mine.items() if value != base.get(name)}
    by_them = {name for name in mine if theirs.get(name) != base.get(name)}
    values = {name: value if name in by_me else theirs[name] for name, value in mine.items()}
    clashing = {name for name in by_me & by_them if mine[name] != theirs[name]}
    return Merge(
        values,
        {name: theirs[name] for name in mine if name in clashing},
        tuple(name for name in mine if name in by_them - by_me),
    )


@dataclass(frozen=True)
class QuestionSheet:
    """One question.

    `fixes_ids` stores the ids of the options. Until then they follow the labels, because half a
    word would become an id while a researcher is typing.
    """

    key: int
    fixes_ids: bool = False

    def values(self, content: DraftContent) -> Values:
        """Return texts as strings, options as (key, id, label), and the question's companion.

        The rows of a matrix are one text, with one row per line.
        """
        question, language = content.question(self.key), content.own_language
        options = tuple(
            {
                "key": option["key"],
                "id": option["id"],
                "label": option["label"].get(language, ""),
            }
            for option in question["options"]
        )
        texts = {name: question[name].get(language, "") for name in QUESTION_TEXTS}
        other, is_joint = content.companion(str(question["id"]))
        companion = {"together_with": other, "joint": is_joint}
        rows = "\n".join(row["text"].get(language, "") for row in question["rows"])
        values = {**question, **texts, "options": options, "rows": rows, **companion}
        return {name: value for name, value in values.items() if name != "key"}

    def apply(self, content: DraftContent, values: Values) -> DraftContent:
        old = next((q for q in content.questions if q["key"] == self.key), {})
        texts = {
            name: _with_text(old.get(name, {}), content.own_language, values[name])
            for name in QUESTION_TEXTS
        }
        if values["type"] != old.get("type", values["type"]):
            # Another type has other mechanisms, so the standard privacy level applies again.
            values = {**values, **NO_LEVEL}
        options, last_key = _merge_options(old, values["options"], content)
        rows, last_key = _merge_rows(old, values["rows"], content.own_language, last_key)
        companion = {name: values[name] for name in COMPANION_FIELDS if name in values}
        values = {name: value for name, value in values.items() if name not in COMPANION_FIELDS}
        question = {**old, **values, **texts, "options": options, "rows": rows, "key": self.key}
        changed = replace(content, last_key=last_key).with_question(self.key, question)
        changed = with_ids(changed, self.key) if self.fixes_ids else changed
        changed = _update_conditions(changed, old, changed.question(self.key)) if old else changed
        return with_companion(changed, self.key, **companion) if companion else changed


@dataclass(frozen=True)
class SurveySheet:
    """The texts and settings of the survey: every field of `EMPTY_SURVEY`."""

    def values(self, content: DraftContent) -> Values:
        texts = {name: content.survey[name].get(content.own_language, "") for name in SURVEY_TEXTS}
        return {**content.survey, **texts}

    def apply(self, content: DraftContent, values: Values) -> DraftContent:
        texts = {
            name: _with_text(content.survey[name], content.own_language, values[name])
            for name in SURVEY_TEXTS
        }
        survey = {name: values[name] for name in EMPTY_SURVEY}
        # The fields were typed in the old language, so that it is replaced after the texts.
        changed = replace(content, survey={**survey, **texts, "language": content.own_language})
        return _change_own_language(changed, str(values["language"]))


@dataclass(frozen=True)
class PlanSheet:
    """The plan: expected responses, dates and groups to invite, as typed."""

    def values(self, content: DraftContent) -> Values:
        return content.plan

    def apply(self, content: DraftContent, values: Values) -> DraftContent:
        return replace(content, plan=dict(values))


@dataclass(frozen=True)
class PageSheet:
    """The title of one page."""

    key: int

    def values(self, content: DraftContent) -> Values:
        return {"title": content.page(self.key).title.get(content.own_language, "")}

    def apply(self, content: DraftContent, values: Values) -> DraftContent:
        page = content.page(self.key)
        title = _with_text(page.title, content.own_language, values["title"])
        return content.with_page(replace(page, title=title))


@dataclass(frozen=True)
class LanguageSheet:
    """Every text of the survey in one of its other languages."""

    language: str

    def values(self, content: DraftContent) -> Values:
        """Return the translations under the names of `named_texts`."""
        return {name: texts.get(self.language, "") for name, texts in named_texts(content)}

    def apply(self, content: DraftContent, values: Values) -> DraftContent:
        names = (name for name, _ in named_texts(content))

        def translate(texts: Texts) -> Texts:
            return _with_text(texts, self.language, values.get(next(names), ""))

        translated = _share_topics(content.map_texts(translate), self.language)
        reworded = {
            name: {tag: text for tag, text in texts.items() if text != usual_label(name, tag)}
            for name, texts in translated.survey["labels"].items()
        }
        labels = {name: texts for name, texts in reworded.items() if texts}
        return replace(translated, survey={**translated.survey, "labels": labels})


def _share_topics(content: DraftContent, language: str) -> DraftContent:
    """Return the draft with the translation of each topic's first question in all of them."""
    first: dict[str, str] = {}
    for question in content.questions:
        topic = question["topic"].get(content.own_language, "")
        first.setdefault(topic, question["topic"].get(language, ""))

    def share(question: Question) -> Question:
        translation = first[question["topic"].get(content.own_language, "")]
        return {**question, "topic": _with_text(question["topic"], language, translation)}

    return content.map_pages(
        lambda page: replace(page, questions=tuple(map(share, page.questions)))
    )


def named_texts(content: DraftContent) -> Iterator[tuple[str, Texts]]:
    """Yield every text of a draft with a unique name, in the order of `DraftContent.map_texts`."""
    for name in SURVEY_TEXTS:
        yield f"survey-{name}", content.survey[name]
    for page in content.pages:
        yield f"page-{page.key}", page.title
        for question in page.questions:
            key = question["key"]
            for name in QUESTION_TEXTS:
                texts = content.topic_texts(question) if name == "topic" else question[name]
                yield f"question-{key}-{name}", texts
            for option in question["options"]:
                yield f"question-{key}-option-{option['key']}", option["label"]
                alt = option.get("picture_alt", {})
                yield f"question-{key}-picture-{option['key']}", alt
            for row in question["rows"]:
                yield f"question-{key}-row-{row['key']}", row["text"]
    for name in USUAL_KEYS:
        yield f"usual-{name}", content.usual_labels[name]


def with_ids(content: DraftContent, key: int) -> DraftContent:
    """Store the ids of a question's options and rows, so that they no longer follow the texts."""
    question = content.question(key)
    has_options = "options" in kind_of(question).fields
    ids = option_ids(question, content.own_language) if has_options else {}
    options = tuple(
        {**option, "id": ids.get(option["key"], option["id"])} for option in question["options"]
    )
    names = row_ids(question, content.own_language) if kind_of(question).is_matrix else {}
    rows = tuple({**row, "id": names.get(row["key"], row["id"])} for row in question["rows"])
    changed: Question = {**question, "options": options, "rows": rows}
    return content.with_question(key, changed)


def _merge_options(
    old: Question, rows: Sequence[Mapping[str, Any]], content: DraftContent
) -> tuple[tuple[Mapping[str, Any], ...], int]:
    """Return the options with their translations, and the last key.

    A row has its option's key. Rows that a page added since it was opened have none; they belong to
    the option with the same label.
    """
    language, last_key = content.own_language, content.last_key
    unmatched = {option["key"]: option for option in old.get("options", ())}
    options = []
    row_keys = {row["key"] for row in rows}
    for row in rows:
        same_label = (
            key
            for key, option in unmatched.items()
            if key not in row_keys
            and row["label"]
            and option["label"].get(language) == row["label"]
        )
        key = row["key"] if row["key"] in unmatched else next(same_label, 0)
        before = unmatched.pop(key, None)
        if before is None:
            key = last_key = last_key + 1
        label = _with_text(before["label"] if before else {}, language, row["label"])
        options.append({**(before or EMPTY_OPTION), "key": key, "id": row["id"], "label": label})
    return tuple(options), last_key


def _merge_rows(
    old: Question, text: str, language: str, last_key: int
) -> tuple[tuple[Mapping[str, Any], ...], int]:
    """Return the rows of a matrix, one for each line, with their translations, and the last key.

    A line belongs to the row with the same text or, if the number of rows is unchanged, to the row
    in the same place; any other line is a new row.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    before: list[Mapping[str, Any]] = list(old.get("rows", ()))
    matched: dict[int, Mapping[str, Any]] = {}
    for place, line in enumerate(lines):
        unused = (row for row in before if row not in matched.values())
        if same := next((row for row in unused if row["text"].get(language) == line), None):
            matched[place] = same
    if len(lines) == len(before):
        used = {row["key"] for row in matched.values()}
        for place, row in enumerate(before):
            if place not in matched and row["key"] not in used:
                matched[place] = row
    rows = []
    for place, line in enumerate(lines):
        last_key += place not in matched
        row = matched.get(place, {"key": last_key, "id": "", "text": {}})
        rows.append({**row, "text": _with_text(row["text"], language, line)})
    return tuple(rows), last_key


def _update_conditions(content: DraftContent, old: Question, new: Question) -> DraftContent:
    """Return the draft with new ids in conditions on a question and in texts with its answer."""
    old_ids = {option["key"]: option["id"] for option in old["options"]}
    renamed = {
        old_ids[option["key"]]: option["id"]
        for option in new["options"]
        if old_ids.get(option["key"]) and option["id"]
    }

    def update(question: Question) -> Question:
        if not old["id"] or question["ask_question"] != old["id"]:
            return question
        options = tuple(renamed.get(name, name) for name in question["ask_options"])
        return {**question, "ask_question": new["id"], "ask_options": options}

    updated = content.map_pages(
        lambda page: replace(page, questions=tuple(map(update, page.questions)))
    )
    if not old["id"] or old["id"] == new["id"]:
        return updated
    # Other texts can show the answer to this question: {id|your words}.
    before, after = f"{{{old['id']}|", f"{{{new['id']}|"
    updated = updated.map_texts(
        lambda texts: {tag: text.replace(before, after) for tag, text in texts.items()}
    )
    return _map_together(updated, lambda name: str(new["id"]) if name == old["id"] else name)


def _change_own_language(content: DraftContent, language: str) -> DraftContent:
    """Return the draft with another own language.

    A language that the draft already has swaps its role; any other tag corrects the old one.
    """
    old = content.own_language
    if language == old:
        return content
    if language in content.languages:
        languages = tuple(old if other == language else other for other in content.languages)
        return replace(
            content, survey={**content.survey, "language": language}, languages=languages
        )
    renamed = rename_language(content, old, language)
    return replace(renamed, survey={**renamed.survey, "language": language})


def _with_text(texts: Texts, language: str, text: str) -> Texts:
    """Return the texts with that of one language replaced, or removed when it is empty."""
    remaining = {name: value for name, value in texts.items() if name != language}
    return {**remaining, language: text} if text else remaining
