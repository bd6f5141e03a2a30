"""Store and release simulated reports of every kind of channel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from survey.collect.publication import publish
from survey.mechanism.bit_vector import TickChannel
from survey.questionnaire.kinds import PublishedQuestion
from survey.questionnaire.kinds.base import ASKED_PREFIX
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import PublishedSurvey, Store, StoredReport
from tests.conftest import TODAY
from tests.results.test_every_type import QUESTIONS
from tests.store.reports import publish_pending

LONG_OPTIONS = ", ".join(f'{{id = "o{i}", label = "{i}"}}' for i in range(21))
LONG_QUESTIONS = {
    "long_sets": 'type = "single_choice"\nmechanism = "best"\nepsilon = 1\n'
    f"options = [{LONG_OPTIONS}]",
    "long_bits": f'type = "multiple_choice"\nmechanism = "bits"\noptions = [{LONG_OPTIONS}]',
    "long_sampled": 'type = "multiple_choice"\nmechanism = "sampled_options"\n'
    f"options = [{LONG_OPTIONS}]",
    "fine": 'type = "number"\nlow = 0\nhigh = 400',
}
EVERY = {**QUESTIONS, **LONG_QUESTIONS}


def published(
    store: Store, names: list[str], head: str = "", slug: str = "every"
) -> PublishedSurvey:
    """Publish a survey of the named questions."""
    questions = "".join(
        f'[[pages.questions]]\nid = "{name}"\ntext = "{name}?"\n{EVERY[name]}\n'
        + ("" if "epsilon" in EVERY[name] or name == "coins" else "epsilon = 2\n")
        for name in names
    )
    toml = f'slug = "{slug}"\ntitle = "Every"\n{head}[[pages]]\n{questions}'
    return publish(store, load(toml.encode(), "every.toml", Caps(question=8, survey=200)), TODAY)


def fill(
    store: Store,
    survey: PublishedSurvey,
    n: int,
    stratum: str = "",
    seed: int = 5,
    drawn: float = 1.0,
    minimum: int = 25,
) -> None:
    """Store and release n reports; a share `drawn` answers each sampled question."""
    rng = np.random.default_rng(seed)
    columns = [stored_codes(question, n, rng, drawn) for question in survey.definition.questions]
    rows = np.concatenate(columns, axis=1)
    ids = rng.bytes(16 * n)
    refused = store.add_reports(
        [
            (survey.key, StoredReport(ids[16 * i : 16 * i + 16], stratum, rows[i].tobytes()))
            for i in range(n)
        ]
    )
    assert refused == [None] * n
    assert publish_pending(store, survey, minimum) == n


def stored_codes(
    question: PublishedQuestion, n: int, rng: np.random.Generator, drawn: float = 1.0
) -> NDArray[np.uint8]:
    """Return stored codes of n reports, shape (n, code_bytes); later truths are less frequent."""
    channel = question.channel
    if isinstance(channel, TickChannel):
        truths = np.eye(channel.m, dtype=np.uint8)[rng.integers(0, channel.m, n)]
    else:
        weights = 1 / (1 + np.arange(channel.truths))
        truths = rng.choice(channel.truths, size=n, p=weights / weights.sum())
    reports = channel.perturb(truths, rng)
    if channel.report_bits:
        codes = np.packbits(reports.astype(np.uint8), axis=1)
    else:
        kind = np.uint8 if channel.code_bytes == 1 else ">u2"
        codes = reports.astype(kind).reshape(n, 1).view(np.uint8)
    if not question.nullable:
        return codes
    prefix = np.full((n, 1), ASKED_PREFIX[0], dtype=np.uint8)
    whole = np.concatenate([prefix, codes], axis=1)
    whole[rng.random(n) >= drawn] = 0
    return whole
