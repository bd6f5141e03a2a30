"""The names of LimeSurvey's question types, attributes and settings, and what becomes of them.

Sources: https://www.limesurvey.org/manual/Question_types and
https://www.limesurvey.org/manual/Advanced_question_settings
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

KINDS: Mapping[str, str] = {
    "5": "5 point choice",
    "A": "array, 5 points",
    "B": "array, 10 points",
    "C": "array, yes, no or uncertain",
    "E": "array, increase, same or decrease",
    "F": "array",
    "H": "array by column",
    "1": "array with two scales",
    ":": "array of numbers",
    ";": "array of texts",
    "D": "date",
    "G": "gender",
    "I": "language switch",
    "K": "multiple numbers",
    "L": "list, radio",
    "!": "list, dropdown",
    "O": "list with comment",
    "M": "multiple choice",
    "P": "multiple choice with comments",
    "N": "number",
    "Q": "multiple short texts",
    "R": "ranking",
    "S": "short free text",
    "T": "long free text",
    "U": "huge free text",
    "X": "text display",
    "Y": "yes or no",
    "|": "file upload",
    "*": "equation",
}
"""The names of the question types."""

FREE_TEXT = "free text cannot be randomized"

DROPPED: Mapping[str, str] = {
    **dict.fromkeys(("Q", "S", "T", "U", ";"), FREE_TEXT),
    "|": "files cannot be randomized",
    "*": "calculated values would need the true answers",
}
"""Why questions of these types cannot be imported."""

SCALES: Mapping[str, tuple[int, int]] = {"5": (1, 5), "A": (1, 5), "B": (1, 10)}
"""The ends of the numbered scales, by type of question."""

WORDS: Mapping[str, Sequence[tuple[str, str]]] = {
    "C": (("Y", "Yes"), ("U", "Uncertain"), ("N", "No")),
    "E": (("I", "Increase"), ("S", "Same"), ("D", "Decrease")),
    "G": (("F", "Female"), ("M", "Male")),
}
"""Codes and labels of the answers that LimeSurvey provides, by type of question."""

ENGLISH_WORDS = "the answers that LimeSurvey provides arrive in English; translate them"

OTHER = "-oth-"
"""LimeSurvey's code of the answer "Other"."""

MAX_CELLS = 60
"""Maximum number of questions made from one array."""

NO_COMMENT = "the fields for comments are left out: free text cannot be randomized"

REASONS: Mapping[str, str] = {
    "preg": "answers are not checked with patterns",
    **dict.fromkeys(
        ("array_filter", "array_filter_exclude"), "options cannot depend on earlier answers"
    ),
    **dict.fromkeys(
        ("em_validation_q", "em_validation_sq"), "answers are not checked by equations"
    ),
    **dict.fromkeys(("min_answers",), "a minimum of answers cannot be required"),
    "exclude_all_others": "only one option can exclude all others",
    "exclude_all_others_auto": "only one option can exclude all others",
    **dict.fromkeys(
        ("random_group", "randomization_group"), "the order of questions cannot be random"
    ),
    **dict.fromkeys(("random_order", "subquestion_order", "answer_order"), "its order is fixed"),
    **dict.fromkeys(
        ("equals_num_value", "min_num_value", "max_num_value"), "sums of answers are not checked"
    ),
    "other_comment_mandatory": FREE_TEXT,
    "assessment_value": "answers are not marked",
    "prefix": "only a unit after the number is shown",
}
"""Why these attributes are not imported; all that begin with `time_limit` have one reason."""

NO_TIME = "time is not measured, because it can reveal answers"

LAYOUT = frozenset(
    (
        *("alphasort", "answer_width", "answer_width_bycolumn", "array_filter_style"),
        *("category_separator", "choice_input_columns", "cssclass", "date_format"),
        *("display_columns", "display_rows", "display_type", "dropdown_dates"),
        *("dropdown_dates_minute_step", "dropdown_dates_month_style", "dropdown_prefix"),
        *("dropdown_prepostfix", "dropdown_separators", "dropdown_size", "em_validation_q_tip"),
        *(
            "em_validation_sq_tip",
            "hide_tip",
            "input_size",
            "keep_codes_order",
            "label_input_columns",
        ),
        *("maximum_chars", "numbers_only", "other_numbers_only", "page_break"),
        *("parent_order", "placeholder", "printable_help", "public_statistics"),
        *(
            "question_template",
            "question_theme_name",
            "repeat_headings",
            "reverse",
            "samechoiceheight",
        ),
        *("samelistheight", "save_as_default", "scale_export", "showpopups", "slider_handle"),
        *("slider_orientation", "slider_middlestart", "slider_reset", "slider_showminmax"),
        *("slider_custom_handle", "slider_rating", "statistics_graphtype", "statistics_showgraph"),
        *("statistics_showmap", "suffix_position", "text_input_columns", "text_input_width"),
        *(
            "use_dropdown",
            "value_range_allows_missing",
            "image_height",
            "button_size",
            "max_buttons",
        ),
        *("choice_title", "rank_title", "showgrandtotal", "showtotals", "allowed_filetypes"),
        *("commented_checkbox", "commented_checkbox_auto", "slider_separator"),
        *("other_position", "other_position_code", "input_boxes", "multiflexible_checkbox"),
    )
)
"""Attributes that only affect the look or the handling of the page."""

UNSET = frozenset(("", "0", "N", "no", "none", "normal", "default", "inherit", "I", "-1"))
"""Values of attributes and settings that change nothing."""

USUAL_VALUES: Mapping[str, str] = {"assessment_value": "1", "time_limit_action": "1"}
"""Values that LimeSurvey writes for these attributes although they change nothing alone."""

IGNORED_REASONS: Mapping[str, str] = {
    "assessments": "answers are not marked",
    **dict.fromkeys(
        ("quota", "quota_members", "quota_languagesettings"),
        "quotas would need the true answers",
    ),
    "survey_url_parameters": "no answer comes from the address",
}
"""Why other tables of a file are not imported."""

SURVEY_TEXTS: Mapping[str, str] = {
    "url": "the page stays open after sending",
    "urldescription": "the page stays open after sending",
    "policy_notice": "write it into the consent",
    "policy_notice_label": "write it into the consent",
    "policy_error": "write it into the consent",
    "legal_notice": "write it into the contact or the consent",
}
"""Why these texts of a survey are not imported; texts of emails have their own reason."""

EMAIL = "no emails are sent to respondents"

IMPORTED_TEXTS = frozenset(
    (
        *("survey_id", "language", "title", "description", "welcometext", "endtext"),
        *("dateformat", "numberformat"),
    )
)
"""Texts of a survey that arrive, or only affect how numbers and dates are written."""

SETTING_REASONS: Mapping[str, str] = {
    "assessments": "answers are not marked",
    "savetimings": NO_TIME,
    "datestamp": "the time of an answer is not stored",
    "ipaddr": "no network address is stored",
    "refurl": "the page before the survey is not stored",
    "startdate": "set the schedule when you publish",
    "expires": "set the schedule when you publish",
    "allowregister": "respondents do not register",
    "usecaptcha": "there is no captcha",
}
"""Why these settings of a survey are not imported."""
