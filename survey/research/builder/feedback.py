"""The builder's feedback while a researcher writes: mistakes beside fields, privacy in words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from flask import url_for

from survey.estimator import joint_precision
from survey.mechanism import SubsetSelection
from survey.mechanism.composition import format_epsilon, log_rounded_up, total_ratio
from survey.questionnaire.definition import joint_mistake
from survey.questionnaire.drafts.check import GRID_FIELDS, DraftCheck, Mistake
from survey.questionnaire.drafts.draft import AUTOMATIC, DraftContent
from survey.questionnaire.drafts.form_messages import FIELD_NAMES
from survey.questionnaire.kinds import BaseQuestion
from survey.questionnaire.privacy_loss import (
    WEAK_QUESTION_ABOVE,
    Bounds,
    Questions,
    becomes,
    odds_in_words,
    publication_warnings,
    report_heading,
    report_sentences,
    report_strength,
)
from survey.research.builder.design import (
    level_remedy,
    mechanism_sentence,
    ranges_sentence,
    recommended_levels,
)
from survey.research.builder.forms import SheetForm, fields_of
from survey.research.builder.plan import DraftPlan
from survey.results.plan.chart import has_chart, uses_grr
from survey.results.plan.sentences import Responses, matrix_sentence, question_plan
from survey.settings import Caps

VERBS = ("is ", "has ", "must ", "lacks ", "does ")
"""First words of mistakes that continue the name of their field."""


@dataclass(frozen=True)
class QuestionFeedback:
    """Privacy and precision of one question: a text per place on the page, empty on mistakes.

    `danger` warns of a question that is weak alone, and `level` is the text of the button that sets
    its recommended privacy level. `rows` says how much precision a matrix costs; for a matrix,
    `bounds` and `danger` are about all of its rows, and the other texts about one row. The fields
    from `total` to `warning` are the `Totals` of the whole survey.
    """

    epsilon: str = ""
    chance: str = ""
    bounds: str = ""
    margins: str = ""
    rows: str = ""
    caution: str = ""
    reports: str = ""
    needed_epsilon: str = ""
    mechanism: str = ""
    ranges: str = ""
    danger: str = ""
    level: str = ""
    pair: str = ""
    total: str = ""
    examples: str = ""
    extent: str = ""
    warning: str = ""
    chart: str = ""

    @property
    def form(self) -> dict[str, str]:
        """The form that the page's script reads."""
        return asdict(self)


def question_feedback(
    slug: str,
    key: int,
    content: DraftContent,
    draft_check: DraftCheck,
    planned: DraftPlan,
    caps: Caps,
) -> QuestionFeedback:
    """Return the feedback beside a question."""
    totals = asdict(total_sentences(draft_check, caps))
    question = draft_check.questions.get(key)
    if question is None:
        return QuestionFeedback(**totals)
    responses = Responses(planned.n, draft_check.asked.share_asked)
    plan = question_plan(question, responses.n, planned.margin, responses.share)
    n_rows = 1 + len(draft_check.rows.get(key, ()))
    chart = ""
    if has_chart(question) and n_rows == 1:
        # Without a formula, the chart shows the saved question; its epsilon in the address tells
        # when to reload it.
        uses_formula = uses_grr(question)
        design: dict[str, Any] = (
            {"options": question.channel.options} if uses_formula else {"question": key}
        )
        epsilon = f"{question.channel.epsilon:.4f}"
        chart = url_for(
            "drafts.tradeoff", slug=slug, **design, epsilon=epsilon, n=responses.to_question
        )
    texts = asdict(plan)
    p = texts.pop("p")
    texts["epsilon"] += "" if p is None else f", truth probability {p:.3f}"
    if n_rows > 1:
        ratio = total_ratio([question.channel.ratio] * n_rows)
        texts |= {
            "epsilon": f"Each row: {texts['epsilon']}",
            "bounds": "All rows together change the odds of a guess about someone by a factor of "
            f"at most {odds_in_words(ratio)}. {Bounds.of(ratio).examples}",
            "margins": "",
            "needed_epsilon": "",
            "rows": matrix_sentence(question, n_rows, responses),
        }
    return QuestionFeedback(
        **texts,
        **totals,
        mechanism=mechanism_sentence(question),
        ranges=ranges_sentence(question, responses.to_question),
        danger=danger_sentence(draft_check, key),
        level=level_remedy(recommended_levels(content, draft_check, planned, {key}), key),
        pair=pair_sentence(draft_check, question, responses.to_question),
        chart=chart,
    )


