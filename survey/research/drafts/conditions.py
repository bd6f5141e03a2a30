"""After which answers a question is asked: what its sheet offers, and keeps of what was chosen.

A browser sends the first entry of a list that lacks what was chosen, and no tick that is not there:
whatever a question depends on is offered, also while it cannot.
"""

from __future__ import annotations

from collections.abc import Iterator

from survey.questionnaire.drafts.check import Examined
from survey.questionnaire.drafts.draft import DraftContent, Question
from survey.questionnaire.drafts.edits import Values
from survey.questionnaire.kinds import kind_of
from survey.research.drafts.forms import QuestionForm, choices


def add_conditions(
    form: QuestionForm, content: DraftContent, found: Examined, values: Values
) -> None:
    """Let a form offer what its question can depend on; `values` are those it was opened with."""
    chosen = str(form.ask_question.data or "")
    earlier = {str(one["id"]): one for one in _before(content, str(values["id"]))}
    texts = {name: _text(content, one) for name, one in earlier.items()}
    named = next((one for one in content.questions if chosen and one["id"] == chosen), None)
    if chosen and chosen not in texts:
        text = _text(content, named) if named else chosen
        texts[chosen] = f"{text} (no longer an earlier question with answers to choose)"
    form.ask_question.choices = choices({"": "Always", **texts})
    asked = found.questions.get(named["key"]) if named else None
    labels = {one.id: one.label for one in asked.all_options} if asked else {}
    if asked and chosen != values["ask_question"]:
        # What was ticked is of the question before.
        form.ask_options.data = [name for name in form.ask_options.data if name in labels]
    _offer_answers(form, labels, is_known=asked is not None)


def _offer_answers(form: QuestionForm, labels: dict[str, str], *, is_known: bool) -> None:
    """The answers to tick, and those ticked that are not, or not yet, among them."""
    ticked = form.ask_options.data or () if form.ask_question.data else ()
    gone = " (no longer one of its answers)" if is_known else ""
    others = {name: f"{name}{gone}" for name in ticked if name not in labels}
    form.ask_options.choices = choices({**labels, **others})


def _before(content: DraftContent, name: str) -> Iterator[Question]:
    """Questions before one, with options that it can depend on."""
    for question in content.questions:
        if question["id"] == name:
            return
        if not kind_of(question).is_numeric:
            yield question


def _text(content: DraftContent, question: Question) -> str:
    return str(question["text"].get(content.own) or question["id"])
