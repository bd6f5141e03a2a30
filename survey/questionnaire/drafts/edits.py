"""Edits of a draft by the buttons of its outline; each makes a new draft from an old one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from survey.errors import DesignError
from survey.questionnaire.drafts.draft import (
    EMPTY_QUESTION,
    DraftContent,
    DraftPage,
    Question,
    Texts,
    free_identifier,
)
from survey.questionnaire.survey import MAX_QUESTIONS


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


def remove_question(content: DraftContent, key: int) -> DraftContent:
    """Remove a question; raises NotFoundError if there is none."""
    content.question(key)
    return content.map_pages(
        lambda page: replace(page, questions=tuple(q for q in page.questions if q["key"] != key))
    )


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
    return remove_question(content, key).with_page(replace(target, questions=extended))


def with_language(content: DraftContent, language: str) -> DraftContent:
    """Add a language for translations."""
    if language == content.own_language or language in content.languages:
        raise DesignError(f"{language} is already a language of the survey")
    return replace(content, languages=(*content.languages, language))


def without_language(content: DraftContent, language: str) -> DraftContent:
    """Remove a language with all texts in it."""
    if language == content.own_language:
        raise DesignError(f"the survey is written in {language}; change that first")
    remaining = tuple(other for other in content.languages if other != language)
    return rename_language(replace(content, languages=remaining), language, None)


def rename_language(content: DraftContent, old: str, new: str | None) -> DraftContent:
    """Move all texts of a language to another tag, or delete them when `new` is None."""

    def rename(texts: Texts) -> Texts:
        renamed = {new if name == old else name: text for name, text in texts.items()}
        return {name: text for name, text in renamed.items() if name is not None}

    return content.map_texts(rename)


def _question_ids(content: DraftContent) -> set[str]:
    return {str(question["id"]) for question in content.questions}


def _check_room(number: int, name: str) -> None:
    if number >= MAX_QUESTIONS:
        raise DesignError(f"a survey has at most {MAX_QUESTIONS} {name}")


def _swap(entries: list[Any], place: int, by: int) -> None:
    if 0 <= place + by < len(entries):
        entries[place], entries[place + by] = entries[place + by], entries[place]
