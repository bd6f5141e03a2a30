"""Researchers and teams: accounts, sessions, API tokens, roles and the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from string import ascii_lowercase, ascii_uppercase
from typing import Literal

from survey.errors import ConflictError, ForbiddenError, NotFoundError
from survey.questionnaire import TEST_RUN_PREFIX
from survey.store.schema import (
    ACTION,
    ADMIN,
    API_TOKEN,
    COLLEAGUE_LINK,
    LOGIN_SESSION,
    MEMBERSHIP,
    RECOVERY_CODE,
    RESEARCHER,
    SECOND_FACTOR,
)
from survey.store.transactions import REGISTRY, Row, Transaction, Transactions

SCOPES: Mapping[str, str] = {
    "surveys": "list your surveys and read their definitions",
    "estimates": "read estimates and cross-tabs",
    "exports": "download exports",
}
"""The scopes of an API token, and what each one permits."""

RESEARCHERS = (
    "SELECT researcher.key, email, password_hash, admin.researcher IS NOT NULL "
    "FROM researcher LEFT JOIN admin ON admin.researcher = researcher.key "
)
API_TOKENS = "SELECT token_hash, researcher, name, scopes, created FROM api_token "

_LOWER_CASE = str.maketrans(ascii_uppercase, ascii_lowercase)


def normalized_email(email: str) -> str:
    """Return an e-mail address with A to Z in lower case, the form that identifies an account.

    Other letters stay unchanged: databases and Python convert them differently, and a mail server
    may assign two such spellings to two people.

    >>> normalized_email("Ada@Example.org"), normalized_email("\u0130da@example.org")
    ('ada@example.org', '\u0130da@example.org')
    """
    return email.translate(_LOWER_CASE)


@dataclass(frozen=True)
class Researcher:
    """A person with an account; an administrator has every right in every survey."""

    key: int
    email: str
    password_hash: str = field(repr=False)
    is_admin: bool


@dataclass(frozen=True)
class SecondFactor:
    """The secret of a researcher's authentication codes, and the last time step that was used."""

    secret: str = field(repr=False)
    step: int


@dataclass(frozen=True)
class LoginSession:
    """An open session; `started` and `used` are seconds since 1970."""

    token_hash: bytes
    started: int
    used: int


@dataclass(frozen=True)
class ApiToken:
    """What a program may do for a researcher: `scopes` are words separated by spaces."""

    token_hash: bytes
    researcher: int
    name: str
    scopes: str
    created: int


