"""Logistic regression of a question on other questions and on the collection link."""
