"""A survey as its researcher writes it, and its definition, which publishing freezes.

The SHA-256 of its canonical JSON identifies a definition. Devices, server and estimator all read
their parameters from these bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import cached_property
from itertools import groupby
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    Field,
    PrivateAttr,
    StrictBool,
    StrictInt,
    StringConstraints,
    model_validator,
)

from survey.errors import ChannelError
from survey.mechanism.composition import log_rounded_up, total_ratio
from survey.mechanism.joint_response import (
    MAX_ITEMS,
    JointMechanism,
    joint_channel,
    marginal_response,
)
from survey.questionnaire.kinds import BaseQuestion, PublishedQuestion, Question
from survey.questionnaire.kinds.base import JointResponse
from survey.questionnaire.limits import MAX_TRUTH_PROBABILITY
from survey.questionnaire.texts import (
    LINE,
    Frozen,
    Identifier,
    Language,
    Line,
    Passage,
    Slug,
    Text,
)

MAX_REPORT_BYTES = 8192
"""Maximum size of a report's body."""

MAX_STRATUM_LENGTH = 60
INVITATION_LENGTH = 43


MAX_QUESTIONS = 200

MAX_PICTURES = 24
"""Maximum number of different pictures in a survey: every device loads all of them."""

Theme = Literal["", "blue", "plum", "slate"]
"""The accent colors of respondents' pages; "" is the standard one."""


def _is_https(address: str) -> str:
    if address and not address.startswith("https://"):
        raise ValueError("must begin with https://")
    return address


Address = Annotated[
    str, StringConstraints(max_length=300, pattern=r"^[!-~]*$"), AfterValidator(_is_https)
]


def _is_day(day: str) -> str:
    try:
        if day and date.fromisoformat(day).isoformat() != day:
            raise ValueError
    except ValueError:
        raise ValueError("must be a day such as 2026-12-31") from None
    return day


Day = Annotated[str, AfterValidator(_is_day)]
"""A day in ISO 8601, or "" for none."""


def _publish(questions: tuple[BaseQuestion, ...]) -> tuple[BaseQuestion, ...]:
    # A matrix caches its rows, so copy them: each survey needs its own.
    return tuple(row.model_copy() for question in questions for row in question.published)


class Page(Frozen):
    """Questions shown together; instead of a matrix, the page has its rows."""

    title: Annotated[Text, StringConstraints(max_length=300, pattern=LINE)] = ""
    """Heading above the questions."""

    questions: Annotated[tuple[Question, ...], Field(min_length=1), AfterValidator(_publish)]
    """Questions of the page, in the order in which they are asked."""


class Together(Frozen):
    """Questions of which each respondent is asked all or none."""

    questions: tuple[Identifier, ...] = Field(min_length=2, max_length=MAX_QUESTIONS)
    """Ids of the questions; the id of a matrix means its rows."""

    joint: StrictBool = False
    """Whether the device randomizes the answers jointly; the joint epsilon is the sum of theirs."""

    mechanism: JointMechanism = "grr"
    """Over all combinations of options, or "half_space" for up to 20 yes/no questions."""


