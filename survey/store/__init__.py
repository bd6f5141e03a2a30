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
    People,
    Researcher,
    Role,
    SecondFactor,
    UnusedLink,
    draft_key,
    team_slug,
)
from survey.store.protocol import (
    MAX_RELEASED,
    N_ASKED,
    BlockColumn,
    Compose,
    LastBlock,
    PendingReports,
    Plan,
    PublishedSurvey,
    Release,
    ReleaseContent,
    Row,
    Schedule,
    Snapshot,
    Store,
    StoredReport,
    Tally,
)
from survey.store.sqlite import SqliteStore
from survey.store.tables import TABLES, Table

__all__ = [
    "MAX_RELEASED",
    "N_ASKED",
    "ROLES",
    "SCOPES",
    "TABLES",
    "Action",
    "ApiToken",
    "BlockColumn",
    "ColleagueLink",
    "Compose",
    "Draft",
    "LastBlock",
    "LoginSession",
    "Member",
    "PendingReports",
    "People",
    "Plan",
    "PublishedSurvey",
    "Release",
    "ReleaseContent",
    "Researcher",
    "Role",
    "Row",
    "Schedule",
    "SecondFactor",
    "Snapshot",
    "Store",
    "StoredReport",
    "Table",
    "Tally",
    "UnusedLink",
    "database_file",
    "draft_key",
    "find_survey",
    "open_store",
    "team_slug",
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
    file = database_file(url)
    return _open_postgres(url) if file is None else SqliteStore(str(file))


def database_file(url: str) -> Path | None:
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
