"""Question types of XLSForm: the question that each becomes, or why it cannot be imported.

Sources: https://xlsform.org/en/#question-types, and the type aliases of pyxform 4.5.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from itertools import pairwise
from typing import Any, NamedTuple

from survey.mechanism.channel import MAX_GRID
from survey.mechanism.weight_table import MAX_RANKED, MIN_RANKED
from survey.questionnaire.error_messages import shortened
from survey.questionnaire.imports.assembly import Form, listed_options
from survey.questionnaire.imports.markup import Text
from survey.questionnaire.imports.xlsform_expressions import (
    Constraint,
    Limit,
    date_range,
    number_range,
    ticks,
)
from survey.questionnaire.imports.xlsform_sheets import OWN_STEP, Row, parse_parameters
from survey.questionnaire.kinds import WRITTEN_KINDS
from survey.questionnaire.kinds.base import NONE_ID, OPT_OUT_ID, SPECIAL
from survey.questionnaire.kinds.number import MAX_SLIDER
from survey.questionnaire.kinds.question import MAX_OPTIONS
from survey.questionnaire.kinds.scale import point_id

ONE, SEVERAL, RANK, FROM_FILE = "one", "several", "rank", "file"

SELECTS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("select_one_from_file", "select one from file", "select_multiple_from_file"),
            *("select multiple from file", "select_one_external", "select one external"),
        ),
        FROM_FILE,
    ),
    **dict.fromkeys(
        (
            *("add select multiple prompt using", "select all that apply from"),
            *("select multiple from", "select multiple using", "select all that apply"),
            *("select_multiple", "select multiple", "q select"),
        ),
        SEVERAL,
    ),
    **dict.fromkeys(
        (
            *("add select one prompt using", "select one from", "select one using"),
            *("select_one", "select one", "q select1", "select1"),
        ),
        ONE,
    ),
    "rank": RANK,
}
"""Types of questions with a list of options, each before the shorter ones that begin like it."""

NUMBERS: Mapping[str, str] = {
    **dict.fromkeys(("integer", "int", "decimal"), ""),
    "percentage": ". >= 0 and . <= 100",
    "number of days in last month": ". >= 0 and . <= 31",
    "number of days in last six months": ". >= 0 and . <= 183",
    "number of days in last year": ". >= 0 and . <= 366",
}
"""Types of numbers, with the constraint that each implies."""

FREE_TEXT = "free text cannot be randomized"
PLACES = "places cannot be randomized"
RECORDINGS = "pictures and recordings cannot be randomized"
DEVICE_DATA = "data about the device or the person is never collected"
TIMES = "times of day cannot be randomized; ask for a day or a number of hours"

DROPPED: Mapping[str, str] = {
    **dict.fromkeys(("text", "string"), FREE_TEXT),
    **dict.fromkeys(("geopoint", "geotrace", "geoshape", "gps", "location", "osm"), PLACES),
    **dict.fromkeys(("start-geopoint", "background-geopoint"), PLACES),
    **dict.fromkeys(("image", "photo", "picture", "audio", "video"), RECORDINGS),
    "background-audio": RECORDINGS,
    "file": "files cannot be randomized",
    "barcode": "codes identify things and cannot be randomized",
    **dict.fromkeys(("time", "datetime", "date time"), TIMES),
    **dict.fromkeys(("calculate", "hidden"), "calculated values would need the true answers"),
    **dict.fromkeys(("csv-external", "xml-external"), "data of other files have no counterpart"),
    **dict.fromkeys(("start", "start time", "end", "end time", "today", "audit"), DEVICE_DATA),
    **dict.fromkeys(("deviceid", "device id", "imei", "username", "email"), DEVICE_DATA),
    **dict.fromkeys(("phonenumber", "phone number", "simserial", "sim id"), DEVICE_DATA),
    **dict.fromkeys(("subscriberid", "subscriber id"), DEVICE_DATA),
}
"""Why elements of these types cannot be imported."""

NO_BOUNDS = "has no lowest and highest value, which a device needs to randomize it"


@dataclass(frozen=True)
class Answers:
    """How a question is answered.

    form     the keys of the question
    values   the values of its options in the file, by the options' ids
    changes  what the report says about it
    used     the columns that arrive
    """

    form: Form
    values: Mapping[str, Any] = field(default_factory=dict)
    changes: Sequence[str] = ()
    arriving: Collection[str] = ()


@dataclass
class OptionList:
    """A list of options: values with labels, and those with the meaning of an automatic option."""

    choices: list[tuple[str, Text]] = field(default_factory=list)
    special: dict[str, Text] = field(default_factory=dict)
    is_used: bool = False

    def most(self, method: str) -> int:
        """Return the maximum number of choices beside the options that are added automatically."""
        automatic = {OPT_OUT_ID, *self.special, *((NONE_ID,) if method == SEVERAL else ())}
        return MAX_OPTIONS - len(automatic)


class Select(NamedTuple):
    """How options are chosen, the name of their list, and whether there are other answers."""

    method: str = ""
    list_name: str = ""
    has_other: bool = False


def parse_select(kind: str) -> Select:
    """Return what a type says about options; an empty method if it has none.

    >>> parse_select("select_one colors or_other"), parse_select("Select one from yes_no").method
    (Select(method='one', list_name='colors', has_other=True), 'one')
    """
    text = " ".join(kind.split())
    for alias, method in SELECTS.items():
        if text.lower().startswith(f"{alias} "):
            list_text = text[len(alias) + 1 :]
            match = re.fullmatch(
                r"(\S.*?)\s(?:or_other|or other|or specify other)", list_text, re.I
            )
            return Select(method, match[1] if match else list_text, bool(match))
    return Select()


def usual_type(kind: str) -> str:
    """Return a type without the words that old forms put around it.

    >>> usual_type("add date prompt"), usual_type("q int"), usual_type("get device id")
    ('date', 'int', 'device id')
    """
    words = re.sub(r"^(add|q|get) ", "", kind.lower())
    return words.removesuffix(" prompt")


# Questions with options


def select_answers(row: Row, select: Select, options: OptionList | None) -> Answers | str:
    """Return how a question with options is answered, or why it cannot be imported."""
    if select.method == FROM_FILE:
        return "its options come from elsewhere"
    if options is None:
        return f'the sheet "choices" has no list {shortened(select.list_name)}'
    n, is_ranking = len(options.choices) + select.has_other, select.method == RANK
    low, high = (MIN_RANKED, MAX_RANKED) if is_ranking else (2, options.most(select.method))
    options.is_used = True
    if not low <= n <= high:
        return f"has {n} options; {low} to {high} are possible"
    changes = ["the option for other answers has no field for text"] if select.has_other else []
    parameters = parse_parameters(row.get("parameters"))
    is_shuffled = parameters.pop("randomize", "") == "true"
    if parameters:
        changes.append(f"has parameters without a counterpart: {_listed(parameters)}")
    if select.method == SEVERAL:
        answers = _multiple_choice(row, options, select.has_other)
    elif is_ranking:
        answers = _options({"type": "ranking"}, options, select.has_other)
    else:
        answers = _choice(row, options, select.has_other, is_shuffled)
    return Answers(
        {**answers.form, **({"shuffle_options": True} if is_shuffled else {})},
        answers.values,
        (*changes, *answers.changes),
        {"parameters", *answers.arriving},
    )


def _options(
    form: Form, options: OptionList, has_other: bool = False, without: Collection[str] = ()
) -> Answers:
    """Return a question with a list of options."""
    listed = [choice for choice in options.choices if choice[0] not in without]
    forms, values = listed_options([*listed, *([("other", "Other")] if has_other else [])])
    is_multiple = WRITTEN_KINDS[form["type"]].is_multiple
    special = {
        name: label for name, label in options.special.items() if name != NONE_ID or is_multiple
    }
    own_values = dict(zip(special, special, strict=True))
    return Answers({**form, "options": forms, **special}, {**values, **own_values})


def _choice(row: Row, options: OptionList, has_other: bool, is_shuffled: bool) -> Answers:
    """Return a question with one answer: yes or no, a scale, or a list."""
    if not has_other and not is_shuffled:
        if [value.lower() for value, _ in options.choices] == ["yes", "no"]:
            return _options({"type": "yes_no"}, options)
        if "likert" in row.words or _numbered(options.choices):
            scale = scale_answers(options)
            arriving = {"appearance"} if row.words == ["likert"] else ()
            return Answers(scale.form, scale.values, (), arriving)
    return _options({"type": "single_choice"}, options, has_other)


def scale_answers(options: OptionList) -> Answers:
    """Return a scale: from one number to another if its labels say so, else its options."""
    answers = _options({"type": "scale"}, options)
    numbers = _numbered(options.choices)
    if not numbers:
        return answers
    labels = [label for _, label in options.choices]
    points = [
        {"id": point_id(number), "label": label}
        for number, label in zip(numbers, labels, strict=True)
    ]
    grid = {"low": numbers[0], "points": len(numbers)}
    ends = WRITTEN_KINDS["scale"].source({"grid": grid, "options": points})
    form = {key: value for key, value in answers.form.items() if key != "options"}
    values = {point_id(number): str(number) for number in numbers}
    return Answers({**form, **ends}, {**values, **{name: name for name in form if name in SPECIAL}})


def _multiple_choice(row: Row, options: OptionList, has_other: bool) -> Answers:
    demanded = ticks(row.get("constraint"))
    labels = dict(options.choices)
    alone = [value for value in demanded.alone if value in labels]
    none = alone[0] if alone and NONE_ID not in options.special else ""
    answers = _options({"type": "multiple_choice"}, options, has_other, {none})
    form, values, changes = dict(answers.form), dict(answers.values), []
    if none:
        form[NONE_ID], values[NONE_ID] = labels[none], none
        changes.append(f'"{shortened(none)}" is the option for none of these')
    if demanded.maximum is not None and 1 <= demanded.maximum < len(form["options"]):
        form["max_ticks"] = demanded.maximum
    if remainder := [*alone[bool(none) :], *demanded.remainder]:
        changes.append(f"only the number of ticks is checked, not: {_listed(remainder)}")
    return Answers(form, values, changes, {"constraint"})


def _numbered(choices: Sequence[tuple[str, Text]]) -> list[int]:
    """Return the numbers of options that are whole numbers in order, labelled as such; or none.

    Only the labels of the ends may say more: "0", "1", "2 (often)".
    """
    if not all(re.fullmatch(r"-?[0-9]{1,9}", value) for value, _ in choices):
        return []
    numbers = [int(value) for value, _ in choices]
    if any(after - before != 1 for before, after in pairwise(numbers)):
        return []
    for i, (number, (_, label)) in enumerate(zip(numbers, choices, strict=True)):
        is_end = i in (0, len(numbers) - 1)
        for text in [label] if isinstance(label, str) else label.values():
            if text != str(number) and not (is_end and re.fullmatch(rf"{number} \(.+\)", text)):
                return []
    return numbers


# Numbers and days


def number_answers(row: Row, words: str) -> Answers | str:
    """Return how a number between two bounds is answered, or why it cannot be imported."""
    expressions = [NUMBERS[words], row.get("constraint")]
    demanded = number_range(" and ".join(f"({part})" for part in expressions if part))
    if demanded.low is None or demanded.high is None:
        return _without_bounds(row)
    low, high, changes = demanded.low, demanded.high, _unchecked(demanded)
    is_whole = words != "decimal"
    if is_whole:
        ends = _whole(low, ROUND_CEILING, 1), _whole(high, ROUND_FLOOR, -1)
    else:
        ends = low.value, high.value
        if low.is_strict or high.is_strict:
            changes.append("its lowest and highest value are possible answers, too")
    own_step = row.get(OWN_STEP) if _NUMBER.fullmatch(row.get(OWN_STEP)) else ""
    step = own_step or _in_digits(_step(*ends, is_whole=is_whole))
    if not own_step and step != "1":
        changes.append(f"is rounded to steps of {step}")
    form = {"type": "number", "low": _in_digits(ends[0]), "high": _in_digits(ends[1]), "step": step}
    return Answers(form, {}, changes, {"constraint", *((OWN_STEP,) if own_step else ())})


def range_answers(row: Row) -> Answers | str:
    """Return how a number on a slider is answered, or why it cannot be imported."""
    usual = {"start": "1", "end": "10", "step": "1"}
    parameters = usual | parse_parameters(row.get("parameters"))
    numbers = [
        Decimal(parameters.pop(name)) for name in usual if _NUMBER.fullmatch(parameters[name])
    ]
    if len(numbers) < len(usual) or not numbers[-1]:
        return NO_BOUNDS
    start, end, step = numbers
    low, high, step = min(start, end), max(start, end), abs(step)
    is_slider = (high - low) / step < MAX_SLIDER
    changes = [] if is_slider else [f"is typed: a slider has at most {MAX_SLIDER} points"]
    if start > end:
        changes.append("begins at its lower end")
    if parameters:
        changes.append(f"has parameters without a counterpart: {_listed(parameters)}")
    form = {
        "type": "number",
        "low": _in_digits(low),
        "high": _in_digits(high),
        "step": _in_digits(step),
    }
    return Answers({**form, **({"slider": True} if is_slider else {})}, {}, changes, {"parameters"})


def date_answers(row: Row, today: date) -> Answers | str:
    """Return how a day between two days is answered, or why it cannot be imported."""
    demanded = date_range(row.get("constraint"), today)
    if demanded.low is None or demanded.high is None:
        return _without_bounds(row)
    changes = _unchecked(demanded)
    if demanded.is_relative:
        changes.append("today() is the day of the import")
    own_step = row.get(OWN_STEP) if re.fullmatch("[1-9][0-9]{0,5}", row.get(OWN_STEP)) else ""
    step = int(own_step or 0)
    try:
        low = demanded.low.value + timedelta(demanded.low.is_strict)
        high = demanded.high.value - timedelta(demanded.high.is_strict)
        if not step and (days := (high - low).days) >= MAX_GRID:
            step = -(-days // (MAX_GRID - 1))
            low -= timedelta(-days % step)
            changes.append(f"is rounded to {step} days, from {low} on")
    except (ValueError, OverflowError):
        return "has days outside of the calendar"
    form = {"type": "date", "low": str(low), "high": str(high), "step": step or 1}
    return Answers(form, {}, changes, {"constraint", *((OWN_STEP,) if own_step else ())})


def _without_bounds(row: Row) -> str:
    constraint = row.get("constraint")
    return NO_BOUNDS + (f" (its constraint: {shortened(constraint)})" if constraint else "")


_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,9})?")


def _listed(names: Iterable[str]) -> str:
    return shortened(", ".join(names))


def _unchecked(demanded: Constraint[Any]) -> list[str]:
    """Return what the report says about parts of a constraint that are no range."""
    remainder = _listed(demanded.remainder)
    return [f"only its range is checked, not: {remainder}"] if demanded.remainder else []


def _whole(limit: Limit[Decimal], rounding: str, inward: int) -> Decimal:
    """Return the first whole number inside of a limit."""
    value = limit.value.to_integral_value(rounding)
    return value + inward if limit.is_strict and value == limit.value else value


def _step(low: Decimal, high: Decimal, *, is_whole: bool) -> Decimal:
    """Return the finest step of a usual size that gives a grid of an allowed size.

    >>> _step(Decimal(0), Decimal(100), is_whole=True)
    Decimal('1')
    >>> _in_digits(_step(Decimal(0), Decimal(50_000), is_whole=True))
    '100'
    """
    exponents = [-int(end.normalize().as_tuple().exponent) for end in (low, high)]
    decimals = 0 if is_whole else max(1, *exponents)
    steps = [Decimal(n).scaleb(e) for e in range(-decimals, 10) for n in (1, 2, 5)]
    fitting = (step for step in steps if (high - low) / step < MAX_GRID and not (high - low) % step)
    return next(fitting, steps[0])


def _in_digits(number: Decimal) -> str:
    """Return a number without exponent: "100", "0.5"."""
    return format(number.normalize(), "f")
