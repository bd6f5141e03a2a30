"""What the builder says while somebody writes: mistakes beside their fields, privacy in words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from flask import url_for

from survey.mechanism.accounting import format_epsilon
from survey.questionnaire.drafts.check import Examined, Mistake
from survey.questionnaire.label import odds_in_words
from survey.research.drafts.forms import SheetForm, fields_of
from survey.research.drafts.plan import Planned
from survey.results.plan.chart import has_chart, uses_grr
from survey.results.plan.sentences import question_plan
from survey.settings import Caps

VERBS = ("is ", "has ", "must ", "lacks ", "does ")
"""How mistakes begin that go on from the name of their field."""


@dataclass(frozen=True)
class QuestionFeedback:
    """What one question means, each a text for the place of its name; empty while it is wrong."""

    epsilon: str = ""
    chance: str = ""
    bounds: str = ""
    margins: str = ""
    reports: str = ""
    needed_epsilon: str = ""
    total: str = ""
    warning: str = ""
    chart: str = ""

    @property
    def form(self) -> dict[str, str]:
        """For a program."""
        return asdict(self)


def question_feedback(
    slug: str, key: int, found: Examined, planned: Planned, caps: Caps
) -> QuestionFeedback:
    """The words beside a question, of a draft that was examined."""
    total, warning = total_words(found, caps)
    question = found.questions.get(key)
    if question is None:
        return QuestionFeedback(total=total, warning=warning)
    told = question_plan(question, planned.n, planned.margin)
    epsilon = f"{question.channel.epsilon:.4f}"
    chart = ""
    if uses_grr(question):
        k = question.channel.options
        chart = url_for("drafts.tradeoff", slug=slug, options=k, epsilon=epsilon, n=planned.n)
    elif has_chart(question):
        # Of what is saved: the epsilon says when there is another one to show.
        chart = url_for("drafts.tradeoff", slug=slug, question=key, epsilon=epsilon, n=planned.n)
    p = "" if told.p is None else f", truth probability {told.p:.3f}"
    return QuestionFeedback(
        epsilon=f"{told.epsilon}{p}",
        chance=told.chance,
        bounds=told.bounds,
        margins=told.margins,
        reports=told.reports,
        needed_epsilon=told.needed_epsilon,
        total=total,
        warning=warning,
        chart=chart,
    )


def total_words(found: Examined, caps: Caps) -> tuple[str, str]:
    """What all questions give away together, and a warning when it is much."""
    n = len(found.questions)
    if not n:
        return "No question is complete yet.", ""
    epsilon = found.epsilon
    what = f"All {n} complete questions:" if n > 1 else "The one complete question:"
    total = (
        f"{what} total epsilon {format_epsilon(epsilon)} of at most {caps.survey}. One complete "
        f"response changes the odds by a factor of at most {odds_in_words(found.ratio)}."
    )
    if epsilon > caps.survey:
        return total, "This is above the maximum: you cannot publish the survey like this."
    if epsilon > caps.warning:
        return total, (
            "Together, the answers have weak protection, and respondents are told so. Ask fewer "
            "questions, lower “Questions per respondent”, or choose a smaller epsilon."
        )
    return total, ""


def marked(form: SheetForm, mistakes: list[Mistake]) -> list[str]:
    """Write mistakes beside their fields; returns those that have none, for the top of the page."""
    fields, elsewhere = fields_of(form), []
    rows = {
        f"option-{row.form.key.data}": row.form.label
        for row in (getattr(form, "options", None) or ())
        if row.form.key.data
    }
    for mistake in mistakes:
        field = rows.get(mistake.field) or fields.get(mistake.field)
        if field is None or mistake.field == "options":
            elsewhere.append(mistake.text)
        else:
            field.errors = [*field.errors, in_words(field.label.text, mistake.text)]
    return elsewhere


def in_words(name: str, text: str) -> str:
    """A mistake as a sentence of its own.

    >>> in_words("Title", "is empty"), in_words("Title", "enter one")
    ('Title is empty', 'Enter one')
    """
    return f"{name} {text}" if text.startswith(VERBS) else text[:1].upper() + text[1:]


def errors_of(form: SheetForm) -> dict[str, Any]:
    """The mistakes beside fields, by the names of these, for a program."""
    errors = {name: field.errors[0] for name, field in fields_of(form).items() if field.errors}
    errors.pop("options", None)
    for row in getattr(form, "options", None) or ():
        if row.form.label.errors:
            errors[row.form.label.name] = row.form.label.errors[0]
    return errors
