"""Check, copy, back up and restore a whole store."""

from survey.archive.consistency import CheckResult, check
from survey.archive.copies import Watch, backup, copy_store, restore

__all__ = ["CheckResult", "Watch", "backup", "check", "copy_store", "restore"]
