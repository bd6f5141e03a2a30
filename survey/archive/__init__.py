"""Check, copy, back up and restore a whole store."""

from survey.archive.consistency import CheckResult, check, check_store
from survey.archive.copies import Watch, backup, copy_store, restore

__all__ = ["CheckResult", "Watch", "backup", "check", "check_store", "copy_store", "restore"]
