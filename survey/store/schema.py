"""The tables of every store: each is declared once, for SQLite and for PostgreSQL.

No table about respondents contains a time of day, an address or an order of arrival. In SQLite,
tables with random keys have no rowid, so neither a rowid nor the file shows who answered when.
In PostgreSQL, texts are compared byte by byte, so both databases sort alike.

sqlite-utils applies the statements but does not compose them: its `create` knows neither CHECK
nor COLLATE nor WITHOUT ROWID.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from survey.errors import NotFoundError

Dialect = Literal["sqlite", "postgresql"]
Kind = Literal["integer", "text", "bytes"]

TYPES: dict[Dialect, dict[Kind, str]] = {
    "sqlite": {"integer": "INTEGER", "text": "TEXT", "bytes": "BLOB"},
    "postgresql": {"integer": "bigint", "text": 'text COLLATE "C"', "bytes": "bytea"},
}


@dataclass(frozen=True)
class Column:
    """A column that is never NULL; `rule` is SQL that follows its type.

    `sqlite` and `postgresql` are rules that only one of the databases has.
    """

    name: str
    kind: Kind
    rule: str = ""
    sqlite: str = ""
    postgresql: str = ""

    def sql(self, dialect: Dialect, *, is_key: bool) -> str:
        """Return the column's line in a CREATE TABLE statement."""
        rules = ("PRIMARY KEY" if is_key else "NOT NULL", self.rule, getattr(self, dialect))
        return " ".join((self.name, TYPES[dialect][self.kind], *filter(None, rules)))


@dataclass(frozen=True)
class Table:
    """A table: its columns in order, its primary key, and columns that are unique together.

    `postgresql` are statements that follow its creation in PostgreSQL.
    """

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    unique: tuple[str, ...] = ()
    postgresql: tuple[str, ...] = ()

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def insert(self) -> str:
        """The statement that inserts a row, with one `?` for each column in order."""
        marks = ", ".join("?" * len(self.columns))
        columns = ", ".join(self.column_names)
        return f"INSERT INTO {self.name} ({columns}) VALUES ({marks})"  # noqa: S608  constant

    def statements(self, dialect: Dialect) -> list[str]:
        """Return the statements that create the table.

        >>> TABLES["archived"].statements("sqlite")
        ['CREATE TABLE archived (\\n    slug TEXT PRIMARY KEY\\n) STRICT, WITHOUT ROWID']
        """
        single_key = len(self.key) == 1
        lines = [
            column.sql(dialect, is_key=single_key and column.name in self.key)
            for column in self.columns
        ]
        if not single_key:
            lines.append(f"PRIMARY KEY ({', '.join(self.key)})")
        if self.unique:
            lines.append(f"UNIQUE ({', '.join(self.unique)})")
        create = f"CREATE TABLE {self.name} (\n    " + ",\n    ".join(lines) + "\n)"
        if dialect == "postgresql":
            return [create, *self.postgresql]
        # A single integer key is the rowid itself.
        is_rowid = single_key and self._column(self.key[0]).kind == "integer"
        return [f"{create} STRICT" if is_rowid else f"{create} STRICT, WITHOUT ROWID"]

    def _column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)


def _integer(name: str, rule: str = "") -> Column:
    return Column(name, "integer", rule)


def _text(name: str, rule: str = "", *, sqlite: str = "") -> Column:
    return Column(name, "text", rule, sqlite=sqlite)


def _bytes(name: str, *, postgresql: str = "") -> Column:
    return Column(name, "bytes", postgresql=postgresql)


_SURVEY = _integer("survey", "REFERENCES survey (key)")
_RESEARCHER = _integer("researcher", "REFERENCES researcher (key)")
_ROLE = _text("role", "CHECK (role IN ('viewer', 'editor', 'owner'))")
# PostgreSQL would check a reference for each report. Adding a report locks its survey instead,
# and a trigger keeps a survey from being deleted before its reports.
_SURVEY_OF_REPORT = Column("survey", "integer", sqlite="REFERENCES survey (key)")

