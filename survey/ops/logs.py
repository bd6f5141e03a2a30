"""Logs as lines of JSON with fixed fields, none of which can hold what somebody sent.

A message is what the code says, never what was put into it; an error is the names of its classes
and the places it came through, never its text: that may quote a report, an address or a token.
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

FIELDS = ("time", "level", "logger", "event", "numbers", "errors", "codes", "at")
"""All that a line has, in this order."""

OWN = "survey."
SERVER = "_granian"
"""The server's own logger: it tells of workers; its log of requests is off."""

OF_WORKERS = re.compile(
    r"(Starting|Shutting down) granian( \(main PID: \d+\))?"
    r"|(Unexpected exit from|Respawning|Stopped|Stopping|Stopping old|Stopped old) worker-\d+"
    r"|Killing (old )?worker-\d+ after it refused to gracefully stop"
    r"|HUP signal received, gracefully respawning workers\.\."
    r"|Worker crash loop detected, exiting"
)
UNTOLD = "a message of another library, which may quote what somebody sent"

MOST_FRAMES = 12
PACKAGE = Path(__file__).parents[2]


class Lines(logging.Formatter):
    """A record as one line of JSON with the fields of `FIELDS`."""

    def format(self, record: logging.LogRecord) -> str:
        """The line; whatever the record holds, nothing else gets into it."""
        error = record.exc_info[1] if record.exc_info else None
        chain = list(_chain(error))
        values = (
            # To the minute: a finer time would tell when somebody sent a report that failed.
            datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%MZ"),
            record.levelname.lower(),
            record.name,
            _event(record),
            _numbers(record.args) if _is_own(record) else [],
            [type(each).__name__ for each in chain],
            [code for each in chain if (code := _code(each))],
            _places(error.__traceback__) if error else [],
        )
        return json.dumps(dict(zip(FIELDS, values, strict=True)))


def configuration() -> dict[str, Any]:
    """For `logging.config.dictConfig`: everything as lines, on standard output."""
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
            # It tells of each try to connect; that reports are refused is told by ourselves.
            "psycopg.pool": {"level": "ERROR"},
        },
    }


def catch_all() -> None:
    """Let what nobody catches be told by these lines, not printed with its text."""
    logger = logging.getLogger(__name__)
    sys.excepthook = lambda kind, error, trace: logger.critical(
        "an error that nobody caught", exc_info=(kind, error, trace)
    )
    threading.excepthook = lambda args: logger.critical(
        "an error that nobody caught in a thread",
        exc_info=args.exc_value or True,
    )
    sys.unraisablehook = lambda args: logger.error(
        "an error while something was cleared away", exc_info=args.exc_value or True
    )
    logging.captureWarnings(capture=True)


def _is_own(record: logging.LogRecord) -> bool:
    # The name alone is the application's in the web framework, which logs the address asked for.
    return record.name.startswith(OWN)


def _event(record: logging.LogRecord) -> str:
    """What our code says, before anything is put into it; of others what is harmless."""
    text = record.msg if isinstance(record.msg, str) else ""
    if _is_own(record):
        return text
    return text if record.name == SERVER and OF_WORKERS.fullmatch(text) else UNTOLD


def _numbers(args: object) -> list[int | float]:
    """The numbers that a message is said with."""
    given = args if isinstance(args, tuple) else ()
    return [each for each in given if type(each) in (int, float)]


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what it came of, also where it was raised `from None`."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _code(error: BaseException) -> str:
    """What the database or the system calls it: a word of theirs, such as SQLITE_FULL or 53100."""
    for name in ("sqlite_errorname", "sqlstate", "errno"):
        code = getattr(error, name, None)
        if code is not None and re.fullmatch(r"[A-Z0-9_]{1,40}", str(code)):
            return str(code)
    return ""


def _places(trace: TracebackType | None) -> list[str]:
    """The last places that an error came through: file and line, never the text of a line."""
    places = []
    while trace is not None:
        path = Path(trace.tb_frame.f_code.co_filename)
        shown = path.relative_to(PACKAGE) if path.is_relative_to(PACKAGE) else Path(path.name)
        places.append(f"{shown.as_posix()}:{trace.tb_lineno}")
        trace = trace.tb_next
    return places[-MOST_FRAMES:]
