"""Log lines have fixed fields, and no field contains data that a client sent."""

from __future__ import annotations

import json
import logging
import sqlite3
import subprocess
import sys

import pytest

from survey.errors import StoreBusyError
from survey.ops.logs import FIELDS, WITHHELD, Lines

PLANTED = "203.0.113.7 token-AbC secret-answer"


def line(record: logging.LogRecord) -> dict[str, object]:
    return json.loads(Lines().format(record))


def record_of(name: str, message: object, *args: object, error: BaseException | None = None):
    kind = (type(error), error, error.__traceback__) if error else None
    return logging.LogRecord(name, logging.ERROR, "x.py", 1, message, args, kind)


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except type(error) as caught:
        return caught


def test_a_line_has_the_fixed_fields_and_no_other():
    fields = line(record_of("survey.collect", "reports cannot be stored for now"))
    assert tuple(fields) == FIELDS
    assert fields["event"] == "reports cannot be stored for now"
    assert fields["level"] == "error"


def test_the_time_of_a_line_is_rounded_to_the_minute():
    assert len(str(line(record_of("survey.collect", "x"))["time"])) == len("2026-11-22T12:05Z")


@pytest.mark.security
def test_no_trace_of_a_body_address_or_token_gets_into_a_line():
    cause = raised(ValueError(PLANTED))
    error = StoreBusyError(PLANTED)
    error.__cause__ = cause
    records = [
        record_of("survey.collect", "received %s", PLANTED),
        record_of("survey.collect", "received %(what)s", {"what": PLANTED}),
        record_of("survey.collect", "it failed", error=raised(error)),
        record_of("survey", f"Exception on /s/{PLANTED} [POST]"),
        record_of("werkzeug", f"GET {PLANTED}"),
        record_of("_granian", f"Application callable raised {PLANTED}"),
        record_of("_granian.workers", PLANTED),
        record_of("py.warnings", PLANTED),
        record_of("survey.collect", ValueError(PLANTED)),
    ]
    for record in records:
        record.stack_info = PLANTED
        line_of_log = Lines().format(record)
        for part in PLANTED.split():
            assert part not in line_of_log


def test_an_error_is_logged_with_its_classes_codes_and_places():
    def fail() -> None:
        with sqlite3.connect(":memory:") as connection:
            connection.execute("SELECT * FROM missing")

    try:
        try:
            fail()
        except sqlite3.Error:
            raise StoreBusyError("a secret") from None
    except StoreBusyError as error:
        fields = line(record_of("survey.collect", "it failed", error=error))
    assert fields["errors"] == ["StoreBusyError", "OperationalError"]
    assert fields["codes"] == ["SQLITE_ERROR"]
    assert str(fields["at"][0]).startswith("tests/ops/test_logs.py:")


@pytest.mark.parametrize(
    "text",
    ["Killing worker-1 after it refused to gracefully stop", "Unexpected exit from worker-12"],
)
def test_messages_of_granian_about_workers_are_logged(text):
    assert line(record_of("_granian", text))["event"] == text


def test_numbers_in_our_messages_are_logged_and_texts_are_not():
    fields = line(record_of("survey.server", "after %d seconds of %s", 30, "x"))
    assert (fields["event"], fields["numbers"]) == ("after %d seconds of %s", [30])
    assert line(record_of("other", "%d", 30))["numbers"] == []
    assert line(record_of("other", "%d", 30))["event"] == WITHHELD


LOGGING = """
import logging.config
from survey.ops.logs import catch_all, configuration
logging.config.dictConfig(configuration())
catch_all()
logging.getLogger("werkzeug").warning("GET %s", PLANTED)
try:
    raise ValueError(PLANTED)
except ValueError:
    logging.getLogger("survey.x").exception("it failed")
raise RuntimeError(PLANTED)
"""


def test_the_configuration_sends_everything_through_these_lines():
    # In a separate process: the configuration closes the handlers of this one.
    code = LOGGING.replace("PLANTED", repr(PLANTED))
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    lines = [json.loads(text) for text in process.stdout.splitlines()]
    events = ["it failed", "uncaught error"]
    assert [fields["event"] for fields in lines] == [WITHHELD, *events]
    assert process.stderr == ""
    assert PLANTED not in process.stdout


def test_an_uncaught_error_is_logged_as_a_line(monkeypatch, caplog):
    from survey.ops.logs import catch_all

    for owner, name in ((sys, "excepthook"), (sys, "unraisablehook")):
        monkeypatch.setattr(owner, name, getattr(owner, name))
    monkeypatch.setattr("threading.excepthook", None)
    error = raised(ValueError(PLANTED))
    catch_all()
    logging.captureWarnings(capture=False)
    sys.excepthook(ValueError, error, error.__traceback__)
    (record,) = caplog.records
    assert record.getMessage() == "uncaught error"
    assert PLANTED not in Lines().format(record)
