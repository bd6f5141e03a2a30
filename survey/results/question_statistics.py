"""Properties of a published question that decide which statistics it has."""

from __future__ import annotations

from typing import Any

from survey.errors import NotFoundError
from survey.mechanism import AnyChannel, SubsetSelection, WeightTable
from survey.mechanism.bit_vector import TickChannel
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.number_format import number_format
from survey.store import PublishedSurvey

Answer = tuple[str, str]
"""Id and label of an answer."""


def question_index(survey: PublishedSurvey, question_id: str) -> int:
    """Return the position of a question; NotFoundError lists the ids that exist."""
    ids = [question.id for question in survey.definition.questions]
    if question_id not in ids:
        choices = ", ".join(ids)
        raise NotFoundError(
            f'{survey.slug} has no question "{question_id}": choose one of {choices}'
        )
    return ids.index(question_id)


def find_question(survey: PublishedSurvey, question_id: str) -> PublishedQuestion:
    """Return a question by its id; NotFoundError lists the ids that exist."""
    return survey.definition.questions[question_index(survey, question_id)]


def has_question(survey: PublishedSurvey, question_id: str) -> bool:
    """Return whether a version has a question with this id."""
    return any(question.id == question_id for question in survey.definition.questions)


def has_same_answers(first: PublishedQuestion, second: PublishedQuestion) -> bool:
    """Return whether two versions of a question have the same answers, so that shares compare."""

    def answers(question: PublishedQuestion) -> tuple[object, ...]:
        options = tuple(option.id for option in question.options)
        n_ticks = question.max_ticks if question.by_patterns else 0
        return question.type, options, opt_outs(question), question.grid, n_ticks

    return answers(first) == answers(second)


def question_columns(survey: PublishedSurvey, question: PublishedQuestion) -> dict[str, Any]:
    """Return the columns that identify a question in the row of an export."""
    return {"survey_id": survey.slug, "survey_version": survey.version, "question_id": question.id}


def answer_name(label: str, question: PublishedQuestion) -> str:
    """Name an answer together with its question: a label such as "Yes" says nothing alone."""
    return f"“{label}” to “{question.text}”"


def answer_columns(prefix: str, answer: Answer) -> dict[str, Any]:
    """Return the columns that name an answer in the row of an export."""
    return {f"{prefix}_id": answer[0], f"{prefix}_label": answer[1]}


def opt_outs(question: PublishedQuestion) -> tuple[int, ...]:
    """Return the positions of "prefer not to say" and "does not apply" among the options."""
    ids = {question.opt_out, question.not_applicable} - {""}
    return tuple(i for i, option in enumerate(question.options) if option.id in ids)


def substantive_options(question: PublishedQuestion) -> tuple[int, ...]:
    """Return the positions of the options that are answers; empty without an opt-out option."""
    opt_out_places = opt_outs(question)
    if not opt_out_places:
        return ()
    return tuple(i for i in range(len(question.options)) if i not in opt_out_places)


def truth_labels(question: PublishedQuestion) -> list[Answer]:
    """Return the id and label of each truth of the question's channel, in order."""
    options = [(option.id, option.label) for option in question.options]
    if question.by_patterns:
        return [
            (
                " ".join(options[place][0] for place in pattern),
                " and ".join(options[place][1] for place in pattern) or "nothing ticked",
            )
            for pattern in question.patterns
        ]
    if question.kind.is_numeric and question.grid:
        formatter = number_format(question, "median")
        return [
            *((f"{value:g}", formatter.text(value)) for value in question.grid.values),
            *options,
        ]
    return options


def truth_values(question: PublishedQuestion) -> tuple[float | None, ...]:
    """Return the number of each truth, None for an opt-out; empty if the question has no mean.

    Subset selection with d > 1 has no mean: its counts are per option, not per report.
    """
    if question.grid is None or single_code_channel(question) is None:
        return ()
    n_opt_outs = question.channel.truths - question.grid.points
    return (*question.grid.values, *(None,) * n_opt_outs)


def single_code_channel(question: PublishedQuestion) -> SubsetSelection | WeightTable | None:
    """Return the channel if each report is one code, which means and medians need."""
    channel = question.channel
    if isinstance(channel, TickChannel) or (isinstance(channel, SubsetSelection) and channel.d > 1):
        return None
    return channel


def defines_groups(question: PublishedQuestion) -> bool:
    """Return whether each report names one answer of a list, so that answers define groups."""
    return question.kind.is_listed and single_code_channel(question) is not None


def channel_size(channel: AnyChannel) -> int:
    """Return the number of entries of a channel's matrix, which drives computing time."""
    return channel.truths * channel.counted
