"""Helpers to create reports, send them over HTTP and find them in the store."""

from __future__ import annotations

import http.client
import json
import secrets
from typing import NamedTuple

from survey.collect.incoming_reports import parse
from survey.questionnaire.definition import report_body
from survey.store import PublishedSurvey, Store, StoredReport

JSON = {"Content-Type": "application/json"}


def number_survey(high: int) -> bytes:
    """Return a survey with a number from 0 to `high`, which allows many distinct codes."""
    return f"""
slug = "small"
title = "One number"
[[questions]]
id = "hours"
type = "number"
text = "How many?"
low = 0
high = {high}
step = 1
epsilon = 3
""".encode()


class Response(NamedTuple):
    """The server's response to a report."""

    status: int
    retry_after: str | None
    body: bytes


def new_report(survey: PublishedSurvey) -> bytes:
    """Return a report of the small survey with a new id."""
    return report_body(survey.sha256, secrets.token_urlsafe(16), [0, 1], length=512)


def send(connection: http.client.HTTPConnection, survey: PublishedSurvey, body: bytes) -> Response:
    """Post a report over an open connection."""
    connection.request("POST", f"/s/{survey.slug}/reports", body, JSON)
    response = connection.getresponse()
    return Response(response.status, response.getheader("Retry-After"), response.read())


def stored_report(body: bytes) -> StoredReport:
    """Return a report as the store represents it."""
    submission = parse(body)
    return StoredReport(submission.report_id, "", bytes(submission.codes))


def check_stored_once(
    store: Store, survey: PublishedSurvey, acknowledged: list[bytes], max_unacknowledged: int
) -> None:
    """Check that acknowledged reports are stored, and that few others and no duplicates are.

    Prints the figures, which `pytest -s` shows.
    """
    assert len({json.loads(body)["report_id"] for body in acknowledged}) == len(acknowledged)
    n_lost = sum(not store.has_report(survey.key, stored_report(body).id) for body in acknowledged)
    n_stored = store.n_pending(survey.key) + store.n_released(survey.key)
    n_doubled = max(n_stored - len(acknowledged) - max_unacknowledged, 0)
    print(f"{len(acknowledged):,} acknowledged, {n_lost} lost, {n_doubled} doubled")
    assert (n_lost, n_doubled) == (0, 0)
    assert n_stored >= len(acknowledged)
