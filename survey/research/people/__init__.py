"""Researchers: how they sign in, what proves them, their teams and programs."""
