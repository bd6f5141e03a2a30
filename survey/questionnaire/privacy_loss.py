"""The privacy loss of questions and of a whole report: the privacy label, and warnings.

Every number follows exactly from the integer channels. The client computes the label's numbers too
(`client_js/src/privacy-loss.js`); `tests/vectors/label.json` binds the two.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import takewhile
from typing import Literal

from survey.mechanism import BitVector, HalfSpace, SubsetSelection, WeightTable, multiple_choice
from survey.mechanism.composition import (
    format_epsilon,
    log_rounded_up,
    posterior_bound,
)
from survey.questionnaire.definition import (
    Definition,
    Survey,
    groups_of,
    linked_ids,
    linked_ratios,
    ratio_about,
    ratios_of,
    topics_of,
    total_ratio_of,
)
from survey.questionnaire.kinds import PublishedQuestion
from survey.questionnaire.similar_texts import (
    AnyQuestion,
    Texts,
    question_texts,
    similar_sets,
    similar_to_others,
)
from survey.respondent_texts import SOURCE, say
from survey.settings import Caps

# The privacy label

WEAK_QUESTION_ABOVE = 9
"""Above this odds factor, the label calls one question weakly protected."""

WEAK_REPORT_ABOVE = 20
"""Above this odds factor of a whole report, respondents are warned."""

STRONG_UP_TO = 3
"""Up to this odds factor, protection is called strong: the standard level of one question."""

Strength = Literal["strong", "moderate", "weak"]
"""The one scale of words for protection, from the strongest; `privacy-loss.js` has the same."""


def strength(ratio: Fraction, weak_above: int = WEAK_QUESTION_ABOVE) -> Strength:
    """Return the protection of one question, or of a whole report with another limit, in a word.

    >>> [strength(Fraction(r), WEAK_REPORT_ABOVE) for r in (3, 20, 21)]
    ['strong', 'moderate', 'weak']
    """
    if ratio > weak_above:
        return "weak"
    return "strong" if ratio <= STRONG_UP_TO else "moderate"


def report_strength(questions: Definition | Questions) -> Strength:
    """Return the protection grade of a whole report: weak, too, if a question or topic is weak."""
    if questions.ratio > WEAK_REPORT_ABOVE:
        return "weak"
    parts = [*questions.linked_ratios.values(), *questions.topic_ratios.values()]
    if max(parts, default=0) > WEAK_QUESTION_ABOVE:
        return "weak"
    return strength(questions.ratio, WEAK_REPORT_ABOVE)


@dataclass(frozen=True)
class Bounds:
    """What reports with a factor e^epsilon can reveal at most.

    odds            the factor, rounded up (`odds_in_words`)
    from10, from50  the maximum, in whole percent, of a suspicion that was 10%, or 50%, before
    """

    odds: str
    from10: int
    from50: int

    @classmethod
    def of(cls, ratio: Fraction) -> Bounds:
        """Round up the figures of a factor, because a bound must not be understated."""
        return cls(
            odds=odds_in_words(ratio),
            from10=math.ceil(100 * posterior_bound(Fraction(1, 10), ratio)),
            from50=math.ceil(100 * posterior_bound(Fraction(1, 2), ratio)),
        )

    @property
    def examples(self) -> str:
        """The two examples as a sentence."""
        return f"A suspicion of 10% {becomes(self.from10)}, one of 50% {becomes(self.from50)}."


def becomes(percent: int, language: str = SOURCE) -> str:
    """Describe what a suspicion becomes, in a language of the interface.

    >>> becomes(50), becomes(100), becomes(50, "de")
    ('becomes at most 50%', 'can become more than 99%', 'steigt auf höchstens 50\\xa0%')
    """
    # The bound is rounded up, so 100 would overstate it.
    key = "label.becomesNearly" if percent > 99 else "label.becomes"
    return say(language, key).format(percent=percent)


def report_heading(questions: Definition | Questions) -> str:
    """Return the privacy loss of a whole report in one line."""
    epsilon = format_epsilon(log_rounded_up(questions.ratio))
    return f"Privacy loss of one complete response: ε {epsilon} ({report_strength(questions)})"


def report_sentences(ratio: Fraction) -> str:
    """Return the factor of a whole report and its two examples.

    >>> report_sentences(Fraction(9))
    'One complete response changes the odds of a guess about someone by a factor of at most 9. \
A suspicion of 10% becomes at most 50%, one of 50% becomes at most 90%.'
    """
    return (
        "One complete response changes the odds of a guess about someone by a factor of at most "
        f"{odds_in_words(ratio)}. {Bounds.of(ratio).examples}"
    )


def invitation_sentence(ratio: Fraction, language: str = SOURCE) -> str:
    """Return the protection of a whole report in one sentence for people who are invited.

    >>> invitation_sentence(Fraction(9))
    'Your device rolls dice before it sends each answer: with all your answers together, a \
suspicion of 10% about you becomes at most 50%.'
    """
    from10 = becomes(Bounds.of(ratio).from10, language)
    return say(language, "poster.protection").format(from10=from10)


def topic_bounds(definition: Definition) -> dict[str, Bounds]:
    """Return what all reports about each topic can reveal, by topic."""
    return {topic: Bounds.of(ratio) for topic, ratio in definition.topic_ratios.items()}


@dataclass(frozen=True)
class Label:
    """What one channel means for a respondent.

    own, other      of 100 people with an answer, or with another one, how many reports state this
                    answer; empty for numbers, where every report can come from every answer
    odds            the maximum factor by which the odds of a guess change, including the reports
                    of questions that skip logic links to this one
    from10, from50  the maximum, in whole percent, of a suspicion that was 10%, or 50%, before
    """

    own: str
    other: str
    odds: str
    from10: int
    from50: int


def labels(definition: Definition) -> dict[str, Label]:
    """Return the label of every question, by id."""
    linked = definition.linked_ratios
    return {question.id: label(question, linked[question.id]) for question in definition.questions}


def strengths(definition: Definition) -> dict[str, Strength]:
    """Return the protection of every question, with those linked to it, in a word, by id."""
    return {name: strength(ratio) for name, ratio in definition.linked_ratios.items()}


def linked_epsilons(definition: Definition) -> dict[str, float]:
    """Return the epsilon of linked questions together, by the id of each linked question."""
    together = definition.linked_ratios
    return {
        q.id: log_rounded_up(together[q.id])
        for q in definition.questions
        if together[q.id] != q.channel.ratio
    }


def label(question: PublishedQuestion, ratio: Fraction) -> Label:
    """Compute the label of a question; frequencies are rounded half up.

    Risks are rounded up, because a bound must not be understated. `ratio` is e^epsilon of all
    reports that depend on its answer (`Definition.linked_ratios`).
    """
    shares = frequencies(question) or ()
    own, other = [_tenths(math.floor(p * 1000 + Fraction(1, 2))) for p in shares] or ("", "")
    bounds = Bounds.of(ratio)
    return Label(own, other, bounds.odds, bounds.from10, bounds.from50)


def frequencies(question: PublishedQuestion) -> tuple[Fraction, Fraction] | None:
    """P(a report says the first option | it is the answer), and if it is not.

    None for numbers and rankings, whose reports do not name one option as the answer. If the second
    probability differs between the other answers, it is the smallest, so that the label does not
    promise too much protection.
    """
    channel = question.channel
    if question.kind.is_numeric or question.kind.is_ranking:
        return None
    match channel:
        case SubsetSelection() if question.by_patterns:
            holding = sum(0 in pattern for pattern in question.patterns)
            return multiple_choice.support(channel, holding)
        case WeightTable():
            shares = [Fraction(int(weight), channel.total) for weight in channel.weights[:, 0]]
            return shares[0], min(shares[1:])
        case SubsetSelection() | BitVector() | HalfSpace():
            return channel.exact_p, channel.exact_q


def odds_in_words(ratio: Fraction) -> str:
    """Return an odds factor: below 10 rounded up to a tenth, from 10 on to a whole number.

    A question, a topic, a whole report and every warning follow this one rule, so that one factor
    has one figure; the client has the same (`oddsFactor` in `privacy-loss.js`).

    >>> odds_in_words(Fraction(27183, 10_000)), odds_in_words(Fraction(2209, 2))
    ('2.8', '1,105')
    """
    return f"{math.ceil(ratio):,}" if ratio >= 10 else _tenths(math.ceil(10 * ratio))


def _tenths(tenths: int) -> str:
    whole, tenth = divmod(tenths, 10)
    return f"{whole:,}.{tenth}" if tenth else f"{whole:,}"


# What a researcher should change before publishing

SEPARATE_PAIRS = 3
"""Pairs with one other survey that are named one by one; more become one sentence."""

MAX_NAMED_QUESTIONS = 3
"""Nearly equal questions of one survey that a warning names; it counts the others."""

MAX_LISTED_WARNINGS = 10
"""Warnings about nearly equal questions that are shown; the others are counted."""


@dataclass(frozen=True)
class Questions:
    """The questions of a draft or a definition, of which each respondent is asked some.

    `drawn` counts the groups of questions that one respondent is asked. `texts` are those of the
    questions in all languages. `together` lists the ids of questions that are in one group although
    their reports do not depend on each other's answers.
    """

    questions: Sequence[AnyQuestion]
    drawn: int
    texts: Texts = field(default_factory=dict)
    together: Sequence[Sequence[str]] = ()

    @classmethod
    def of(cls, survey: Survey | Definition) -> Questions:
        """Return the questions of a survey or of its published form."""
        questions: tuple[AnyQuestion, ...] = tuple(survey.questions)
        is_complete = isinstance(survey, Definition) and not survey.is_sampled
        drawn = len(questions) if is_complete else survey.drawn
        together = [] if is_complete else list(survey.groups)
        return cls(questions, drawn, question_texts(survey), together)

    @cached_property
    def groups(self) -> list[list[str]]:
        """The groups that are drawn whole."""
        return groups_of(self.questions, self.together)

    @cached_property
    def _linked(self) -> list[list[str]]:
        """The groups whose reports reveal something about each other's answers."""
        return groups_of(self.questions)

    @cached_property
    def _ratios(self) -> dict[str, Fraction]:
        return ratios_of(self.questions)

    @cached_property
    def ratio(self) -> Fraction:
        """e^epsilon of a whole report."""
        return self.ratio_of(self.drawn)

    def ratio_of(self, drawn: int) -> Fraction:
        """e^epsilon of a whole report for a number of drawn groups."""
        return total_ratio_of(self.groups, self._ratios, drawn)

    def with_draw(self, n: int) -> Questions:
        """Return the questions with `n` groups drawn for each respondent."""
        return replace(self, drawn=n)

    def ratio_about(self, *ids: str) -> Fraction:
        """e^epsilon of all that one respondent sends about these questions, by their ids."""
        included_ids = linked_ids(ids, self._linked)
        return ratio_about(self.groups, self._ratios, self.drawn, included_ids)

    @cached_property
    def linked_ratios(self) -> dict[str, Fraction]:
        """e^epsilon of all reports that depend on the answer to a question, by its id."""
        return linked_ratios(self._linked, self._ratios)

    @cached_property
    def topic_ratios(self) -> dict[str, Fraction]:
        """e^epsilon of all that one respondent sends about each topic."""
        topics = topics_of(self.questions)
        return {topic: self.ratio_about(*ids) for topic, ids in topics.items()}

    @property
    def weak_topics(self) -> dict[str, Fraction]:
        """The odds factor of each topic that is weak only because its questions add up."""
        largest = {
            topic: max(self.linked_ratios[id_] for id_ in ids)
            for topic, ids in topics_of(self.questions).items()
        }
        return {
            topic: ratio
            for topic, ratio in self.topic_ratios.items()
            if ratio > WEAK_QUESTION_ABOVE and ratio > largest[topic]
        }

    @cached_property
    def n_groups(self) -> int:
        """The number of groups, of which each respondent is asked `drawn` or all."""
        return len(self.groups)

    @property
    def share_asked(self) -> Fraction:
        """The share of respondents who are asked a given question."""
        return Fraction(min(self.drawn, self.n_groups), max(self.n_groups, 1))

    def proposed_draw(self, caps: Caps) -> int | None:
        """Return the number of groups to ask each respondent; None if the present number is fine.

        This is the largest number that causes no warning about a whole report or a topic, whichever
        groups are drawn; 0 if even one group causes a warning.
        """
        if not self._causes_warning(caps):
            return None
        fewer = range(1, min(self.drawn, self.n_groups))
        return sum(
            1 for _ in takewhile(lambda n: not self.with_draw(n)._causes_warning(caps), fewer)
        )

    def _causes_warning(self, caps: Caps) -> bool:
        """Whether researchers are warned about several questions together."""
        return is_weak_report(self.ratio, caps) or bool(self.weak_topics)


