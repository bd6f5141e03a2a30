"""Researchers' actions in a browser, and released reports for their pages."""

from __future__ import annotations

import os
from bisect import bisect
from collections.abc import Sequence
from datetime import date
from functools import cache
from http import HTTPStatus
from typing import Any

import numpy as np
from playwright.sync_api import Page, expect

from survey.mechanism.bit_vector import TickChannel
from survey.questionnaire.canonical import read_definition
from survey.questionnaire.kinds import PublishedQuestion
from survey.store import PublishedSurvey, Store, StoredReport
from tests.browser.conftest import Device
from tests.conftest import EMAIL, PASSWORD, TODAY
from tests.store.reports import publish_pending


def sign_in(device: Device, url: str, path: str = "/research/") -> Page:
    """Open a researcher's page, which asks to sign in first."""
    page = device.open(f"{url}{path}")
    page.get_by_label("Email address").fill(EMAIL)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{url}{path}")
    return page


def visit(page: Page, address: str, *, may_be_rejected: bool = False) -> None:
    """Open a researcher's page, and wait until it is ready."""
    statuses = {HTTPStatus.OK, HTTPStatus.ACCEPTED}
    if may_be_rejected:
        statuses.add(HTTPStatus.UNPROCESSABLE_ENTITY)
    response = page.goto(address)
    assert response is not None
    assert response.status in statuses, address
    expect(page).not_to_have_title("Computing")


def add_released(
    store: Store,
    survey: PublishedSurvey,
    n: int,
    weights: Sequence[float] = (0.62, 0.25, 0.08, 0.05),
    *,
    stratum: str = "",
    day: date = TODAY,
) -> None:
    """Store and release reports of n people whose truths follow falling weights."""
    codes_of_all = _random_codes(survey.canonical, n, tuple(weights))
    store.add_reports(
        [(survey.key, StoredReport(os.urandom(16), stratum, codes)) for codes in codes_of_all]
    )
    publish_pending(store, survey, 25, day=day)


@cache
def _random_codes(canonical: bytes, n: int, weights: tuple[float, ...]) -> list[bytes]:
    """Return the codes of n reports; the same for all tests, which takes time only once."""
    rng = np.random.default_rng(20)
    questions = read_definition(canonical).questions
    return [
        b"".join(stored_code(question, weights, rng) for question in questions) for _ in range(n)
    ]


def stored_code(
    question: PublishedQuestion, weights: Sequence[float], rng: np.random.Generator
) -> bytes:
    """Return a random person's code of a question, encoded as the database stores it."""
    channel = question.channel
    # Looking the truth up in running totals takes a tenth of the time of Generator.choice.
    truth = bisect(_running_totals(channel.options, tuple(weights)), rng.random())
    ticks = [int(option == truth) for option in range(channel.options)]
    truth_or_ticks: Any = ticks if isinstance(channel, TickChannel) else truth
    return question.encode(channel.perturb_one(truth_or_ticks, lambda n: int(rng.integers(n))))


@cache
def _running_totals(options: int, weights: tuple[float, ...]) -> list[float]:
    """Return the running totals of the options' shares, except for the last option."""
    totals = np.resize(np.array(weights), options).cumsum()
    return (totals / totals[-1]).tolist()[:-1]
