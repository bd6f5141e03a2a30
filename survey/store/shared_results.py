"""Shared results of a survey: with a link, for everyone, and messages about its releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace

from survey.errors import ConflictError, ForbiddenError, NotFoundError
from survey.store.people import Role, has_role
from survey.store.schema import PUBLIC_RESULTS, RELEASE_NOTICE, RESULT_LINK
from survey.store.transactions import REGISTRY, Row, Transaction, Transactions

MAX_RESULT_LINKS = 50
"""Maximum number of valid links to the results of a survey."""

MAX_WEBHOOKS = 5
"""Maximum number of webhooks of a survey."""

MAX_DELIVERY_TRIES = 288
"""Maximum number of attempts to deliver a message: a day, if the job runs every five minutes."""

LICENSES: Mapping[str, str] = {
    "CC0 1.0": "https://creativecommons.org/publicdomain/zero/1.0/",
    "CC BY 4.0": "https://creativecommons.org/licenses/by/4.0/",
    "CC BY-SA 4.0": "https://creativecommons.org/licenses/by-sa/4.0/",
}
"""The licenses of public results, with their addresses."""


@dataclass(frozen=True)
class ReleaseNotice:
    """A subscription to messages about a survey's releases: by e-mail, or to the webhook at `url`.

    `n` is the number of reports released at the last message, `tries` the number of failed attempts
    since then, and `problem` the reason of the last failure.
    """

    slug: str
    researcher: int
    url: str = ""
    n: int = 0
    tries: int = 0
    problem: str = ""


@dataclass(frozen=True)
class DueNotice:
    """A notice of a survey with new reports: their total, and the researcher's e-mail address."""

    notice: ReleaseNotice
    email: str
    n_released: int


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
    """The part of a `Store` about links to results, public results and messages about releases."""

    def add_result_link(self, token_hash: bytes, link: ResultLink, now: int) -> None:
        """Store the hash of a link to the results of a survey; delete links that have expired.

        Raises NotFoundError if the survey was deleted: a later survey may get the same slug;
        ForbiddenError if the maker is not an owner; ConflictError if a valid link has the same
        label, as after a form was sent twice, or if there are too many.
        """
        with self._write() as transaction:
            transaction.lock(REGISTRY)
            _check_role(transaction, link.slug, link.maker, "owner", "share its results")
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

    def revoke_result_link(
        self, slug: str, token_hash: bytes, researcher: int | None = None
    ) -> bool:
        """Revoke a link to the results of a survey; return False if there is no such link.

        Raises ForbiddenError if a researcher is given who is not an owner.
        """
        with self._write() as transaction:
            transaction.lock(REGISTRY)
            if researcher is not None:
                _check_role(transaction, slug, researcher, "owner", "revoke links to its results")
            return bool(
                transaction.execute(
                    "DELETE FROM result_link WHERE slug = ? AND token_hash = ?", [slug, token_hash]
                )
            )

    def has_public_results(self, slug: str) -> bool:
        """Return whether anyone may read the results of a survey."""
        return self._row("SELECT 1 FROM public_results WHERE slug = ?", [slug]) is not None

    def license_of_results(self, slug: str) -> str:
        """Return the license of public results, one of `LICENSES`; "" without license."""
        row = self._row("SELECT license FROM public_results WHERE slug = ?", [slug])
        return str(row[0]) if row else ""

    def set_public_results(
        self,
        slug: str,
        *,
        public: bool,
        license_name: str = "",
        researcher: int | None = None,
    ) -> None:
        """Make the results of a survey public, or end public access.

        Raises NotFoundError if the survey was deleted, because a later survey may get the same
        slug, and for a license that is not in `LICENSES`; ForbiddenError if a researcher is given
        who is not an owner.
        """
        if license_name and license_name not in LICENSES:
            raise NotFoundError(f"license = {license_name!r} must be one of {', '.join(LICENSES)}")
        with self._write() as transaction:
            transaction.lock(REGISTRY)
            _check_exists(transaction, slug)
            if researcher is not None:
                _check_role(transaction, slug, researcher, "owner", "share its results")
            transaction.execute("DELETE FROM public_results WHERE slug = ?", [slug])
            if public:
                transaction.execute(PUBLIC_RESULTS.insert, [slug, license_name])

    def add_release_notice(self, notice: ReleaseNotice) -> None:
        """Send a researcher, or a webhook, a message about each later release of a survey.

        Raises NotFoundError if the survey was deleted; ForbiddenError if the researcher may not
        (editors may get e-mails, owners may add webhooks); ConflictError if there is such a notice,
        or if there are too many webhooks.
        """
        with self._write() as transaction:
            transaction.lock(REGISTRY)
            role: Role = "owner" if notice.url else "editor"
            _check_role(
                transaction, notice.slug, notice.researcher, role, "get messages about its releases"
            )
            rows = transaction.rows(
                "SELECT researcher, url FROM release_notice WHERE slug = ?", [notice.slug]
            )
            webhooks = [url for _, url in rows if url]
            if notice.url in webhooks or (notice.researcher, notice.url) in map(tuple, rows):
                raise ConflictError(f"{notice.url or 'this e-mail address'} already gets messages")
            if notice.url and len(webhooks) >= MAX_WEBHOOKS:
                raise ConflictError(
                    f"a survey can have at most {MAX_WEBHOOKS} webhooks: remove one first"
                )
            now = replace(notice, n=_n_released(transaction, notice.slug))
            transaction.execute(RELEASE_NOTICE.insert, astuple(now))

    def release_notices(self, slug: str) -> list[DueNotice]:
        """Return all notices of a survey, webhooks by address."""
        rows = self._rows(f"{_NOTICES} WHERE slug = ? ORDER BY url, email", [slug])
        return [_due(row) for row in rows]

    def due_notices(self) -> list[DueNotice]:
        """Return the notices of surveys that have released reports since the last message."""
        rows = self._rows(f"{_NOTICES} ORDER BY slug, url, email")
        return [due for due in map(_due, rows) if due.n_released > due.notice.n]

    def record_delivery(self, due: DueNotice, problem: str = "") -> None:
        """Record that a message was delivered, or why it was not.

        After `MAX_DELIVERY_TRIES` failures the message is dropped; the next release gets a new one.
        """
        tries = due.notice.tries + 1 if problem else 0
        is_over = not problem or tries >= MAX_DELIVERY_TRIES
        self._execute(
            "UPDATE release_notice SET n = ?, tries = ?, problem = ? "
            "WHERE slug = ? AND researcher = ? AND url = ?",
            [
                due.n_released if is_over else due.notice.n,
                0 if is_over else tries,
                problem,
                *(due.notice.slug, due.notice.researcher, due.notice.url),
            ],
        )

    def remove_release_notice(self, slug: str, researcher: int, url: str = "") -> bool:
        """Stop the messages to a researcher or webhook; return False if there were none."""
        return bool(
            self._execute(
                "DELETE FROM release_notice WHERE slug = ? AND researcher = ? AND url = ?",
                [slug, researcher, url],
            )
        )


