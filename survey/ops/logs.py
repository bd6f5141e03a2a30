"""Logs as lines of JSON with fixed fields, none of which can contain what a client sent.

A message is logged without its arguments. It can name a survey and the random key of a row. An
error is logged as the names of its classes and the places it passed, without its text, which may
quote a report, an address or a token.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

FIELDS = ("time", "level", "logger", "event", "survey", "row", "numbers", "errors", "codes", "at")
"""The fields of each line, in this order."""

NAMES = {"survey": re.compile("[a-z0-9-]{1,100}"), "row": re.compile("[0-9a-f]{1,32}")}
"""Fields that messages of this package can set, and patterns of their permitted values."""

PACKAGE_PREFIX = "survey."
SERVER = "_granian"
"""The logger of granian, which logs its workers; its request log is off."""

WORKER_EVENTS = re.compile(
    r"(Starting|Shutting down) granian( \(main PID: \d+\))?"
    r"|(Unexpected exit from|Respawning|Stopped|Stopping|Stopping old|Stopped old) worker-\d+"
    r"|Killing (old )?worker-\d+ after it refused to gracefully stop"
    r"|HUP signal received, gracefully respawning workers\.\."
    r"|Worker crash loop detected, exiting"
)
WITHHELD = "a message of another library, withheld because it may quote what a client sent"

MAX_FRAMES = 12
PACKAGE = Path(__file__).parents[2]


class Lines(logging.Formatter):
    """Formats a record as one line of JSON with the fields of `FIELDS`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, which contains nothing else of the record."""
        error = record.exc_info[1] if record.exc_info else None
        chain = list(_chain(error))
        values = (
            # To the minute: a finer time would show when a respondent sent a report that failed.
            datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%MZ"),
            record.levelname.lower(),
            record.name,
            _event(record),
            *(_name(record, field) for field in NAMES),
            _numbers(record.args) if _is_own(record) else [],
            [type(link).__name__ for link in chain],
            [code for link in chain if (code := _error_code(link))],
            _frames(error.__traceback__) if error else [],
        )
        return json.dumps(dict(zip(FIELDS, values, strict=True)))


def configuration() -> dict[str, Any]:
    """Return the `logging.config.dictConfig` that writes all logs as lines to standard output."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": {"()": "survey.ops.logs.Lines"}},
        "handlers": {
            "lines": {
                "class": "logging.StreamHandler",
                "formatter": "lines",
                "stream": "ext://sys.stdout",
            }
        },
        "root": {"handlers": ["lines"], "level": "WARNING"},
        "loggers": {
            SERVER: {"handlers": ["lines"], "propagate": False},
            # It logs each attempt to connect and each rollback on a lost connection; the keeper
            # logs that reports cannot be stored.
            "psycopg": {"level": "ERROR"},
        },
    }


def catch_all() -> None:
    """Log uncaught errors as lines, instead of printing them with their text."""
    logger = logging.getLogger(__name__)
    sys.excepthook = lambda kind, error, trace: logger.critical(
        "uncaught error", exc_info=(kind, error, trace)
    )
    threading.excepthook = lambda args: logger.critical(
        "uncaught error in a thread",
        exc_info=args.exc_value or True,
    )
    sys.unraisablehook = lambda args: logger.error(
        "error while an object was deleted", exc_info=args.exc_value or True
    )
    logging.captureWarnings(capture=True)


def _is_own(record: logging.LogRecord) -> bool:
    # Flask's logger has the bare name, and logs the requested address.
    return record.name.startswith(PACKAGE_PREFIX)


def _event(record: logging.LogRecord) -> str:
    """Return the text to log: our messages without arguments, known ones of granian, no others."""
    text = record.msg if isinstance(record.msg, str) else ""
    if _is_own(record):
        return text
    return text if record.name == SERVER and WORKER_EVENTS.fullmatch(text) else WITHHELD


def _name(record: logging.LogRecord, field: str) -> str:
    """Return the survey or the row that a message of this package names, or ""."""
    value = str(getattr(record, field, "")) if _is_own(record) else ""
    return value if NAMES[field].fullmatch(value) else ""


def _numbers(args: object) -> list[int | float]:
    """Return the numbers among a message's arguments."""
    values = args if isinstance(args, tuple) else ()
    return [value for value in values if type(value) in (int, float)]


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and its causes, also where it was raised `from None`."""
    visited: set[int] = set()
    while error is not None and id(error) not in visited:
        visited.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _error_code(error: BaseException) -> str:
    """Return an error's code, such as SQLITE_FULL or 53100, or an empty string."""
    for name in ("sqlite_errorname", "sqlstate", "errno"):
        code = getattr(error, name, None)
        if code is not None and re.fullmatch(r"[A-Z0-9_]{1,40}", str(code)):
            return str(code)
    return ""


def _frames(trace: TracebackType | None) -> list[str]:
    """Return the innermost frames of a traceback as file and line number, without source text."""
    frames = []
    while trace is not None:
        path = Path(trace.tb_frame.f_code.co_filename)
        name = path.relative_to(PACKAGE) if path.is_relative_to(PACKAGE) else Path(path.name)
        frames.append(f"{name.as_posix()}:{trace.tb_lineno}")
        trace = trace.tb_next
    return frames[-MAX_FRAMES:]
