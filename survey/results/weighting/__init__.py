"""Shares weighted to known population margins."""
