"""Every refusal the project knows, as plain exceptions; `app.py` gives each its status."""

from __future__ import annotations


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
    """A survey definition with mistakes; `mistakes` lists each as (place, sentence)."""

    def __init__(self, mistakes: list[tuple[str, str]]) -> None:
        self.mistakes = mistakes
        super().__init__(
            "\n".join(f"{place}: {text}" if place else text for place, text in mistakes)
        )


class NotFoundError(SurveyError):
    """Nothing of that name is here."""


class ClosedError(SurveyError):
    """The survey takes no more reports."""


class ConflictError(SurveyError):
    """The request contradicts what is already stored."""


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


class StoreBusyError(SurveyError):
    """The store cannot take the report now; the sender should come again."""


class StoreError(SurveyError):
    """The store is missing, of another version, or not writable."""
