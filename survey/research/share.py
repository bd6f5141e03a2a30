"""Sharing a survey: its link, QR code, poster and email text; results without an account; messages.

Holders of a secret link can read a survey's results until the link expires; anyone can read them
while they are public. The same views serve these readers and the team, with the same suppression,
but readers cannot choose any options.
"""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from flask import Response, flash, redirect, render_template, request, url_for
from markupsafe import Markup

from survey.collect.invitations import QR_FORMATS, qr_code, respondent_link
from survey.collect.release import utc_today
from survey.collect.release_notices import check_webhook, webhook_secret
from survey.errors import ClosedError, ConflictError, DesignError, NotFoundError
from survey.questionnaire.privacy_loss import invitation_sentence
from survey.research.access import JAVASCRIPT, Pages, Route, Section, Workspace, static_file
from survey.research.analyses import AnalysisPages, Choice, Context, View
from survey.research.downloads import PDF, download, file_name, to_pdf
from survey.research.forms import (
    EmailNoticeForm,
    PublicResultsForm,
    RemoveWebhookForm,
    ResultLinkForm,
    RevokeResultLinkForm,
    WebhookForm,
    whole_number,
)
from survey.respondent_texts import SOURCE, closest_language, say
from survey.results.analyses import ESTIMATES
from survey.results.charts import FORMATS, FigureOptions
from survey.results.estimates.chart import PART_CHARTS, file_chart, has_chart
from survey.results.estimates.result import SurveyResult
from survey.results.exports.methods import methods_statement
from survey.results.request import DEFAULT_OPTIONS
from survey.security import hash_of
from survey.store import LICENSES, PublishedSurvey, ReleaseNotice, ResultLink, find_survey

STATIC = Path(__file__).resolve().parent.parent / "static"

LINK_DAYS, MAX_LINK_DAYS = 30, 365
"""Default and maximum number of days for which a link to the results is valid."""

NOT_SHARED = "No results are shared at this address. The link may have expired or been revoked."
"""The same message for unknown, expired and revoked links, and for results that are not public."""

RESEARCH_PATH, LINK_PATH, PUBLIC_PATH = "/research", "/results/", "/public/"
READER_PATHS = (f"{RESEARCH_PATH}{LINK_PATH}", f"{RESEARCH_PATH}{PUBLIC_PATH}")
"""Prefixes of the paths of results for readers without an account."""

RESULTS = replace(ESTIMATES, template="research/shared_results.html")

PUBLIC_FORMATS = ("svg", "png")
"""Formats of public figures, both for web pages."""

POSTER_SIZES = ("a4", "a3")

EMBEDDED = FigureOptions(size="small")
"""The only size of public figures: readers must not choose what the server draws."""


def sections(workspace: Workspace) -> list[Section]:
    """Declare the Share page of a survey, and the results for readers without an account."""
    script_hash, script = static_file(STATIC / "share.js", JAVASCRIPT)
    pages, readers = _SharePages(workspace), _ReaderPages(workspace)
    survey = "/surveys/<slug>/share"
    routes = [
        Route("GET", "/assets/<version>/share.js", "anybody", script, "script"),
        Route("GET", survey, "editor", pages.page),
        Route("GET", f"{survey}/link.<kind>", "editor", pages.qr_code),
        Route("GET", f"{survey}/poster-<size>.pdf", "editor", pages.poster),
        Route("POST", f"{survey}/links", "owner", pages.create_link),
        Route("POST", f"{survey}/links/end", "owner", pages.revoke_link),
        Route("POST", f"{survey}/public", "owner", pages.set_public),
        Route("POST", f"{survey}/email", "editor", pages.set_email),
        Route("POST", f"{survey}/webhooks", "owner", pages.add_webhook),
        Route("POST", f"{survey}/webhooks/remove", "owner", pages.remove_webhook),
    ]
    share = Section("share", RESEARCH_PATH, routes)
    share.app_context_processor(lambda: {"share_hash": script_hash})
    reader_section = Section(
        "readers",
        RESEARCH_PATH,
        [
            Route("GET", f"{LINK_PATH}<token>", "anybody", readers.link),
            Route("GET", f"{PUBLIC_PATH}<slug>", "anybody", readers.public),
            Route(
                "GET",
                f"{PUBLIC_PATH}<slug>/<int:version>/figures/<question>-<part>.<kind>",
                "anybody",
                readers.public_figure,
                "figure",
            ),
        ],
    )
    return [share, reader_section]


class Embed(NamedTuple):
    """A public figure: the question it shows, and the HTML that puts it on another site."""

    question_id: str
    part: str
    text: str
    code: str