def danger_sentence(draft_check: DraftCheck, key: int) -> str:
    """Return a warning if the report of a question alone is weak, otherwise an empty text."""
    ratio = draft_check.ratio_of(key)
    if ratio <= WEAK_QUESTION_ABOVE:
        return ""
    return (
        f"Weak protection: a suspicion of 10% {becomes(Bounds.of(ratio).from10)}. Respondents are "
        "advised to skip this question if the answer could hurt them."
    )


def pair_sentence(draft_check: DraftCheck, question: BaseQuestion, n: int) -> str:
    """Return how joint randomization changes the margins; empty without another question."""
    by_id = {id_: other for id_, (_, other) in draft_check.published.items()}
    ids = next((ids for ids in draft_check.together if question.id in ids), ())
    if question.joint and question.joint.mechanism == "half_space":
        return (
            f"The answer is randomized in one half-space with those to {len(ids) - 1} other "
            "questions: the shares of each become precise, but these questions cannot be "
            "cross-tabulated with each other."
        )
    if not ids or n < 1 or joint_mistake(ids, by_id):
        return ""
    members = [by_id[id_] for id_ in ids]
    channels = [member.own_channel for member in members]
    precision = joint_precision([c for c in channels if isinstance(c, SubsetSelection)], n)
    place = members.index(question)
    share, cell = (
        f"±{100 * joint:.1f} instead of ±{100 * apart:.1f} points"
        for joint, apart in (
            (precision.shares_joint[place], precision.shares_apart[place]),
            (precision.cell_joint, precision.cell_apart),
        )
    )
    others = " and ".join(f"“{member.text}”" for member in members if member is not question)
    advice = ""
    if not precision.narrows_shares:
        advice = (
            " Only the cross-tab benefits: the shares of at least one question become less precise."
        )
    verb = "gives" if question.joint else "would give"
    return (
        f"Randomizing this answer jointly with {others} {verb} a margin of error of {share} for "
        f"this question and of {cell} for a cell of the cross-tab, at the same total privacy loss "
        f"and if all shares are equal.{advice}"
    )


@dataclass(frozen=True)
class Totals:
    """What one complete response reveals.

    `total` states the privacy loss and its strength, `examples` the factor and two examples,
    `extent` what the figures cover, and `warning` what to change.
    """

    total: str
    examples: str = ""
    extent: str = ""
    warning: str = ""


def total_sentences(draft_check: DraftCheck, caps: Caps) -> Totals:
    """Return the privacy loss of one complete response, and a warning when it is high."""
    n = len(draft_check.questions)
    if not n:
        return Totals("No question is complete yet.")
    questions = draft_check.asked
    subject = f"{n} complete question{'s' * (n > 1)}"
    if questions.drawn < questions.n_groups:
        subject += f"; each person is asked {questions.drawn} of {described_groups(questions)}"
    extent = (
        f"{subject}. Total epsilon {format_epsilon(draft_check.epsilon)}; the maximum on this "
        f"server is {caps.survey}."
    )
    warnings = publication_warnings(questions, caps, similar=False)
    if draft_check.epsilon > caps.survey:
        warnings = [
            "The total epsilon is above the maximum, so you cannot publish this survey.",
            *warnings,
        ]
    total = f"{report_heading(questions)}."
    return Totals(total, report_sentences(questions.ratio), extent, " ".join(warnings))


def described_groups(questions: Questions) -> str:
    """Return the number of groups from which the device draws, in words."""
    if questions.n_groups == len(questions.questions):
        return f"{questions.n_groups} questions"
    return f"{questions.n_groups} (linked questions count as one)"


def sampling_sentences(draft_check: DraftCheck, planned: DraftPlan, *, is_automatic: bool) -> str:
    """Return how many questions each person is asked, why, and its cost; empty if all are asked."""
    questions = draft_check.asked
    if questions.drawn >= questions.n_groups:
        return ""
    responses = Responses(planned.n, questions.share_asked)
    ratio = questions.ratio_of(questions.n_groups)
    everything = "more than a billion" if ratio > 10**9 else f"up to {odds_in_words(ratio)}"
    separates = questions.drawn == 1 and questions.n_groups == len(questions.questions)
    if not is_automatic:
        reason = ""
    elif draft_check.is_weak:
        reason = "This is the smallest possible number. "
    else:
        reason = "This is the largest number that causes no warning about a response or a topic. "
    return (
        f"Each person is asked {questions.drawn} of {described_groups(questions)}, drawn at random "
        f"on the device. {reason}With all of them, one complete response would change the odds by "
        f"a factor of {everything}. However, each question gets about "
        f"{responses.to_question:,} of {responses.n:,} responses"
        f"{', and you cannot cross-tabulate them' if separates else ''}."
    )


