"""The team of each survey and draft: who may do what with it, and the log of what they did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from survey.errors import ConflictError, ForbiddenError
from survey.questionnaire import TEST_RUN_PREFIX
from survey.store.transactions import REGISTRY, Transaction, Transactions, single_integer

Role = Literal["viewer", "editor", "owner"]
ROLES: tuple[Role, ...] = ("viewer", "editor", "owner")
"""The roles in a team; each includes the rights of those before it."""

TEAM_TABLES = ("membership", "colleague_link", "archived")
"""Tables with rows of all versions of a survey, by its slug."""


@dataclass(frozen=True)
class Member:
    """A researcher with a role in a survey's team."""

    researcher: int
    email: str
    role: Role


@dataclass(frozen=True)
class ColleagueLink:
    """A link by which one person joins a team; it expires at a second since 1970.

    `maker` is the key of the researcher who made it.
    """

    slug: str
    role: Role
    expires: int
    maker: int


@dataclass(frozen=True)
class UnusedLink:
    """A link that nobody has used yet, as its team sees it; `maker` is an e-mail address."""

    token_hash: bytes
    role: Role
    expires: int
    maker: str


@dataclass(frozen=True)
class Action:
    """What a researcher did, at a second since 1970; it never concerns a respondent."""

    at: int
    actor: str
    event: str
    slug: str
    detail: str


def draft_key(slug: str) -> int:
    """Return the key of the draft whose team has a slug, or 0, which no draft has.

    >>> draft_key("trial-7"), draft_key("trial-x"), draft_key("work")
    (7, 0, 0)
    """
    number = slug.removeprefix(TEST_RUN_PREFIX)
    is_draft = slug.startswith(TEST_RUN_PREFIX) and number.isascii() and number.isdecimal()
    return int(number) if is_draft and len(number) < 16 else 0


def team_slug(slug: str) -> str:
    """Return the slug of a survey's team; a test run has the team of its draft.

    >>> team_slug("trial-7-a1b2"), team_slug("trial-7"), team_slug("work-7-a1b2")
    ('trial-7', 'trial-7', 'work-7-a1b2')
    """
    team, separator, _ = slug.rpartition("-")
    return team if separator and draft_key(team) else slug


