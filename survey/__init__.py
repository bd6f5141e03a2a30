"""A survey system whose server never learns an answer."""

import importlib
from typing import Any

__version__ = "0.1.0"

__all__ = ["__version__", "create_app"]


def __getattr__(name: str) -> Any:
    """Give `create_app` only when asked: a notebook that estimates needs no web server."""
    if name == "create_app":
        return importlib.import_module("survey.app").create_app
    raise AttributeError(f"module 'survey' has no attribute {name!r}")
