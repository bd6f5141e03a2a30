"""Running an instance: logs, readiness and figures, none of which can tell of a respondent."""
