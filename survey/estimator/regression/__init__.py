"""Logistic regression on randomized answers."""
