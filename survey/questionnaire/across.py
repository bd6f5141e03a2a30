"""Mistakes between questions: ids and labels used twice, skip logic, sampling, the total."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from survey.questionnaire.mistakes import Mistake, Place, shortened
from survey.questionnaire.model import Survey
from survey.questionnaire.privacy import total_mistake
from survey.questionnaire.question import NONE_ID, SPECIAL, BaseQuestion
from survey.questionnaire.raw import options_in, questions_in, special_in
from survey.settings import Caps

CHOICES = ("yes_no", "single_choice", "scale", "multiple_choice")
"""Types of question that another may depend on."""


def repeated_ids(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    """Ids that two questions, or two options of one, share."""
    questions = list(questions_in(raw))
    yield from _repeats([((*place, "id"), question.get("id")) for place, question in questions])
    for place, question in questions:
        special = [((*place, "id"), identifier) for identifier in special_in(question)]
        yield from _repeats([*special, *options_in(place, question, "id")])


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
            yield (
                place,
                f'"{shortened(identifier)}" is used twice; the nearest free id '
                f'is "{shortened(free)}"{_reason(identifier)}',
            )
        taken.add(identifier)


def _reason(identifier: str) -> str:
    if identifier not in SPECIAL:
        return ""
    usual = SPECIAL[identifier]
    there = f" (the option to {usual[0].lower()}{usual[1:]} is there by itself"
    if identifier == NONE_ID:
        return f' (the option "{usual}" is there by itself)'
    return f"{there}; write {identifier} = false to leave it out)"


def repeated_labels(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    """Options that respondents could not tell apart."""
    for place, question in questions_in(raw):
        entries = options_in(place, question, "label")
        for identifier, label in special_in(question).items():
            if isinstance(label, str):
                entries.append(((*place, identifier), label))
            else:
                entries.insert(0, (place, SPECIAL[identifier]))
        taken: set[str] = set()
        for where, label in entries:
            if not isinstance(label, str):
                continue
            seen = " ".join(label.split()).casefold()
            if seen and seen in taken:
                yield where, f'"{shortened(label)}" is the label of another option already'
            taken.add(seen)


def unfit_together(survey: Survey, caps: Caps) -> list[Mistake]:
    """What is wrong between questions that are each right."""
    mistakes = [*_skip_logic(survey), *_sampling(survey)]
    if not mistakes:
        asked = sum(sorted(map(len, survey.groups), reverse=True)[: survey.drawn])
        total = total_mistake(survey.total_ratio, asked, caps)
        mistakes = [(("pages",), total)] if total else []
    return mistakes


def _skip_logic(survey: Survey) -> Iterator[Mistake]:
    earlier: dict[str, BaseQuestion] = {}
    for i, page in enumerate(survey.pages):
        for j, question in enumerate(page.questions):
            if found := _misled(survey, question, earlier):
                part, reason = found
                yield ("pages", i, "questions", j, "ask_if", *part), reason
        earlier |= {question.id: question for question in page.questions}


def _misled(
    survey: Survey, question: BaseQuestion, earlier: Mapping[str, BaseQuestion]
) -> Mistake | None:
    """Why a question cannot depend on what it names, and by which part; None when it can."""
    if question.ask_if is None:
        return None
    if not survey.allow_skip_logic:
        return (), (
            "needs allow_skip_logic = true for the survey: how long a person takes can then tell "
            "which questions were skipped, and the privacy label says so"
        )
    if not question.not_applicable:
        return (), "needs the option does_not_apply, which a question becomes that is not asked"
    parent = earlier.get(question.ask_if.question)
    if parent is None or parent.type not in CHOICES:
        return ("question",), (
            f'"{question.ask_if.question}" is no question with options on an earlier page'
            + _offer([name for name, one in earlier.items() if one.type in CHOICES])
        )
    known = [option.id for option in parent.all_options]
    unknown = [name for name in question.ask_if.options if name not in known]
    reason = f'"{unknown[0]}" is no option of {parent.id}{_offer(known)}' if unknown else ""
    return (("options",), reason) if unknown else None


def _offer(names: Sequence[str]) -> str:
    shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    return f"; there are {shown}" if names else ""


def _sampling(survey: Survey) -> Iterator[Mistake]:
    wanted, groups = survey.questions_per_person, len(survey.groups)
    if wanted is None or 1 <= wanted < groups:
        return
    place: Place = ("questions_per_person",)
    if groups < 2:
        yield place, f"{wanted} of {groups} question cannot be drawn at random; leave it out"
        return
    nearest = min(max(wanted, 1), groups - 1)
    depending = any(question.ask_if for question in survey.questions)
    yield (
        place,
        f"{wanted} is not fewer than the {groups} questions"
        + (" (one and all that depend on it count once)" if depending else "")
        + f"; the nearest allowed value is {nearest}",
    )
