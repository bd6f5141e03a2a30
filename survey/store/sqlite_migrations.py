"""The schema in SQLite, as forward-only steps; sqlite-utils records which have been applied.

No table about respondents has a clock time, an address or an order: report tables are keyed by
random ids WITHOUT ROWID, so that neither a rowid nor the file tells who came when.
"""

from __future__ import annotations

from contextlib import closing
from functools import cache

from sqlite_utils import Database, Migrations

from survey.store.schema import EVERYBODY_STAYS

migrations = Migrations("survey")


@migrations()
def m001_foundation(db: Database) -> None:
    """Surveys, the inbox of reports, released blocks and counts, researchers."""
    for statement in FOUNDATION:
        db.execute(statement)


@migrations()
def m002_invitations(db: Database) -> None:
    """Invitations: a token's hash, its stratum, and whether it was spent; not when, not by what."""
    db.execute(INVITATION)


@migrations()
def m003_schedules(db: Database) -> None:
    """From when to when a survey takes reports, and how many: dates and a number, nothing else."""
    db.execute(SCHEDULE)


@migrations()
def m004_accounts(db: Database) -> None:
    """Who may do what with which survey, second factors, and what researchers did.

    Whoever could sign in before saw every survey, and is an owner of each; the first is the admin.
    """
    for statement in ACCOUNTS:
        db.execute(statement)


@migrations()
def m005_workspace(db: Database) -> None:
    """Drafts with their revisions, tokens of programs, plans, and what is archived or deleted.

    Links for colleagues say who made them.
    """
    for statement in WORKSPACE:
        db.execute(statement)


FOUNDATION = (
    """CREATE TABLE survey (
        key INTEGER PRIMARY KEY,
        slug TEXT NOT NULL,
        version INTEGER NOT NULL,
        definition BLOB NOT NULL,
        sha256 TEXT NOT NULL UNIQUE,
        state TEXT NOT NULL CHECK (state IN ('open', 'superseded', 'closed')),
        changed TEXT NOT NULL,
        UNIQUE (slug, version)
    ) STRICT""",
    # A changed definition would change what reports mean after people have answered.
    """CREATE TRIGGER published_definition_is_frozen
        BEFORE UPDATE OF key, slug, version, definition, sha256 ON survey
        BEGIN SELECT RAISE(ABORT, 'a published definition is never changed'); END""",
    """CREATE TRIGGER published_definition_is_not_replaced
        BEFORE INSERT ON survey
        WHEN EXISTS (SELECT 1 FROM survey WHERE key = NEW.key OR sha256 = NEW.sha256
                     OR (slug = NEW.slug AND version = NEW.version))
        BEGIN SELECT RAISE(ABORT, 'a published definition is never replaced'); END""",
    # Deleted and written again, a definition could change as well; a deletion takes its reports.
    """CREATE TRIGGER published_definition_is_not_deleted_before_its_reports
        BEFORE DELETE ON survey
        WHEN EXISTS (SELECT 1 FROM inbox WHERE survey = OLD.key)
            OR EXISTS (SELECT 1 FROM seen WHERE survey = OLD.key)
            OR EXISTS (SELECT 1 FROM block WHERE survey = OLD.key)
        BEGIN SELECT RAISE(ABORT, 'a survey is deleted after its reports, never before'); END""",
    """CREATE TABLE inbox (
        survey INTEGER NOT NULL REFERENCES survey (key),
        id BLOB NOT NULL,
        stratum TEXT NOT NULL,
        codes BLOB NOT NULL,
        PRIMARY KEY (survey, id)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE seen (
        survey INTEGER NOT NULL REFERENCES survey (key),
        id BLOB NOT NULL,
        PRIMARY KEY (survey, id)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE block (
        survey INTEGER NOT NULL REFERENCES survey (key),
        stratum TEXT NOT NULL,
        bucket TEXT NOT NULL DEFAULT '',
        question INTEGER NOT NULL,
        block INTEGER NOT NULL,
        n INTEGER NOT NULL,
        data BLOB NOT NULL,
        PRIMARY KEY (survey, stratum, bucket, question, block)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE counts (
        survey INTEGER NOT NULL REFERENCES survey (key),
        stratum TEXT NOT NULL,
        bucket TEXT NOT NULL DEFAULT '',
        question INTEGER NOT NULL,
        option INTEGER NOT NULL,
        n INTEGER NOT NULL,
        PRIMARY KEY (survey, stratum, bucket, question, option)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE release (
        survey INTEGER PRIMARY KEY REFERENCES survey (key),
        number INTEGER NOT NULL,
        n INTEGER NOT NULL
    ) STRICT""",
    """CREATE TABLE researcher (
        key INTEGER PRIMARY KEY,
        email TEXT NOT NULL UNIQUE COLLATE NOCASE,
        password_hash TEXT NOT NULL
    ) STRICT""",
    """CREATE TABLE login_session (
        token_hash BLOB PRIMARY KEY,
        researcher INTEGER NOT NULL REFERENCES researcher (key),
        started INTEGER NOT NULL,
        used INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID""",
)