class Webhook(NamedTuple):
    """A webhook as its page shows it: who added it, its secret, and why its last message failed."""

    notice: ReleaseNotice
    host: str
    maker: str
    secret: str


class PosterText(NamedTuple):
    """What a poster says in one language of the survey; `until` is "" without a last day."""

    language: str
    title: str
    take_part: str
    scan: str
    until: str
    protection: str


class _SharePages(Pages):
    def page(self, slug: str) -> str:
        """Show all ways to share the survey and its results."""
        return self._page(slug)

    def _page(
        self,
        slug: str,
        form: ResultLinkForm | None = None,
        new_link: str = "",
        webhook_form: WebhookForm | None = None,
    ) -> str:
        survey, today = find_survey(self._store, slug), utc_today()
        license_name = self._store.license_of_results(slug)
        is_public = self._store.has_public_results(slug)
        link = respondent_link(survey, self._settings) if _has_link(survey) else ""
        return render_template(
            "research/share.html",
            survey=survey,
            link=link,
            code=Markup(qr_code(link, inline=True).decode()) if link else "",  # noqa: S704
            subject=survey.definition.title,
            message=_message(survey, link),
            qr_formats=list(QR_FORMATS),
            poster_sizes=POSTER_SIZES,
            result_links=self._store.result_links(slug, int(time.time())),
            last_day=_last_day,
            new_link=new_link,
            form=form
            or ResultLinkForm(formdata=None, label="", expires=today + timedelta(LINK_DAYS)),
            limits={"min": today.isoformat(), "max": _max_day(today).isoformat()},
            revoke_form=RevokeResultLinkForm(formdata=None),
            public_form=PublicResultsForm(formdata=None, license=license_name),
            is_public=is_public,
            **self._messages(slug, webhook_form),
            public_link=self._address("readers.public", slug=slug),
            embeds=self._embeds(survey) if is_public else [],
        )

    def qr_code(self, slug: str, kind: str) -> Response:
        """Return the open link as a QR code."""
        if kind not in QR_FORMATS:
            raise NotFoundError(
                f"there is no QR code .{kind}: choose one of {', '.join(QR_FORMATS)}"
            )
        image = qr_code(self._link(find_survey(self._store, slug)), kind)
        return download(image, FORMATS[kind], f"{slug}-link.{kind}")

    def poster(self, slug: str, size: str) -> Response:
        """Return a poster with the open link as PDF."""
        if size not in POSTER_SIZES:
            raise NotFoundError(f"there is no poster {size}: choose {' or '.join(POSTER_SIZES)}")
        survey = find_survey(self._store, slug)
        link = self._link(survey)
        page = render_template(
            "research/poster.html",
            survey=survey,
            size=size,
            code=Markup(qr_code(link, inline=True).decode()),  # noqa: S704
            address=link.partition("#")[0].partition("://")[2],
            texts=_poster_texts(survey),
        )
        style = (STATIC / "poster.css").read_text(encoding="utf-8")
        return download(to_pdf(page, style), PDF, file_name(survey, f"poster-{size}.pdf"))

    def create_link(self, slug: str) -> Any:
        """Create a link to the results and show it once; only its hash is stored."""
        find_survey(self._store, slug)
        form, today = ResultLinkForm(), utc_today()
        if not form.validate_on_submit() or not _check_day(form, today):
            return self._page(slug, form), 422
        token, label = secrets.token_urlsafe(32), form.label.data
        link = ResultLink(slug, label, _end_of(form.expires.data), self._gate.researcher().key)
        try:
            self._store.add_result_link(hash_of(token), link, int(time.time()))
        except ConflictError as error:
            form.label.errors = [f"No link was created: {error}"]
            return self._page(slug, form), 422
        self._log.write("created a results link", slug, f"{label}, until {form.expires.data}")
        return self._page(slug, new_link=self._address("readers.link", token=token))

    def revoke_link(self, slug: str) -> Any:
        """Revoke the link to the results that the form names."""
        link_id = RevokeResultLinkForm().link.data or ""
        for link in self._store.result_links(slug, int(time.time())):
            if link.token_hash.hex() == link_id and self._store.revoke_result_link(
                slug, link.token_hash, self._gate.researcher().key
            ):
                self._log.write("revoked a results link", slug, link.label)
                flash("This link has been revoked.")
        return redirect(url_for("share.page", slug=slug, _anchor="links"))

    def set_public(self, slug: str) -> Any:
        """Make the results public under a license, change this license, or end public access."""
        find_survey(self._store, slug)
        form = PublicResultsForm()
        public, license_name = form.public.data == "yes", form.license.data or ""
        was_public = self._store.has_public_results(slug)
        if public == was_public and license_name == self._store.license_of_results(slug):
            return redirect(url_for("share.page", slug=slug, _anchor="public"))
        self._store.set_public_results(
            slug,
            public=public,
            license_name=license_name,
            researcher=self._gate.researcher().key,
        )
        if license_name and public:
            self._log.write("chose a license for the results", slug, license_name)
        if public != was_public:
            self._log.write("made the results public" if public else "ended public results", slug)
            flash(
                "Anyone can now read the results."
                if public
                else "The results are no longer public."
            )
        elif public:
            flash("The license has been changed.")
        return redirect(url_for("share.page", slug=slug, _anchor="public"))

    def _messages(self, slug: str, form: WebhookForm | None) -> Context:
        """Return what the page shows about messages at each release."""
        key = self._gate.researcher().key
        notices = self._store.release_notices(slug)
        mails = [due.notice for due in notices if not due.notice.url]
        return {
            "can_mail": bool(self._settings.smtp),
            "webhook_hosts": self._settings.webhook_hosts.split(),
            "email": next((notice for notice in mails if notice.researcher == key), None),
            "email_form": EmailNoticeForm(formdata=None),
            "webhooks": [
                Webhook(
                    due.notice,
                    urlsplit(due.notice.url).netloc,
                    due.email,
                    webhook_secret(self._settings, slug, due.notice.url),
                )
                for due in notices
                if due.notice.url
            ],
            "webhook_form": form or WebhookForm(formdata=None),
            "remove_form": RemoveWebhookForm(formdata=None),
        }

    def set_email(self, slug: str) -> Any:
        """Send the researcher an e-mail at each release, or stop these e-mails."""
        find_survey(self._store, slug)
        key, subscribes = self._gate.researcher().key, EmailNoticeForm().subscribe.data == "yes"
        if not subscribes:
            self._store.remove_release_notice(slug, key)
        elif not self._settings.smtp:
            raise NotFoundError("the operator of this server has not set up e-mail")
        else:
            with suppress(ConflictError):  # the form was sent twice
                self._store.add_release_notice(ReleaseNotice(slug, key))
        flash(
            "You will get an e-mail about each release."
            if subscribes
            else "You will no longer get e-mails about releases."
        )
        return redirect(url_for("share.page", slug=slug, _anchor="messages"))

    def add_webhook(self, slug: str) -> Any:
        """Send a message to an address at each release."""
        find_survey(self._store, slug)
        form = WebhookForm()
        if not form.validate_on_submit():
            return self._page(slug, webhook_form=form), 422
        notice = ReleaseNotice(slug, self._gate.researcher().key, form.url.data)
        try:
            check_webhook(notice.url, self._settings)
            self._store.add_release_notice(notice)
        except (DesignError, ConflictError) as error:
            form.url.errors = [f"The webhook was not added: {error}"]
            return self._page(slug, webhook_form=form), 422
        self._log.write("added a webhook", slug, urlsplit(notice.url).netloc)
        flash("Webhook added. It will receive a message about each release.")
        return redirect(url_for("share.page", slug=slug, _anchor="messages"))

    def remove_webhook(self, slug: str) -> Any:
        """Remove the webhook that the form names."""
        url = RemoveWebhookForm().url.data or ""
        for due in self._store.release_notices(slug):
            notice = due.notice
            if url == notice.url != "" and self._store.remove_release_notice(
                slug, notice.researcher, url
            ):
                self._log.write("removed a webhook", slug, urlsplit(url).netloc)
                flash("The webhook has been removed.")
        return redirect(url_for("share.page", slug=slug, _anchor="messages"))

    def _link(self, survey: PublishedSurvey) -> str:
        if survey.state == "closed":
            raise ClosedError(f"{survey.slug} is closed and accepts no responses")
        if not _has_link(survey):
            raise NotFoundError(f"{survey.slug} accepts responses by invitation only")
        return respondent_link(survey, self._settings)

    def _address(self, endpoint: str, **values: Any) -> str:
        return f"{self._settings.researchers_url}{url_for(endpoint, **values)}"

    def _embeds(self, survey: PublishedSurvey) -> list[Embed]:
        """Return the figures that the public results show, in the survey's order."""
        result = self._workspace.results.result(survey)
        return [
            Embed(
                question.question.id,
                part,
                question.question.text,
                str(
                    Markup('<figure><img alt="{}" src="{}"></figure>').format(
                        file_chart(question, part)["description"],
                        self._address(
                            "readers.figure",
                            slug=survey.slug,
                            version=survey.version,
                            question=question.question.id,
                            part=part,
                            kind="svg",
                        ),
                    )
                ),
            )
            for question in result.questions
            for part in PART_CHARTS
            if has_chart(question, part)
        ]


