"""The steps by which a database gets the current schema, oldest first, for both databases.

A step that has been published is never changed, only followed by others. It creates tables from
their current declarations in `schema`. When a later step changes a table, the older step keeps a
copy of the old declaration here; tests compare every step with a recorded schema of its version.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from survey.errors import StoreError
from survey.store import schema
from survey.store.digests import fill_digests
from survey.store.report_identities import shorten_ids
from survey.store.schema import Dialect, Table
from survey.store.titles import fill_titles
from survey.store.transactions import Transaction

FROZEN_DEFINITIONS: Mapping[Dialect, Sequence[str]] = {
    "sqlite": (
        # A changed definition would change what reports mean after people have answered.
        """CREATE TRIGGER published_definition_is_frozen
        BEFORE UPDATE OF key, slug, version, definition, sha256 ON survey
        BEGIN SELECT RAISE(ABORT, 'a published definition is never changed'); END""",
        """CREATE TRIGGER published_definition_is_not_replaced
        BEFORE INSERT ON survey
        WHEN EXISTS (SELECT 1 FROM survey WHERE key = NEW.key OR sha256 = NEW.sha256
                     OR (slug = NEW.slug AND version = NEW.version))
        BEGIN SELECT RAISE(ABORT, 'a published definition is never replaced'); END""",
        # A definition that was deleted and written again could also change: its reports go first.
        """CREATE TRIGGER published_definition_is_not_deleted_before_its_reports
        BEFORE DELETE ON survey
        WHEN EXISTS (SELECT 1 FROM inbox WHERE survey = OLD.key)
            OR EXISTS (SELECT 1 FROM seen WHERE survey = OLD.key)
            OR EXISTS (SELECT 1 FROM block WHERE survey = OLD.key)
        BEGIN SELECT RAISE(ABORT, 'a survey is deleted after its reports, never before'); END""",
    ),
    "postgresql": (
        """CREATE FUNCTION refuse_a_changed_definition() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'a published definition is never changed'
            USING ERRCODE = 'integrity_constraint_violation'; END $$""",
        """CREATE TRIGGER published_definition_is_frozen
        BEFORE UPDATE OF key, slug, version, definition, sha256 ON survey
        FOR EACH ROW EXECUTE FUNCTION refuse_a_changed_definition()""",
        """CREATE TRIGGER published_definition_is_not_truncated
        BEFORE TRUNCATE ON survey
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_a_changed_definition()""",
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
    ),
}

FIRST_ROLES = (
    "INSERT INTO admin SELECT min(key) FROM researcher HAVING count(*) > 0",
    "INSERT INTO membership SELECT DISTINCT slug, researcher.key, 'owner' "
    "FROM survey CROSS JOIN researcher",
)
"""Before roles existed every researcher saw every survey: each becomes an owner of all surveys,
and the first one becomes the administrator."""


_PENDING_ID_OF_16_BYTES = Table(
    "pending_id",
    (
        schema.PENDING_ID.columns[0],
        replace(schema.PENDING_ID.columns[1], postgresql="CHECK (octet_length(id) = 16)"),
    ),
    key=("survey", "id"),
)
_SEEN = replace(schema.PENDING_ID, name="seen")


def _without(table: Table, *names: str) -> Table:
    """Return a table without the columns that a later step adds."""
    columns = tuple(column for column in table.columns if column.name not in names)
    return replace(table, columns=columns)


_DRAFT_WITHOUT_TITLE = _without(schema.DRAFT, "title", "short_name")


_COMPARED_TABLES = (
    *(schema.SCHEDULE, schema.INBOX, schema.SEALING_KEY, schema.DAMAGED_BATCH, schema.RELEASE),
    *(schema.RELEASE_FAILURE, schema.INVITATION, schema.RESEARCHER, schema.ADMIN),
    *(schema.SECOND_FACTOR, schema.RECOVERY_CODE, schema.MEMBERSHIP, schema.COLLEAGUE_LINK),
    *(_DRAFT_WITHOUT_TITLE, schema.API_TOKEN, schema.PLAN, schema.ARCHIVED, schema.DELETED),
    *(schema.ACTION, schema.SIGN_IN_TRY, schema.LOGIN_SESSION, schema.RESULT_LINK),
    *(schema.PUBLIC_RESULTS, schema.DRAFT_COMMENT, schema.TREND_NOTE, schema.TEAM_LOOK),
    *(schema.RELEASE_NOTICE, schema.FAILED_SIGN_IN, schema.INSTANCE_RULE),
)
"""Tables without digests: an index repeats each of their rows, to detect changed values."""


def _comparison(table: str, columns: Iterable[str]) -> str:
    """Return the definition of an index that SQLite's integrity check compares with its table."""
    return f"CREATE INDEX {table}_comparison ON {table} ({', '.join(columns)})"


