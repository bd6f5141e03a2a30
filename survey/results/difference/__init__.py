"""Difference of a question's answers between two groups."""
