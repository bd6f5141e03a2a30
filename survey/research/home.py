"""The researchers' home page: a list of drafts and surveys with a search, filters and pages.

The list searches, filters and sorts the heads of surveys, which are small. It reads definitions and
drafts only for the rows of the current page.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property, lru_cache
from time import monotonic
from typing import Generic, TypeVar

from flask import render_template, request, url_for

from survey.collect.release import utc_today
from survey.disclosure import is_full
from survey.estimator.planning.sample_size import rounded
from survey.questionnaire import is_test_run
from survey.questionnaire.canonical import read_definition
from survey.questionnaire.definition import Definition
from survey.questionnaire.drafts.check import check_draft
from survey.questionnaire.drafts.draft import DraftContent
from survey.research.access import Pages, Workspace
from survey.research.builder.draft_editor import progress, readable_contents
from survey.research.forms import whole_number
from survey.results.plan.question_design import QuestionDesign
from survey.results.plan.survey_design import SurveyDesign
from survey.settings import Caps
from survey.store import ROLES, UNREADABLE_DAY, DraftHead, Role, SurveyHead, team_slug

ROWS_PER_PAGE = 25
MAX_QUERY = 200

MARGIN_SECONDS = 0.1
"""After this time, a page leaves out the margins of its other rows; the next visit computes them.

