"""Surveys before and after publication: definitions, question types, drafts."""

TEST_RUN_PREFIX = "trial-"
"""Prefix of the slugs of test runs, and of no survey; here, where importing it costs nothing."""