SURVEY = Table(
    "survey",
    (
        _integer("key"),
        _text("slug"),
        _integer("version"),
        _bytes("definition"),
        _text("sha256", "UNIQUE"),
        _text("state", "CHECK (state IN ('open', 'superseded', 'closed'))"),
        _text("changed"),
        _text("title"),
    ),
    key=("key",),
    unique=("slug", "version"),
)
SCHEDULE = Table(
    "schedule",
    (_SURVEY, _text("opens"), _text("closes"), _integer("most", "CHECK (most >= 0)")),
    key=("survey",),
)
# Reports that earlier versions stored unsealed; the keeper seals them and empties this table.
INBOX = Table(
    "inbox",
    (
        _SURVEY_OF_REPORT,
        _bytes("id", postgresql="CHECK (octet_length(id) = 16)"),
        _text("stratum"),
        _bytes("codes"),
    ),
    key=("survey", "id"),
)
# Identities of reports (`report_identities`). Those of released reports are in a separate table.
# Each release writes them at once, sorted by value, so that neither their position nor their
# transaction shows when a respondent answered.
PENDING_ID = Table("pending_id", (_SURVEY_OF_REPORT, _bytes("id")), key=("survey", "id"))
RELEASED_IDS = Table(
    "released_ids",
    (_SURVEY_OF_REPORT, _bytes("first"), _bytes("ids")),
    key=("survey", "first"),
)
# No reference to the survey: the keys of a deleted survey stay until the keeper destroys them.
SEALING_KEY = Table(
    "sealing_key",
    (_integer("survey"), _integer("period"), _bytes("public_key")),
    key=("survey", "period", "public_key"),
)
PENDING = Table(
    "pending",
    (
        _SURVEY_OF_REPORT,
        _bytes("batch"),
        _integer("period"),
        _text("stratum"),
        _integer("is_resealed", "CHECK (is_resealed IN (0, 1))"),
        _bytes("ids"),
        _bytes("invitations"),
        _bytes("box"),
        _bytes("digest"),
    ),
    key=("survey", "batch"),
    postgresql=("ALTER TABLE pending ALTER COLUMN box SET STORAGE EXTERNAL",),
)
# Batches that the keeper could not repair and set aside, so that it could release the others. Their
# ids and invitations are unused again. Their reports are lost, because the release destroys the key
# of the period.
DAMAGED_BATCH = Table(
    "damaged_batch",
    tuple(column for column in PENDING.columns if column.name != "digest"),
    key=("survey", "batch"),
    postgresql=("ALTER TABLE damaged_batch ALTER COLUMN box SET STORAGE EXTERNAL",),
)
BLOCK = Table(
    "block",
    (
        _SURVEY,
        _text("stratum"),
        _text("bucket", sqlite="DEFAULT ''"),
        _integer("question"),
        _integer("block"),
        _integer("n"),
        _bytes("data"),
        _bytes("digest"),
    ),
    key=("survey", "stratum", "bucket", "question", "block"),
    # Neither random codes nor ciphertext can be compressed; trying costs more than the release.
    postgresql=("ALTER TABLE block ALTER COLUMN data SET STORAGE EXTERNAL",),
)
COUNTS = Table(
    "counts",
    (
        _SURVEY,
        _text("stratum"),
        _text("bucket", sqlite="DEFAULT ''"),
        _integer("question"),
        _integer("option"),
        _integer("n"),
    ),
    key=("survey", "stratum", "bucket", "question", "option"),
)
RELEASE = Table(
    "release",
    (
        _SURVEY,
        _integer("number"),
        _integer("n"),
        _integer("time", "DEFAULT 0"),
        _bytes("ids_digest"),
    ),
    key=("survey",),
)
# Surveys that the keeper cannot serve: the time of the first failure (seconds since 1970), and the
# class name of the error.
RELEASE_FAILURE = Table(
    "release_failure", (_SURVEY, _integer("since"), _text("error")), key=("survey",)
)
INVITATION = Table(
    "invitation",
    (
        _SURVEY,
        _bytes("token_hash"),
        _text("stratum"),
        _integer("spent", "CHECK (spent IN (0, 1))"),
    ),
    key=("survey", "token_hash"),
)
RESEARCHER = Table(
    "researcher",
    (_integer("key"), _text("email", sqlite="UNIQUE COLLATE NOCASE"), _text("password_hash")),
    key=("key",),
    postgresql=("CREATE UNIQUE INDEX researcher_email ON researcher (lower(email))",),
)
ADMIN = Table("admin", (_RESEARCHER,), key=("researcher",))
SECOND_FACTOR = Table(
    "second_factor", (_RESEARCHER, _text("secret"), _integer("step")), key=("researcher",)
)
RECOVERY_CODE = Table(
    "recovery_code", (_RESEARCHER, _bytes("code_hash")), key=("researcher", "code_hash")
)
MEMBERSHIP = Table("membership", (_text("slug"), _RESEARCHER, _ROLE), key=("slug", "researcher"))
COLLEAGUE_LINK = Table(
    "colleague_link",
    (
        _bytes("token_hash"),
        _text("slug"),
        _ROLE,
        _integer("expires"),
        _integer("maker", "REFERENCES researcher (key)"),
    ),
    key=("token_hash",),
)
DRAFT = Table(
    "draft",
    (
        _integer("key"),
        _integer("revision"),
        _text("who"),
        _integer("at"),
        _text("content"),
        _text("title"),
        _text("short_name"),
    ),
    key=("key", "revision"),
)
API_TOKEN = Table(
    "api_token",
    (_bytes("token_hash"), _RESEARCHER, _text("name"), _text("scopes"), _integer("created")),
    key=("token_hash",),
)
PLAN = Table("plan", (_SURVEY, _integer("n", "CHECK (n >= 0)"), _text("strata")), key=("survey",))
ARCHIVED = Table("archived", (_text("slug"),), key=("slug",))
RESULT_LINK = Table(
    "result_link",
    (
        _bytes("token_hash"),
        _text("slug"),
        _text("label"),
        _integer("expires"),
        _integer("maker", "REFERENCES researcher (key)"),
    ),
    key=("token_hash",),
)
PUBLIC_RESULTS = Table(
    "public_results", (_text("slug"), _text("license", "DEFAULT ''")), key=("slug",)
)
# A researcher's subscription to messages about releases: by e-mail if the URL is empty.
RELEASE_NOTICE = Table(
    "release_notice",
    (
        _text("slug"),
        _RESEARCHER,
        _text("url"),
        _integer("n", "CHECK (n >= 0)"),
        _integer("tries", "CHECK (tries >= 0)"),
        _text("problem"),
    ),
    key=("slug", "researcher", "url"),
)
# Keys of surveys and drafts are never reused: a cached result or a bookmark of a deleted survey
# must not show another one.
DELETED = Table(
    "deleted",
    (
        _text("kind", "CHECK (kind IN ('survey', 'draft'))"),
        _integer("key"),
        _text("slug"),
        _integer("version"),
        _text("sha256"),
        _text("day"),
    ),
    key=("kind", "key"),
)
ACTION = Table(
    "action",
    (
        _integer("number"),
        _integer("at"),
        _text("who"),
        _text("what"),
        _text("slug"),
        _text("detail"),
    ),
    key=("number",),
)
# Keyed hashes of addresses and visitors that tried to sign in; rows are deleted after minutes.
SIGN_IN_TRY = Table(
    "sign_in_try", (_bytes("hash"), _integer("tries"), _integer("since")), key=("hash",)
)
# Failed attempts since the last sign-in. The researcher 0 stands for all unknown addresses, so that
# a failure takes the same time with and without an account.
FAILED_SIGN_IN = Table(
    "failed_sign_in", (_integer("researcher"), _integer("n"), _integer("last")), key=("researcher",)
)
# A rule that administrators have switched on for all accounts.
INSTANCE_RULE = Table("instance_rule", (_text("name"),), key=("name",))
LOGIN_SESSION = Table(
    "login_session",
    (_bytes("token_hash"), _RESEARCHER, _integer("started"), _integer("used")),
    key=("token_hash",),
)
DRAFT_COMMENT = Table(
    "draft_comment",
    (
        _integer("number"),
        _integer("draft"),
        _integer("question"),
        _RESEARCHER,
        _integer("at"),
        _integer("resolved", "CHECK (resolved IN (0, 1))"),
        _text("content"),
    ),
    key=("number",),
)
# A note belongs to a day, or to a version of its survey; the other one is empty or 0.
TREND_NOTE = Table(
    "trend_note",
    (
        _text("slug"),
        _integer("number"),
        _text("day"),
        _integer("version"),
        _text("content"),
    ),
    key=("slug", "number"),
)
TEAM_LOOK = Table(
    "team_look",
    (_text("slug"), _text("name"), _text("accent"), _bytes("logo")),
    key=("slug",),
)
# A picture of an answer, by the SHA-256 of its content in hex; definitions and drafts name it.
PICTURE = Table("picture", (_text("sha256"), _bytes("content")), key=("sha256",))

