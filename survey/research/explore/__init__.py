"""Explore: two questions, two groups, known margins, several predictors; every view has a link."""
