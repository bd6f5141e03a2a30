"""Definitions of surveys that several tests use, as researchers write them in TOML.

`tests/vectors` and `tests/questionnaire` pin the bytes of some of them.
"""

from __future__ import annotations

from survey.questionnaire.canonical import freeze
from survey.questionnaire.definition import Definition
from survey.questionnaire.loading import load
from survey.settings import Caps


def publish(text: str | bytes) -> Definition:
    """Return a survey as published, with version 1."""
    content = text.encode() if isinstance(text, str) else text
    return freeze(load(content, "survey.toml", Caps()), 1)


# One question of every type, and conditions and sampling, for pages and results

EVERY_TYPE = """
slug = "small"
title = "Work and health"
introduction = "Six questions about work."
contact = "The research team, team@example.org"
epsilon = 0.5

[[pages]]
[[pages.questions]]
id = "reasons"
type = "multiple_choice"
text = "Why did you stay at home?"
help = "Think of the last month."
max_ticks = 2
options = [{id = "ill", label = "I was ill"}, {id = "child", label = "A child was ill"},
           {id = "tired", label = "I was tired"}]

[[pages]]
[[pages.questions]]
id = "hours"
type = "number"
text = "How many hours did you work last week?"
low = 0
high = 80
step = 5
unit = "hours"
does_not_apply = true

[[pages]]
[[pages.questions]]
id = "since"
type = "date"
text = "Since when have you worked here?"
low = 1998-03-02
high = 1998-12-31
step = 2

[[pages]]
[[pages.questions]]
id = "mood"
type = "scale"
text = "How do you feel at work?"
low = 0
high = 4
low_label = "Very bad"
high_label = "Very good"

[[pages]]
[[pages.questions]]
id = "warmth"
type = "number"
text = "How warm is your place of work?"
low = -10
high = 40
step = "0.5"
unit = "°C"
prefer_not_to_say = false
mechanism = "square_wave"

[[pages]]
title = "Places and tools"
[[pages.questions]]
id = "places"
type = "multiple_choice"
text = "Where do you work?"
mechanism = "sampled_options"
options = [{id = "office", label = "In an office"}, {id = "home", label = "At home"},
           {id = "road", label = "On the road"}, {id = "site", label = "On a site"}]
[[pages.questions]]
id = "tools"
type = "multiple_choice"
text = "Which of these do you use?"
mechanism = "subsets"
does_not_apply = true
prefer_not_to_say = false
options = [{id = "desk", label = "A desk"}, {id = "car", label = "A car"}]
"""

SLIDER = """
slug = "small"
title = "Pain"
epsilon = 1

[[pages]]
[[pages.questions]]
id = "pain"
type = "number"
text = {en = "How strong is your pain?", ar = "ما شدة ألمك؟"}
low = 0
high = 100
unit = {en = "points", ar = "نقطة"}
slider = true
low_label = {en = "No pain", ar = "لا ألم"}
high_label = {en = "Unbearable", ar = "لا يُحتمل"}

[[pages]]
[[pages.questions]]
id = "warmth"
type = "number"
text = {en = "How warm is your room?", ar = "ما حرارة غرفتك؟"}
low = -5
high = 40
step = "2.5"
slider = true
prefer_not_to_say = false
"""
"""Two sliders, in a left-to-right and a right-to-left language."""

DATES = """
slug = "small"
title = "Work and home"
epsilon = 1

[[pages]]
[[pages.questions]]
id = "month"
type = "date"
text = "When did you start this job?"
low = 2019-12-31
high = 2026-07-27
step = 30

[[pages]]
[[pages.questions]]
id = "weeks"
type = "date"
text = "When did you last change your team?"
low = 2024-01-03
high = 2026-02-25
step = 28
prefer_not_to_say = false

[[pages]]
[[pages.questions]]
id = "year"
type = "date"
text = "In which year did you move here?"
low = 1979-12-31
high = 2009-12-23
step = 365
does_not_apply = true
"""
"""Dates that are typed as months and as years."""

RANKING = """
slug = "small"
title = "What matters"
epsilon = "2.5"

[[pages]]
[[pages.questions]]
id = "matters"
type = "ranking"
text = "What matters most to you at work?"
does_not_apply = true
options = [{id = "pay", label = "Pay"}, {id = "time", label = "Free time"},
           {id = "team", label = "Colleagues"}, {id = "safe", label = "Safety"}]

[[pages]]
[[pages.questions]]
id = "works"
type = "yes_no"
text = "Do you work at night?"
"""