class Survey(Frozen):
    """A survey before publication; the instance's `Caps` are the validation context."""

    slug: Slug
    """Short name in the survey's address: lower-case letters, digits and hyphens."""

    title: Line
    """Heading of the start page, and the survey's name everywhere else."""

    language: Language = "en"
    """Language of all texts that are not tables of languages, such as "pt-BR"."""

    introduction: Passage = ""
    """Text above the privacy card of the start page."""

    consent: Passage = ""
    """What respondents agree to, on the start page."""

    ethics: Passage = ""
    """Approval by an ethics committee, on the start page."""

    helpline: Passage = ""
    """Whom respondents can call, beside every question; phone numbers become links."""

    contact: Passage = ""
    """Whom to ask about the survey."""

    organization: Line | Literal[""] = ""
    """Who asks: the end of the sentence "Asked by ..."."""

    thanks: Passage = ""
    """Text after sending."""

    allow_skip_logic: StrictBool = False
    """Whether questions can depend on earlier answers; the start page states what it costs."""

    questions_per_person: StrictInt | None = None
    """Number of questions that each person is asked, chosen at random; all if it is left out."""

    together: tuple[Together, ...] = Field(default=(), max_length=MAX_QUESTIONS)
    """Questions to cross-tabulate: each respondent is asked all or none of them."""

    bucket: Literal["none", "day", "week"] = "none"
    """How much of the date of a release is stored with its reports, for trends."""

    access: Literal["open", "invitation"] = "open"
    """Whether everybody with the link may answer, or only people with single-use invitations."""

    kiosk: StrictBool = False
    """Whether people share the device, so that nothing is stored on it."""

    field_until: Day = ""
    """Last day on which tablets in field mode may upload, such as 2026-12-31; needs `kiosk`."""

    theme: Theme = ""
    """Accent color of respondents' pages instead of green."""

    quick_exit: Address = ""
    """Address that "Leave now" opens; a neutral page if it is left out."""

    layout: Literal["auto", "questions", "pages"] = "auto"
    """One question at a time, or whole pages; "auto" decides by the number of questions."""

    pages: tuple[Page, ...] = Field(min_length=1)
    """Pages of questions; a short survey may have only `questions` instead."""

    _translations: Mapping[str, Survey] = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _join_responses(self) -> Survey:
        # A declaration with a mistake has no effect here: `validation` reports its location.
        by_id = {question.id: question for question in self.questions}
        for declared in self.together:
            ids, mechanism = declared.questions, declared.mechanism
            if declared.joint and joint_mistake(ids, by_id, mechanism) is None:
                joint = joint_response_of(ids, by_id, mechanism)
                for id_ in joint.questions:
                    by_id[id_].randomize_jointly(joint)
        return self

    @property
    def translations(self) -> Mapping[str, Survey]:
        """The survey in each of its other languages, by language."""
        return self._translations

    def translated(self, translations: Mapping[str, Survey]) -> Survey:
        """Return the survey with its translations."""
        survey = self.model_copy()
        survey._translations = dict(translations)
        return survey

    @property
    def questions(self) -> Iterator[BaseQuestion]:
        """All questions, in the order of their codes in a report."""
        return (question for page in self.pages for question in page.questions)

    @property
    def groups(self) -> list[list[str]]:
        """Questions that are drawn together: as declared, or because one depends on another."""
        declared = [declared.questions for declared in self.together]
        return groups_of(self.questions, drawn_together(self.questions, declared))

    @property
    def drawn(self) -> int:
        """The number of groups that each respondent is asked."""
        return self.questions_per_person or len(self.groups)

    @property
    def total_ratio(self) -> Fraction:
        """e^epsilon of everything one respondent sends."""
        return total_ratio_of(self.groups, ratios_of(self.questions), self.drawn)


@dataclass(frozen=True)
class FieldMode:
    """The field mode of a version: the public key for its tablets, and the last day for uploads.

    `key` is a point of P-256 in 65 bytes (SEC 1, uncompressed).
    """

    key: bytes
    until: date


