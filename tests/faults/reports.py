"""Reports sent over HTTP by hand: made, sent, and looked for in the store."""

from __future__ import annotations

import http.client
import json
import secrets
from typing import NamedTuple

from survey.collect.intake import parse
from survey.questionnaire.definition import report_body
from survey.store import PublishedSurvey, Store, StoredReport

JSON = {"Content-Type": "application/json"}


def one_number(high: int) -> bytes:
    """A survey of one number from 0 to `high`: so many reports can have a code of their own."""
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


class Answer(NamedTuple):
    """What the server said to a report."""

    status: int
    retry_after: str | None
    body: bytes


def new_body(survey: PublishedSurvey) -> bytes:
    """A report of the small survey with an id of its own."""
    return report_body(survey.sha256, secrets.token_urlsafe(16), [0, 1], length=512)


def send(connection: http.client.HTTPConnection, survey: PublishedSurvey, body: bytes) -> Answer:
    """Post a report over an open connection."""
    connection.request("POST", f"/s/{survey.slug}/reports", body, JSON)
    response = connection.getresponse()
    return Answer(response.status, response.getheader("Retry-After"), response.read())


def stored(body: bytes) -> StoredReport:
    """What the store keeps of a report."""
    submission = parse(body)
    return StoredReport(submission.report_id, "", bytes(submission.codes))


def check_each_is_there_once(
    store: Store, survey: PublishedSurvey, acknowledged: list[bytes], unsure: int
) -> None:
    """Every acknowledged report is stored; beside them at most as many as had no answer."""
    assert len({json.loads(body)["report_id"] for body in acknowledged}) == len(acknowledged)
    for body in acknowledged:
        assert store.has_report(survey.key, stored(body))
    there = store.n_pending(survey.key) + store.n_released(survey.key)
    assert len(acknowledged) <= there <= len(acknowledged) + unsure
