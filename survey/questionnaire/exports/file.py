"""The file that an export writes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Exported:
    """A questionnaire in the format of another tool.

    `ending` is that of the file's name, with its dot. `notes` say what the format cannot express.
    """

    content: bytes
    ending: str
    notes: tuple[str, ...] = ()