def is_weak_report(ratio: Fraction, caps: Caps) -> bool:
    """Whether a whole report is weak enough to warn researchers; a server may warn earlier."""
    return ratio > WEAK_REPORT_ABOVE or log_rounded_up(ratio) > caps.warning


def publication_warnings(
    questions: Questions, caps: Caps, others: Iterable[Definition] = (), *, similar: bool = True
) -> list[str]:
    """Return warnings for researchers who are about to publish; none prevents publishing.

    `others` are the team's other surveys, whose questions are compared with these. Without
    `similar`, texts are not compared, which is fast enough while a researcher types.
    """
    report = [_weak_report(questions, caps)] if is_weak_report(questions.ratio, caps) else []
    nearly_equal = _similar_questions(questions, others) if similar else []
    return [*report, *_weak_questions(questions), *_weak_topics(questions, caps), *nearly_equal]


def _weak_report(questions: Questions, caps: Caps) -> str:
    factor = (
        "one complete response changes the odds by a factor of at most "
        f"{odds_in_words(questions.ratio)}."
    )
    if questions.ratio > WEAK_REPORT_ABOVE:
        warning = (
            f"Weak protection: {factor} Above {WEAK_REPORT_ABOVE}, the survey warns respondents."
        )
    else:
        warning = (
            f"{report_strength(questions).capitalize()} protection: {factor} The total epsilon is "
            f"above {caps.warning}, the warning threshold of this server."
        )
    if not (n := questions.proposed_draw(caps)):
        return f"{warning} Choose a smaller epsilon for the questions that reveal most."
    return (
        f"{warning} Ask each person {_drawn_in_words(questions, n)}, chosen at random: total "
        f"epsilon {format_epsilon(log_rounded_up(questions.ratio_of(n)))}, a factor of at most "
        f"{odds_in_words(questions.ratio_of(n))}. Or choose a smaller epsilon."
    )


