"""What a researcher does in a browser, and reports for their pages to show."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from playwright.sync_api import Page

from survey.collect.release import release
from survey.store import PublishedSurvey, Store, StoredReport
from tests.browser.conftest import Device
from tests.conftest import EMAIL, PASSWORD


def sign_in(device: Device, url: str, path: str = "/research/") -> Page:
    """Open a researcher's page, which asks to sign in first."""
    page = device.open(f"{url}{path}")
    page.get_by_label("Email address").fill(EMAIL)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{url}{path}")
    return page


def add_released(
    store: Store,
    survey: PublishedSurvey,
    n: int,
    weights: Sequence[float] = (0.62, 0.25, 0.08, 0.05),
) -> None:
    """Store and release reports of n people whose truths follow falling weights."""
    rng = np.random.default_rng(20)
    channels = [question.channel for question in survey.definition.questions]
    columns = []
    for channel in channels:
        shares = np.resize(np.array(weights), channel.k)
        columns.append(channel.perturb(rng.choice(channel.k, size=n, p=shares / shares.sum()), rng))
    for row in np.stack(columns, axis=1).astype(np.uint8):
        store.add_report(survey.key, StoredReport(os.urandom(16), "", row.tobytes()))
    release(store, survey, 25)
