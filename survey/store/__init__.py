"""Where reports are kept: one protocol, one function that opens it."""

from survey.errors import SettingsError
from survey.store.protocol import (
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
    "BlockColumn",
    "LastBlock",
    "PublishedSurvey",
    "Researcher",
    "Sealed",
    "Store",
    "StoredReport",
    "Tally",
    "Waiting",
    "open_store",
]


def open_store(url: str) -> Store:
    """Open the store that a SURVEY_DATABASE url names: sqlite:///relative or sqlite:////absolute.

    Opening touches nothing; a missing or outdated database is refused at its first use.
    """
    scheme, separator, path = url.partition(":///")
    if scheme != "sqlite" or not separator or not path:
        raise SettingsError(f"SURVEY_DATABASE = {url!r} must be sqlite:///PATH")
    return SqliteStore(path)