def _drawn_in_words(questions: Questions, n: int) -> str:
    """Return a number of drawn groups in words; a group without links is a question."""
    if questions.n_groups == len(questions.questions):
        return f"{n} question{'s' * (n > 1)}"
    return f"{n} of the {questions.n_groups} groups of questions"


def _weak_questions(questions: Questions) -> Iterator[str]:
    """Yield a warning for each weak question, or for each weak group of linked questions."""
    by_id = {question.id: question for question in questions.questions}
    for first, *others in groups_of(questions.questions):
        ratio = questions.linked_ratios[first]
        if ratio <= WEAK_QUESTION_ABOVE:
            continue
        subject, remedy = f"the question “{by_id[first].text}” alone", "Choose a smaller epsilon."
        is_joint = by_id[first].joint is not None
        if others:
            manner = "randomized jointly with it" if is_joint else "linked to it by skip logic"
            subject = f"the question “{by_id[first].text}” together with the questions {manner}"
            own_ratios = (by_id[id_].channel.ratio for id_ in (first, *others))
            if max(own_ratios) <= WEAK_QUESTION_ABOVE and not is_joint:
                conditions = "conditions" if len(others) > 1 else "condition"
                remedy = f"Remove the {conditions}, or choose a smaller epsilon."
        yield (
            f"Weak protection: {subject} changes the odds by a factor of at most "
            f"{odds_in_words(ratio)}. Above {WEAK_QUESTION_ABOVE}, the survey advises respondents "
            f"to skip questions that could hurt them. {remedy}"
        )