SKIPS = """
slug = "small"
title = "Nights"
allow_skip_logic = true
epsilon = 1

[[pages]]
[[pages.questions]]
id = "nights"
type = "yes_no"
text = "Do you work at night?"

[[pages]]
[[pages.questions]]
id = "often"
type = "single_choice"
text = "How many nights a week?"
does_not_apply = true
options = [{id = "one", label = "One or two"}, {id = "more", label = "More"}]
ask_if = { question = "nights", options = ["yes"] }

[[pages]]
[[pages.questions]]
id = "sleep"
type = "number"
text = "How many hours do you sleep after it?"
does_not_apply = true
low = 0
high = 12
ask_if = { question = "often", options = ["more"] }

[[pages]]
[[pages.questions]]
id = "tired"
type = "yes_no"
text = "Are you tired?"
"""

SAMPLED = """
slug = "small"
title = "Some of five"
epsilon = 1
questions_per_person = 2
""" + "".join(
    f"""
[[pages]]
[[pages.questions]]
id = "q{i}"
type = "yes_no"
text = "Question {i}?"
"""
    for i in range(5)
)

LINKED_TICKS = """
slug = "ticks"
title = "Ticks"
allow_skip_logic = true
epsilon = 1

[[pages]]
[[pages.questions]]
id = "where"
type = "multiple_choice"
text = "Where?"
max_ticks = 2
options = [{ id = "a", label = "A" }, { id = "b", label = "B" }, { id = "c", label = "C" }]

[[pages]]
[[pages.questions]]
id = "why"
type = "scale"
text = "How much?"
low = 1
high = 5
ask_if = { question = "where", options = ["b"] }

[[pages.questions]]
id = "both"
type = "yes_no"
text = "Both?"
ask_if = { question = "where", options = ["a", "b"] }
"""

# Every design, for the vectors that bind Python and JavaScript

TWO_CHOICES = b"""
slug = "vector"
title = "Vector \xe2\x80\x93 \xc3\xa9\xc3\xb1\xd8\xb9"
truth_probability = "3/4"
[[questions]]
id = "first"
type = "yes_no"
text = "First?"
[[questions]]
id = "second"
type = "single_choice"
text = "Second?"
prefer_not_to_say = false
options = [{id = "a", label = "A"}, {id = "b", label = "B"}, {id = "c", label = "C"}]
"""

ONE_REPORT = """
slug = "one-report"
title = "All options in one report"
[[questions]]
id = "tools"
type = "multiple_choice"
text = "Which of these do you use?"
mechanism = "half_space"
epsilon = 4
options = [{id = "a", label = "A"}, {id = "b", label = "B"}, {id = "c", label = "C"},
           {id = "d", label = "D"}, {id = "e", label = "E"}, {id = "f", label = "F"}]
[[questions]]
id = "drives"
type = "yes_no"
text = "Do you drive?"
epsilon = "0.7"
"""

JOINT = b"""
slug = "joint"
title = "Joint"
truth_probability = "3/4"
questions_per_person = 2
prefer_not_to_say = false
[[questions]]
id = "smoked"
type = "yes_no"
text = "Have you smoked?"
[[questions]]
id = "mood"
type = "scale"
text = "How are you?"
low = 1
high = 3
prefer_not_to_say = true
[[questions]]
id = "drank"
type = "single_choice"
text = "Have you drunk?"
options = [{id = "often", label = "Often"}, {id = "once", label = "Once"},
           {id = "never", label = "Never"}]
[[questions]]
id = "works"
type = "yes_no"
text = "Do you work?"
[[questions]]
id = "alone"
type = "yes_no"
text = "Do you live alone?"
[[questions]]
id = "hours"
type = "number"
text = "How many hours do you sleep?"
epsilon = 1
low = 0
high = 12
[[together]]
questions = ["drank", "smoked"]
joint = true
[[together]]
questions = ["alone", "works"]
"""
"""Two questions that are randomized as one, and two that are asked together."""

ITEMS = b"""
slug = "items"
title = "Many yes/no questions in one report"
prefer_not_to_say = false
epsilon = "0.5"
[[questions]]
id = "sleep"
type = "yes_no"
text = "Do you sleep badly?"
[[questions]]
id = "town"
type = "single_choice"
text = "Where do you live?"
options = [{id = "town", label = "In a town"}, {id = "village", label = "In a village"},
           {id = "farm", label = "On a farm"}]
[[questions]]
id = "smoke"
type = "yes_no"
text = "Do you smoke?"
[[questions]]
id = "drink"
type = "single_choice"
text = "Do you drink?"
options = [{id = "often", label = "Often"}, {id = "rarely", label = "Rarely or never"}]
[[questions]]
id = "alone"
type = "yes_no"
text = "Do you live alone?"
[[together]]
questions = ["smoke", "sleep", "alone", "drink"]
joint = true
mechanism = "half_space"
"""
"""Four questions with two options each that are randomized in one half-space."""