class People(Transactions):
    """The part of a `Store` that holds researchers."""

    def add_researcher(
        self, email: str, password_hash: str, *, is_admin: bool = False
    ) -> Researcher:
        """Add an account, the first as an administrator; raise ConflictError if it exists."""
        with self._write() as transaction:
            # Two accounts added at once must not get the same key.
            transaction.lock(REGISTRY)
            return _add_account(transaction, email, password_hash, is_admin=is_admin)

    def set_password(self, email: str, password_hash: str) -> None:
        """Replace a password, and end the sessions and API tokens opened with the old one."""
        with self._write() as transaction:
            key = _key_of(transaction, email)
            transaction.execute(
                "UPDATE researcher SET password_hash = ? WHERE key = ?", [password_hash, key]
            )
            for table in ("login_session", "api_token"):
                transaction.execute(f"DELETE FROM {table} WHERE researcher = ?", [key])  # noqa: S608

    def renew_hash(self, researcher: Researcher, password_hash: str) -> None:
        """Replace the hash of an unchanged password, unless the password was changed meanwhile."""
        self._execute(
            "UPDATE researcher SET password_hash = ? WHERE key = ? AND password_hash = ?",
            [password_hash, researcher.key, researcher.password_hash],
        )

    def researcher(self, email: str) -> Researcher | None:
        """Return the researcher with an e-mail address, in upper or lower case."""
        with self._lookup() as transaction:
            return find_researcher(transaction, email)

    def researcher_by_key(self, key: int) -> Researcher | None:
        """Return the researcher with a key."""
        row = self._row(RESEARCHERS + "WHERE researcher.key = ?", [key])
        return _researcher(row) if row else None

    def researchers(self) -> list[Researcher]:
        """Return all researchers, by e-mail address."""
        return [_researcher(row) for row in self._rows(RESEARCHERS + "ORDER BY email")]

    def start_session(self, token_hash: bytes, researcher: int, now: int, absolute: int) -> None:
        """Open a session, given the hash of its token; delete those that have expired."""
        with self._write() as transaction:
            transaction.execute("DELETE FROM login_session WHERE started < ?", [now - absolute])
            transaction.execute(LOGIN_SESSION.insert, [token_hash, researcher, now, now])

    def session_researcher(
        self, token_hash: bytes, now: int, idle: int, absolute: int
    ) -> Researcher | None:
        """Return the researcher of a session, or None if it has ended; times are in seconds.

        Its last use is stored at most once a minute, so that reading pages writes nothing.
        """
        with self._lookup() as transaction:
            row = transaction.row(
                "SELECT researcher, started, used FROM login_session WHERE token_hash = ?",
                [token_hash],
            )
            if row is None or int(row[1]) < now - absolute or int(row[2]) < now - idle:
                return None
            owner = transaction.row(RESEARCHERS + "WHERE researcher.key = ?", [row[0]])
        if now - int(row[2]) >= 60:
            self._execute(
                "UPDATE login_session SET used = ? WHERE token_hash = ?", [now, token_hash]
            )
        return _researcher(owner) if owner else None

    def sessions(self, researcher: int) -> list[LoginSession]:
        """Return a researcher's sessions, most recently used first."""
        rows = self._rows(
            "SELECT token_hash, started, used FROM login_session WHERE researcher = ? "
            "ORDER BY used DESC, started DESC, token_hash",
            [researcher],
        )
        return [LoginSession(*row) for row in rows]

    def end_session(self, token_hash: bytes) -> None:
        """End a session."""
        self._execute("DELETE FROM login_session WHERE token_hash = ?", [token_hash])

    def second_factor(self, researcher: int) -> SecondFactor | None:
        """Return a researcher's second factor, or None if a password is enough."""
        row = self._row("SELECT secret, step FROM second_factor WHERE researcher = ?", [researcher])
        return SecondFactor(*row) if row else None

    def second_factor_secrets(self) -> list[tuple[int, str]]:
        """Return the key and the stored secret of each account with two-factor authentication."""
        rows = self._rows("SELECT researcher, secret FROM second_factor ORDER BY researcher")
        return [(int(key), str(secret)) for key, secret in rows]

    def replace_second_factor_secret(self, researcher: int, stored: str, new: str) -> None:
        """Store the same secret in another form, unless it has changed in the meantime."""
        self._execute(
            "UPDATE second_factor SET secret = ? WHERE researcher = ? AND secret = ?",
            [new, researcher, stored],
        )

    def set_second_factor(self, researcher: int, secret: str, code_hashes: Sequence[bytes]) -> None:
        """Replace a second factor and its recovery codes; an empty secret removes them."""
        with self._write() as transaction:
            for table in ("second_factor", "recovery_code"):
                transaction.execute(f"DELETE FROM {table} WHERE researcher = ?", [researcher])  # noqa: S608
            if secret:
                transaction.execute(SECOND_FACTOR.insert, [researcher, secret, 0])
                transaction.execute_many(
                    RECOVERY_CODE.insert, [(researcher, code_hash) for code_hash in code_hashes]
                )

    def use_step(self, researcher: int, step: int) -> bool:
        """Use a time step and all before it; return False if it was used already."""
        return bool(
            self._execute(
                "UPDATE second_factor SET step = ? WHERE researcher = ? AND step < ?",
                [step, researcher, step],
            )
        )

    def use_recovery_code(self, researcher: int, code_hash: bytes) -> bool:
        """Use a recovery code; return False if there is no such code."""
        return bool(
            self._execute(
                "DELETE FROM recovery_code WHERE researcher = ? AND code_hash = ?",
                [researcher, code_hash],
            )
        )

    def n_recovery_codes(self, researcher: int) -> int:
        """Return the number of unused recovery codes."""
        return self._integer(
            "SELECT count(*) FROM recovery_code WHERE researcher = ?", [researcher]
        )

    def add_api_token(self, token: ApiToken) -> None:
        """Store an API token."""
        self._execute(API_TOKEN.insert, astuple(token))

    def api_token(self, token_hash: bytes) -> ApiToken | None:
        """Return an API token, or None if it is unknown or revoked."""
        row = self._row(f"{API_TOKENS}WHERE token_hash = ?", [token_hash])
        return ApiToken(*row) if row else None

    def api_tokens(self, researcher: int) -> list[ApiToken]:
        """Return a researcher's API tokens, newest first."""
        rows = self._rows(
            f"{API_TOKENS}WHERE researcher = ? ORDER BY created DESC, token_hash", [researcher]
        )
        return [ApiToken(*row) for row in rows]

    def revoke_api_token(self, researcher: int, token_hash: bytes) -> None:
        """Revoke an API token of a researcher."""
        self._execute(
            "DELETE FROM api_token WHERE researcher = ? AND token_hash = ?",
            [researcher, token_hash],
        )


