"""A survey system whose server never learns an answer."""

from typing import TYPE_CHECKING, Any

from survey.version import __version__

if TYPE_CHECKING:
    from survey.app import create_app

__all__ = ["__version__", "create_app"]


def __getattr__(name: str) -> Any:
    """Import the web application on first use: notebooks that only estimate need no web server."""
    if name == "create_app":
        from survey.app import create_app

        return create_app
    raise AttributeError(f"module 'survey' has no attribute {name!r}")