EVERY_DESIGN = b"""
slug = "every-type"
title = "Every type"
allow_skip_logic = true
epsilon = 0.7
[[pages]]
[[pages.questions]]
id = "works"
type = "yes_no"
text = "Do you work?"
[[pages.questions]]
id = "coins"
type = "yes_no"
text = "Coins?"
mechanism = "two_coins"
parameters = { truth = "1/2", yes = "1/3" }
[[pages.questions]]
id = "places"
type = "multiple_choice"
text = "Where?"
max_ticks = 2
mechanism = "bits"
options = [{id = "a", label = "A"}, {id = "b", label = "B"}, {id = "c", label = "C"}]
[[pages]]
[[pages.questions]]
id = "hours"
type = "number"
text = "How many hours?"
low = 0
high = 12
step = "0.5"
unit = "hours"
slider = true
low_label = "None"
mechanism = "hybrid"
ask_if = { question = "works", options = ["yes"] }
[[pages.questions]]
id = "why"
type = "multiple_choice"
text = "Why?"
mechanism = "sampled_options"
prefer_not_to_say = false
options = [{id = "a", label = "A"}, {id = "b", label = "B"}, {id = "c", label = "C"},
           {id = "d", label = "D"}]
[[pages.questions]]
id = "which"
type = "multiple_choice"
text = "Which?"
mechanism = "subsets"
does_not_apply = true
epsilon = 2
options = [{id = "a", label = "A"}, {id = "b", label = "B"}, {id = "c", label = "C"}]
[[pages.questions]]
id = "since"
type = "date"
text = "Since when?"
low = 2020-01-01
high = 2020-12-30
step = 7
mechanism = "square_wave"
does_not_apply = true
[[pages.questions]]
id = "mood"
type = "scale"
text = "How do you feel?"
low = 0
high = 10
mechanism = "geometric"
[[pages.questions]]
id = "group"
type = "single_choice"
text = "Which group?"
mechanism = "best"
options = [{id = "a", label = "A"}, {id = "b", label = "B"}, {id = "c", label = "C"},
           {id = "d", label = "D"}, {id = "e", label = "E"}, {id = "f", label = "F"},
           {id = "g", label = "G"}, {id = "h", label = "H"}]
[[pages.questions]]
id = "order"
type = "ranking"
text = "In which order?"
options = [{id = "a", label = "A"}, {id = "b", label = "B"}, {id = "c", label = "C"},
           {id = "d", label = "D"}]
"""

