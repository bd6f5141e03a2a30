"""The errors of this project, and the HTTP status of each."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from http import HTTPStatus
from pathlib import Path

# PyPI's package `survey` has nothing to do with this one, but installs into the same folder.
if not hasattr(sys.modules["survey"], "__version__"):
    raise ImportError(
        "the unrelated package `survey` has overwritten parts of ldp-survey. Run: "
        "pip uninstall survey; pip install --force-reinstall --no-deps ldp-survey"
    )


class SurveyError(Exception):
    """An expected error; its message says which value is wrong and what would be right.

    fields  additional members of the error's problem document (RFC 9457)
    file    path of the file that contains the mistake; "" if it is in no file or unknown
    line    number of the line in the file, if a parser states it
    """

    fields: Mapping[str, object] = {}
    file: str = ""
    line: int | None = None


@contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Add the path of a file to the errors about its content."""
    try:
        yield
    except SurveyError as error:
        error.file = error.file or str(path)
        raise


class ChannelError(SurveyError, ValueError):
    """A channel that is not private, not exact or not invertible."""


class CountsError(SurveyError, ValueError):
    """Counts that cannot come from the given channel."""


class DesignError(SurveyError, ValueError):
    """Weights, margins, strata or a plan for which no estimate exists."""


class FieldError(CountsError):
    """A value that a form field does not offer; `field` is the name of the field."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class NoBaseError(CountsError):
    """Shares of a subgroup whose size is not clearly above zero."""


class SettingsError(SurveyError):
    """A setting with which the server does not start."""


class DefinitionError(SurveyError):
    """A survey definition with mistakes.

    mistakes  each mistake as a place and a sentence
    places    paths of the first mistakes in the definition, as far as it could be parsed, such as
              ("pages", 0, "questions", 2, "text")
    """

    def __init__(
        self,
        mistakes: list[tuple[str, str]],
        places: Sequence[tuple[str | int, ...]] = (),
        line: int | None = None,
    ) -> None:
        self.mistakes = mistakes
        self.places = tuple(places)
        self.line = line
        lines = (f"{place}: {text}" if place else text for place, text in mistakes)
        super().__init__("\n".join(lines))


class NotFoundError(SurveyError):
    """An object that does not exist, or that the requester may not see."""


class ClosedError(SurveyError):
    """A report for a survey that is closed."""


class LateBoxesError(ClosedError):
    """An upload from field mode after the survey's last day for uploads.

    `stored` lists the positions in the upload of the boxes that were stored in time.
    """

    def __init__(self, stored: Sequence[int]) -> None:
        super().__init__("this survey no longer accepts uploads from field mode")
        self.stored = list(stored)
        self.fields = {"stored": self.stored}


class NotOpenError(SurveyError):
    """A report for a survey that is not open yet; `opens` is its first day."""

    def __init__(self, opens: date) -> None:
        super().__init__(f"this survey opens on {opens}")
        self.opens = opens
        self.fields = {"opens": opens.isoformat()}


class FullError(SurveyError):
    """A report for a survey that has reached its maximum number of reports."""


class TestRunError(SurveyError):
    """A report sent to a test run, which stores only simulated reports."""

    __test__ = False


class ConflictError(SurveyError):
    """A request that contradicts stored data."""


class OutdatedError(ConflictError):
    """A report for a version of a survey that has been replaced."""


class InvitationError(ConflictError):
    """A report whose invitation is unknown, used, or issued for another stratum."""


class InvitationNeededError(SurveyError):
    """A report without the invitation that its survey requires."""


class ReportError(SurveyError):
    """A report that does not match its survey; nothing of it was stored."""


class MalformedReportError(SurveyError):
    """A request body that is not valid JSON of the wire format."""


class ReportTooLargeError(SurveyError):
    """A request body above the size limit of the wire format."""


class UnsupportedMediaError(SurveyError):
    """A request body whose media type is not JSON; it was not read."""


class CrossSiteError(SurveyError):
    """A request sent by the page of another site."""


class ForbiddenError(SurveyError):
    """An action that the role of a researcher, or the scope of an API token, does not allow."""


class UnauthorizedError(SurveyError):
    """An API request without a valid token."""


class NotAcceptableError(SurveyError):
    """A request for a media type that the address does not offer."""


class QueryError(SurveyError):
    """A query with a parameter or a value that the address does not accept."""


class MissingPartError(SurveyError):
    """A request that needs a system library, or an optional package, that is not installed."""


class RemoteError(SurveyError):
    """A server that does not answer, or not as its API should."""


class StoreBusyError(SurveyError):
    """A store that is busy; the client should try again later."""


class ResearchBusyError(SurveyError):
    """A researcher's request that cannot be answered now; the client should try again later."""


class StoreReplacedError(StoreBusyError):
    """A database at the store's address that is not the one the process started with."""


class StoreError(SurveyError):
    """A store that is missing, of another version, or not writable."""


class DamagedSurveyError(StoreError):
    """A survey whose stored dates or released reports were damaged; others are not affected."""


class DamagedBatchError(StoreError):
    """A sealed batch that cannot be opened, or that differs from what was stored."""


STATUS: Mapping[type[SurveyError], HTTPStatus] = {
    MalformedReportError: HTTPStatus.BAD_REQUEST,
    UnauthorizedError: HTTPStatus.UNAUTHORIZED,
    CrossSiteError: HTTPStatus.FORBIDDEN,
    NotFoundError: HTTPStatus.NOT_FOUND,
    NotAcceptableError: HTTPStatus.NOT_ACCEPTABLE,
    ConflictError: HTTPStatus.CONFLICT,
    OutdatedError: HTTPStatus.CONFLICT,
    InvitationError: HTTPStatus.CONFLICT,
    InvitationNeededError: HTTPStatus.FORBIDDEN,
    ClosedError: HTTPStatus.GONE,
    LateBoxesError: HTTPStatus.GONE,
    NotOpenError: HTTPStatus.FORBIDDEN,
    ForbiddenError: HTTPStatus.FORBIDDEN,
    TestRunError: HTTPStatus.FORBIDDEN,
    FullError: HTTPStatus.GONE,
    ReportTooLargeError: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    UnsupportedMediaError: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    ReportError: HTTPStatus.UNPROCESSABLE_ENTITY,
    DefinitionError: HTTPStatus.UNPROCESSABLE_ENTITY,
    QueryError: HTTPStatus.UNPROCESSABLE_ENTITY,
    DesignError: HTTPStatus.UNPROCESSABLE_ENTITY,
    MissingPartError: HTTPStatus.NOT_IMPLEMENTED,
    RemoteError: HTTPStatus.BAD_GATEWAY,
    StoreBusyError: HTTPStatus.SERVICE_UNAVAILABLE,
    ResearchBusyError: HTTPStatus.SERVICE_UNAVAILABLE,
    StoreReplacedError: HTTPStatus.SERVICE_UNAVAILABLE,
    StoreError: HTTPStatus.SERVICE_UNAVAILABLE,
    DamagedSurveyError: HTTPStatus.SERVICE_UNAVAILABLE,
    DamagedBatchError: HTTPStatus.SERVICE_UNAVAILABLE,
}
"""HTTP status of each error; any other SurveyError is a defect of the server (500)."""


@contextmanager
def require_extra(extra: str) -> Iterator[None]:
    """Replace an ImportError by a MissingPartError that names the extra to install."""
    try:
        yield
    except ImportError as missing:
        raise MissingPartError(
            f"this needs packages that are not installed: pip install 'ldp-survey[{extra}]'"
        ) from missing