_DIGESTS: Mapping[Dialect, Sequence[str]] = {
    "sqlite": (
        "ALTER TABLE block ADD COLUMN digest BLOB NOT NULL DEFAULT x''",
        "ALTER TABLE pending ADD COLUMN digest BLOB NOT NULL DEFAULT x''",
        "ALTER TABLE release ADD COLUMN ids_digest BLOB NOT NULL DEFAULT x''",
        # The hash in `sha256` covers the definition.
        _comparison("survey", ("key", "slug", "version", "sha256", "state", "changed")),
        *(
            # The index must distinguish e-mail addresses that differ only in case.
            _comparison(
                table.name,
                [f"{n} COLLATE BINARY" if n == "email" else n for n in table.column_names],
            )
            for table in _COMPARED_TABLES
        ),
    ),
    # A PostgreSQL server can keep checksums of all pages.
    "postgresql": (
        "ALTER TABLE block ADD COLUMN digest bytea NOT NULL DEFAULT ''",
        "ALTER TABLE pending ADD COLUMN digest bytea NOT NULL DEFAULT ''",
        "ALTER TABLE release ADD COLUMN ids_digest bytea NOT NULL DEFAULT ''",
    ),
}

_TITLES: Mapping[Dialect, Sequence[str]] = {
    "sqlite": (
        "ALTER TABLE survey ADD COLUMN title TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE draft ADD COLUMN title TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE draft ADD COLUMN short_name TEXT NOT NULL DEFAULT ''",
        "DROP INDEX survey_comparison",
        _comparison("survey", ("key", "slug", "version", "sha256", "state", "changed", "title")),
        "DROP INDEX draft_comparison",
        # The long content is last, so that lists of drafts read only the start of each entry.
        _comparison("draft", ("key", "revision", "who", "at", "title", "short_name", "content")),
    ),
    "postgresql": tuple(
        f"ALTER TABLE {table} ADD COLUMN {name} text COLLATE \"C\" NOT NULL DEFAULT ''"
        for table, name in (("survey", "title"), ("draft", "title"), ("draft", "short_name"))
    ),
}

_SEALING_CHANGES: Mapping[Dialect, Sequence[str]] = {
    "sqlite": (
        "ALTER TABLE release ADD COLUMN time INTEGER NOT NULL DEFAULT 0",
        "DROP TRIGGER published_definition_is_not_deleted_before_its_reports",
        """CREATE TRIGGER published_definition_is_not_deleted_before_its_reports
        BEFORE DELETE ON survey
        WHEN EXISTS (SELECT 1 FROM inbox WHERE survey = OLD.key)
            OR EXISTS (SELECT 1 FROM pending WHERE survey = OLD.key)
            OR EXISTS (SELECT 1 FROM pending_id WHERE survey = OLD.key)
            OR EXISTS (SELECT 1 FROM seen WHERE survey = OLD.key)
            OR EXISTS (SELECT 1 FROM block WHERE survey = OLD.key)
        BEGIN SELECT RAISE(ABORT, 'a survey is deleted after its reports, never before'); END""",
    ),
    "postgresql": (
        "ALTER TABLE release ADD COLUMN time bigint NOT NULL DEFAULT 0",
        """CREATE OR REPLACE FUNCTION refuse_a_deletion_before_the_reports() RETURNS trigger
        LANGUAGE plpgsql AS $$ BEGIN
            IF EXISTS (SELECT 1 FROM inbox WHERE survey = OLD.key)
                OR EXISTS (SELECT 1 FROM pending WHERE survey = OLD.key)
                OR EXISTS (SELECT 1 FROM pending_id WHERE survey = OLD.key)
                OR EXISTS (SELECT 1 FROM seen WHERE survey = OLD.key)
                OR EXISTS (SELECT 1 FROM block WHERE survey = OLD.key)
            THEN RAISE EXCEPTION 'a survey is deleted after its reports, never before'
                USING ERRCODE = 'integrity_constraint_violation';
            END IF;
            RETURN OLD;
        END $$""",
    ),
}