@dataclass(frozen=True)
class Definition:
    """One version of one survey, as published; the hash is over `canonical`.

    `groups` are the questions that are drawn together, of which each respondent is asked `drawn`;
    without question sampling both cover all questions. `bucket` says how much of a release's date
    is stored: "none", the "day" or the "week". `languages` starts with the survey's own. `access`
    is "open" to everybody with the link, or by "invitation". `kiosk` is for shared devices. `field`
    is None if the survey has no field mode.
    """

    canonical: bytes
    slug: str
    version: int
    title: str
    questions: tuple[PublishedQuestion, ...]
    groups: tuple[tuple[str, ...], ...]
    drawn: int
    report_bytes: int
    allow_skip_logic: bool
    bucket: str
    languages: tuple[str, ...]
    access: str
    kiosk: bool
    field: FieldMode | None = None

    @cached_property
    def sha256(self) -> str:
        """The definition id: SHA-256 of the canonical bytes, in hex."""
        return hashlib.sha256(self.canonical).hexdigest()

    @property
    def names(self) -> dict[str, str]:
        """What a page says about a survey that it cannot open, in the survey's own language."""
        form = json.loads(self.canonical)
        return {"survey": form["title"], "contact": form["contact"], "language": form["language"]}

    @property
    def titles(self) -> dict[str, str]:
        """The title in each language of the survey, its own first."""
        form = json.loads(self.canonical)
        translated = form.get("translations", {})
        others = {language: translated[language]["title"] for language in self.languages[1:]}
        return {form["language"]: form["title"], **others}

    @property
    def field_until(self) -> date | None:
        """The last day on which tablets may upload reports, or None without field mode."""
        return self.field.until if self.field else None

    @property
    def is_sampled(self) -> bool:
        """Whether each respondent is asked only some of the questions."""
        return self.drawn < len(self.groups)

    @cached_property
    def ratio(self) -> Fraction:
        """The odds factor, e^epsilon, of one respondent's whole report."""
        return total_ratio_of(self.groups, self._ratios, self.drawn)

    @cached_property
    def linked_ratios(self) -> dict[str, Fraction]:
        """e^epsilon of all reports that depend on the answer to a question, by its id.

        This is the question's own factor times those of the questions that skip logic links to it.
        For questions randomized jointly, it is the factor of their joint report.
        """
        return linked_ratios(groups_of(self.questions), self._ratios)

    @cached_property
    def topics(self) -> dict[str, tuple[str, ...]]:
        """The ids of the questions of each topic, in the order of the survey."""
        return topics_of(self.questions)

    @property
    def pictures(self) -> list[str]:
        """The SHA-256 of each picture of an option, without repeats, in the survey's order."""
        pictures = (option.picture for q in self.questions for option in q.options)
        return list(dict.fromkeys(filter(None, pictures)))

    @cached_property
    def topic_ratios(self) -> dict[str, Fraction]:
        """e^epsilon of all that one respondent sends about each topic."""
        return {topic: self.ratio_about(ids) for topic, ids in self.topics.items()}

    def ratio_about(self, ids: Collection[str]) -> Fraction:
        """e^epsilon of all that one respondent sends about these questions, by their ids."""
        included_ids = linked_ids(ids, groups_of(self.questions))
        return ratio_about(self.groups, self._ratios, self.drawn, included_ids)

    @property
    def _ratios(self) -> dict[str, Fraction]:
        return ratios_of(self.questions)

    @cached_property
    def epsilon(self) -> float:
        """ln of `ratio`, rounded up."""
        return log_rounded_up(self.ratio)


