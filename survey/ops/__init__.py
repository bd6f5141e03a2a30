"""Operation of an instance: logs, readiness and metrics that reveal nothing of respondents."""