_N_RELEASED = (
    "SELECT COALESCE(SUM(release.n), 0) FROM release "
    "JOIN survey ON survey.key = release.survey WHERE survey.slug = "
)
_NOTICES = (
    f"SELECT {', '.join(RELEASE_NOTICE.column_names)}, email, "  # noqa: S608  constant
    f"({_N_RELEASED} release_notice.slug) FROM release_notice "
    "JOIN researcher ON researcher.key = release_notice.researcher"
)


def _due(row: Row) -> DueNotice:
    return DueNotice(ReleaseNotice(*row[:-2]), str(row[-2]), int(row[-1]))


def _n_released(transaction: Transaction, slug: str) -> int:
    return transaction.integer(f"{_N_RELEASED} ?", [slug])


def _check_exists(transaction: Transaction, slug: str) -> None:
    if not transaction.row("SELECT 1 FROM survey WHERE slug = ?", [slug]):
        raise NotFoundError(f'there is no survey "{slug}"')


def _check_role(
    transaction: Transaction, slug: str, researcher: int, role: Role, purpose: str
) -> None:
    """Raise an error unless the survey exists and the researcher still has a role in its team."""
    _check_exists(transaction, slug)
    if not has_role(transaction, slug, researcher, role):
        raise ForbiddenError(f"only {role}s of {slug} can {purpose}")