TABLES = {
    table.name: table
    for table in (
        SURVEY, SCHEDULE, INBOX, SEALING_KEY, PENDING, PENDING_ID, RELEASED_IDS, BLOCK, COUNTS,
        RELEASE, INVITATION, RESEARCHER, ADMIN, SECOND_FACTOR, RECOVERY_CODE, MEMBERSHIP,
        COLLEAGUE_LINK, DRAFT, API_TOKEN, PLAN, ARCHIVED, DELETED, ACTION, SIGN_IN_TRY,
        LOGIN_SESSION, RESULT_LINK, PUBLIC_RESULTS, RELEASE_NOTICE, DRAFT_COMMENT, TREND_NOTE,
        TEAM_LOOK, PICTURE, DAMAGED_BATCH, RELEASE_FAILURE, FAILED_SIGN_IN, INSTANCE_RULE,
    )
}  # fmt: skip
"""All tables by name; a table follows those that it refers to, so rows can be copied in order."""


def find_table(name: str) -> Table:
    """Return the table of a name; raise NotFoundError if no store has it.

    >>> find_table("pending_id").key
    ('survey', 'id')
    """
    if name not in TABLES:
        raise NotFoundError(f'no store has a table "{name}"; there are {", ".join(TABLES)}')
    return TABLES[name]