_SHORT_IDS: Mapping[Dialect, Sequence[str]] = {
    "sqlite": (
        "DROP TRIGGER published_definition_is_not_deleted_before_its_reports",
        """CREATE TRIGGER published_definition_is_not_deleted_before_its_reports
        BEFORE DELETE ON survey
        WHEN EXISTS (SELECT 1 FROM inbox WHERE survey = OLD.key)
            OR EXISTS (SELECT 1 FROM pending WHERE survey = OLD.key)
            OR EXISTS (SELECT 1 FROM pending_id WHERE survey = OLD.key)
            OR EXISTS (SELECT 1 FROM released_ids WHERE survey = OLD.key)
            OR EXISTS (SELECT 1 FROM block WHERE survey = OLD.key)
        BEGIN SELECT RAISE(ABORT, 'a survey is deleted after its reports, never before'); END""",
    ),
    "postgresql": (
        "ALTER TABLE pending_id DROP CONSTRAINT pending_id_id_check",
        """CREATE OR REPLACE FUNCTION refuse_a_deletion_before_the_reports() RETURNS trigger
        LANGUAGE plpgsql AS $$ BEGIN
            IF EXISTS (SELECT 1 FROM inbox WHERE survey = OLD.key)
                OR EXISTS (SELECT 1 FROM pending WHERE survey = OLD.key)
                OR EXISTS (SELECT 1 FROM pending_id WHERE survey = OLD.key)
                OR EXISTS (SELECT 1 FROM released_ids WHERE survey = OLD.key)
                OR EXISTS (SELECT 1 FROM block WHERE survey = OLD.key)
            THEN RAISE EXCEPTION 'a survey is deleted after its reports, never before'
                USING ERRCODE = 'integrity_constraint_violation';
            END IF;
            RETURN OLD;
        END $$""",
    ),
}