def _version_query() -> dict[str, int]:
    """Return the query parameter with the version that the current address names, if any."""
    version = whole_number(request.args.get("version", ""))
    return {"version": version} if version else {}


def _has_link(survey: PublishedSurvey) -> bool:
    return survey.state != "closed" and survey.definition.access == "open"


def _poster_texts(survey: PublishedSurvey) -> list[PosterText]:
    """Return what a poster says in each language of the survey, its own first.

    In a language that the interface lacks, only the title is in that language.
    """
    definition, closes = survey.definition, survey.schedule.closes
    texts = []
    for language, title in definition.titles.items():
        spoken = closest_language(language) or SOURCE
        texts.append(
            PosterText(
                language,
                title,
                say(spoken, "poster.takePart"),
                say(spoken, "poster.scan"),
                say(spoken, "poster.until").format(day=closes) if closes else "",
                invitation_sentence(definition.ratio, spoken),
            )
        )
    return texts


def _message(survey: PublishedSurvey, link: str) -> str:
    """Return the text of an email that invites people to respond; it states only facts."""
    closes = survey.schedule.closes
    last_day = f"\n\nYou can respond until {closes} (UTC)." if closes else ""
    return (
        f"Hello,\n\nPlease take part in the survey “{survey.definition.title}”:\n\n{link}\n\n"
        f"{invitation_sentence(survey.definition.ratio)} Taking part is up to you.{last_day}\n"
    )