def find_researcher(transaction: Transaction, email: str) -> Researcher | None:
    """Return the researcher whose e-mail address has the same normalized form."""
    # These rows are only candidates: in some locales, lower() converts more letters.
    rows = transaction.rows(RESEARCHERS + "WHERE lower(email) = lower(?)", [email])
    wanted = normalized_email(email)
    found = (row for row in rows if normalized_email(str(row[1])) == wanted)
    return next(map(_researcher, found), None)


def _researcher(row: Row) -> Researcher:
    key, email, password_hash, is_admin = row
    return Researcher(key, email, password_hash, bool(is_admin))


Role = Literal["viewer", "editor", "owner"]
ROLES: tuple[Role, ...] = ("viewer", "editor", "owner")
"""The roles in a team; each includes the rights of those before it."""

TEAM_TABLES = (
    *("membership", "colleague_link", "archived"),
    *("result_link", "public_results", "release_notice", "trend_note", "team_look"),
)
"""Tables with rows of all versions of a survey, by its slug."""


@dataclass(frozen=True)
class Member:
    """A researcher with a role in a survey's team."""

    researcher: int
    email: str
    role: Role


@dataclass(frozen=True)
class AccountRemoval:
    """The changes made by removing an account.

    `transferred_slugs` are the surveys and drafts that the successor took over.
    """

    transferred_slugs: list[str]
    successor_is_new_admin: bool
    n_deleted_comments: int
    n_deleted_result_links: int


