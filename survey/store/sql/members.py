"""Who may do what with which survey, and what researchers did."""

from __future__ import annotations

from typing import cast

from survey.errors import ConflictError, ForbiddenError
from survey.store.people import ROLES, Action, ColleagueLink, Member, Role, UnusedLink
from survey.store.sql.surveys import PUBLISHING
from survey.store.sql.transaction import SqlTransactions, Transaction, whole_number


class SqlMembers(SqlTransactions):
    """The part of a `Store` that knows a survey's team and its log."""

    def roles(self, researcher: int) -> dict[str, Role]:
        """The surveys somebody is a member of, with the role in each."""
        with self._looking() as transaction:
            rows = transaction.all(
                "SELECT slug, role FROM membership WHERE researcher = ?", [researcher]
            )
        return {cast("str", slug): cast("Role", role) for slug, role in rows}

    def members(self, slug: str) -> list[Member]:
        """A survey's team, by address."""
        with self._looking() as transaction:
            rows = transaction.all(
                "SELECT researcher, email, role FROM membership "
                "JOIN researcher ON researcher.key = membership.researcher "
                "WHERE slug = ? ORDER BY email",
                [slug],
            )
        return [Member(*cast("tuple[int, str, Role]", row)) for row in rows]

    def set_role(self, slug: str, researcher: int, role: Role | None) -> None:
        """Say what somebody may do with a survey, None for nothing any more.

        Links that they made and that give more than that end with it: they would come back by
        them. ConflictError when nobody would be its owner.
        """
        with self._writing() as transaction:
            transaction.hold(PUBLISHING)
            was = transaction.one(
                "SELECT role FROM membership WHERE slug = ? AND researcher = ?", [slug, researcher]
            )
            _set_role(transaction, slug, researcher, role)
            transaction.change_each(
                "DELETE FROM colleague_link WHERE slug = ? AND maker = ? AND role = ?",
                [(slug, researcher, more) for more in ROLES if _rank(more) > _rank(role)],
            )
            if was == ("owner",) and role != "owner" and not _owners(transaction, slug):
                raise ConflictError(f"{slug} needs an owner: make somebody else one first")

    def add_colleague_link(self, token_hash: bytes, link: ColleagueLink) -> None:
        """Keep the hash of a link by which one person may join.

        ForbiddenError when its maker may not do that much any more.
        """
        with self._writing() as transaction:
            transaction.hold(PUBLISHING)
            if link.slug and not _may_give(transaction, link):
                raise ForbiddenError(f"you may not make somebody {link.role} of {link.slug}")
            transaction.change(
                "INSERT INTO colleague_link (token_hash, slug, role, expires, maker) "
                "VALUES (?, ?, ?, ?, ?)",
                [token_hash, link.slug, link.role, link.expires, link.maker],
            )

    def colleague_links(self, slug: str, now: int) -> list[UnusedLink]:
        """The links into a team that are still good, the newest last; an empty slug is none."""
        with self._looking() as transaction:
            rows = transaction.all(
                "SELECT token_hash, role, expires, email FROM colleague_link "
                "JOIN researcher ON researcher.key = colleague_link.maker "
                "WHERE slug = ? AND expires >= ? ORDER BY expires, token_hash",
                [slug, now],
            )
        return [UnusedLink(*cast("tuple[bytes, Role, int, str]", row)) for row in rows]

    def end_colleague_link(self, slug: str, token_hash: bytes) -> bool:
        """Let nobody join a survey by a link any more; False when there is none such."""
        with self._writing() as transaction:
            return bool(
                transaction.change(
                    "DELETE FROM colleague_link WHERE slug = ? AND token_hash = ?",
                    [slug, token_hash],
                )
            )

    def colleague_link(self, token_hash: bytes, now: int) -> ColleagueLink | None:
        """What a link is good for, None when it was used or is too old."""
        with self._looking() as transaction:
            return _link(transaction, token_hash, now)

    def join(self, token_hash: bytes, researcher: int, now: int) -> ColleagueLink | None:
        """Use a link up: its survey's team has one more member; None when it is good no more.

        Whoever may do more already keeps that.
        """
        with self._writing() as transaction:
            transaction.hold(PUBLISHING)
            link = _link(transaction, token_hash, now)
            transaction.change(
                "DELETE FROM colleague_link WHERE token_hash = ? OR expires < ?", [token_hash, now]
            )
            if link is None:
                return None
            row = transaction.one(
                "SELECT role FROM membership WHERE slug = ? AND researcher = ?",
                [link.slug, researcher],
            )
            # A link without a survey lets somebody in, and into no team.
            if link.slug and (row is None or _rank(cast("Role", row[0])) < _rank(link.role)):
                _set_role(transaction, link.slug, researcher, link.role)
            return link

    def add_action(self, action: Action) -> None:
        """Write down what a researcher did."""
        with self._writing() as transaction:
            transaction.hold(PUBLISHING)
            transaction.change(
                "INSERT INTO action (number, at, who, what, slug, detail) "
                "SELECT coalesce(max(number), 0) + 1, ?, ?, ?, ?, ? FROM action",
                [action.at, action.actor, action.event, action.slug, action.detail],
            )

    def actions(self, slug: str | None, limit: int) -> list[Action]:
        """What was done with a survey, or by everybody, the latest first."""
        where, values = ("WHERE slug = ? ", [slug]) if slug is not None else ("", [])
        with self._looking() as transaction:
            rows = transaction.all(
                "SELECT at, who, what, slug, detail FROM action "  # noqa: S608  constant parts
                f"{where}ORDER BY number DESC LIMIT ?",
                [*values, limit],
            )
        return [Action(*cast("tuple[int, str, str, str, str]", row)) for row in rows]


def _rank(role: Role | None) -> int:
    return -1 if role is None else ROLES.index(role)


def _may_give(transaction: Transaction, link: ColleagueLink) -> bool:
    if transaction.one("SELECT 1 FROM admin WHERE researcher = ?", [link.maker]):
        return True
    row = transaction.one(
        "SELECT role FROM membership WHERE slug = ? AND researcher = ?", [link.slug, link.maker]
    )
    return row is not None and _rank(cast("Role", row[0])) >= _rank(link.role)


def _set_role(transaction: Transaction, slug: str, researcher: int, role: Role | None) -> None:
    transaction.change(
        "DELETE FROM membership WHERE slug = ? AND researcher = ?", [slug, researcher]
    )
    if role is not None:
        transaction.change(
            "INSERT INTO membership (slug, researcher, role) VALUES (?, ?, ?)",
            [slug, researcher, role],
        )


def _owners(transaction: Transaction, slug: str) -> int:
    return whole_number(
        transaction.one("SELECT count(*) FROM membership WHERE slug = ? AND role = 'owner'", [slug])
    )


def _link(transaction: Transaction, token_hash: bytes, now: int) -> ColleagueLink | None:
    row = transaction.one(
        "SELECT slug, role, expires, maker FROM colleague_link "
        "WHERE token_hash = ? AND expires >= ?",
        [token_hash, now],
    )
    return ColleagueLink(*cast("tuple[str, Role, int, int]", row)) if row else None