def report_body(
    definition_id: str,
    report_id: str,
    codes: Sequence[int | str | None],
    *,
    stratum: str = "",
    invitation: str = "",
    length: int = 0,
) -> bytes:
    """Return a report as the client writes it: fixed keys in order, padded to `length` bytes."""
    form = {
        "definition": definition_id,
        "report_id": report_id,
        "stratum": stratum,
        "codes": list(codes),
        "invitation": invitation,
        "pad": "",
    }
    body = json.dumps(form, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    return body[:-2] + b"." * (length - len(body)) + body[-2:]


def groups_of(
    questions: Iterable[BaseQuestion | PublishedQuestion], together: Iterable[Sequence[str]] = ()
) -> list[list[str]]:
    """Return the ids of all questions in groups, each in the survey's order.

    A question is in one group with the question it depends on, with those randomized jointly with
    it, and with those of the same list in `together`. Without `together`, the groups are the
    questions whose reports reveal something about each other's answers.
    """
    listed = list(questions)
    links: list[Sequence[str]] = [
        *([question.ask_if.question, question.id] for question in listed if question.ask_if),
        *(question.joint.questions for question in listed if question.joint),
        *together,
    ]
    group_of = {question.id: [question.id] for question in listed}
    for link in links:
        # A draft may name a question that does not exist.
        groups = {id(group_of[name]): group_of[name] for name in link if name in group_of}
        merged = [name for group in groups.values() for name in group]
        group_of |= dict.fromkeys(merged, merged)
    place = {question.id: number for number, question in enumerate(listed)}
    distinct = {id(group): sorted(group, key=place.__getitem__) for group in group_of.values()}
    return list(distinct.values())


def written_questions(questions: Iterable[BaseQuestion]) -> Iterator[tuple[BaseQuestion, ...]]:
    """Yield the questions of a page as researchers wrote them, a matrix as a tuple of its rows."""
    for _, rows in groupby(questions, lambda q: q.matrix.id if q.matrix else q.id):
        yield tuple(rows)


def matrices_of(
    questions: Iterable[BaseQuestion | PublishedQuestion],
) -> dict[str, tuple[str, ...]]:
    """Return the ids of the rows of each matrix, in the order of the questions."""
    matrices: dict[str, tuple[str, ...]] = {}
    for question in questions:
        if question.matrix:
            matrix = question.matrix.id
            matrices[matrix] = (*matrices.get(matrix, ()), question.id)
    return matrices


def drawn_together(
    questions: Iterable[BaseQuestion | PublishedQuestion], declared: Iterable[Sequence[str]] = ()
) -> list[list[str]]:
    """Return the lists of questions that are drawn together, apart from those with conditions.

    These are the rows of each matrix, which is shown as one question, and the declared lists. In
    these, the id of a matrix means its rows.
    """
    matrices = matrices_of(questions)
    lists = [*([id_] for id_ in matrices), *declared]
    return [[row for id_ in ids for row in matrices.get(id_, (id_,))] for ids in lists]


def ratios_of(questions: Iterable[BaseQuestion | PublishedQuestion]) -> dict[str, Fraction]:
    """Return e^epsilon of the questions' reports, by id; a joint report counts at its first one."""
    ratios: dict[str, Fraction] = {}
    for question in questions:
        if question.joint is None:
            ratios[question.id] = question.channel.ratio
        else:
            is_first = question.id == question.joint.questions[0]
            ratios[question.id] = question.joint.channel.ratio if is_first else Fraction(1)
    return ratios


MAX_JOINT = 3
"""Maximum number of questions that are randomized jointly over the combinations of options."""


def joint_mistake(
    ids: Sequence[str], by_id: Mapping[str, BaseQuestion], mechanism: JointMechanism = "grr"
) -> str | None:
    """Return why these questions cannot be randomized jointly, or None."""
    maximum = MAX_JOINT if mechanism == "grr" else MAX_ITEMS
    if len(ids) > maximum:
        return f"has {len(ids)} questions; at most {maximum} can be randomized jointly" + (
            f', or up to {MAX_ITEMS} yes/no questions with mechanism = "half_space"'
            if mechanism == "grr"
            else ""
        )
    if len({*ids} & {*by_id}) < len(ids):
        return "must list different questions"
    conditions = {question.ask_if.question for question in by_id.values() if question.ask_if}
    for question in map(by_id.__getitem__, ids):
        if reason := _why_not_joint(question):
            return f'"{question.id}" cannot be randomized jointly: {reason}'
        if mechanism == "half_space" and len(question.all_options) != 2:
            options = ", ".join(option.id for option in question.all_options)
            return f'"{question.id}" has the options {options}; in a half-space each question has 2'
        if question.ask_if or question.id in conditions:
            return (
                f'"{question.id}" cannot be randomized jointly, because it depends on another '
                "question or another depends on it"
            )
    try:
        channel = joint_response_of(ids, by_id, mechanism).channel
    except ChannelError as error:
        return str(error)
    for question in map(by_id.__getitem__, ids):
        p = marginal_response(channel, len(question.all_options)).exact_p
        if p > MAX_TRUTH_PROBABILITY:
            return (
                f'"{question.id}" would have a truth probability of {float(p):.3f}; at most '
                f"{float(MAX_TRUTH_PROBABILITY)} is allowed"
            )
    return None


def _why_not_joint(question: BaseQuestion) -> str:
    if question.matrix:
        return "it is a row of a matrix"
    is_possible = question.kind.is_single and question.design == "grr"
    return "" if is_possible else 'it must have one answer from a list and mechanism = "grr"'


def joint_response_of(
    ids: Collection[str], by_id: Mapping[str, BaseQuestion], mechanism: JointMechanism = "grr"
) -> JointResponse:
    """Return the joint response of these questions, which spends the sum of their epsilons.

    Raises ChannelError for more than 256 combinations of options, or an epsilon above 12.
    """
    members = [question for id_, question in by_id.items() if id_ in ids]
    sizes = [len(question.all_options) for question in members]
    ratio = total_ratio(question.own_channel.ratio for question in members)
    return JointResponse(tuple(q.id for q in members), joint_channel(sizes, ratio, mechanism))


def linked_ratios(
    groups: Iterable[Iterable[str]], ratios: Mapping[str, Fraction]
) -> dict[str, Fraction]:
    """Return e^epsilon of all reports that depend on the answer to a question, for each question.

    A skipped question counts as "does not apply", so the reports of a whole group depend on each of
    its answers.

    >>> linked_ratios([["a", "b"], ["c"]], {"a": Fraction(2), "b": Fraction(3), "c": Fraction(5)})
    {'a': Fraction(6, 1), 'b': Fraction(6, 1), 'c': Fraction(5, 1)}
    """
    linked: dict[str, Fraction] = {}
    for group in map(list, groups):
        linked |= dict.fromkeys(group, total_ratio(ratios[name] for name in group))
    return linked


def total_ratio_of(
    groups: Iterable[Iterable[str]], ratios: Mapping[str, Fraction], drawn: int
) -> Fraction:
    """Return e^epsilon of a survey that draws `drawn` of its groups for each respondent.

    This is the product over the groups with the greatest privacy loss. `ratios` maps the id of a
    question to its e^epsilon.

    >>> ratios = {"a": Fraction(2), "b": Fraction(5), "c": Fraction(3)}
    >>> total_ratio_of([["a", "b"], ["c"]], ratios, 1)
    Fraction(10, 1)
    """
    by_group = (total_ratio(ratios[name] for name in group) for group in groups)
    return total_ratio(sorted(by_group, reverse=True)[:drawn])


def linked_ids(ids: Collection[str], groups: Iterable[Collection[str]]) -> set[str]:
    """Return `ids` and the ids of all questions that skip logic links to them.

    `groups` are the groups of linked questions (`groups_of`).

    >>> sorted(linked_ids(["b"], [["a", "b"], ["c"]]))
    ['a', 'b']
    """
    given_ids = set(ids)
    return {id_ for group in groups if not given_ids.isdisjoint(group) for id_ in group}


def ratio_about(
    groups: Iterable[Iterable[str]],
    ratios: Mapping[str, Fraction],
    drawn: int,
    included_ids: Collection[str],
) -> Fraction:
    """Return e^epsilon of one respondent's reports on these questions.

    `included_ids` must contain every question linked to one of them (`linked_ids`), because its
    report depends on the same answers. A respondent is asked `drawn` of the `groups`. The result is
    the product over the `drawn` groups whose included questions have the greatest privacy loss. A
    respondent can be asked exactly these, so no smaller product bounds what all respondents send.

    >>> ratios = {"a": Fraction(2), "b": Fraction(5), "c": Fraction(3), "d": Fraction(7)}
    >>> groups = [["a", "b"], ["c"], ["d"]]
    >>> [int(ratio_about(groups, ratios, n, ["a", "b", "c"])) for n in (1, 2, 3)]
    [10, 30, 30]
    """
    included_parts = ([id_ for id_ in group if id_ in included_ids] for group in groups)
    return total_ratio_of(filter(None, included_parts), ratios, drawn)


def topics_of(
    questions: Iterable[BaseQuestion | PublishedQuestion],
) -> dict[str, tuple[str, ...]]:
    """Return the ids of the questions of each topic, in the order of the questions."""
    topics: dict[str, tuple[str, ...]] = {}
    for question in questions:
        if question.topic:
            topics[question.topic] = (*topics.get(question.topic, ()), question.id)
    return topics


def max_questions_asked(groups: Iterable[Sequence[str]], drawn: int) -> int:
    """Return the maximum number of questions in `drawn` of the groups."""
    return sum(sorted(map(len, groups), reverse=True)[:drawn])