TABLES_OF_RESEARCHER = (
    *("second_factor", "recovery_code", "login_session", "api_token", "failed_sign_in"),
    *("membership", "admin", "release_notice"),
)
"""Tables whose rows belong to one account and are deleted with it."""


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
        rows = self._rows("SELECT slug, role FROM membership WHERE researcher = ?", [researcher])
        return {str(slug): role for slug, role in rows}

    def members(self, slug: str) -> list[Member]:
        """Return a team, by e-mail address."""
        rows = self._rows(
            "SELECT researcher, email, role FROM membership "
            "JOIN researcher ON researcher.key = membership.researcher "
            "WHERE slug = ? ORDER BY email",
            [slug],
        )
        return [Member(*row) for row in rows]

    def set_role(self, slug: str, researcher: int, role: Role | None) -> None:
        """Change a researcher's role in a team; None removes them from it.

        Also revokes the links they made that give more than the new role: they could return by
        them, or read the results. Raises ConflictError if the team would have no owner.
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
            if role != "owner":  # who alone may share results
                transaction.execute(
                    "DELETE FROM result_link WHERE slug = ? AND maker = ?", [slug, researcher]
                )
                transaction.execute(
                    "DELETE FROM release_notice WHERE slug = ? AND researcher = ? AND url <> ''",
                    [slug, researcher],
                )
            if _rank(role) < _rank("editor"):
                transaction.execute(
                    "DELETE FROM release_notice WHERE slug = ? AND researcher = ?",
                    [slug, researcher],
                )
            if old == ("owner",) and role != "owner" and not _n_owners(transaction, slug):
                raise ConflictError(f"{slug} needs an owner: make another member an owner first")

    def remove_researcher(self, email: str, successor: str = "") -> AccountRemoval:
        """Delete an account and its rows, except its actions in the log.

        The account `successor` becomes an owner of each survey and draft that would have none, and
        the administrator if there is no other. Raises NotFoundError for an unknown address, and
        ConflictError if a successor is required but missing.
        """
        with self._write() as transaction:
            transaction.lock(REGISTRY)
            key = _key_of(transaction, email)
            heir = _key_of(transaction, successor) if successor else 0
            if heir == key:
                raise ConflictError(f"{successor} cannot take over from the same account")
            slugs = [str(row[0]) for row in transaction.rows(SOLE_OWNER, [key])]
            admins = [int(row[0]) for row in transaction.rows("SELECT researcher FROM admin")]
            if not heir and (slugs or admins == [key]):
                role = "the only administrator" if admins == [key] else ""
                owned = f"the only owner of {', '.join(slugs)}" if slugs else ""
                raise ConflictError(
                    f"{email} is {' and '.join(filter(None, (role, owned)))}: name a successor"
                )
            for slug in slugs:
                _set_role(transaction, slug, heir, "owner")
            if admins == [key]:
                transaction.execute(ADMIN.insert, [heir])
            deleted = [
                transaction.execute(f"DELETE FROM {table} WHERE {column} = ?", [key])  # noqa: S608
                for table, column in (
                    ("draft_comment", "researcher"),
                    ("result_link", "maker"),
                    ("colleague_link", "maker"),
                    *((table, "researcher") for table in TABLES_OF_RESEARCHER),
                    ("researcher", "key"),
                )
            ]
            return AccountRemoval(slugs, admins == [key], deleted[0], deleted[1])

    def add_colleague_link(self, token_hash: bytes, link: ColleagueLink) -> None:
        """Store the hash of a link by which one person may join a team.

        Raises ForbiddenError if its maker's own role is lower than the one it gives.
        """
        with self._write() as transaction:
            transaction.lock(REGISTRY)
            if link.slug and not has_role(transaction, link.slug, link.maker, link.role):
                raise ForbiddenError(f"you may not give the role {link.role} in {link.slug}")
            transaction.execute(COLLEAGUE_LINK.insert, [token_hash, *astuple(link)])

    def colleague_links(self, slug: str, now: int) -> list[UnusedLink]:
        """Return the valid links into a team, newest last; an empty slug means no team."""
        rows = self._rows(
            "SELECT token_hash, role, expires, email FROM colleague_link "
            "JOIN researcher ON researcher.key = colleague_link.maker "
            "WHERE slug = ? AND expires >= ? ORDER BY expires, token_hash",
            [slug, now],
        )
        return [UnusedLink(*row) for row in rows]

    def revoke_colleague_link(self, slug: str, token_hash: bytes) -> bool:
        """Revoke a link into a team; return False if there is no such link."""
        return bool(
            self._execute(
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
            return _use_link(transaction, token_hash, researcher, now)

    def join_as_new_researcher(
        self, token_hash: bytes, email: str, password_hash: str, now: int
    ) -> Researcher | None:
        """Add an account and use a link for it; return None, and add nothing, if it is not valid.

        Raises ConflictError if the address already has an account.
        """
        with self._write() as transaction:
            transaction.lock(REGISTRY)
            # In one transaction, so that a link that several people open adds one account.
            if _link(transaction, token_hash, now) is None:
                return None
            researcher = _add_account(transaction, email, password_hash, is_admin=False)
            _use_link(transaction, token_hash, researcher.key, now)
            return researcher

    def add_action(self, action: Action) -> None:
        """Log what a researcher did."""
        with self._write() as transaction:
            transaction.lock(REGISTRY)
            number = transaction.integer("SELECT coalesce(max(number), 0) + 1 FROM action")
            transaction.execute(ACTION.insert, [number, *astuple(action)])

    def actions(self, slug: str | None, limit: int) -> list[Action]:
        """Return the log of a survey, or of all surveys if `slug` is None, latest first."""
        where, values = ("WHERE slug = ? ", [slug]) if slug is not None else ("", [])
        rows = self._rows(
            "SELECT at, who, what, slug, detail FROM action "  # noqa: S608  constant parts
            f"{where}ORDER BY number DESC LIMIT ?",
            [*values, limit],
        )
        return [Action(*row) for row in rows]


def _add_account(
    transaction: Transaction, email: str, password_hash: str, *, is_admin: bool
) -> Researcher:
    """Add an account, the first as an administrator; the caller must hold the registry's lock."""
    key = transaction.integer("SELECT coalesce(max(key), 0) + 1 FROM researcher")
    inserted = transaction.execute(
        f"{RESEARCHER.insert} ON CONFLICT DO NOTHING", [key, email, password_hash]
    )
    if not inserted:
        raise ConflictError(f"{email} already has an account")
    is_first = transaction.integer("SELECT count(*) FROM admin") == 0
    if is_admin or is_first:
        transaction.execute(ADMIN.insert, [key])
    return Researcher(key, email, password_hash, is_admin or is_first)