def _max_day(today: date) -> date:
    return today + timedelta(MAX_LINK_DAYS)


def _check_day(form: ResultLinkForm, today: date) -> bool:
    """Return whether a link's last day is allowed; if not, add an error to the form."""
    if today <= form.expires.data <= _max_day(today):
        return True
    form.expires.errors = [f"Choose a day from {today} to {_max_day(today)}"]
    return False


def _end_of(day: date) -> int:
    """Return the Unix time at which a UTC day ends."""
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) + 24 * 3600


def _last_day(expires: int) -> date:
    """Return the UTC day whose end is a Unix time."""
    return datetime.fromtimestamp(expires - 1, UTC).date()


class _ReaderPages(AnalysisPages):
    def link(self, token: str) -> Any:
        """Show the results that a valid link shares."""
        slug = self._store.slug_of_result_link(hash_of(token), int(time.time()))
        if slug is None:
            raise NotFoundError(NOT_SHARED)
        return self._results(slug)

    def public(self, slug: str) -> Any:
        """Show public results."""
        self._check_public(slug)
        return self._results(slug)

    def public_figure(
        self, slug: str, version: int, question: str, part: str, kind: str
    ) -> Response:
        """Return a figure of public results, for other sites."""
        self._check_public(slug)
        if kind not in PUBLIC_FORMATS:
            raise NotFoundError(
                f"there is no public figure .{kind}: choose {' or '.join(PUBLIC_FORMATS)}"
            )
        path = {"question": question, "part": part}
        view = self._view(find_survey(self._store, slug, version), path)
        _, content = self.figure_file(view, kind, EMBEDDED)
        return Response(content, content_type=FORMATS[kind])

    def _check_public(self, slug: str) -> None:
        if not self._store.has_public_results(slug):
            raise NotFoundError(NOT_SHARED)

    def _view(self, survey: PublishedSurvey, path: dict[str, str]) -> View:
        # All readers get the same options, so that strangers cannot order calculations.
        return View(RESULTS, survey, DEFAULT_OPTIONS, RESULTS.parse({}, path), path)

    def _results(self, slug: str) -> Any:
        version = _version_query().get("version", 0)
        survey = find_survey(self._store, slug, version or None)
        view = self._view(survey, {})
        license_name = self._store.license_of_results(slug)

        def surroundings(view: View, result: SurveyResult) -> Context:
            return {
                **self.dashboard_context(view, result, _version_query()),
                "is_shared": True,
                "is_public": False,  # hides the links to the embedding codes
                "license": license_name,
                "license_url": LICENSES.get(license_name),
                "versions": self._version_choices(survey),
                "statement": methods_statement(result),
            }

        return self.render(view, self.compute(view), {}, surroundings)

    def _version_choices(self, survey: PublishedSurvey) -> list[Choice]:
        """Return the links to the versions, the newest first; empty with one version only."""
        versions = self._store.versions(survey.slug)
        if len(versions) < 2:
            return []
        place = request.view_args or {}
        return [
            Choice(
                f"{version.version} ({version.state})",
                url_for(request.endpoint or "", **place, version=version.version),
                version.version == survey.version,
            )
            for version in versions
        ]
