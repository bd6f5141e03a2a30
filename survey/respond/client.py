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
    def file_hashes(self) -> dict[str, str]:
        """SHA-256 of each file, by name, in the order of the names."""
        return {
            name: hashlib.sha256(content).hexdigest()
            for name, content in sorted(self.files.items())
        }

    @property
    def sha256(self) -> str:
        """SHA-256 over the lines `<sha256 of file>  <name>`, names in order."""
        lines = (f"{digest}  {name}\n" for name, digest in self.file_hashes.items())
        return hashlib.sha256("".join(lines).encode("utf-8")).hexdigest()
