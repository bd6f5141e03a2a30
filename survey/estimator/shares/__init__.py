"""Estimated shares of the answers to one question."""
