"""The builder's feedback while a researcher writes: mistakes beside fields, privacy in words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from flask import url_for

from survey.mechanism.composition import format_epsilon
from survey.questionnaire.definition import groups_of
from survey.questionnaire.drafts.check import DraftCheck, Mistake
from survey.questionnaire.privacy_loss import (
    publication_warnings,
    report_heading,
    report_sentences,
)
from survey.research.builder.forms import SheetForm, fields_of
from survey.research.builder.plan import DraftPlan
from survey.results.plan.chart import has_chart, uses_grr
from survey.results.plan.sentences import question_plan
from survey.settings import Caps

VERBS = ("is ", "has ", "must ", "lacks ", "does ")
"""First words of mistakes that continue the name of their field."""


@dataclass(frozen=True)
class QuestionFeedback:
    """Privacy and precision of one question: a text per place on the page, empty on mistakes."""

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
        """The form that the page's script reads."""
        return asdict(self)


def question_feedback(
    slug: str, key: int, draft_check: DraftCheck, planned: DraftPlan, caps: Caps
) -> QuestionFeedback:
    """Return the feedback beside a question."""
    total, warning = total_sentences(draft_check, caps)
    question = draft_check.questions.get(key)
    if question is None:
        return QuestionFeedback(total=total, warning=warning)
    plan = question_plan(question, planned.n, planned.margin)
    chart = ""
    if has_chart(question):
        # Without a formula, the chart shows the saved question; its epsilon in the address tells
        # when to reload it.
        uses_formula = uses_grr(question)
        design: dict[str, Any] = (
            {"options": question.channel.options} if uses_formula else {"question": key}
        )
        epsilon = f"{question.channel.epsilon:.4f}"
        chart = url_for("drafts.tradeoff", slug=slug, **design, epsilon=epsilon, n=planned.n)
    texts = asdict(plan)
    p = texts.pop("p")
    texts["epsilon"] += "" if p is None else f", truth probability {p:.3f}"
    return QuestionFeedback(**texts, total=total, warning=warning, chart=chart)


def total_sentences(draft_check: DraftCheck, caps: Caps) -> tuple[str, str]:
    """Return the privacy loss of one complete response, and a warning when it is high."""
    n = len(draft_check.questions)
    if not n:
        return "No question is complete yet.", ""
    asked, ratio = draft_check.asked, draft_check.ratio
    n_groups = len(groups_of(asked.questions))
    subject = f"{n} complete question{'s' * (n > 1)}"
    if asked.drawn < n_groups:
        subject += f", each person is asked {asked.drawn}"
    total = (
        f"{report_heading(ratio)}. {report_sentences(ratio)} ({subject}; total epsilon "
        f"{format_epsilon(draft_check.epsilon)} of at most {caps.survey}.)"
    )
    warnings = publication_warnings(asked, caps, similar=False)
    if draft_check.epsilon > caps.survey:
        warnings = [
            "This is above the maximum: you cannot publish the survey like this.",
            *warnings,
        ]
    return total, " ".join(warnings)


def mark_fields(form: SheetForm, mistakes: list[Mistake]) -> list[str]:
    """Add mistakes to their fields; return those without a field, for the top of the page."""
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
            field.errors = [*field.errors, mistake_sentence(field.label.text, mistake.text)]
    return elsewhere


def mistake_sentence(name: str, text: str) -> str:
    """Return a mistake as a complete sentence.

    >>> mistake_sentence("Title", "is empty"), mistake_sentence("Title", "enter one")
    ('Title is empty', 'Enter one')
    """
    return f"{name} {text}" if text.startswith(VERBS) else text[:1].upper() + text[1:]


def errors_of(form: SheetForm) -> dict[str, Any]:
    """Return the first mistake of each field by name, for the page's script."""
    errors = {name: field.errors[0] for name, field in fields_of(form).items() if field.errors}
    errors.pop("options", None)
    for row in getattr(form, "options", None) or ():
        if row.form.label.errors:
            errors[row.form.label.name] = row.form.label.errors[0]
    return errors
