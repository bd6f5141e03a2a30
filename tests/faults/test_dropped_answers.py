"""A device that receives no response resends its report, which is counted once."""

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
from tests.conftest import TODAY, wait_until
from tests.faults.reports import number_survey, send

SENDERS = 8
LOSS_RATE = 0.5
"""Fraction of the responses that never reach the device."""


@pytest.mark.security
@pytest.mark.parametrize("high", [99, pytest.param(999, marks=pytest.mark.long)])
def test_exactly_once_reports_are_counted_although_responses_are_lost(serve, store, high):
    survey = publish(store, load(number_survey(high), "small.toml", Caps()), TODAY)
    url = serve("--workers", "2", SURVEY_RELEASE_EVERY="1")
    port = int(url.rpartition(":")[2])
    (question,) = survey.definition.questions

    def send_until_received(code: int) -> int:
        """Send a report until a response arrives; return the number of attempts."""
        length = survey.definition.report_bytes
        body = report_body(survey.sha256, secrets.token_urlsafe(16), [code], length=length)
        for attempts in range(1, 100):
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
                if random.random() < LOSS_RATE:
                    connection.putrequest("POST", "/s/small/reports")
                    connection.putheader("Content-Type", "application/json")
                    connection.putheader("Content-Length", str(len(body)))
                    connection.endheaders(body)
                    continue
                assert send(connection, survey, body).status == 201
                return attempts
        raise AssertionError("no response arrived")

    # Each report has a different code: a count of 2 would show a report counted twice.
    codes = range(question.channel.matrix.shape[1])
    with ThreadPoolExecutor(SENDERS) as pool:
        attempts = list(pool.map(send_until_received, codes))
    assert max(attempts) > 1
    close(store, survey.slug, TODAY)
    wait_until(lambda: store.n_released(survey.key) == len(codes))
    tally = store.tally(survey.key)
    assert tally.n == len(codes)
    np.testing.assert_array_equal(tally.counts[0], np.ones(len(codes)))
