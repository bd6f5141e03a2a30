"""Surveys with every kind of channel, for the tests of the audit."""

from __future__ import annotations

from survey.questionnaire.canonical import freeze
from survey.questionnaire.definition import Definition
from survey.questionnaire.loading import load
from survey.settings import Caps

CHOICES = """
slug = "choices"
title = "Every way to ask for a choice"
[[questions]]
id = "plain"
type = "yes_no"
text = "Plain?"
truth_probability = "3/4"
[[questions]]
id = "several"
type = "single_choice"
text = "Sets?"
mechanism = "best"
epsilon = "0.25"
options = [{id = "a", label = "A"}, {id = "b", label = "B"}, {id = "c", label = "C"},
  {id = "d", label = "D"}, {id = "e", label = "E"}, {id = "f", label = "F"}]
[[questions]]
id = "rated"
type = "scale"
text = "Rated?"
epsilon = 1
low = 1
high = 5
[[questions]]
id = "coins"
type = "yes_no"
text = "Coins?"
mechanism = "two_coins"
parameters = {truth = "1/2", yes = "1/3"}
[[questions]]
id = "wave"
type = "scale"
text = "Wave?"
mechanism = "square_wave"
epsilon = 1
low = 0
high = 10
prefer_not_to_say = false
"""

TABLES = """
slug = "tables"
title = "Numbers, with small tables"
[[questions]]
id = "few"
type = "number"
text = "Few?"
mechanism = "one_bit"
epsilon = 1
low = 0
high = 4
does_not_apply = true
[[questions]]
id = "some"
type = "number"
text = "Some?"
mechanism = "square_wave"
epsilon = 1
low = 0
high = 8
prefer_not_to_say = false
[[questions]]
id = "week"
type = "date"
text = "Week?"
mechanism = "geometric"
epsilon = 1
low = 2026-01-01
high = 2026-01-29
step = 7
"""

NUMBERS = """
slug = "numbers"
title = "Every way to ask for a number"
[[questions]]
id = "hours"
type = "number"
text = "Hours?"
epsilon = 1
low = 0
high = 6
[[questions]]
id = "bit"
type = "number"
text = "Bit?"
mechanism = "one_bit"
epsilon = "0.5"
low = 0
high = 1
step = "0.1"
prefer_not_to_say = false
[[questions]]
id = "day"
type = "date"
text = "Day?"
mechanism = "geometric"
epsilon = 1
low = 2026-01-01
high = 2026-01-29
does_not_apply = true
[[questions]]
id = "far"
type = "number"
text = "Far?"
mechanism = "piecewise"
epsilon = 1
low = 0
high = 10
"""

TICKS = """
slug = "ticks"
title = "Every way to ask for several options"
[[questions]]
id = "bits"
type = "multiple_choice"
text = "Bits?"
mechanism = "bits"
truth_probability = "3/4"
max_ticks = 2
options = [{id = "a", label = "A"}, {id = "b", label = "B"}, {id = "c", label = "C"}]
[[questions]]
id = "sampled"
type = "multiple_choice"
text = "Sampled?"
mechanism = "sampled_options"
epsilon = "1.5"
options = [{id = "a", label = "A"}, {id = "b", label = "B"}, {id = "c", label = "C"}]
[[questions]]
id = "subsets"
type = "multiple_choice"
text = "Subsets?"
mechanism = "subsets"
epsilon = "1.5"
max_ticks = 2
does_not_apply = true
options = [{id = "a", label = "A"}, {id = "b", label = "B"}, {id = "c", label = "C"}]
"""

ALONE = """
slug = "alone"
title = "One tick, or one that stands alone"
[[questions]]
id = "one"
type = "multiple_choice"
text = "One?"
mechanism = "bits"
truth_probability = "3/4"
max_ticks = 2
prefer_not_to_say = false
options = [{id = "a", label = "A"}, {id = "b", label = "B"}]
"""

ROUTED = """
slug = "routed"
title = "Questions that depend on others"
allow_skip_logic = true
truth_probability = "3/4"
[[pages]]
[[pages.questions]]
id = "works"
type = "yes_no"
text = "Work?"
[[pages.questions]]
id = "place"
type = "single_choice"
text = "Where?"
options = [{id = "north", label = "North"}, {id = "south", label = "South"}]
[[pages]]
[[pages.questions]]
id = "nights"
type = "yes_no"
text = "At night?"
ask_if = {question = "works", options = ["yes"]}
[[pages]]
[[pages.questions]]
id = "how_many"
type = "number"
text = "How many?"
mechanism = "square_wave"
epsilon = 1
low = 0
high = 7
ask_if = {question = "nights", options = ["yes"]}
"""

DRAWN = f"questions_per_person = 2\n{CHOICES}"
ROUTED_AND_DRAWN = f"questions_per_person = 1\n{ROUTED}"

ALL = {
    "choices": CHOICES,
    "tables": TABLES,
    "numbers": NUMBERS,
    "ticks": TICKS,
    "routed": ROUTED,
    "drawn": DRAWN,
    "routed_and_drawn": ROUTED_AND_DRAWN,
}


_LARGEST = """
slug = "largest"
title = "As large as surveys get"
[[questions]]
id = "fine"
type = "number"
text = "Fine?"
mechanism = "square_wave"
epsilon = 1
low = 0
high = 999
does_not_apply = true
[[questions]]
id = "many"
type = "multiple_choice"
text = "Many?"
mechanism = "bits"
epsilon = 2
options = [%s]
[[questions]]
id = "patterns"
type = "multiple_choice"
text = "Patterns?"
mechanism = "subsets"
epsilon = 3
options = [%s]
"""
_OPTIONS = [f'{{id = "o{i}", label = "Option {i}"}}' for i in range(97)]
LARGEST = _LARGEST % (",".join(_OPTIONS), ",".join(_OPTIONS[:9]))


def definition(text: str) -> Definition:
    """A survey as it is published."""
    return freeze(load(text.encode(), "survey.toml", Caps()), 1)
