"""What a link to an explore page asks: which version of which survey, and how sure to be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from flask import render_template, request

from survey.errors import ChannelError, CountsError, DesignError
from survey.research.forms import whole_number
from survey.results.options import USUAL_LEVELS, Wanted, wanted_from
from survey.store import PublishedSurvey, Store, find_survey


class Asked(NamedTuple):
    """A version of a survey, and the way to read it."""

    survey: PublishedSurvey
    wanted: Wanted

    @property
    def query(self) -> dict[str, str]:
        """What every link to the same view says."""
        return {"level": f"{self.wanted.level:g}", "version": str(self.survey.version)}


def asked(store: Store, slug: str) -> Asked:
    """Read the link of this request, or its form; NotFoundError for an unknown version."""
    version = request.values.get("version", "")
    survey = find_survey(store, slug, whole_number(version) or None)
    level = request.values.get("level", "")
    return Asked(survey, wanted_from({"level": level} if level else {}))


def page(
    template: str, of: Asked, chosen: Mapping[str, Any], refusals: Mapping[str, str], **shown: Any
) -> tuple[str, int]:
    """An explore page: what was chosen, by field, and what is wrong, by the field it is beside."""
    return (
        render_template(
            template,
            survey=of.survey,
            questions=of.survey.definition.questions,
            wanted=of.wanted,
            levels=USUAL_LEVELS,
            chosen=chosen,
            refusals=refusals,
            query={**of.query, **chosen},
            **shown,
        ),
        422 if refusals else 200,
    )


@contextmanager
def refusing() -> Iterator[None]:
    """What a page would say beside a field is the whole answer where a file was asked for."""
    try:
        yield
    except (CountsError, ChannelError) as error:
        raise DesignError(str(error)) from error
