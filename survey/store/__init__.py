"""Where reports are kept: one protocol, one function that opens it."""

from pathlib import Path

from survey.addresses import check_database
from survey.errors import NotFoundError, SettingsError
from survey.store.people import (
    ROLES,
    SCOPES,
    Action,
    ApiToken,
    ColleagueLink,
    Draft,
    LoginSession,
    Member,
    OpenLink,
    People,
    Researcher,
    Role,
    SecondFactor,
    draft_key,
    team_of,
)
from survey.store.protocol import (
    ASKED,
    MOST_RELEASED,
    BlockColumn,
    LastBlock,
    Plan,
    PublishedSurvey,
    Release,
    Row,
    Schedule,
    Seal,
    Sealed,
    Snapshot,
    Store,
    StoredReport,
    Tally,
    Waiting,
)
from survey.store.sqlite import SqliteStore
from survey.store.tables import TABLES, Table

__all__ = [
    "ASKED",
    "MOST_RELEASED",
    "ROLES",
    "SCOPES",
    "TABLES",
    "Action",
    "ApiToken",
    "BlockColumn",
    "ColleagueLink",
    "Draft",
    "LastBlock",
    "LoginSession",
    "Member",
    "OpenLink",
    "People",
    "Plan",
    "PublishedSurvey",
    "Release",
    "Researcher",
    "Role",
    "Row",
    "Schedule",
    "Seal",
    "Sealed",
    "SecondFactor",
    "Snapshot",
    "Store",
    "StoredReport",
    "Table",
    "Tally",
    "Waiting",
    "draft_key",
    "file_of",
    "find_survey",
    "open_store",
    "team_of",
]


def find_survey(store: Store, slug: str, version: int | None = None) -> PublishedSurvey:
    """A version of a survey, the newest when none is named; NotFoundError when there is none."""
    for survey in store.versions(slug):
        if version in (None, survey.version):
            return survey
    of = "" if version is None else f" version {version}"
    raise NotFoundError(f'there is no survey "{slug}"{of}')


def open_store(url: str) -> Store:
    """Open the store that a SURVEY_DATABASE url names.

    sqlite:///relative or sqlite:////absolute is a file, postgresql://USER:PASSWORD@HOST/DATABASE
    a server; the latter needs the extra `postgresql`. Opening touches nothing; a missing or
    outdated database is refused at its first use.
    """
    check_database(url)
    file = file_of(url)
    return _open_postgres(url) if file is None else SqliteStore(str(file))


def file_of(url: str) -> Path | None:
    """The file of a SURVEY_DATABASE url; None where the database is another server."""
    scheme, _, rest = url.partition("://")
    return Path(rest[1:]) if scheme == "sqlite" else None


def _open_postgres(url: str) -> Store:
    try:
        # Only here: psycopg comes with an extra, and importing it takes a tenth of a second.
        from survey.store.postgres import PostgresStore
    except ImportError as missing:
        raise SettingsError(
            "SURVEY_DATABASE names a PostgreSQL server, which needs psycopg: "
            "pip install 'ldp-survey[postgresql]'"
        ) from missing
    return PostgresStore(url)
