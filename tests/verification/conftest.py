"""Servers behind the shipped nginx, for verification."""

from tests.deploy.conftest import start_proxy

__all__ = ["start_proxy"]
