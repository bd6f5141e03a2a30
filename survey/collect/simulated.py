"""Reports of simulated respondents, made as a device makes them."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from survey.collect.intake import accept
from survey.collect.wire import parse
from survey.mechanism import Channel, secure_uniform_below
from survey.questionnaire.definition import report_body
from survey.store import PublishedSurvey, Store

Answer = int | tuple[int, ...]
"""The index of an option or of a point of a grid, or those of the ticked options."""

AT_ONCE = 500
"""Reports of one transaction."""


def collected(
    store: Store, survey: PublishedSurvey, people: Iterable[Sequence[Answer | None]]
) -> Iterator[int]:
    """Let people answer, as devices and the server do; yields how many more reports are stored."""
    answers = iter(people)
    while some := list(islice(answers, AT_ONCE)):
        bodies = (simulated_report(survey, one) for one in some)
        reports = [(survey.key, accept(parse(body), survey.definition)) for body in bodies]
        yield sum(refusal is None for refusal in store.add_reports(reports))


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
