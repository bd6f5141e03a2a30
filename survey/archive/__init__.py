"""Whole stores: checked, copied to another database, kept in a file and brought back."""

from survey.archive.consistency import Checked, check
from survey.archive.copies import Watch, backup, copy_store, restore

__all__ = ["Checked", "Watch", "backup", "check", "copy_store", "restore"]