def _weak_topics(questions: Questions, caps: Caps) -> Iterator[str]:
    for topic, ratio in questions.weak_topics.items():
        remedy = "Choose a smaller epsilon for its questions."
        if n := questions.proposed_draw(caps):
            remedy = (
                f"Ask each person {_drawn_in_words(questions, n)}, chosen at random, or choose a "
                "smaller epsilon for its questions."
            )
        yield (
            f"Weak protection: one person’s answers about the topic “{topic}” together change the "
            f"odds by a factor of at most {odds_in_words(ratio)}. Above {WEAK_QUESTION_ABOVE}, the "
            f"survey advises respondents to skip questions that could hurt them. {remedy}"
        )


def _similar_questions(questions: Questions, others: Iterable[Definition]) -> list[str]:
    similar = similar_sets(questions.questions, questions.texts)
    within = (_similar_set_warning(questions, similar_set) for similar_set in similar)
    across = (text for definition in others for text in _similar_to(questions, definition))
    warnings = [*within, *across]
    n_more = len(warnings) - MAX_LISTED_WARNINGS
    if n_more <= 0:
        return warnings
    shown = warnings[:MAX_LISTED_WARNINGS]
    more = "1 more warning" if n_more == 1 else f"{n_more:,} more warnings"
    are = "is" if n_more == 1 else "are"
    return [*shown, f"{more} about nearly equal questions {are} not shown."]


