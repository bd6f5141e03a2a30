"""A ZIP file whose members are written piece by piece and whose hashes are kept for a manifest."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast
from zipfile import ZipFile


class Package:
    """A ZIP to which files are added; `digests` has the SHA-256 of each by name."""

    def __init__(self, archive: ZipFile) -> None:
        self._archive = archive
        self.digests: dict[str, str] = {}

    def add(self, name: str, content: str | bytes) -> None:
        """Add a file."""
        octets = content.encode() if isinstance(content, str) else content
        self.digests[name] = hashlib.sha256(octets).hexdigest()
        self._archive.writestr(name, octets)

    def add_file(self, name: str, file: Path) -> None:
        """Add a file of the file system."""
        with file.open("rb") as content:
            self.digests[name] = hashlib.file_digest(content, "sha256").hexdigest()
        self._archive.write(file, name)

    def add_text(self, name: str, write: Callable[[IO[str]], object]) -> None:
        """Add a text file that `write` writes, without keeping it in memory."""
        with self._archive.open(name, "w", force_zip64=True) as member:
            hashed = _HashedFile(member)
            text = io.TextIOWrapper(cast(IO[bytes], hashed), encoding="utf-8", newline="")
            write(text)
            text.flush()
        self.digests[name] = hashed.digest.hexdigest()


class _HashedFile(io.BufferedIOBase):
    """A file that computes the SHA-256 of everything that is written to it."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file
        self.digest = hashlib.sha256()

    def writable(self) -> bool:
        """Return True: text wrappers ask."""
        return True

    def write(self, content: Any) -> int:
        """Write and hash some bytes."""
        self.digest.update(content)
        return self._file.write(content)
