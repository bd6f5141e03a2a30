"""How a team presents its survey: notes on trends, its name, its logo and its accent color."""

from __future__ import annotations

from dataclasses import astuple, dataclass, field

from survey.errors import ConflictError
from survey.store.schema import TEAM_LOOK, TREND_NOTE
from survey.store.transactions import REGISTRY, Transactions

MAX_NOTES = 50
"""Maximum number of notes on the trends of one survey; a chart with more is hard to read."""

MAX_NOTE_LENGTH = 120
"""Maximum length of a note in characters."""


@dataclass(frozen=True)
class TrendNote:
    """A note on an event: on a UTC day, or in a version of a survey.

    `day` is in ISO format, empty if the note belongs to a version; `version` is 0 otherwise.
    """

    number: int
    day: str
    version: int
    text: str


@dataclass(frozen=True)
class TeamLook:
    """The name, the accent and the logo of a team.

    `accent` is a color as `#rrggbb`, `logo` a PNG or JPEG; each is empty if there is none.
    """

    name: str = ""
    accent: str = ""
    logo: bytes = field(default=b"", repr=False)


class Presentation(Transactions):
    """The part of a `Store` that holds notes on trends and the looks of teams."""

    def trend_notes(self, slug: str) -> list[TrendNote]:
        """Return the notes of a survey: those on days by date, then those on versions."""
        rows = self._rows(
            "SELECT number, day, version, content FROM trend_note WHERE slug = ? "
            "ORDER BY version, day, number",
            [slug],
        )
        return [TrendNote(*row) for row in rows]

    def add_trend_note(self, slug: str, day: str, version: int, text: str) -> None:
        """Add a note; raises ConflictError if the survey has too many."""
        with self._write() as transaction:
            transaction.lock(REGISTRY)
            n = transaction.integer("SELECT count(*) FROM trend_note WHERE slug = ?", [slug])
            if n >= MAX_NOTES:
                raise ConflictError(f"a survey can have {MAX_NOTES} notes; delete one first")
            number = transaction.integer(
                "SELECT coalesce(max(number), 0) + 1 FROM trend_note WHERE slug = ?", [slug]
            )
            transaction.execute(TREND_NOTE.insert, [slug, number, day, version, text])

    def remove_trend_note(self, slug: str, number: int) -> bool:
        """Remove a note; return False if it was removed already."""
        return bool(
            self._execute("DELETE FROM trend_note WHERE slug = ? AND number = ?", [slug, number])
        )

    def team_look(self, slug: str) -> TeamLook | None:
        """Return the look of a survey's team, None if none was set."""
        row = self._row("SELECT name, accent, logo FROM team_look WHERE slug = ?", [slug])
        return TeamLook(*row) if row else None

    def set_team_look(self, slug: str, look: TeamLook) -> None:
        """Replace the look of a survey's team, or delete it if the new look is empty."""
        with self._write() as transaction:
            transaction.lock(REGISTRY)
            transaction.execute("DELETE FROM team_look WHERE slug = ?", [slug])
            if look != TeamLook():
                transaction.execute(TEAM_LOOK.insert, [slug, *astuple(look)])
