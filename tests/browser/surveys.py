"""Surveys with a question of every type, as researchers write them."""

from __future__ import annotations

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
