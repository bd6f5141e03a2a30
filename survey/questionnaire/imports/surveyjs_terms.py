"""The names of SurveyJS's element types and properties, and what becomes of them.

Source: https://surveyjs.io/form-library/documentation/api-reference
"""

from __future__ import annotations

from collections.abc import Mapping

from survey.questionnaire.imports.assembly import REQUIRED

DROPPED: Mapping[str, str] = {
    "comment": "free text cannot be randomized",
    "file": "files cannot be randomized",
    "signaturepad": "signatures cannot be randomized",
    "html": "is no question",
    "image": "is no question",
    "expression": "calculated values would need the true answers",
    "matrixdropdown": "a table of cells has no counterpart; use a matrix of scales",
    "matrixdynamic": "rows that people add have no counterpart",
}
"""Why elements of these types cannot be imported."""

TABLES = ("matrixdropdown", "matrixdynamic")
"""Types whose columns are questions."""

END_LABELS = {"low_label": "minRateDescription", "high_label": "maxRateDescription"}
"""The property for the label of each end of a rating."""

IMPORTED = frozenset(
    (
        *("name", "type", "title", "description", "locale", "pages", "elements", "questions"),
        *(
            "completedHtml",
            "questionsOnPageMode",
            "visibleIf",
            "conditions",
            "choices",
            "choicesOrder",
        ),
        *("labelTrue", "labelFalse", "valueTrue", "valueFalse", "maxSelectedChoices"),
        *("multiSelect", "noneText", "refuseText", "dontKnowText", "otherText", "showOtherItem"),
        *("hasOther", "showNoneItem", "hasNone", "showDontKnowItem", "showRefuseItem"),
        *("rateValues", "rateMin", "rateMax", "rateStep", "rateCount", *END_LABELS.values()),
        *("rows", "columns", "inputType", "min", "max", "step", "sliderType"),
        *("items", "templateElements", "visible"),
    )
)
"""Properties that arrive with their element."""

LAYOUT = frozenset(
    (
        *("colCount", "width", "minWidth", "maxWidth", "startWithNewLine", "titleLocation"),
        *("state", "descriptionLocation", "indent", "placeholder", "cellHideMode", "imageHeight"),
        *("imageWidth", "imageFit", "logoFit", "logoHeight", "logoPosition", "logoWidth"),
        *("showProgressBar", "progressBarLocation", "progressBarType", "showQuestionNumbers"),
        *("widthMode", "headerView", "showNavigationButtons"),
        *("showPrevButton", "completeText", "pageNextText", "pagePrevText", "startSurveyText"),
        *("displayMode", "rateType", "itemSize", "rateDisplayMode", "rateColorMode"),
        *("scaleColorMode", "renderAs", "alternateRows", "displayRateDescriptionsAsExtremeItems"),
        *("hideNumber", "showLabel", "separateSpecialChoices", "themeVariables", "swapOrder"),
        *("questionTitleLocation", "questionErrorLocation", "questionDescriptionLocation"),
        *("fitToContainer", "showCompletedPage", "checkErrorsMode", "clearInvisibleValues"),
        *(
            "textUpdateMode",
            "maxTextLength",
            "otherPlaceholder",
            "otherErrorText",
            "focusFirstQuestionAutomatic",
        ),
    )
)
"""Properties that only affect the look or the handling of the page."""

QUESTION_KEYS: Mapping[str, str] = {
    "isRequired": REQUIRED,
    "requiredIf": REQUIRED,
    "enableIf": "questions can only be asked or skipped",
    "defaultValue": "an answer that is given in advance would be reported",
    "correctAnswer": "answers are not marked",
    "showCommentArea": "free text cannot be randomized",
    "hasComment": "free text cannot be randomized",
    "validators": "only ranges and numbers of ticks are checked",
    "isAllRowRequired": REQUIRED,
    "eachRowRequired": REQUIRED,
    "readOnly": "questions can only be asked or skipped",
    "showSelectAllItem": "nobody can tick everything at once",
    "hasSelectAll": "nobody can tick everything at once",
    "minSelectedChoices": "a minimum of ticks cannot be required",
}
"""Why these properties of questions are not imported."""

SURVEY_KEYS: Mapping[str, str] = {
    "calculatedValues": "calculated values would need the true answers",
    "triggers": "actions would need the true answers",
    "completedHtmlOnCondition": "a text that depends on answers would reveal them",
    "navigateToUrl": "the page stays open after sending",
    "logo": "upload the logo for the team",
    "timeLimit": "time is not measured, because it can reveal answers",
    "maxTimeToFinish": "time is not measured, because it can reveal answers",
}
"""Why these properties of a survey are not imported."""
