"""The tables of every store: their columns and keys, the same in both databases.

They stand in the order in which rows can be written: what is referred to comes first.
"""

from __future__ import annotations

from dataclasses import dataclass

from survey.errors import NotFoundError


@dataclass(frozen=True)
class Table:
    """A table's columns, in order, and those of its primary key."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]


TABLES = {
    table.name: table
    for table in (
        Table(
            "survey",
            ("key", "slug", "version", "definition", "sha256", "state", "changed"),
            ("key",),
        ),
        Table("schedule", ("survey", "opens", "closes", "most"), ("survey",)),
        Table("inbox", ("survey", "id", "stratum", "codes"), ("survey", "id")),
        Table("seen", ("survey", "id"), ("survey", "id")),
        Table(
            "block",
            ("survey", "stratum", "bucket", "question", "block", "n", "data"),
            ("survey", "stratum", "bucket", "question", "block"),
        ),
        Table(
            "counts",
            ("survey", "stratum", "bucket", "question", "option", "n"),
            ("survey", "stratum", "bucket", "question", "option"),
        ),
        Table("release", ("survey", "number", "n"), ("survey",)),
        Table("invitation", ("survey", "token_hash", "stratum", "spent"), ("survey", "token_hash")),
        Table("researcher", ("key", "email", "password_hash"), ("key",)),
        Table("admin", ("researcher",), ("researcher",)),
        Table("second_factor", ("researcher", "secret", "step"), ("researcher",)),
        Table("recovery_code", ("researcher", "code_hash"), ("researcher", "code_hash")),
        Table("membership", ("slug", "researcher", "role"), ("slug", "researcher")),
        Table(
            "colleague_link", ("token_hash", "slug", "role", "expires", "maker"), ("token_hash",)
        ),
        Table("draft", ("key", "revision", "who", "at", "content"), ("key", "revision")),
        Table(
            "api_token", ("token_hash", "researcher", "name", "scopes", "created"), ("token_hash",)
        ),
        Table("plan", ("survey", "n", "strata"), ("survey",)),
        Table("archived", ("slug",), ("slug",)),
        Table("deleted", ("kind", "key", "slug", "version", "sha256", "day"), ("kind", "key")),
        Table("action", ("number", "at", "who", "what", "slug", "detail"), ("number",)),
        Table("sign_in_try", ("hash", "tries", "since"), ("hash",)),
        Table("login_session", ("token_hash", "researcher", "started", "used"), ("token_hash",)),
    )
}


def table(name: str) -> Table:
    """The table of a name; NotFoundError when no store has it.

    >>> table("seen").key
    ('survey', 'id')
    """
    if name not in TABLES:
        raise NotFoundError(f'no store has a table "{name}"; there are {", ".join(TABLES)}')
    return TABLES[name]
