"""The schema in PostgreSQL, as forward-only steps; a table of its own says which were applied.

The same tables as in SQLite, in the schema that the role's search path names first. No table
about respondents has a clock time, an address or an order. Texts are compared byte by byte,
whatever the server's language, so that both databases sort alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from psycopg import Connection

from survey.errors import StoreError
from survey.store.schema import EVERYBODY_STAYS

MIGRATING = 0x7375727665790000
"""The advisory lock under which one process at a time changes the schema."""

SURVEYS = """CREATE TABLE survey (
    key bigint PRIMARY KEY,
    slug text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    definition bytea NOT NULL,
    sha256 text COLLATE "C" NOT NULL UNIQUE,
    state text COLLATE "C" NOT NULL CHECK (state IN ('open', 'superseded', 'closed')),
    changed text COLLATE "C" NOT NULL,
    UNIQUE (slug, version)
)"""

REPORTS = (
    # Without references: whoever adds a report holds its survey, and a reference would be checked
    # for every report again. That no survey is deleted before its reports is a trigger's task.
    """CREATE TABLE inbox (
        survey bigint NOT NULL,
        id bytea NOT NULL CHECK (octet_length(id) = 16),
        stratum text COLLATE "C" NOT NULL,
        codes bytea NOT NULL,
        PRIMARY KEY (survey, id)
    )""",
    """CREATE TABLE seen (
        survey bigint NOT NULL,
        id bytea NOT NULL,
        PRIMARY KEY (survey, id)
    )""",
    """CREATE TABLE block (
        survey bigint NOT NULL REFERENCES survey (key),
        stratum text COLLATE "C" NOT NULL,
        bucket text COLLATE "C" NOT NULL,
        question bigint NOT NULL,
        block bigint NOT NULL,
        n bigint NOT NULL,
        data bytea NOT NULL,
        PRIMARY KEY (survey, stratum, bucket, question, block)
    )""",
    # Random codes do not compress: trying costs more than the release itself.
    "ALTER TABLE block ALTER COLUMN data SET STORAGE EXTERNAL",
    """CREATE TABLE counts (
        survey bigint NOT NULL REFERENCES survey (key),
        stratum text COLLATE "C" NOT NULL,
        bucket text COLLATE "C" NOT NULL,
        question bigint NOT NULL,
        option bigint NOT NULL,
        n bigint NOT NULL,
        PRIMARY KEY (survey, stratum, bucket, question, option)
    )""",
    """CREATE TABLE release (
        survey bigint PRIMARY KEY REFERENCES survey (key),
        number bigint NOT NULL,
        n bigint NOT NULL
    )""",
)

RESEARCHERS = (
    """CREATE TABLE researcher (
        key bigint PRIMARY KEY,
        email text COLLATE "C" NOT NULL,
        password_hash text COLLATE "C" NOT NULL
    )""",
    "CREATE UNIQUE INDEX researcher_email ON researcher (lower(email))",
    """CREATE TABLE login_session (
        token_hash bytea PRIMARY KEY,
        researcher bigint NOT NULL REFERENCES researcher (key),
        started bigint NOT NULL,
        used bigint NOT NULL
    )""",
)

FROZEN = (
    # A changed definition would change what reports mean after people have answered.
    """CREATE FUNCTION refuse_a_changed_definition() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'a published definition is never changed'
            USING ERRCODE = 'integrity_constraint_violation'; END $$""",
    """CREATE TRIGGER published_definition_is_frozen
        BEFORE UPDATE OF key, slug, version, definition, sha256 ON survey
        FOR EACH ROW EXECUTE FUNCTION refuse_a_changed_definition()""",
    """CREATE TRIGGER published_definition_is_not_truncated
        BEFORE TRUNCATE ON survey
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_a_changed_definition()""",
    # Deleted and written again, a definition could change as well; a deletion takes its reports.
    """CREATE FUNCTION refuse_a_deletion_before_the_reports() RETURNS trigger
        LANGUAGE plpgsql AS $$ BEGIN
            IF EXISTS (SELECT 1 FROM inbox WHERE survey = OLD.key)
                OR EXISTS (SELECT 1 FROM seen WHERE survey = OLD.key)
                OR EXISTS (SELECT 1 FROM block WHERE survey = OLD.key)
            THEN RAISE EXCEPTION 'a survey is deleted after its reports, never before'
                USING ERRCODE = 'integrity_constraint_violation';
            END IF;
            RETURN OLD;
        END $$""",
    """CREATE TRIGGER published_definition_is_not_deleted_before_its_reports
        BEFORE DELETE ON survey
        FOR EACH ROW EXECUTE FUNCTION refuse_a_deletion_before_the_reports()""",
)

INVITATIONS = """CREATE TABLE invitation (
    survey bigint NOT NULL REFERENCES survey (key),
    token_hash bytea NOT NULL,
    stratum text COLLATE "C" NOT NULL,
    spent bigint NOT NULL CHECK (spent IN (0, 1)),
    PRIMARY KEY (survey, token_hash)
)"""

SCHEDULES = """CREATE TABLE schedule (
    survey bigint PRIMARY KEY REFERENCES survey (key),
    opens text COLLATE "C" NOT NULL,
    closes text COLLATE "C" NOT NULL,
    most bigint NOT NULL CHECK (most >= 0)
)"""

ACCOUNTS = (
    "CREATE TABLE admin (researcher bigint PRIMARY KEY REFERENCES researcher (key))",
    """CREATE TABLE second_factor (
        researcher bigint PRIMARY KEY REFERENCES researcher (key),
        secret text COLLATE "C" NOT NULL,
        step bigint NOT NULL
    )""",
    """CREATE TABLE recovery_code (
        researcher bigint NOT NULL REFERENCES researcher (key),
        code_hash bytea NOT NULL,
        PRIMARY KEY (researcher, code_hash)
    )""",
    """CREATE TABLE membership (
        slug text COLLATE "C" NOT NULL,
        researcher bigint NOT NULL REFERENCES researcher (key),
        role text COLLATE "C" NOT NULL CHECK (role IN ('viewer', 'editor', 'owner')),
        PRIMARY KEY (slug, researcher)
    )""",
    """CREATE TABLE colleague_link (
        token_hash bytea PRIMARY KEY,
        slug text COLLATE "C" NOT NULL,
        role text COLLATE "C" NOT NULL CHECK (role IN ('viewer', 'editor', 'owner')),
        expires bigint NOT NULL
    )""",
    """CREATE TABLE action (
        number bigint PRIMARY KEY,
        at bigint NOT NULL,
        who text COLLATE "C" NOT NULL,
        what text COLLATE "C" NOT NULL,
        slug text COLLATE "C" NOT NULL,
        detail text COLLATE "C" NOT NULL
    )""",
    *EVERYBODY_STAYS,
)

WORKSPACE = (
    # A link is good no longer than its maker may give what it gives; of older ones nobody knows it.
    "DROP TABLE colleague_link",
    """CREATE TABLE colleague_link (
        token_hash bytea PRIMARY KEY,
        slug text COLLATE "C" NOT NULL,
        role text COLLATE "C" NOT NULL CHECK (role IN ('viewer', 'editor', 'owner')),
        expires bigint NOT NULL,
        maker bigint NOT NULL REFERENCES researcher (key)
    )""",
    """CREATE TABLE draft (
        key bigint NOT NULL,
        revision bigint NOT NULL,
        who text COLLATE "C" NOT NULL,
        at bigint NOT NULL,
        content text COLLATE "C" NOT NULL,
        PRIMARY KEY (key, revision)
    )""",
    """CREATE TABLE api_token (
        token_hash bytea PRIMARY KEY,
        researcher bigint NOT NULL REFERENCES researcher (key),
        name text COLLATE "C" NOT NULL,
        scopes text COLLATE "C" NOT NULL,
        created bigint NOT NULL
    )""",
    """CREATE TABLE plan (
        survey bigint PRIMARY KEY REFERENCES survey (key),
        n bigint NOT NULL CHECK (n >= 0),
        strata text COLLATE "C" NOT NULL
    )""",
    'CREATE TABLE archived (slug text COLLATE "C" PRIMARY KEY)',
    # Numbers of surveys and drafts are never given twice: what was kept of the one that is gone,
    # in a cache or on somebody's list, must not be taken for another's.
    """CREATE TABLE sign_in_try (
        hash bytea PRIMARY KEY,
        tries bigint NOT NULL,
        since bigint NOT NULL
    )""",
    """CREATE TABLE deleted (
        kind text COLLATE "C" NOT NULL CHECK (kind IN ('survey', 'draft')),
        key bigint NOT NULL,
        slug text COLLATE "C" NOT NULL,
        version bigint NOT NULL,
        sha256 text COLLATE "C" NOT NULL,
        day text COLLATE "C" NOT NULL,
        PRIMARY KEY (kind, key)
    )""",
)

STEPS: Mapping[str, Sequence[str]] = {
    "m001_foundation": (SURVEYS, *REPORTS, *RESEARCHERS, *FROZEN),
    "m002_invitations": (INVITATIONS,),
    "m003_schedules": (SCHEDULES,),
    "m004_accounts": ACCOUNTS,
    "m005_workspace": WORKSPACE,
}


def applied_steps(connection: Connection) -> list[str]:
    """The steps that a database has; looking changes nothing."""
    if connection.execute("SELECT to_regclass('applied_migration')").fetchone() == (None,):
        return []
    rows = connection.execute("SELECT name FROM applied_migration ORDER BY name").fetchall()
    return [name for (name,) in rows]


def pending_steps(connection: Connection) -> list[str]:
    """The steps that a database lacks."""
    applied = applied_steps(connection)
    return [name for name in STEPS if name not in applied]


def apply_steps(connection: Connection) -> list[str]:
    """Apply what is pending, each step in a transaction of its own; returns their names.

    A step and the note that it was applied are one transaction: killed, it is done again. Two
    processes that migrate at once do it one after the other. `connection` commits by itself.
    """
    if connection.execute("SELECT current_schema()").fetchone() == (None,):
        raise StoreError(
            "the database has no schema for this role: CREATE SCHEMA survey AUTHORIZATION role, "
            "and ALTER ROLE role SET search_path = survey"
        )
    return [name for name in STEPS if _apply(connection, name)]


def _apply(connection: Connection, name: str) -> bool:
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [MIGRATING])
        connection.execute(
            'CREATE TABLE IF NOT EXISTS applied_migration (name text COLLATE "C" PRIMARY KEY)'
        )
        if name not in pending_steps(connection):
            return False
        for statement in STEPS[name]:
            connection.execute(statement.encode())
        connection.execute("INSERT INTO applied_migration (name) VALUES (%s)", [name])
        return True
