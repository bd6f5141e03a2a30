"""The respondents' side: the page, its definition, and the address that accepts reports."""

from survey.respond.client import Client
from survey.respond.reception import DirectReports
from survey.respond.views import init_app

__all__ = ["Client", "DirectReports", "init_app"]
