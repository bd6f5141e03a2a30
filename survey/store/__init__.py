"""Where reports are kept: one protocol, one function that opens it."""

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
    open_store,
)

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