def _use_link(
    transaction: Transaction, token_hash: bytes, researcher: int, now: int
) -> ColleagueLink | None:
    """Use a link for a researcher, and delete expired ones; return None if it is not valid."""
    link = _link(transaction, token_hash, now)
    transaction.execute(
        "DELETE FROM colleague_link WHERE token_hash = ? OR expires < ?", [token_hash, now]
    )
    if link is None:
        return None
    row = transaction.row(
        "SELECT role FROM membership WHERE slug = ? AND researcher = ?", [link.slug, researcher]
    )
    # A link without a slug gives an account, and no team.
    if link.slug and (row is None or _rank(row[0]) < _rank(link.role)):
        _set_role(transaction, link.slug, researcher, link.role)
    return link


def add_team(transaction: Transaction, slug: str, team: Mapping[int, Role]) -> None:
    """Store the roles of the first members of a survey or draft."""
    members = [(slug, researcher, role) for researcher, role in team.items()]
    transaction.execute_many(MEMBERSHIP.insert, members)


def delete_team(transaction: Transaction, slug: str) -> None:
    """Delete the team of a survey or draft."""
    for table in TEAM_TABLES:
        transaction.execute(f"DELETE FROM {table} WHERE slug = ?", [slug])  # noqa: S608  constant


def _rank(role: Role | None) -> int:
    return -1 if role is None else ROLES.index(role)


def has_role(transaction: Transaction, slug: str, researcher: int, role: Role) -> bool:
    """Return whether a researcher has a role or a higher one in a team, or is an administrator."""
    if transaction.row("SELECT 1 FROM admin WHERE researcher = ?", [researcher]):
        return True
    row = transaction.row(
        "SELECT role FROM membership WHERE slug = ? AND researcher = ?", [slug, researcher]
    )
    return row is not None and _rank(row[0]) >= _rank(role)


def _set_role(transaction: Transaction, slug: str, researcher: int, role: Role | None) -> None:
    transaction.execute(
        "DELETE FROM membership WHERE slug = ? AND researcher = ?", [slug, researcher]
    )
    if role is not None:
        add_team(transaction, slug, {researcher: role})


SOLE_OWNER = (
    "SELECT slug FROM membership AS own WHERE researcher = ? AND role = 'owner' AND NOT EXISTS "
    "(SELECT 1 FROM membership AS other WHERE other.slug = own.slug AND other.role = 'owner' "
    "AND other.researcher <> own.researcher) ORDER BY slug"
)
"""Query for the surveys and drafts of which an account is the only owner."""


def _key_of(transaction: Transaction, email: str) -> int:
    researcher = find_researcher(transaction, email)
    if researcher is None:
        raise NotFoundError(f"there is no researcher {email}")
    return researcher.key


def _n_owners(transaction: Transaction, slug: str) -> int:
    return transaction.integer(
        "SELECT count(*) FROM membership WHERE slug = ? AND role = 'owner'", [slug]
    )


def _link(transaction: Transaction, token_hash: bytes, now: int) -> ColleagueLink | None:
    row = transaction.row(
        "SELECT slug, role, expires, maker FROM colleague_link "
        "WHERE token_hash = ? AND expires >= ?",
        [token_hash, now],
    )
    return ColleagueLink(*row) if row else None
