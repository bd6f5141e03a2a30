"""Access to the results of a survey without an account: with a link, or for everyone."""

from __future__ import annotations

from dataclasses import astuple, dataclass

from survey.errors import ConflictError, ForbiddenError, NotFoundError
from survey.store.people import has_role
from survey.store.schema import PUBLIC_RESULTS, RESULT_LINK
from survey.store.transactions import REGISTRY, Transactions

MAX_RESULT_LINKS = 50
"""Maximum number of valid links to the results of a survey."""


@dataclass(frozen=True)
class ResultLink:
    """A link to the results of a survey, valid until a second since 1970.

    `maker` is the key of the researcher who created it.
    """

    slug: str
    label: str
    expires: int
    maker: int


@dataclass(frozen=True)
class ValidResultLink:
    """A valid link as the survey's owners see it; `maker` is an e-mail address."""

    token_hash: bytes
    label: str
    expires: int
    maker: str


class SharedResults(Transactions):
    """The part of a `Store` that holds links to results, and which results are public."""

    def add_result_link(self, token_hash: bytes, link: ResultLink, now: int) -> None:
        """Store the hash of a link to the results of a survey; delete links that have expired.

        Raises NotFoundError if the survey was deleted: a later survey may get the same slug;
        ForbiddenError if the maker is not an owner; ConflictError if a valid link has the same
        label, as after a form was sent twice, or if there are too many.
        """
        with self._write() as transaction:
            transaction.lock(REGISTRY)
            if not transaction.row("SELECT 1 FROM survey WHERE slug = ?", [link.slug]):
                raise NotFoundError(f'there is no survey "{link.slug}"')
            # The role may have been lost since the request was checked.
            if not has_role(transaction, link.slug, link.maker, "owner"):
                raise ForbiddenError(f"only owners of {link.slug} can share its results")
            transaction.execute("DELETE FROM result_link WHERE expires <= ?", [now])
            rows = transaction.rows("SELECT label FROM result_link WHERE slug = ?", [link.slug])
            if [link.label] in [list(row) for row in rows]:
                raise ConflictError(
                    f"there is already a valid link for {link.label}: revoke it first, or enter "
                    "another name"
                )
            if len(rows) >= MAX_RESULT_LINKS:
                raise ConflictError(
                    f"a survey can have at most {MAX_RESULT_LINKS} valid links: revoke one first"
                )
            transaction.execute(RESULT_LINK.insert, [token_hash, *astuple(link)])

    def result_links(self, slug: str, now: int) -> list[ValidResultLink]:
        """Return the valid links to the results of a survey, the first to expire first."""
        rows = self._rows(
            "SELECT token_hash, label, expires, email FROM result_link "
            "JOIN researcher ON researcher.key = result_link.maker "
            "WHERE slug = ? AND expires > ? ORDER BY expires, token_hash",
            [slug, now],
        )
        return [ValidResultLink(*row) for row in rows]

    def slug_of_result_link(self, token_hash: bytes, now: int) -> str | None:
        """Return the survey whose results a link shows, or None if the link is not valid."""
        row = self._row(
            "SELECT slug FROM result_link WHERE token_hash = ? AND expires > ?", [token_hash, now]
        )
        return str(row[0]) if row else None

    def revoke_result_link(self, slug: str, token_hash: bytes) -> bool:
        """Revoke a link to the results of a survey; return False if there is no such link."""
        return bool(
            self._execute(
                "DELETE FROM result_link WHERE slug = ? AND token_hash = ?", [slug, token_hash]
            )
        )

    def has_public_results(self, slug: str) -> bool:
        """Return whether anyone may read the results of a survey."""
        return self._row("SELECT 1 FROM public_results WHERE slug = ?", [slug]) is not None

    def set_public_results(self, slug: str, *, public: bool) -> None:
        """Make the results of a survey public, or end public access.

        Raises NotFoundError if the survey was deleted: a later survey may get the same slug.
        """
        with self._write() as transaction:
            transaction.lock(REGISTRY)
            if not transaction.row("SELECT 1 FROM survey WHERE slug = ?", [slug]):
                raise NotFoundError(f'there is no survey "{slug}"')
            transaction.execute("DELETE FROM public_results WHERE slug = ?", [slug])
            if public:
                transaction.execute(PUBLIC_RESULTS.insert, [slug])
