"""Drafts: surveys that are being written, their edits, and what is wrong with them."""
