"""Every refusal the project knows, as plain exceptions, and the HTTP status of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from http import HTTPStatus


class SurveyError(Exception):
    """A refusal with one clear sentence: which value was wrong and what would be right."""


class ChannelError(SurveyError, ValueError):
    """A channel that would not be private, not be exact, or not be invertible."""


class CountsError(SurveyError, ValueError):
    """Counts that cannot have come from the channel they are read through."""


class DesignError(SurveyError, ValueError):
    """Weights, margins, strata or a plan that no estimate can be made with."""


class NoBaseError(CountsError):
    """Shares of a part (those who answered, one group) that is not clearly above nobody."""


class SettingsError(SurveyError):
    """The instance is configured in a way it refuses to start with."""


class DefinitionError(SurveyError):
    """A survey definition with mistakes; `mistakes` lists each as (place, sentence).

    `places` are those of the first mistakes as steps into the definition, as far as it could be
    read: ("pages", 0, "questions", 2, "text").
    """

    def __init__(
        self,
        mistakes: list[tuple[str, str]],
        places: Sequence[tuple[str | int, ...]] = (),
    ) -> None:
        self.mistakes = mistakes
        self.places = tuple(places)
        super().__init__(
            "\n".join(f"{place}: {text}" if place else text for place, text in mistakes)
        )


class NotFoundError(SurveyError):
    """Nothing of that name is here."""


class ClosedError(SurveyError):
    """The survey takes no more reports."""


class NotOpenError(SurveyError):
    """The survey takes no reports yet; `opens` is the day on which it does."""

    def __init__(self, opens: date) -> None:
        super().__init__(f"this survey opens on {opens}")
        self.opens = opens


class FullError(SurveyError):
    """The survey has as many reports as it takes."""


class ConflictError(SurveyError):
    """The request contradicts what is already stored."""


class OutdatedError(ConflictError):
    """A report on a version of its survey that takes none any more."""


class InvitationError(ConflictError):
    """A report whose invitation is unknown, spent, or another stratum's."""


class InvitationNeededError(SurveyError):
    """A report without the invitation that its survey asks for."""


class ReportError(SurveyError):
    """A report that does not fit its survey; nothing of it was stored."""


class MalformedReportError(SurveyError):
    """A body that is not JSON as the wire format allows it."""


class ReportTooLargeError(SurveyError):
    """A body above the wire format's limit."""


class UnsupportedMediaError(SurveyError):
    """A body of another type than JSON; it was not read."""


class CrossSiteError(SurveyError):
    """A report sent by another site's page."""


class ForbiddenError(SurveyError):
    """A researcher may see this survey, but not do that with it; or a program's token cannot."""


class UnauthorizedError(SurveyError):
    """A program's request without a token that is good for anything here."""


class NotAcceptableError(SurveyError):
    """A request for a kind of answer that its address does not give."""


class QueryError(SurveyError):
    """A query with a key or a value that its address does not take."""


class MissingPartError(SurveyError):
    """This server lacks a part of its system that the page would need."""


class StoreBusyError(SurveyError):
    """The store cannot take the report now; the sender should come again."""


class StoreError(SurveyError):
    """The store is missing, of another version, or not writable."""


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
    NotOpenError: HTTPStatus.FORBIDDEN,
    ForbiddenError: HTTPStatus.FORBIDDEN,
    FullError: HTTPStatus.GONE,
    ReportTooLargeError: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    UnsupportedMediaError: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    ReportError: HTTPStatus.UNPROCESSABLE_ENTITY,
    DefinitionError: HTTPStatus.UNPROCESSABLE_ENTITY,
    QueryError: HTTPStatus.UNPROCESSABLE_ENTITY,
    DesignError: HTTPStatus.UNPROCESSABLE_ENTITY,
    MissingPartError: HTTPStatus.NOT_IMPLEMENTED,
    StoreBusyError: HTTPStatus.SERVICE_UNAVAILABLE,
    StoreError: HTTPStatus.SERVICE_UNAVAILABLE,
}
"""The status of each refusal; every other SurveyError is a mistake of ours."""
