"""A survey system whose server never learns an answer."""

__version__ = "0.1.0"
