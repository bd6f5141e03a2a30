"""Refusals in the words of the builder's forms: the loader's are those of definition files.

Nobody who fills in forms has seen a key such as truth_probability, nor can write "= true". The
forms take the names of their fields from here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from survey.questionnaire.designs import PRIVACY

FIELD_NAMES: Mapping[str, str] = MappingProxyType(
    {
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
    }
)
"""What fields are called that refusals of others name, by their keys."""

MECHANISM_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "grr": "Generalized randomized response",
        "best": "The one with the smallest error at this epsilon",
        "warner": "Warner’s two questions",
        "two_coins": "Two coins",
        "unrelated_question": "Unrelated question",
        "forced_response": "Forced response",
        "exponential": "Exponential, by a table of utilities",
        "geometric": "Geometric: near answers are likelier",
        "laplace": "Laplace: near answers are likelier",
        "gaussian": "Gaussian: near answers are likelier",
        "square_wave": "Square wave: for the whole distribution",
        "one_bit": "One bit: for the mean alone",
        "piecewise": "Piecewise: for the mean",
        "hybrid": "Hybrid: for the mean",
        "bits": "Each answer by itself",
        "sampled_options": "Some of the answers, drawn",
        "subsets": "All answers as one",
    }
)
"""What the builder calls the designs."""

WAY_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "": "Standard: odds factor of at most 3",
        "truth_probability": "By truth probability",
        "keep_probability": "By keep probability",
        "epsilon": "By epsilon",
    }
)
"""What the builder calls the ways to state a privacy; "" is none, which is the usual one."""

PATTERNS: Mapping[str, str] = MappingProxyType(
    {
        "^[a-z][a-z0-9_]*$": "is not an id: use lowercase letters a to z, digits and _, "
        "starting with a letter",
        "^[a-z0-9]+(-[a-z0-9]+)*$": "is not a short name: use lowercase letters a to z and "
        "digits, with - between them",
        r"^[^\n]*$": "has more than one line",
        "^[!-~]*$": "is not an address: it contains spaces or accented letters",
    }
)
"""What a text is not that does not fit a pattern; other patterns are those of languages."""


def form_message(text: str, field: str = "") -> str:
    """A refusal for somebody who fills in forms; `field` is the one it stands beside.

    >>> form_message("state epsilon, not truth_probability (mechanism exponential)")
    'choose “By epsilon” under “How private”, as “Exponential, by a table of utilities” needs it'
    >>> form_message("epsilon = 99 is too weak; the nearest allowed value is epsilon = 4.6")
    'epsilon 99 is too weak; the nearest allowed value is epsilon 4.6'
    """
    if field in ("options", "ask_options") and (counted := _counted(text, field)):
        return counted
    for pattern, said in _RULES:
        text = re.sub(pattern, said, text)
    return text


def _counted(text: str, field: str) -> str:
    """A list of answers that is too short, or not there."""
    if field == "ask_options" and re.match("has 0 entries|is missing", text):
        return "choose at least one answer"
    if text == "is missing":
        return "there are no answers yet; at least 2 are required"
    counts = re.fullmatch(r"has ([\d,]+) entries; (the nearest allowed number is \d+)", text)
    return f"the number of answers is {counts[1]}; {counts[2]}" if counts else ""


def _of_state(found: re.Match[str]) -> str:
    """By which of its ways a design has to be stated."""
    ways, name = found["ways"].split(", "), found["design"]
    needs = f": “{MECHANISM_NAMES.get(name, name)}” requires it" if name else ""
    if not set(ways) & set(PRIVACY):
        return f"write a line “{ways[0]} = …” under “{FIELD_NAMES['parameters']}”" + (
            f", and choose “{WAY_NAMES['']}” under “{FIELD_NAMES['way']}”{needs}"
            if set((found["told"] or "").split(" and ")) & set(PRIVACY)
            else needs
        )
    named = " or ".join(f"“{WAY_NAMES.get(way, way)}”" for way in ways)
    return f"choose {named} under “{FIELD_NAMES['way']}”{needs}"


def _of_parameters(found: re.Match[str]) -> str:
    """Which parameters a design has, as they are typed."""
    mechanism = f"“{MECHANISM_NAMES.get(found['design'], found['design'])}”"
    field = f"“{FIELD_NAMES['parameters']}”"
    if not found["names"]:
        return f"{mechanism} has no parameters: leave {field} blank"
    lines = [f"“{name} = …”" for name in found["names"].split(", ")]
    some = "a line" if len(lines) == 1 else "the lines"
    return f"{mechanism} needs {some} {' and '.join(lines)} under {field}, and no others"


def _of_mechanisms(found: re.Match[str]) -> str:
    known = ", ".join(MECHANISM_NAMES.get(name, name) for name in found["names"].split(", "))
    name = MECHANISM_NAMES.get(found["design"], found["design"])
    return f"“{name}” is not a mechanism for this type of question; available: {known}"


def _of_pattern(found: re.Match[str]) -> str:
    return f"{found['value']} {PATTERNS.get(found['pattern'], 'is not in the required format')}"


def _in_small(key: str) -> str:
    return FIELD_NAMES[key].lower()


_SKIPPED = "a question that is asked only after certain answers"

_RULES: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (
        r"^needs allow_skip_logic = true for the survey",
        f"{_SKIPPED} requires “{FIELD_NAMES['allow_skip_logic']}” to be ticked under Texts "
        "and settings",
    ),
    (
        r"^needs the option does_not_apply, which stands for a skipped question",
        f"{_SKIPPED} requires “{FIELD_NAMES['does_not_apply']}” to be ticked, which stands for a "
        "skipped question",
    ),
    (
        r"write (prefer_not_to_say|does_not_apply) = false to leave it out",
        lambda found: f"untick “{FIELD_NAMES[found[1]]}” to leave it out",
    ),
    (
        r"^state (?:one of )?(?P<ways>[a-z_, ]+), (?:not (?P<told>[a-z_ ]+)|here or for the whole "
        r"survey)(?: \(mechanism (?P<design>\w+)\))?$",
        _of_state,
    ),
    (
        r"^mechanism (?P<design>\w+) has (?:no parameters|the parameters (?P<names>[a-z_, ]+))$",
        _of_parameters,
    ),
    (
        r'^mechanism "(?P<design>[^"]*)" does not exist for a \w+ question; '
        r"available: (?P<names>[a-z_, ]+)$",
        _of_mechanisms,
    ),
    (
        r"^mechanism (\w+): ",
        lambda found: f"“{MECHANISM_NAMES.get(found[1], found[1])}”: ",
    ),
    (r"\bparameters\.(\w+)", r"the parameter \1"),
    (r"max_ticks = (-?[\d,]+) of (\d+) options", r"\1 ticks of \2 answers"),
    (r"max_ticks = ", ""),
    (
        r"^a scale has options in order, or low and high, not both$",
        f"a scale has answers in order, or “{FIELD_NAMES['low']}” and “{FIELD_NAMES['high']}”, "
        "not both",
    ),
    (
        r"^low_label and high_label go with low and high$",
        f"“{FIELD_NAMES['low_label']}” and “{FIELD_NAMES['high_label']}” go with "
        f"“{FIELD_NAMES['low']}” and “{FIELD_NAMES['high']}”",
    ),
    (r"\b(low|high|step) = ", lambda found: f"{_in_small(found[1])} "),
    (r"\b(truth|keep)_probability = ", r"\1 probability "),
    (r"\bepsilon = ", "epsilon "),
    (r"\b(truth|keep)_probability\b", r"\1 probability"),
    (r"\bthe caps of this instance allow\b", "the limits of this server allow"),
    (r"cannot be drawn at random; leave it out$", "cannot be drawn at random; leave it blank"),
    (r"^input should be a valid integer.*$", "must be a whole number"),
    (r"^input should be greater than or equal to ", "must be at least "),
    (r"^input should be less than or equal to ", "must be at most "),
    (
        r'^(?P<value>".*"|a \w+|this) does not fit: string should match pattern '
        r"'(?P<pattern>.*)'$",
        _of_pattern,
    ),
)
"""In this order: what is wrong as a whole before the keys that are in anything."""
