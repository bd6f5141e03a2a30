"""Mistakes between parts of a survey: repeated ids and labels, skip logic, sampling, the total."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from survey.questionnaire.defaults import options_in, questions_in, special_in
from survey.questionnaire.kinds import BaseQuestion
from survey.questionnaire.kinds.base import NONE_ID, SPECIAL
from survey.questionnaire.mistakes import Mistake, Place, shortened
from survey.questionnaire.model import Survey
from survey.questionnaire.privacy import total_mistake
from survey.settings import Caps


def repeated_ids(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield the ids that two questions, or two options of one question, share."""
    questions = list(questions_in(raw))
    yield from _repeats([((*place, "id"), question.get("id")) for place, question in questions])
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
    label = SPECIAL[identifier]
    if identifier == NONE_ID:
        return f' (the option "{label}" is added automatically)'
    return (
        f' (the option "{label}" is added automatically; '
        f"write {identifier} = false to leave it out)"
    )


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


def mistakes_between(survey: Survey, caps: Caps) -> list[Mistake]:
    """Return what is wrong between questions that are each right."""
    mistakes = [*_skip_logic(survey), *_sampling(survey)]
    if not mistakes:
        n_questions = sum(sorted(map(len, survey.groups), reverse=True)[: survey.drawn])
        total = total_mistake(survey.total_ratio, n_questions, caps)
        mistakes = [(("pages",), total)] if total else []
    return mistakes


def _skip_logic(survey: Survey) -> Iterator[Mistake]:
    earlier: dict[str, BaseQuestion] = {}
    for i, page in enumerate(survey.pages):
        for j, question in enumerate(page.questions):
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
    if parent is None or parent.kind.is_numeric:
        return ("question",), (
            f'"{question.ask_if.question}" is not a question with options on an earlier page'
            + _list_names([q.id for q in earlier.values() if not q.kind.is_numeric])
        )
    ids = [option.id for option in parent.all_options]
    unknown = [name for name in question.ask_if.options if name not in ids]
    reason = f'"{unknown[0]}" is not an option of {parent.id}{_list_names(ids)}' if unknown else ""
    return (("options",), reason) if unknown else None


def _list_names(names: Sequence[str]) -> str:
    listed = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    return f"; available: {listed}" if names else ""


def _sampling(survey: Survey) -> Iterator[Mistake]:
    number, groups = survey.questions_per_person, len(survey.groups)
    if number is None or 1 <= number < groups:
        return
    place: Place = ("questions_per_person",)
    if groups < 2:
        yield place, f"{number} of {groups} question cannot be drawn at random; leave it out"
        return
    nearest = min(max(number, 1), groups - 1)
    depending = any(question.ask_if for question in survey.questions)
    yield (
        place,
        f"{number} is not fewer than the {groups} questions"
        + (" (a question and all that depend on it count once)" if depending else "")
        + f"; the nearest allowed value is {nearest}",
    )
