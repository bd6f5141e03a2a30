"""What stores on SQL databases share: every statement that both of them understand."""

from survey.store.sql.copying import SqlCopying
from survey.store.sql.drafts import SqlDrafts
from survey.store.sql.lifecycle import SqlLifecycle
from survey.store.sql.members import SqlMembers
from survey.store.sql.released import SqlReleased
from survey.store.sql.releasing import SqlReleasing
from survey.store.sql.reports import SqlReports
from survey.store.sql.researchers import SqlResearchers
from survey.store.sql.surveys import SqlSurveys
from survey.store.sql.tokens import SqlTokens
from survey.store.sql.tries import SqlTries

__all__ = ["SqlStore"]


class SqlStore(
    SqlSurveys,
    SqlLifecycle,
    SqlReports,
    SqlReleasing,
    SqlReleased,
    SqlCopying,
    SqlResearchers,
    SqlMembers,
    SqlDrafts,
    SqlTokens,
    SqlTries,
):
    """A `Store` without its database: connections, migrations and tidying are still to come."""
