"""Questions whose answer is one option: yes or no, or a list of options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import model_validator

from survey.errors import ChannelError
from survey.questionnaire.kinds.base import USUAL_KEYS, Kind
from survey.questionnaire.kinds.question import OptionsQuestion
from survey.respondent_texts import SOURCE, say


class YesNo(Kind):
    """Yes or no."""

    type = "yes_no"
    label = "Yes or no"
    icon = "M2 9l3 3 6-7M14 14l7 7m0-7l-7 7"
    is_binary = True
    mechanisms = ("grr", "best", "warner", "two_coins", "unrelated_question", "forced_response")

    def default_options(self, language: str = SOURCE) -> list[dict[str, str]]:
        return [{"id": name, "label": say(language, USUAL_KEYS[name])} for name in ("yes", "no")]


class SingleChoice(Kind):
    """One of several options without an order."""

    type = "single_choice"
    label = "One of several answers"
    has_pictures = True
    icon = "M12 3a9 9 0 1 0 0 18a9 9 0 1 0 0-18M12 9a3 3 0 1 0 0 6a3 3 0 1 0 0-6"
    mechanisms = ("grr", "best", "forced_response", "exponential")
    fields = ("options", "shuffle_options")


class ChoiceQuestion(OptionsQuestion):
    """One of several options."""

    type: Literal["yes_no", "single_choice"]

    @model_validator(mode="before")
    @classmethod
    def _fill_in_options(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and data.get("type") == YesNo.type:
            return {"options": YesNo().default_options(), **data}
        return data

    def _check(self) -> None:
        if self.kind.is_binary:
            if [option.id for option in self.options] != ["yes", "no"]:
                raise ChannelError(
                    'options of a yes_no question have the ids "yes" and "no", in order'
                )
            if self.shuffle_options:
                raise ChannelError("the options of a yes_no question are always shown in one order")
        if mistake := self._size_mistake(2):
            raise mistake
