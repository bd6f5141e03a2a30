"""Reports of simulated respondents, made as a device makes them."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from survey.mechanism import Channel, secure_uniform_below
from survey.questionnaire.definition import report_body
from survey.store import PublishedSurvey

Answer = int | tuple[int, ...]
"""The index of an option or of a point of a grid, or those of the ticked options."""


def simulated_report(survey: PublishedSurvey, answers: Sequence[Answer | None]) -> bytes:
    """One person's report, perturbed exactly as a device does it; None was not asked."""
    codes = [
        None if answer is None else _perturbed(question.channel, question.truth(answer))
        for question, answer in zip(survey.definition.questions, answers, strict=True)
    ]
    return report_body(
        survey.sha256, secrets.token_urlsafe(16), codes, length=survey.definition.report_bytes
    )


def _perturbed(channel: Channel, truth: Answer) -> int | str:
    return channel.perturb_one(truth, secure_uniform_below)