INVITATION = """CREATE TABLE invitation (
    survey INTEGER NOT NULL REFERENCES survey (key),
    token_hash BLOB NOT NULL,
    stratum TEXT NOT NULL,
    spent INTEGER NOT NULL CHECK (spent IN (0, 1)),
    PRIMARY KEY (survey, token_hash)
) STRICT, WITHOUT ROWID"""


SCHEDULE = """CREATE TABLE schedule (
    survey INTEGER PRIMARY KEY REFERENCES survey (key),
    opens TEXT NOT NULL,
    closes TEXT NOT NULL,
    most INTEGER NOT NULL CHECK (most >= 0)
) STRICT"""


ACCOUNTS = (
    "CREATE TABLE admin (researcher INTEGER PRIMARY KEY REFERENCES researcher (key)) STRICT",
    """CREATE TABLE second_factor (
        researcher INTEGER PRIMARY KEY REFERENCES researcher (key),
        secret TEXT NOT NULL,
        step INTEGER NOT NULL
    ) STRICT""",
    """CREATE TABLE recovery_code (
        researcher INTEGER NOT NULL REFERENCES researcher (key),
        code_hash BLOB NOT NULL,
        PRIMARY KEY (researcher, code_hash)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE membership (
        slug TEXT NOT NULL,
        researcher INTEGER NOT NULL REFERENCES researcher (key),
        role TEXT NOT NULL CHECK (role IN ('viewer', 'editor', 'owner')),
        PRIMARY KEY (slug, researcher)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE colleague_link (
        token_hash BLOB PRIMARY KEY,
        slug TEXT NOT NULL,
        role TEXT NOT NULL CHECK (role IN ('viewer', 'editor', 'owner')),
        expires INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE action (
        number INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        who TEXT NOT NULL,
        what TEXT NOT NULL,
        slug TEXT NOT NULL,
        detail TEXT NOT NULL
    ) STRICT""",
    *EVERYBODY_STAYS,
)

WORKSPACE = (
    # A link is good no longer than its maker may give what it gives; of older ones nobody knows it.
    "DROP TABLE colleague_link",
    """CREATE TABLE colleague_link (
        token_hash BLOB PRIMARY KEY,
        slug TEXT NOT NULL,
        role TEXT NOT NULL CHECK (role IN ('viewer', 'editor', 'owner')),
        expires INTEGER NOT NULL,
        maker INTEGER NOT NULL REFERENCES researcher (key)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE draft (
        key INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        who TEXT NOT NULL,
        at INTEGER NOT NULL,
        content TEXT NOT NULL,
        PRIMARY KEY (key, revision)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE api_token (
        token_hash BLOB PRIMARY KEY,
        researcher INTEGER NOT NULL REFERENCES researcher (key),
        name TEXT NOT NULL,
        scopes TEXT NOT NULL,
        created INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE plan (
        survey INTEGER PRIMARY KEY REFERENCES survey (key),
        n INTEGER NOT NULL CHECK (n >= 0),
        strata TEXT NOT NULL
    ) STRICT""",
    "CREATE TABLE archived (slug TEXT PRIMARY KEY) STRICT, WITHOUT ROWID",
    # Keyed hashes of who tries to sign in, for a quarter of an hour.
    """CREATE TABLE sign_in_try (
        hash BLOB PRIMARY KEY,
        tries INTEGER NOT NULL,
        since INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID""",
    # Numbers of surveys and drafts are never given twice: what was kept of the one that is gone,
    # in a cache or on somebody's list, must not be taken for another's.
    """CREATE TABLE deleted (
        kind TEXT NOT NULL CHECK (kind IN ('survey', 'draft')),
        key INTEGER NOT NULL,
        slug TEXT NOT NULL,
        version INTEGER NOT NULL,
        sha256 TEXT NOT NULL,
        day TEXT NOT NULL,
        PRIMARY KEY (kind, key)
    ) STRICT, WITHOUT ROWID""",
)


@cache
def all_steps() -> tuple[str, ...]:
    """Every step of this version's schema, in order; their names are the same in both databases."""
    with closing(Database(memory=True)) as nothing:
        return tuple(pending_steps(nothing))


def applied_steps(database: Database) -> list[str]:
    """The steps that a database has."""
    return [step.name for step in migrations.applied(database)]


def pending_steps(database: Database) -> list[str]:
    """The steps that a database lacks."""
    return [step.name for step in migrations.pending(database)]
