"""Surveys before and after publication: definitions, question types, drafts."""

TEST_RUN_PREFIX = "trial-"
"""Prefix of the slugs of test runs, and of no survey; here, where importing it costs nothing."""


def is_test_run(slug: str) -> bool:
    """Return whether a slug is that of a draft's test run."""
    return slug.startswith(TEST_RUN_PREFIX)
