"""Error messages in the words of the builder's forms.

The loader's messages use the keys of definition files, such as truth_probability, which users of
the forms never see. The forms take the labels of their fields from here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction

from survey.questionnaire.designs import PRIVACY
from survey.questionnaire.privacy_loss import STRONG_UP_TO, odds_in_words, strength

FIELD_NAMES: Mapping[str, str] = {
    "allow_skip_logic": "Ask questions only after certain answers (skip logic)",
    "prefer_not_to_say": "Offer “Prefer not to say”",
    "does_not_apply": "Offer “Does not apply”",
    "way": "Privacy level",
    "parameters": "Parameters of the mechanism",
    "low_label": "Label of the lowest",
    "high_label": "Label of the highest",
    "low": "Lowest",
    "high": "Highest",
    "step": "Step",
    "slider": "Show as a slider",
}
"""Labels of the fields that messages about other fields name, by key."""

MECHANISM_NAMES: Mapping[str, str] = {
    "grr": "Generalized randomized response",
    "best": "Smallest error at this epsilon",
    "warner": "Warner’s two questions",
    "two_coins": "Two coins",
    "unrelated_question": "Unrelated question",
    "forced_response": "Forced response",
    "exponential": "Exponential: by utilities",
    "geometric": "Geometric: nearby answers are more likely",
    "laplace": "Laplace: nearby answers are more likely",
    "gaussian": "Gaussian: nearby answers are more likely",
    "square_wave": "Square wave: for the whole distribution",
    "one_bit": "One bit: for the mean only",
    "piecewise": "Piecewise: for the mean",
    "hybrid": "Hybrid: for the mean",
    "optimal_piecewise": "Optimal piecewise: for the mean above epsilon 1.5",
    "bits": "Each answer separately",
    "sampled_options": "Some answers, selected at random",
    "half_space": "All answers in one report: most of them right",
    "subsets": "All answers together: one of all possible sets",
    "first_or_order": "The first choice, or the order of a few answers",
}
"""The names of the designs in the builder."""

WAY_NAMES: Mapping[str, str] = {
    "truth_probability": "By truth probability",
    "keep_probability": "By keep probability",
    "epsilon": "By epsilon",
}
"""The names of the ways to state the privacy exactly."""

LEVELS = ("0.5", "0.8", "", "1.7", "2.9")
"""The epsilons of the privacy levels, from the strongest; "" is the standard level, ln 3."""


def level_name(level: str) -> str:
    """Return the word for the protection of one report at a privacy level, and its odds factor.

    >>> [level_name(level) for level in ("0.8", "", "1.7")]
    ['Strong (ε 0.8): odds factor of at most 2.3', 'Strong (standard): odds factor of at most 3', \
'Moderate (ε 1.7): odds factor of at most 5.5']
    """
    ratio = Fraction(math.exp(float(level))) if level else Fraction(STRONG_UP_TO)
    manner = f"ε {level}" if level else "standard"
    return (
        f"{strength(ratio).capitalize()} ({manner}): odds factor of at most {odds_in_words(ratio)}"
    )


PATTERNS: Mapping[str, str] = {
    "^[a-z][a-z0-9_]*$": "is not an id: use lowercase letters a to z, digits and _, "
    "starting with a letter",
    "^[a-z0-9]+(-[a-z0-9]+)*$": "is not a short name: use lowercase letters a to z and "
    "digits, with - between them",
    r"^[^\n]*$": "has more than one line",
    "^[!-~]*$": "is not an address: it contains spaces or accented letters",
}
"""Messages for texts that do not match a pattern."""


def form_message(text: str, field: str = "") -> str:
    """Return a loader's message in the words of the forms; `field` is the one beside it.

    >>> form_message("state epsilon, not truth_probability (mechanism exponential)")
    'choose “By epsilon” under “Privacy level”: “Exponential: by utilities” requires it'
    >>> form_message("epsilon = 99 is too weak; the nearest allowed value is epsilon = 4.6")
    'epsilon 99 is too weak; the nearest allowed value is epsilon 4.6'
    >>> form_message(
    ...     "epsilon = 8 is too weak for 3 options: truth probability is at most 0.99 and epsilon "
    ...     "at most 8; the nearest allowed value is epsilon = 5.288"
    ... )
    'with 3 answers the maximum is 5.288'
    """
    if field in ("options", "ask_options", "rows") and (message := _count_message(text, field)):
        return message
    for pattern, replacement in _RULES:
        text = re.sub(pattern, replacement, text)
    return text


def _count_message(text: str, field: str) -> str:
    """Return the message for a list of answers that is too short or missing."""
    if field == "ask_options" and re.match("has 0 entries|is missing", text):
        return "choose at least one answer"
    if field == "rows":
        return _row_count_message(text)
    if text == "is missing":
        return "there are no answers yet; at least 2 are required"
    counts = re.fullmatch(r"has ([\d,]+) entries; (the nearest allowed number is \d+)", text)
    return f"the number of answers is {counts[1]}; {counts[2]}" if counts else ""


def _row_count_message(text: str) -> str:
    if text == "is missing":
        return "there are no rows yet; at least 2 are required"
    counts = re.fullmatch(r"has ([\d,]+) entries; (the nearest allowed number is \d+)", text)
    return f"the number of rows is {counts[1]}; {counts[2]}" if counts else ""


def _missing_statement(match: re.Match[str]) -> str:
    """Return the ways in which a design has to be stated."""
    ways, name = match["ways"].split(", "), match["design"]
    needs = f": “{MECHANISM_NAMES.get(name, name)}” requires it" if name else ""
    if not set(ways) & set(PRIVACY):
        return f"write a line “{ways[0]} = …” under “{FIELD_NAMES['parameters']}”" + (
            f", and choose “{level_name('')}” under “{FIELD_NAMES['way']}”{needs}"
            if set((match["given"] or "").split(" and ")) & set(PRIVACY)
            else needs
        )
    ways_text = " or ".join(f"“{WAY_NAMES.get(way, way)}”" for way in ways)
    return f"choose {ways_text} under “{FIELD_NAMES['way']}”{needs}"


def _wrong_parameters(match: re.Match[str]) -> str:
    """Return the parameters of a design as they are typed."""
    mechanism = f"“{MECHANISM_NAMES.get(match['design'], match['design'])}”"
    field = f"“{FIELD_NAMES['parameters']}”"
    if not match["names"]:
        return f"{mechanism} has no parameters: leave {field} blank"
    lines = [f"“{name} = …”" for name in match["names"].split(", ")]
    prefix = "a line" if len(lines) == 1 else "the lines"
    return f"{mechanism} needs {prefix} {' and '.join(lines)} under {field}, and no others"


def _unknown_mechanism(match: re.Match[str]) -> str:
    names = ", ".join(MECHANISM_NAMES.get(name, name) for name in match["names"].split(", "))
    name = MECHANISM_NAMES.get(match["design"], match["design"])
    return f"“{name}” is not a mechanism for this type of question; available: {names}"


_SKIPPED = "a question that is asked only after certain answers"

_RULES: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (
        r"^needs allow_skip_logic = true for the survey",
        f"{_SKIPPED} requires “{FIELD_NAMES['allow_skip_logic']}” to be ticked under Texts "
        "and settings",
    ),
    (
        r"^needs the option does_not_apply, which stands for a skipped question",
        f"{_SKIPPED} requires “{FIELD_NAMES['does_not_apply']}” to be ticked, because "
        "skipped questions are sent as this answer",
    ),
    ("^needs kiosk = true: ", "is for shared devices only: "),
    (
        r"which needs allow_skip_logic = true for the survey$",
        f"which requires “{FIELD_NAMES['allow_skip_logic']}” to be ticked under Texts and settings",
    ),
    (
        r": declare in together that each person is asked both or neither$",
        ": choose it under “Asked together with”",
    ),
    (r'^needs access = "open": ', "is for surveys that everyone with the link can answer: "),
    (
        r"write (prefer_not_to_say|does_not_apply) = false to leave it out",
        lambda match: f"untick “{FIELD_NAMES[match[1]]}” to leave it out",
    ),
    (
        r"^state (?:one of )?(?P<ways>[a-z_, ]+), (?:not (?P<given>[a-z_ ]+)|here or for the whole "
        r"survey)(?: \(mechanism (?P<design>\w+)\))?$",
        _missing_statement,
    ),
    (
        r"^mechanism (?P<design>\w+) has (?:no parameters|the parameters (?P<names>[a-z_, ]+))$",
        _wrong_parameters,
    ),
    (
        r'^mechanism "(?P<design>[^"]*)" does not exist for a \w+ question; '
        r"available: (?P<names>[a-z_, ]+)$",
        _unknown_mechanism,
    ),
    (
        r"^(?P<way>epsilon|truth_probability|keep_probability) = \S+ is too weak for "
        r"(?:(?P<options>[\d,]+) options|a grid of (?P<points>[\d,]+) points): .*; "
        r"the nearest allowed value is (?P=way) = (?P<maximum>\S+)$",
        lambda match: (
            f"with {match['options'] or match['points']} "
            f"{'answers' if match['options'] else 'values'} the maximum is {match['maximum']}"
        ),
    ),
    (r"^mechanism (\w+): ", lambda match: f"“{MECHANISM_NAMES.get(match[1], match[1])}”: "),
    (r"\bparameters\.(\w+)", r"the parameter \1"),
    (
        r"max_ticks = (-?[\d,]+) is not possible with (\d+) options",
        r"\1 ticks are not possible with \2 answers",
    ),
    (r"max_ticks = ", ""),
    (
        r"^a scale has options in order, or low and high, not both$",
        f"a scale has answers in order, or “{FIELD_NAMES['low']}” and “{FIELD_NAMES['high']}”, "
        "not both",
    ),
    (
        r"^a scale needs options in order, or both low and high$",
        f"enter the answers in order, or “{FIELD_NAMES['low']}” and “{FIELD_NAMES['high']}”",
    ),
    (
        r"^low_label and high_label go with low and high$",
        f"“{FIELD_NAMES['low_label']}” and “{FIELD_NAMES['high_label']}” go with "
        f"“{FIELD_NAMES['low']}” and “{FIELD_NAMES['high']}”",
    ),
    (
        r"^low_label and high_label of a number need slider = true$",
        f"“{FIELD_NAMES['low_label']}” and “{FIELD_NAMES['high_label']}” appear on a slider only: "
        f"tick “{FIELD_NAMES['slider']}”, or clear them",
    ),
    (
        r"leave out slider to ask for a typed number",
        f"untick “{FIELD_NAMES['slider']}” to ask for a typed number",
    ),
    (r"\b(low|high|step) = ", lambda match: f"{FIELD_NAMES[match[1]].lower()} "),
    (r"\b(truth|keep)_probability = ", r"\1 probability "),
    (r"\bepsilon = ", "epsilon "),
    (r"\b(truth|keep)_probability\b", r"\1 probability"),
    (r"cannot be drawn at random; leave it out$", "cannot be drawn at random; leave it blank"),
    (r"^input should be a valid integer.*$", "must be a whole number"),
    (r"^input should be greater than or equal to ", "must be at least "),
    (r"^input should be less than or equal to ", "must be at most "),
    (
        r'^(?P<value>".*"|a \w+|this) does not fit: string should match pattern '
        r"'(?P<pattern>.*)'$",
        lambda match: (
            f"{match['value']} {PATTERNS.get(match['pattern'], 'is not in the required format')}"
        ),
    ),
)
"""Patterns and their replacements, in order: whole messages before single keys."""