def draw_choices(draft_check: DraftCheck, current: str) -> dict[str, str]:
    """Return the choices of how many questions each person is asked, with the resulting factors.

    Numbers that exceed the server's maximum are left out, except the `current` one.
    """
    questions, automatic_draw = draft_check.asked, draft_check.automatic_draw
    automatic = f"{automatic_draw} of {questions.n_groups}" if automatic_draw else "all"
    choices = {
        AUTOMATIC: f"Automatic: as many as cause no warning (now {automatic})",
        "": f"All, {_described_ratio(questions.with_draw(questions.n_groups))}",
    }
    for n in range(1, questions.n_groups):
        ratio = questions.ratio_of(n)
        if log_rounded_up(ratio) > draft_check.caps.survey:
            break
        note = ", most without a warning" if n == draft_check.largest_safe_draw else ""
        choices[str(n)] = (
            f"{n} of {questions.n_groups}, {_described_ratio(questions.with_draw(n))}{note}"
        )
    return {**choices, current: choices.get(current, current)}


def _described_ratio(questions: Questions) -> str:
    return f"factor {odds_in_words(questions.ratio)} ({report_strength(questions)})"


@dataclass(frozen=True)
class NearestValues:
    """The nearest valid values for a field with a mistake; one button applies them."""

    values: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, action: str) -> NearestValues:
        """Parse the value of a button, such as `nearest low=1 step=2`; ignore other fields."""
        pairs = (part.partition("=") for part in action.split()[1:])
        allowed = ("value", *GRID_FIELDS)
        return cls(tuple((name, value[:40]) for name, _, value in pairs if name in allowed))

    @property
    def action(self) -> str:
        """The value of the button."""
        return " ".join(["nearest", *(f"{name}={value}" for name, value in self.values)])

    @property
    def label(self) -> str:
        """The text of the button.

        >>> NearestValues((("high", "2026-10-29"),)).label
        'Use 29 October 2026'
        >>> NearestValues((("step", "2"), ("high", "30"))).label
        'Use step 2 and highest 30'
        """
        texts = [_value_text(value) for _, value in self.values]
        if len(texts) > 1:
            names = (FIELD_NAMES.get(name, name).lower() for name, _ in self.values)
            texts = [f"{name} {text}" for name, text in zip(names, texts, strict=True)]
        return f"Use {' and '.join(texts)}"


def _value_text(value: str) -> str:
    try:
        day = date.fromisoformat(value)
    except ValueError:
        return value
    return f"{day.day} {day:%B} {day.year}"


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
            text = mistake.text
            if mistake.nearest:
                # A button beside the field applies these values.
                text = text.partition("; the nearest allowed value is ")[0]
                field.nearest = NearestValues(mistake.nearest)
            field.errors = [*field.errors, mistake_sentence(field.label.text, text)]
    return elsewhere


def mistake_sentence(name: str, text: str) -> str:
    """Return a mistake as a complete sentence.

    >>> mistake_sentence("Title", "is empty"), mistake_sentence("Title", "enter one")
    ('Title is empty', 'Enter one')
    """
    return f"{name} {text}" if text.startswith(VERBS) else text[:1].upper() + text[1:]


def remedies_of(form: SheetForm) -> dict[str, dict[str, str]]:
    """Return the button beside each field that has nearest valid values, for the page's script."""
    return {
        name: {"label": field.nearest.label, "action": field.nearest.action}
        for name, field in fields_of(form).items()
        if hasattr(field, "nearest")
    }


def errors_of(form: SheetForm) -> dict[str, Any]:
    """Return the first mistake of each field by name, for the page's script."""
    errors = {name: field.errors[0] for name, field in fields_of(form).items() if field.errors}
    errors.pop("options", None)
    for row in getattr(form, "options", None) or ():
        if row.form.label.errors:
            errors[row.form.label.name] = row.form.label.errors[0]
    return errors
