"""Estimates of each question: shares, mean, median and histogram."""