class Teams(Transactions):
    """The part of a `Store` that holds teams and their log."""

    def roles(self, researcher: int) -> dict[str, Role]:
        """Return a researcher's role in each survey and draft, by slug."""
        with self._lookup() as transaction:
            rows = transaction.rows(
                "SELECT slug, role FROM membership WHERE researcher = ?", [researcher]
            )
        return {cast("str", slug): cast("Role", role) for slug, role in rows}

    def members(self, slug: str) -> list[Member]:
        """Return a team, by e-mail address."""
        with self._lookup() as transaction:
            rows = transaction.rows(
                "SELECT researcher, email, role FROM membership "
                "JOIN researcher ON researcher.key = membership.researcher "
                "WHERE slug = ? ORDER BY email",
                [slug],
            )
        return [Member(*cast("tuple[int, str, Role]", row)) for row in rows]

    def set_role(self, slug: str, researcher: int, role: Role | None) -> None:
        """Change a researcher's role in a team; None removes them from it.

        Also revokes the links they made that give more than the new role: they could return by
        them. Raises ConflictError if the team would have no owner.
        """
        with self._write() as transaction:
            transaction.lock(REGISTRY)
            old = transaction.row(
                "SELECT role FROM membership WHERE slug = ? AND researcher = ?", [slug, researcher]
            )
            _set_role(transaction, slug, researcher, role)
            transaction.execute_many(
                "DELETE FROM colleague_link WHERE slug = ? AND maker = ? AND role = ?",
                [(slug, researcher, higher) for higher in ROLES if _rank(higher) > _rank(role)],
            )
            if old == ("owner",) and role != "owner" and not _n_owners(transaction, slug):
                raise ConflictError(f"{slug} needs an owner: make another member an owner first")

    def add_colleague_link(self, token_hash: bytes, link: ColleagueLink) -> None:
        """Store the hash of a link by which one person may join a team.

        Raises ForbiddenError if its maker's own role is lower than the one it gives.
        """
        with self._write() as transaction:
            transaction.lock(REGISTRY)
            if link.slug and not _may_give(transaction, link):
                raise ForbiddenError(f"you may not give the role {link.role} in {link.slug}")
            transaction.execute(
                "INSERT INTO colleague_link (token_hash, slug, role, expires, maker) "
                "VALUES (?, ?, ?, ?, ?)",
                [token_hash, link.slug, link.role, link.expires, link.maker],
            )

    def colleague_links(self, slug: str, now: int) -> list[UnusedLink]:
        """Return the valid links into a team, newest last; an empty slug means no team."""
        with self._lookup() as transaction:
            rows = transaction.rows(
                "SELECT token_hash, role, expires, email FROM colleague_link "
                "JOIN researcher ON researcher.key = colleague_link.maker "
                "WHERE slug = ? AND expires >= ? ORDER BY expires, token_hash",
                [slug, now],
            )
        return [UnusedLink(*cast("tuple[bytes, Role, int, str]", row)) for row in rows]

    def end_colleague_link(self, slug: str, token_hash: bytes) -> bool:
        """Revoke a link into a team; return False if there is no such link."""
        with self._write() as transaction:
            return bool(
                transaction.execute(
                    "DELETE FROM colleague_link WHERE slug = ? AND token_hash = ?",
                    [slug, token_hash],
                )
            )

    def colleague_link(self, token_hash: bytes, now: int) -> ColleagueLink | None:
        """Return a link, or None if it was used or revoked or has expired."""
        with self._lookup() as transaction:
            return _link(transaction, token_hash, now)

    def join(self, token_hash: bytes, researcher: int, now: int) -> ColleagueLink | None:
        """Use a link: add a researcher to its team; return None if the link is not valid.

        A researcher with a higher role keeps it.
        """
        with self._write() as transaction:
            transaction.lock(REGISTRY)
            link = _link(transaction, token_hash, now)
            transaction.execute(
                "DELETE FROM colleague_link WHERE token_hash = ? OR expires < ?", [token_hash, now]
            )
            if link is None:
                return None
            row = transaction.row(
                "SELECT role FROM membership WHERE slug = ? AND researcher = ?",
                [link.slug, researcher],
            )
            # A link without a slug gives an account, and no team.
            if link.slug and (row is None or _rank(cast("Role", row[0])) < _rank(link.role)):
                _set_role(transaction, link.slug, researcher, link.role)
            return link

    def add_action(self, action: Action) -> None:
        """Log what a researcher did."""
        with self._write() as transaction:
            transaction.lock(REGISTRY)
            transaction.execute(
                "INSERT INTO action (number, at, who, what, slug, detail) "
                "SELECT coalesce(max(number), 0) + 1, ?, ?, ?, ?, ? FROM action",
                [action.at, action.actor, action.event, action.slug, action.detail],
            )

    def actions(self, slug: str | None, limit: int) -> list[Action]:
        """Return the log of a survey, or of all surveys if `slug` is None, latest first."""
        where, values = ("WHERE slug = ? ", [slug]) if slug is not None else ("", [])
        with self._lookup() as transaction:
            rows = transaction.rows(
                "SELECT at, who, what, slug, detail FROM action "  # noqa: S608  constant parts
                f"{where}ORDER BY number DESC LIMIT ?",
                [*values, limit],
            )
        return [Action(*cast("tuple[int, str, str, str, str]", row)) for row in rows]


def delete_team(transaction: Transaction, slug: str) -> None:
    """Delete the team of a survey or draft."""
    for table in TEAM_TABLES:
        transaction.execute(f"DELETE FROM {table} WHERE slug = ?", [slug])  # noqa: S608  constant


def _rank(role: Role | None) -> int:
    return -1 if role is None else ROLES.index(role)


def _may_give(transaction: Transaction, link: ColleagueLink) -> bool:
    if transaction.row("SELECT 1 FROM admin WHERE researcher = ?", [link.maker]):
        return True
    row = transaction.row(
        "SELECT role FROM membership WHERE slug = ? AND researcher = ?", [link.slug, link.maker]
    )
    return row is not None and _rank(cast("Role", row[0])) >= _rank(link.role)


def _set_role(transaction: Transaction, slug: str, researcher: int, role: Role | None) -> None:
    transaction.execute(
        "DELETE FROM membership WHERE slug = ? AND researcher = ?", [slug, researcher]
    )
    if role is not None:
        transaction.execute(
            "INSERT INTO membership (slug, researcher, role) VALUES (?, ?, ?)",
            [slug, researcher, role],
        )


def _n_owners(transaction: Transaction, slug: str) -> int:
    return single_integer(
        transaction.row("SELECT count(*) FROM membership WHERE slug = ? AND role = 'owner'", [slug])
    )


def _link(transaction: Transaction, token_hash: bytes, now: int) -> ColleagueLink | None:
    row = transaction.row(
        "SELECT slug, role, expires, maker FROM colleague_link "
        "WHERE token_hash = ? AND expires >= ?",
        [token_hash, now],
    )
    return ColleagueLink(*cast("tuple[str, Role, int, int]", row)) if row else None
