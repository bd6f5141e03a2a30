"""Whole stores: checked, copied to another database, kept in a file and brought back."""

from survey.archive.backup import backup, restore
from survey.archive.check import Checked, check
from survey.archive.copying import copy_store

__all__ = ["Checked", "backup", "check", "copy_store", "restore"]
