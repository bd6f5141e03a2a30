"""The database: one store for all surveys, reports and accounts, in SQLite or PostgreSQL."""

from pathlib import Path

from survey.errors import NotFoundError, SettingsError
from survey.settings import check_database
from survey.store.drafts import MAX_COMMENT_LENGTH, MAX_COMMENTS, Comment, Draft, DraftHead
from survey.store.field_boxes import FieldKeys
from survey.store.interface import Snapshot, Store
from survey.store.people import (
    ROLES,
    SCOPES,
    AccountRemoval,
    Action,
    ApiToken,
    ColleagueLink,
    LoginSession,
    Member,
    Researcher,
    Role,
    SecondFactor,
    UnusedLink,
    draft_key,
    normalized_email,
    team_slug,
)
from survey.store.presentation import (
    MAX_NOTE_LENGTH,
    MAX_NOTES,
    TeamLook,
    TrendNote,
)
from survey.store.releases import (
    MAX_RELEASED,
    N_ASKED,
    BlockColumn,
    ChosenReports,
    LastBlock,
    Release,
    ReleaseContent,
    ReleasedReports,
    ReleaseFailure,
    Tally,
)
from survey.store.schema import TABLES, Table
from survey.store.sealed_reports import Batch, PrivateKeys, SealingKey
from survey.store.shared_results import (
    LICENSES,
    MAX_WEBHOOKS,
    DueNotice,
    ReleaseNotice,
    ResultLink,
    ValidResultLink,
)
from survey.store.sign_ins import AttemptLimit, FailedSignIns
from survey.store.surveys import (
    GRACE,
    INCOMPLETE_COPY,
    UNREADABLE_DAY,
    Plan,
    PublishedSurvey,
    Schedule,
    State,
    SurveyHead,
)
from survey.store.transactions import Row, StoredReport

__all__ = [
    "GRACE",
    "INCOMPLETE_COPY",
    "LICENSES",
    "MAX_COMMENTS",
    "MAX_COMMENT_LENGTH",
    "MAX_NOTES",
    "MAX_NOTE_LENGTH",
    "MAX_RELEASED",
    "MAX_WEBHOOKS",
    "N_ASKED",
    "ROLES",
    "SCOPES",
    "TABLES",
    "UNREADABLE_DAY",
    "AccountRemoval",
    "Action",
    "ApiToken",
    "AttemptLimit",
    "Batch",
    "BlockColumn",
    "ChosenReports",
    "ColleagueLink",
    "Comment",
    "Draft",
    "DraftHead",
    "DueNotice",
    "FailedSignIns",
    "FieldKeys",
    "LastBlock",
    "LoginSession",
    "Member",
    "Plan",
    "PrivateKeys",
    "PublishedSurvey",
    "Release",
    "ReleaseContent",
    "ReleaseFailure",
    "ReleaseNotice",
    "ReleasedReports",
    "Researcher",
    "ResultLink",
    "Role",
    "Row",
    "Schedule",
    "SealingKey",
    "SecondFactor",
    "Snapshot",
    "State",
    "Store",
    "StoredReport",
    "SurveyHead",
    "Table",
    "Tally",
    "TeamLook",
    "TrendNote",
    "UnusedLink",
    "ValidResultLink",
    "database_file",
    "draft_key",
    "find_survey",
    "normalized_email",
    "open_store",
    "team_slug",
]


def find_survey(store: Store, slug: str, version: int | None = None) -> PublishedSurvey:
    """Return a version of a survey, by default the newest; raise NotFoundError if none exists."""
    for survey in store.versions(slug):
        if version in (None, survey.version):
            return survey
    suffix = "" if version is None else f" version {version}"
    raise NotFoundError(f'there is no survey "{slug}"{suffix}')


def open_store(url: str) -> Store:
    """Return the store of a SURVEY_DATABASE URL, without connecting to it.

    sqlite:///relative or sqlite:////absolute names a file;
    postgresql://USER:PASSWORD@HOST/DATABASE a server, which needs the extra `postgresql`. The
    first use of a missing or outdated database raises StoreError.
    """
    check_database(url)
    if file := database_file(url):
        from survey.store.sqlite import SqliteStore

        return SqliteStore(file)
    try:
        # Imported here: psycopg comes with an extra, and its import takes a tenth of a second.
        from survey.store.postgres import PostgresStore
    except ImportError as error:
        raise SettingsError(
            "SURVEY_DATABASE names a PostgreSQL server, which needs psycopg: "
            "pip install 'ldp-survey[postgresql]'"
        ) from error
    return PostgresStore(url)


def database_file(url: str) -> Path | None:
    """Return the file of a SURVEY_DATABASE URL, or None if the database is a server."""
    scheme, _, path = url.partition("://")
    return Path(path[1:]) if scheme == "sqlite" else None
