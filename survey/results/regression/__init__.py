"""Logistic regression of a question on other questions and on the group."""
