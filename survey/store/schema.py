"""Which steps of the schema a database has, held against those that this version knows."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from survey.errors import StoreError

HALF_COPIED = (
    "a copy or a restore into this store was interrupted: "
    "run it again before anybody serves from it"
)
"""What it means that a published survey has no row of `release`, which is copied last."""

EVERYBODY_STAYS = (
    "INSERT INTO admin SELECT min(key) FROM researcher HAVING count(*) > 0",
    "INSERT INTO membership SELECT DISTINCT slug, researcher.key, 'owner' "
    "FROM survey CROSS JOIN researcher",
)
"""Before there were roles everybody saw everything: they do so still, the first as the admin."""


def check_schema(applied: Collection[str], known: Sequence[str]) -> None:
    """Refuse a database that is not of this version's schema, saying what to do.

    >>> check_schema(["m001"], ["m001", "m002"])
    Traceback (most recent call last):
    survey.errors.StoreError: the database lacks m002; run: survey migrate
    """
    check_not_newer(applied, known, "the database")
    if lacking := [step for step in known if step not in applied]:
        raise StoreError(f"the database lacks {', '.join(lacking)}; run: survey migrate")


def check_not_newer(applied: Collection[str], known: Sequence[str], what: str) -> None:
    """Refuse what a later version has changed: this one does not know how to read it.

    >>> check_not_newer(["m001", "m009"], ["m001"], "the file")
    Traceback (most recent call last):
    survey.errors.StoreError: the file is of a newer version: it has m009, this one knows m001
    """
    if unknown := [step for step in applied if step not in known]:
        raise StoreError(
            f"{what} is of a newer version: it has {', '.join(unknown)}, this one knows {known[-1]}"
        )
