"""Relations between questions and groups: cross-tabs, differences, known margins."""
