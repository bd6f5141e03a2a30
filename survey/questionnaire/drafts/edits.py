"""What can be done to a draft's outline: each edit makes a new draft of an old one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from survey.errors import DesignError
from survey.questionnaire.drafts.content import EMPTY_QUESTION, DraftContent, DraftPage, Texts
from survey.questionnaire.drafts.identifiers import free
from survey.questionnaire.model import MAX_QUESTIONS


def add_page(content: DraftContent) -> DraftContent:
    """One page more, at the end."""
    _check_room(len(content.pages), "pages")
    page = DraftPage(content.used + 1, {}, ())
    return replace(content, pages=(*content.pages, page), used=content.used + 1)


def remove_page(content: DraftContent, key: int) -> DraftContent:
    """Without a page; its questions go to the one before it, or after it."""
    place = content.pages.index(content.page(key))
    if len(content.pages) == 1:
        raise DesignError("a survey has at least one page")
    left = [page for page in content.pages if page.key != key]
    heir = left[max(place - 1, 0)]
    gone = content.pages[place].questions
    questions = (*heir.questions, *gone) if place else (*gone, *heir.questions)
    return replace(content, pages=tuple(left)).with_page(replace(heir, questions=questions))


def move_page(content: DraftContent, key: int, by: int) -> DraftContent:
    """A page one place up (-1) or down (1); at an end it stays."""
    pages = list(content.pages)
    _swap(pages, pages.index(content.page(key)), by)
    return replace(content, pages=tuple(pages))


def add_question(content: DraftContent, page_key: int, kind: str) -> tuple[DraftContent, int]:
    """One question more at the end of a page, and its number."""
    _check_room(sum(1 for _ in content.questions), "questions")
    key = content.used + 1
    taken = {str(question["id"]) for question in content.questions}
    question = {**EMPTY_QUESTION, "key": key, "type": kind, "id": free("q1", taken)}
    page = content.page(page_key)
    added = content.with_page(replace(page, questions=(*page.questions, question)))
    return replace(added, used=key), key


def duplicate_question(content: DraftContent, key: int) -> tuple[DraftContent, int]:
    """The same question again behind itself, under an id of its own, and its number."""
    _check_room(sum(1 for _ in content.questions), "questions")
    original, new = content.question(key), content.used + 1
    taken = {str(question["id"]) for question in content.questions}
    copy: dict[str, Any] = {**original, "key": new, "id": free(str(original["id"]) or "q1", taken)}

    def with_copy(page: DraftPage) -> DraftPage:
        doubled = [(one, copy) if one["key"] == key else (one,) for one in page.questions]
        return replace(page, questions=tuple(one for pair in doubled for one in pair))

    return replace(content.each_page(with_copy), used=new), new


def remove_question(content: DraftContent, key: int) -> DraftContent:
    """Without a question."""
    content.question(key)
    return content.each_page(
        lambda page: replace(
            page, questions=tuple(one for one in page.questions if one["key"] != key)
        )
    )


def move_question(content: DraftContent, key: int, by: int) -> DraftContent:
    """A question one place up (-1) or down (1); from an end of its page onto the next page."""
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
    moved = (question, *target.questions) if by > 0 else (*target.questions, question)
    return remove_question(content, key).with_page(replace(target, questions=moved))


def with_language(content: DraftContent, language: str) -> DraftContent:
    """One language more to translate into."""
    if language == content.own or language in content.languages:
        raise DesignError(f"{language} is one of the survey's languages already")
    return replace(content, languages=(*content.languages, language))


def without_language(content: DraftContent, language: str) -> DraftContent:
    """Without a language and all texts in it."""
    if language == content.own:
        raise DesignError(f"the survey is written in {language}; change that first")
    left = tuple(one for one in content.languages if one != language)
    return renamed_language(replace(content, languages=left), language, None)


def renamed_language(content: DraftContent, old: str, new: str | None) -> DraftContent:
    """All texts of a language under another tag, or nowhere."""

    def renamed(texts: Texts) -> Texts:
        return {
            name if name != old or new is None else new: text
            for name, text in texts.items()
            if name != old or new is not None
        }

    return content.each_text(renamed)


def _check_room(there: int, what: str) -> None:
    if there >= MAX_QUESTIONS:
        raise DesignError(f"a survey has at most {MAX_QUESTIONS} {what}")


def _swap(entries: list[Any], place: int, by: int) -> None:
    if 0 <= place + by < len(entries):
        entries[place], entries[place + by] = entries[place + by], entries[place]
