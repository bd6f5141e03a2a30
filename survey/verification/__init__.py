"""Verification, from another machine, that a server sends every visitor the published client."""