They take 10 milliseconds or more for a long survey when a release has added responses."""

CACHED_MARGINS = 2_048
"""Typical margins that are cached: they change only when a release adds responses."""

STATES: Mapping[str, str] = {
    "all": "All",
    "draft": "Drafts",
    "scheduled": "Not open yet",
    "open": "Open",
    "closed": "Closed",
    "archived": "Archived",
}
"""The filters and their labels; archived surveys are listed only under the last one."""

SORTS: Mapping[str, str] = {
    "changed": "Last changed",
    "title": "Title",
    "closes": "Closing date",
    "responses": "Most responses",
}

DEFAULTS: Mapping[str, str | int] = {"q": "", "state": "all", "sort": "changed", "page": 1}
"""Parameters of the address of the first page."""

V = TypeVar("V")


@dataclass(frozen=True)
class Entry:
    """A draft or the newest version of a survey, with the role of the researcher in its team.

    `changed` is the UTC date when a draft was saved last, or when a survey last changed its state.
    """

    head: DraftHead | SurveyHead
    state: str
    role: Role
    changed: date

    @property
    def is_draft(self) -> bool:
        """Whether it has not been published."""
        return isinstance(self.head, DraftHead)

    @property
    def number(self) -> int:
        """The revision of a draft or the version of a survey."""
        return self.head.revision if isinstance(self.head, DraftHead) else self.head.version

    @cached_property
    def names(self) -> str:
        """The title and the short name, in the form used for searching and sorting."""
        head = self.head
        name = head.short_name if isinstance(head, DraftHead) else head.slug
        return _folded(f"{head.title} {name}")

    @property
    def n_released(self) -> int:
        """The number of released responses."""
        return 0 if isinstance(self.head, DraftHead) else self.head.n_released

    @property
    def closes(self) -> date | None:
        """The last day on which an open survey accepts responses."""
        head = self.head
        return head.schedule.closes if isinstance(head, SurveyHead) and self.is_open else None

    @property
    def is_open(self) -> bool:
        """Whether the survey is published and not closed."""
        return isinstance(self.head, SurveyHead) and self.head.state == "open"

    def allows(self, required: Role) -> bool:
        """Return whether the researcher has at least the required role."""
        return ROLES.index(self.role) >= ROLES.index(required)


@dataclass(frozen=True)
class DraftSummary:
    """What a row shows of a draft; `untranslated` counts the missing texts of each language."""

    n_questions: int
    n_mistakes: int
    untranslated: Mapping[str, int]
    is_readable: bool = True


UNREADABLE = DraftSummary(0, 0, {}, is_readable=False)


def draft_summary(content: DraftContent, caps: Caps) -> DraftSummary:
    """Check a draft and count its texts that are not translated."""
    counts = {language: progress(content, language) for language in content.languages}
    return DraftSummary(
        sum(1 for _ in content.questions),
        len(check_draft(content, caps).mistakes),
        {name: total - done for name, (done, total) in counts.items() if done < total},
    )


@dataclass(frozen=True)
class NextStep:
    """What the researcher has to do next, and the page for it."""

    text: str
    address: str


@dataclass(frozen=True)
class Row:
    """One row of the list; a survey has a definition, a draft a summary."""

    entry: Entry
    title: str
    address: str
    next_step: NextStep | None
    definition: Definition | None = None
    margins: str = ""
    summary: DraftSummary | None = None


@dataclass(frozen=True)
class Choice:
    """The search, filter, sort and page that an address asks for; unknown values are ignored."""

    query: str
    state: str
    sort: str
    page: int

    @classmethod
    def of(cls, args: Mapping[str, str]) -> Choice:
        """Read the parameters of an address."""
        state, sort = args.get("state", ""), args.get("sort", "")
        return cls(
            args.get("q", "").strip()[:MAX_QUERY],
            state if state in STATES else "all",
            sort if sort in SORTS else "changed",
            whole_number(args.get("page", ""), 1),
        )

    def parameters(self, **changes: str | int) -> dict[str, str | int]:
        """Return the parameters of the address with changes, except those with default values."""
        values = {"q": self.query, "state": self.state, "sort": self.sort, **changes}
        return {name: value for name, value in values.items() if value != DEFAULTS[name]}

    @cached_property
    def words(self) -> list[str]:
        """The words to find in a title or a short name."""
        return _folded(self.query).split()


def _folded(text: str) -> str:
    """Return a text in the form in which texts are compared.

    >>> _folded("ＦÜR Ihre"), _folded("Straße")
    ('für ihre', 'strasse')
    """
    return unicodedata.normalize("NFKC", text).casefold()


class KnownValues(Generic[V]):
    """Values computed from drafts and surveys, stored with the revision or version they belong to.

    Neither changes, and keys are never used again: a stored value never belongs to another survey.
    """

    def __init__(self, compute: Callable[[list[int]], Mapping[int, V]]) -> None:
        self._compute = compute
        self._values: dict[int, tuple[int, V]] = {}

    def get(self, entries: Sequence[Entry]) -> dict[int, V]:
        """Return the values by key, without those of entries that were deleted in the meantime."""
        wanted = {entry.head.key: entry.number for entry in entries}
        known = {key: self._values[key] for key in wanted if key in self._values}
        unknown = [key for key in wanted if key not in known or known[key][0] != wanted[key]]
        computed = self._compute(unknown) if unknown else {}
        for key, value in computed.items():
            self._values[key] = wanted[key], value
        return {**{key: value for key, (_, value) in known.items()}, **computed}


class HomePage(Pages):
    """The list of the researcher's drafts and surveys."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._summaries = KnownValues(self._read_summaries)

    def surveys(self) -> str:
        """List the researcher's surveys and drafts, 25 on a page."""
        choice = Choice.of(request.args)
        heads = self._store.survey_heads()
        entries = list(self._entries(heads))
        n_by_state = Counter(entry.state for entry in entries)
        n_by_state["all"] = n_by_state.total() - n_by_state["archived"]
        shown = self._selected(entries, choice)
        n_pages = max(-(-len(shown) // ROWS_PER_PAGE), 1)
        page = min(max(choice.page, 1), n_pages)
        start = (page - 1) * ROWS_PER_PAGE
        tested = {team_slug(head.slug) for head in heads if is_test_run(head.slug)}
        return render_template(
            "research/surveys.html",
            choice=choice,
            states={n: label for n, label in STATES.items() if n == "all" or n_by_state[n]},
            sorts=SORTS,
            n_by_state=n_by_state,
            is_new=not entries,
            rows=list(self._rows(shown[start : start + ROWS_PER_PAGE], tested)),
            n_shown=len(shown),
            start=start,
            page=page,
            n_pages=n_pages,
            progress_text=progress_text,
            closing_text=closing_text,
            day_text=day_text,
            today=utc_today(),
        )

    def _entries(self, heads: Sequence[SurveyHead]) -> Iterator[Entry]:
        """Yield everything that the researcher may see, test runs excepted."""
        roles, archived, today = self._gate.roles(), self._store.archived_slugs(), utc_today()
        for survey in heads:
            if survey.slug in roles and not is_test_run(survey.slug):
                state = "archived" if survey.slug in archived else listed_state(survey, today)
                yield Entry(survey, state, roles[survey.slug], survey.changed)
        for draft in self._store.draft_heads():
            if draft.slug in roles:
                saved = datetime.fromtimestamp(draft.at, UTC).date()
                yield Entry(draft, "draft", roles[draft.slug], saved)

    def _selected(self, entries: Sequence[Entry], choice: Choice) -> list[Entry]:
        """Return the entries that the filter and the search select, sorted."""
        found = [
            entry
            for entry in entries
            if (entry.state != "archived" if choice.state == "all" else entry.state == choice.state)
        ]
        # Of two changes on one day, that of the younger survey comes first, and drafts before both.
        found.sort(key=lambda entry: (entry.changed, entry.is_draft, entry.head.key), reverse=True)
        if choice.words:
            found = [e for e in found if all(word in e.names for word in choice.words)]
        if choice.sort == "title":
            found.sort(key=lambda entry: entry.names)
        elif choice.sort == "closes":
            found.sort(key=lambda entry: entry.closes or date.max)
        elif choice.sort == "responses":
            found.sort(key=lambda entry: entry.n_released, reverse=True)
        return found

    def _read_summaries(self, keys: list[int]) -> dict[int, DraftSummary]:
        caps, contents = self._settings.caps, self._contents(keys)
        return {
            key: draft_summary(contents[key], caps) if key in contents else UNREADABLE
            for key in keys
        }

    def _contents(self, keys: list[int]) -> dict[int, DraftContent]:
        drafts = readable_contents(self._store.newest_drafts(keys))
        return {draft.key: content for draft, content in drafts}

    def _rows(self, entries: Sequence[Entry], tested: set[str]) -> Iterator[Row]:
        """Yield the rows of one page."""
        summaries = self._summaries.get([entry for entry in entries if entry.is_draft])
        keys = [entry.head.key for entry in entries if not entry.is_draft]
        definitions = self._store.canonical_definitions(keys)
        deadline = monotonic() + MARGIN_SECONDS
        for entry in entries:
            head = entry.head
            if isinstance(head, DraftHead) and (summary := summaries.get(head.key)):
                address = url_for("drafts.outline", slug=head.slug)
                step = draft_step(entry, summary, is_tested=head.slug in tested)
                title = head.title if summary.is_readable else "Unreadable draft"
                yield Row(entry, title, address, step, summary=summary)
            elif isinstance(head, SurveyHead) and (canonical := definitions.get(head.key)):
                definition = read_definition(canonical)
                address = url_for("results.dashboard", slug=head.slug, version=head.version)
                step = survey_step(entry, head)
                margins = margins_text(head, definition) if monotonic() < deadline else ""
                yield Row(entry, head.title, address, step, definition, margins)


def listed_state(survey: SurveyHead, today: date) -> str:
    """Return the state of a survey under which the list has it."""
    opens = survey.schedule.opens
    return "scheduled" if survey.state == "open" and opens and opens > today else survey.state


def draft_step(entry: Entry, summary: DraftSummary, *, is_tested: bool) -> NextStep | None:
    """Return what is left to do before a draft is published; None for a viewer."""
    slug = entry.head.slug
    if not entry.allows("editor") or not summary.is_readable:
        return None
    if not summary.n_questions:
        return NextStep("Add questions", url_for("drafts.outline", slug=slug))
    if n := summary.n_mistakes:
        mistakes = "1 mistake" if n == 1 else f"{n:,} mistakes"
        return NextStep(f"Fix {mistakes}", url_for("drafts.publish", slug=slug))
    for language, n in summary.untranslated.items():
        texts = "1 text" if n == 1 else f"{n:,} texts"
        address = url_for("drafts.translation", slug=slug, language=language)
        return NextStep(f"Translate {texts} into {language}", address)
    if not is_tested:
        return NextStep("Not tested yet", url_for("drafts.test_run", slug=slug))
    return NextStep("Publish", url_for("drafts.publish", slug=slug))


def survey_step(entry: Entry, survey: SurveyHead) -> NextStep | None:
    """Return what to do next about a published survey, as far as the researcher's role allows."""
    collect = url_for("collection.overview", slug=survey.slug)
    n, goal = survey.n_released, survey.n_planned
    if entry.is_open and entry.allows("editor"):
        if entry.state == "scheduled" or not n:
            return NextStep("Share the link", collect)
        if is_full(n, survey.schedule.maximum):
            return NextStep("Response limit reached", collect)
        if goal and n >= goal and entry.allows("owner"):
            return NextStep("Close the survey", collect)
    return NextStep("Read the results", url_for("results.newest", slug=survey.slug)) if n else None


def progress_text(survey: SurveyHead) -> str:
    """Return how many responses are released, and the planned number or the limit."""
    n, planned, limit = survey.n_released, survey.n_planned, survey.schedule.maximum
    if n and planned:
        return f"{n:,} of {planned:,} responses"
    released = f"{n:,} responses" if n else "No responses released yet"
    if planned:
        return f"{released}, {planned:,} planned"
    return f"{released}, limit {limit:,}" if limit else released


def margins_text(survey: SurveyHead, definition: Definition) -> str:
    """Return the planned margins of an open survey, now and at its target; empty without a plan."""
    n, goal = survey.n_released, survey.n_planned
    if survey.state != "open" or not n or not goal:
        return ""
    now, then = (_typical_margin(definition.canonical, count) for count in (n, max(goal, n)))
    if math.isnan(now):
        return ""
    at_target = f", ±{_points(then)} at the target" if n < goal else ""
    return f"Typical margin: ±{_points(now)} points now{at_target}"


@lru_cache(maxsize=CACHED_MARGINS)
def _typical_margin(canonical: bytes, n: int) -> float:
    """Return the typical margin of a definition with n responses, as its plan computes it."""
    definition = read_definition(canonical)
    asked = max(n * definition.drawn // len(definition.groups), 1)
    questions = tuple(QuestionDesign.of(item, None, asked) for item in definition.questions)
    return SurveyDesign(questions, definition.groups, definition.drawn, n).typical_margin


def _points(margin: float) -> str:
    return rounded(100 * margin, decimals=1, digits=1)


def closing_text(survey: SurveyHead, today: date) -> str:
    """Return when a survey opens or closes, as seen from today."""
    opens, closes = survey.schedule.opens, survey.schedule.closes
    if survey.changed == UNREADABLE_DAY or (
        survey.state != "closed" and survey.schedule.is_damaged
    ):
        return "Dates are damaged; tell the operator"
    if survey.state == "closed":
        return f"Closed on {day_text(survey.changed)}"
    if opens and opens > today:
        return f"Opens {_in_days(opens, today)}"
    if closes is None:
        return "No closing date"
    return (
        f"Closes {_in_days(closes, today)}" if closes >= today else f"Ended on {day_text(closes)}"
    )


def _in_days(day: date, today: date) -> str:
    """Return a future day as a distance.

    >>> [_in_days(date(2026, 11, day), date(2026, 11, 3)) for day in (3, 4, 9)]
    ['today', 'tomorrow', 'in 6 days']
    """
    days = (day - today).days
    return {0: "today", 1: "tomorrow"}.get(days, f"in {days:,} days")


def day_text(day: date) -> str:
    """Return a date as text.

    >>> day_text(date(2026, 11, 3))
    '3 Nov 2026'
    """
    return f"{day.day} {day:%b %Y}"
