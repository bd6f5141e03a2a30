"""The shipped client: its files in memory, under one hash of them all."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent

TYPES: Mapping[str, str] = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class Client:
    """Name and bytes of every file that a respondent's browser loads."""

    files: Mapping[str, bytes]

    @classmethod
    def find(cls) -> Client:
        """Read the client of this installation: the checkout's, else the package's copy."""
        checkout = PACKAGE.parent / "client_js" / "src"
        folder = (
            checkout
            if (PACKAGE.parent / "pyproject.toml").exists() and checkout.is_dir()
            else PACKAGE / "static" / "client"
        )
        return cls(
            {
                path.name: path.read_bytes()
                for path in sorted(folder.iterdir())
                if path.suffix in TYPES
            }
        )

    @property
    def sha256(self) -> str:
        """SHA-256 over the lines `<sha256 of file>  <name>`, names in order."""
        lines = (
            f"{hashlib.sha256(content).hexdigest()}  {name}\n"
            for name, content in sorted(self.files.items())
        )
        return hashlib.sha256("".join(lines).encode("utf-8")).hexdigest()
