"""Answers that never arrive: a device sends again, and no report is counted twice."""

from __future__ import annotations

import http.client
import random
import secrets
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest

from survey.collect.publication import close, publish
from survey.questionnaire.definition import report_body
from survey.questionnaire.loading import load
from survey.settings import Caps
from tests.conftest import TODAY
from tests.faults.reports import number_survey, send

SENDERS = 8
LOST = 0.5
"""Part of the answers that the device does not hear."""


@pytest.mark.security
@pytest.mark.parametrize("high", [99, pytest.param(999, marks=pytest.mark.long)])
def test_exactly_once_reports_whose_answers_are_lost_are_sent_again_and_counted(serve, store, high):
    survey = publish(store, load(number_survey(high), "small.toml", Caps()), TODAY)
    port = int(serve("--workers", "2").rpartition(":")[2])
    (question,) = survey.definition.questions

    def insist(code: int) -> int:
        """Send until the answer is heard; returns how often."""
        length = survey.definition.report_bytes
        body = report_body(survey.sha256, secrets.token_urlsafe(16), [code], length=length)
        for times in range(1, 100):
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
                if random.random() < LOST:
                    connection.putrequest("POST", "/s/small/reports")
                    connection.putheader("Content-Type", "application/json")
                    connection.putheader("Content-Length", str(len(body)))
                    connection.endheaders(body)
                    continue
                assert send(connection, survey, body).status == 201
                return times
        raise AssertionError("never heard")

    # Each report has a code of its own: a two in the tally is one that was counted twice.
    codes = range(question.channel.matrix.shape[1])
    with ThreadPoolExecutor(SENDERS) as pool:
        times = list(pool.map(insist, codes))
    assert max(times) > 1
    close(store, survey.slug, TODAY)
    tally = store.tally(survey.key)
    assert tally.n == len(codes)
    np.testing.assert_array_equal(tally.counts[0], np.ones(len(codes)))
