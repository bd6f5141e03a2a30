"""What a store knows of researchers: who they are, what they may do, and what they did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Literal, Protocol

from survey.questionnaire.texts import TRIAL

Role = Literal["viewer", "editor", "owner"]
ROLES: tuple[Role, ...] = ("viewer", "editor", "owner")
"""What somebody may do with a survey; each may do what those before it may."""


@dataclass(frozen=True)
class Researcher:
    """Someone who may sign in; an admin may do everything with every survey."""

    key: int
    email: str
    password_hash: str = field(repr=False)
    is_admin: bool


@dataclass(frozen=True)
class SecondFactor:
    """The shared secret of somebody's codes, and the newest time step of which one was used."""

    secret: str = field(repr=False)
    step: int


@dataclass(frozen=True)
class LoginSession:
    """An open session; times in seconds since 1970."""

    token_hash: bytes
    started: int
    used: int


@dataclass(frozen=True)
class Member:
    """Someone who may do something with a survey."""

    researcher: int
    email: str
    role: Role


@dataclass(frozen=True)
class ColleagueLink:
    """A link by which one person joins a survey, until a second since 1970; who made it."""

    slug: str
    role: Role
    expires: int
    maker: int


@dataclass(frozen=True)
class UnusedLink:
    """A link that nobody has used yet, as its team sees it: by the hash of its token."""

    token_hash: bytes
    role: Role
    expires: int
    maker: str


@dataclass(frozen=True)
class Action:
    """What a researcher did and when (seconds since 1970); never anything of a respondent."""

    at: int
    actor: str
    event: str
    slug: str
    detail: str


@dataclass(frozen=True)
class Draft:
    """One revision of a survey that is being written.

    `content` is JSON; `author` saved it, at a second since 1970.
    """

    key: int
    revision: int
    author: str
    at: int
    content: str = field(repr=False)

    @property
    def slug(self) -> str:
        """The name of the draft's team; its try-outs have longer ones, which nobody guesses."""
        return f"{TRIAL}{self.key}"


def draft_key(slug: str) -> int:
    """The number of the draft whose team a slug names; 0, which no draft has, for none.

    >>> draft_key("trial-7"), draft_key("trial-x"), draft_key("work")
    (7, 0, 0)
    """
    number = slug.removeprefix(TRIAL)
    named = slug.startswith(TRIAL) and number.isascii() and number.isdecimal()
    return int(number) if named and len(number) < 16 else 0


def team_slug(slug: str) -> str:
    """The slug of the team that a survey has: of a try-out, that of its draft.

    >>> team_slug("trial-7-a1b2"), team_slug("trial-7"), team_slug("work-7-a1b2")
    ('trial-7', 'trial-7', 'work-7-a1b2')
    """
    team, separator, _ = slug.rpartition("-")
    return team if separator and draft_key(team) else slug


@dataclass(frozen=True)
class ApiToken:
    """What a program may do for a researcher: `scopes` are words with a space between them."""

    token_hash: bytes
    researcher: int
    name: str
    scopes: str
    created: int


SCOPES: Mapping[str, str] = {
    "surveys": "list your surveys and read their definitions",
    "estimates": "read estimates and cross-tabs",
    "exports": "download exports",
}
"""What a token can be good for, and what a program may do then."""


class People(Protocol):
    """The part of a store that is about researchers."""

    def add_researcher(
        self, email: str, password_hash: str, *, is_admin: bool = False
    ) -> Researcher: ...
    def set_password(self, email: str, password_hash: str) -> None: ...
    def renew_hash(self, researcher: Researcher, password_hash: str) -> None: ...
    def researcher(self, email: str) -> Researcher | None: ...
    def researcher_by_key(self, key: int) -> Researcher | None: ...
    def researchers(self) -> list[Researcher]: ...

    def start_session(
        self, token_hash: bytes, researcher: int, now: int, absolute: int
    ) -> None: ...
    def session_researcher(
        self, token_hash: bytes, now: int, idle: int, absolute: int
    ) -> Researcher | None: ...
    def sessions(self, researcher: int) -> list[LoginSession]: ...
    def end_session(self, token_hash: bytes) -> None: ...

    def second_factor(self, researcher: int) -> SecondFactor | None: ...
    def set_second_factor(
        self, researcher: int, secret: str, code_hashes: Sequence[bytes]
    ) -> None: ...
    def use_step(self, researcher: int, step: int) -> bool: ...
    def use_recovery_code(self, researcher: int, code_hash: bytes) -> bool: ...
    def n_recovery_codes(self, researcher: int) -> int: ...

    def roles(self, researcher: int) -> dict[str, Role]: ...
    def members(self, slug: str) -> list[Member]: ...
    def set_role(self, slug: str, researcher: int, role: Role | None) -> None: ...
    def add_colleague_link(self, token_hash: bytes, link: ColleagueLink) -> None: ...
    def colleague_link(self, token_hash: bytes, now: int) -> ColleagueLink | None: ...
    def colleague_links(self, slug: str, now: int) -> list[UnusedLink]: ...
    def end_colleague_link(self, slug: str, token_hash: bytes) -> bool: ...
    def join(self, token_hash: bytes, researcher: int, now: int) -> ColleagueLink | None: ...

    def add_draft(self, content: str, who: str, at: int, team: Mapping[int, Role]) -> Draft: ...
    def draft(self, key: int, revision: int | None = None) -> Draft | None: ...
    def drafts(self) -> list[Draft]: ...
    def save_draft(self, before: Draft, content: str, who: str, at: int) -> Draft: ...
    def delete_draft(self, key: int, today: date, published_as: str = "") -> None: ...
    def published_slug(self, key: int) -> str: ...

    def add_api_token(self, token: ApiToken) -> None: ...
    def api_token(self, token_hash: bytes) -> ApiToken | None: ...
    def api_tokens(self, researcher: int) -> list[ApiToken]: ...
    def end_api_token(self, researcher: int, token_hash: bytes) -> None: ...

    def count_attempt(
        self, limits: Sequence[tuple[bytes, int]], now: int, seconds: int
    ) -> bool: ...

    def forget_attempts(self, hashed: bytes) -> None: ...

    def add_action(self, action: Action) -> None: ...
    def actions(self, slug: str | None, limit: int) -> list[Action]: ...
