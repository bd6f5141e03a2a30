"""Where reports are kept: one protocol, one function that opens it."""

from survey.errors import NotFoundError, SettingsError
from survey.store.protocol import (
    ASKED,
    BlockColumn,
    LastBlock,
    PublishedSurvey,
    Researcher,
    Sealed,
    Store,
    StoredReport,
    Tally,
    Waiting,
)
from survey.store.sqlite import SqliteStore

__all__ = [
    "ASKED",
    "BlockColumn",
    "LastBlock",
    "PublishedSurvey",
    "Researcher",
    "Sealed",
    "Store",
    "StoredReport",
    "Tally",
    "Waiting",
    "find_survey",
    "open_store",
]


def find_survey(store: Store, slug: str, version: int | None = None) -> PublishedSurvey:
    """A version of a survey, the newest when none is named; NotFoundError when there is none."""
    for survey in store.versions(slug):
        if version in (None, survey.version):
            return survey
    raise NotFoundError(f'there is no survey "{slug}"' + (f" version {version}" if version else ""))


def open_store(url: str) -> Store:
    """Open the store that a SURVEY_DATABASE url names: sqlite:///relative or sqlite:////absolute.

    Opening touches nothing; a missing or outdated database is refused at its first use.
    """
    scheme, separator, path = url.partition(":///")
    if scheme != "sqlite" or not separator or not path:
        raise SettingsError(f"SURVEY_DATABASE = {url!r} must be sqlite:///PATH")
    return SqliteStore(path)
