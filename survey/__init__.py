"""A survey system whose server never learns an answer."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from survey.version import __version__

if TYPE_CHECKING:
    from survey.app import create_app
    from survey.notebook.client import connect
    from survey.notebook.files import read_microdata, read_parquet

__all__ = ["__version__", "connect", "create_app", "read_microdata", "read_parquet"]

_MODULES = {
    "connect": "survey.notebook.client",
    "create_app": "survey.app",
    "read_microdata": "survey.notebook.files",
    "read_parquet": "survey.notebook.files",
}
"""The module of each function: notebooks that only estimate need no web server."""


def __getattr__(name: str) -> Any:
    """Import a function's module on first use."""
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'survey' has no attribute {name!r}")