STEPS: Mapping[str, Sequence[Table | str | Mapping[Dialect, Sequence[str]]]] = {
    "m001_foundation": (
        _without(schema.SURVEY, "title"),
        schema.INBOX,
        _SEEN,
        _without(schema.BLOCK, "digest"),
        schema.COUNTS,
        _without(schema.RELEASE, "time", "ids_digest"),
        schema.RESEARCHER,
        schema.LOGIN_SESSION,
        FROZEN_DEFINITIONS,
    ),
    "m002_invitations": (schema.INVITATION,),
    "m003_schedules": (schema.SCHEDULE,),
    "m004_accounts": (
        schema.ADMIN,
        schema.SECOND_FACTOR,
        schema.RECOVERY_CODE,
        schema.MEMBERSHIP,
        _without(schema.COLLEAGUE_LINK, "maker"),
        schema.ACTION,
        *FIRST_ROLES,
    ),
    "m005_workspace": (
        # A link gives no more than its maker may give. The makers of older links are unknown.
        "DROP TABLE colleague_link",
        schema.COLLEAGUE_LINK,
        _DRAFT_WITHOUT_TITLE,
        schema.API_TOKEN,
        schema.PLAN,
        schema.ARCHIVED,
        schema.SIGN_IN_TRY,
        schema.DELETED,
    ),
    "m006_sealing": (
        schema.SEALING_KEY,
        _without(schema.PENDING, "digest"),
        _PENDING_ID_OF_16_BYTES,
        _SEALING_CHANGES,
        # Test runs keep simulated reports only, which are published at once.
        "DELETE FROM inbox WHERE survey IN "
        "(SELECT key FROM survey WHERE substr(slug, 1, 6) = 'trial-')",
        # The keeper seals the reports of the inbox; sent again, they are known by their ids.
        "INSERT INTO pending_id (survey, id) SELECT survey, id FROM inbox ORDER BY survey, id",
    ),
    "m007_collaboration": (
        schema.RESULT_LINK,
        _without(schema.PUBLIC_RESULTS, "license"),
        schema.DRAFT_COMMENT,
        schema.TREND_NOTE,
        schema.TEAM_LOOK,
    ),
    "m008_pictures": (schema.PICTURE,),
    "m009_release_notices": (
        schema.RELEASE_NOTICE,
        {
            "sqlite": ("ALTER TABLE public_results ADD COLUMN license TEXT NOT NULL DEFAULT ''",),
            "postgresql": (
                "ALTER TABLE public_results ADD COLUMN "
                "license text COLLATE \"C\" NOT NULL DEFAULT ''",
            ),
        },
    ),
    "m010_damage": (schema.DAMAGED_BATCH, schema.RELEASE_FAILURE),
    "m011_sign_ins": (schema.FAILED_SIGN_IN, schema.INSTANCE_RULE),
    "m012_digests": (_DIGESTS,),
    # Without this index, a release reads all pending batches once for each stratum.
    "m013_strata": ("CREATE INDEX pending_stratum ON pending (survey, stratum, period, batch)",),
    # Full-length ids would take up more space than the answers.
    "m014_short_ids": (schema.RELEASED_IDS, _SHORT_IDS),
    "m015_whole_ids": ("DROP TABLE seen",),
    # Without these columns, a search in the list of surveys reads every definition.
    "m016_titles": (_TITLES,),
}
"""The content of each step: tables to create, and statements for both databases or for one."""

COMPUTATIONS: Mapping[str, Callable[[Transaction], None]] = {
    "m012_digests": fill_digests,
    "m014_short_ids": shorten_ids,
    "m016_titles": fill_titles,
}
"""Functions that steps run after their statements, in the same transaction."""

FIRST_STEP = next(iter(STEPS))
"""The step that creates the first tables: a database that lacks it is empty."""


def statements(step: str, dialect: Dialect) -> list[str]:
    """Return the statements of a step for one of the databases, in order."""
    result: list[str] = []
    for item in STEPS[step]:
        if isinstance(item, Table):
            result += item.statements(dialect)
        elif isinstance(item, str):
            result.append(item)
        else:
            result += item[dialect]
    return result


def compute(step: str, transaction: Transaction) -> None:
    """Run the computation of a step, if it has one."""
    if computation := COMPUTATIONS.get(step):
        computation(transaction)


def pending_steps(applied: Collection[str]) -> list[str]:
    """Return the steps that a database lacks, in order."""
    return [step for step in STEPS if step not in applied]


def check_schema(applied: Collection[str]) -> None:
    """Raise StoreError, with what to do, if a database has an older or newer schema.

    >>> check_schema(list(STEPS)[:-1])
    Traceback (most recent call last):
    survey.errors.StoreError: the database lacks m016_titles; run: survey migrate
    """
    check_not_newer(applied, "the database")
    if pending := pending_steps(applied):
        raise StoreError(f"the database lacks {', '.join(pending)}; run: survey migrate")


def check_not_newer(applied: Collection[str], name: str) -> None:
    """Raise StoreError if a later version of the program has changed a database.

    >>> check_not_newer(["m001_foundation", "m999"], "the file")
    Traceback (most recent call last):
    survey.errors.StoreError: the file is of a newer version: it has m999, \
this program knows steps up to m016_titles
    """
    if unknown := [step for step in applied if step not in STEPS]:
        # In a damaged database, a name can be a value of another type.
        raise StoreError(
            f"{name} is of a newer version: it has {', '.join(map(str, unknown))}, "
            f"this program knows steps up to {list(STEPS)[-1]}"
        )
