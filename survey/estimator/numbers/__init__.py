"""Means, distributions and quantiles of numeric answers."""