# Every kind of channel, for the audit

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
options = [{id = "a", label = "A", picture = "AB", picture_alt = "A"},
  {id = "b", label = "B", picture = "0C", picture_alt = "A bee"}, {id = "c", label = "C"},
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
CHOICES = CHOICES.replace("AB", "ab" * 32).replace("0C", "0c" * 32)

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
slider = true
high_label = "Very"
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

EVERY_CHANNEL = {
    "choices": CHOICES,
    "tables": TABLES,
    "numbers": NUMBERS,
    "ticks": TICKS,
    "one_report": ONE_REPORT,
    "routed": ROUTED,
    "drawn": DRAWN,
    "routed_and_drawn": ROUTED_AND_DRAWN,
    "joint": JOINT.decode(),
    "items": ITEMS.decode(),
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

_SAMPLING = """
slug = "{slug}"
title = "Some questions of many"
questions_per_person = {draw}
truth_probability = "3/4"
{questions}
"""
_QUESTION = """
[[questions]]
id = "q{i}"
type = "yes_no"
text = "Question {i}?"
"""


def _sampling(slug: str, draw: int, groups: int) -> str:
    questions = "".join(_QUESTION.format(i=i) for i in range(groups))
    return _SAMPLING.format(slug=slug, draw=draw, questions=questions)


TWO = f"""
slug = "two"
title = "Two channels of one kind and size"
{_QUESTION.format(i=0)}
truth_probability = "0.95"
{_QUESTION.format(i=1)}
truth_probability = "0.6"
"""

SAMPLING = {"two": TWO, "ten": _sampling("ten", 2, 10), "twelve": _sampling("twelve", 6, 12)}


# Eight questions that everybody is asked, for benchmarks and pictures

WORKPLACE = r'''
slug = "workplace"
title = "Your working conditions"
introduction = """
Thank you for taking a few minutes. We ask eight questions about your work over the last twelve \
months. Some of them are delicate; that is why your device randomizes every answer before it \
leaves.

This is a demonstration. Its other respondents are simulated."""
contact = "Questions about this survey: the works council, room 12."
helpline = "If you need to talk to somebody now, call your local helpline."
thanks = """
Thank you. The results will be shown to everybody at the next works meeting."""

[[pages]]
title = "Safety and health"

[[pages.questions]]
id = "injured"
type = "yes_no"
text = "In the last 12 months, were you hurt at work and did not report it?"
help = "Count any injury that needed more than a plaster."
epsilon = 0.8

[[pages.questions]]
id = "sick_at_work"
type = "single_choice"
text = "How often did you work although you were ill?"
epsilon = 0.8
options = [
  { id = "never", label = "Never" },
  { id = "once", label = "Once" },
  { id = "several", label = "Several times" },
]

[[pages]]
title = "How people treat each other"

[[pages.questions]]
id = "bullied"
type = "yes_no"
text = "Were you bullied at work in the last 12 months?"
help = "Bullying is behaviour that is meant to hurt or humiliate, again and again."
epsilon = 0.8

[[pages.questions]]
id = "harassed"
type = "yes_no"
text = "Did somebody at work touch or speak to you in a sexual way that you did not want?"
prefer_not_to_say = false
epsilon = 0.7

[[pages.questions]]
id = "support"
type = "multiple_choice"
text = "When things are hard, who at work supports you?"
none_of_these = "Nobody"
epsilon = 1.8
options = [
  { id = "colleagues", label = "Colleagues" },
  { id = "manager", label = "My manager" },
  { id = "council", label = "The works council" },
  { id = "doctor", label = "The company doctor" },
]

[[pages]]
title = "Hours and the future"

[[pages.questions]]
id = "unpaid_overtime"
type = "number"
text = "How many hours of unpaid overtime do you work in a usual week?"
help = "If it is more than 30 hours, write 30."
low = 0
high = 30
unit = "hours"
epsilon = 1.3

[[pages.questions]]
id = "satisfaction"
type = "scale"
text = "All in all, how satisfied are you with your work?"
epsilon = 1.2
prefer_not_to_say = false
options = [
  { id = "completely_dissatisfied", label = "Completely dissatisfied" },
  { id = "very_dissatisfied", label = "Very dissatisfied" },
  { id = "rather_dissatisfied", label = "Rather dissatisfied" },
  { id = "neither", label = "Neither" },
  { id = "rather_satisfied", label = "Rather satisfied" },
  { id = "very_satisfied", label = "Very satisfied" },
  { id = "completely_satisfied", label = "Completely satisfied" },
]

[[pages.questions]]
id = "leaving"
type = "yes_no"
text = "Are you looking for another job?"
prefer_not_to_say = false
epsilon = 0.5
'''

# A matrix, whose rows share one epsilon

MATRIX = """
slug = "small"
title = {en = "Work", es = "Trabajo"}

[[pages]]
[[pages.questions]]
id = "work"
type = "matrix"
text.en = "How satisfied are you with each of these?"
text.es = "¿Qué tan satisfecho está con lo siguiente?"
help = "Think of the last month."
low = 1
high = 5
low_label = "Not at all"
high_label = "Very"
epsilon = "2.7"
rows = [{id = "pay", text = {en = "Pay", es = "El sueldo"}},
        {id = "hours", text = "Working hours"},
        {id = "boss", text = "Your boss"}]
[[pages.questions]]
id = "old"
type = "yes_no"
text = "Have you worked here for more than a year?"
epsilon = 1
"""

# Texts that show earlier answers

PIPED = """
slug = "small"
title = {en = "Ways", es = "Caminos"}
allow_skip_logic = true
epsilon = 1

[[pages]]
[[pages.questions]]
id = "job"
type = "single_choice"
text = "Where do you work?"
options = [{id = "factory", label = {en = "the factory", es = "la fábrica"}},
           {id = "office", label = {en = "the office", es = "la oficina"}}]
[[pages.questions]]
id = "hours"
type = "number"
text = "How many hours?"
low = 0
high = 60
unit = "hours"

[[pages]]
[[pages.questions]]
id = "travel"
type = "yes_no"
text.en = "How long do you travel to {job|your work} {{one way}}?"
text.es = "¿Cuánto tarda en llegar a {job|su trabajo}?"
help = "You work {hours|some hours}."
[[pages.questions]]
id = "old"
type = "yes_no"
text = "Have you worked there for more than a year?"
"""