def _similar_set_warning(questions: Questions, similar: Sequence[AnyQuestion]) -> str:
    """Return the warning about nearly equal questions of one survey."""
    ratio = questions.ratio_about(*(question.id for question in similar))
    together = f"Together they change the odds by a factor of at most {odds_in_words(ratio)}."
    texts = [f"“{question.text}”" for question in similar]
    if len(texts) == 2:
        return (
            f"{' and '.join(texts)} are nearly equal. {together} Give both the same topic, so that "
            "respondents see their joint factor, or remove one."
        )
    named, n_more = texts[:MAX_NAMED_QUESTIONS], len(texts) - MAX_NAMED_QUESTIONS
    last = f"{n_more:,} more" if n_more else named.pop()
    return (
        f"These questions are nearly equal: {', '.join(named)} and {last}. {together} Give all of "
        "them the same topic, so that respondents see their joint factor, or remove some."
    )


def _similar_to(questions: Questions, definition: Definition) -> Iterator[str]:
    """Yield warnings about questions that another survey also asks: one each, or one for all."""
    pairs = list(
        similar_to_others(
            questions.questions, definition.questions, questions.texts, question_texts(definition)
        )
    )
    if len(pairs) > SEPARATE_PAIRS:
        ratio = questions.ratio_about(*(question.id for question, _ in pairs))
        ratio *= definition.ratio_about([other.id for _, other in pairs])
        n = len({question.id for question, _ in pairs})
        yield (
            f"{n} questions, such as “{pairs[0][0].text}”, are nearly equal to questions in the "
            f"survey “{definition.title}”. The answers of one person to both surveys change the "
            f"odds by a factor of at most {odds_in_words(ratio)}. Ask different people, or remove "
            "the questions."
        )
        return
    for question, other in pairs:
        ratio = questions.ratio_about(question.id) * definition.linked_ratios[other.id]
        yield (
            f"“{question.text}” is nearly equal to “{other.text}” in the survey "
            f"“{definition.title}”. The answers of one person to both change the odds by a factor "
            f"of at most {odds_in_words(ratio)}. Ask different people, or remove the question."
        )
