"""Addresses that an instance is told of: its own, the database's, the one inside."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from urllib.parse import urlsplit

from survey.errors import SettingsError

LAST_PORT = 65_535

ORIGIN = re.compile(
    r"(?P<scheme>https?)://(?P<host>(?!-)[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])"
    r"(?::(?P<port>[1-9][0-9]{0,4}))?/?"
)
"""What people open: no user, path or query."""

DATABASE = "SURVEY_DATABASE must be sqlite:///PATH or postgresql://USER:PASSWORD@HOST/DATABASE"


def check_public_url(public_url: str) -> None:
    """Raise SettingsError for what is no address that people could open, in one spelling."""
    # One spelling: whether cookies are secure, links right and origins the same hangs on it.
    found = ORIGIN.fullmatch(public_url)
    if not found or int(found["port"] or 0) > LAST_PORT or not _is_host(found["host"]):
        raise SettingsError(
            f"SURVEY_PUBLIC_URL = {public_url!r} must be scheme and host in small letters, as "
            "https://survey.example.org, with nothing before or after"
        )
    if found["scheme"] == "http" and not is_loopback(found["host"].strip("[]")):
        raise SettingsError(
            f"SURVEY_PUBLIC_URL = {public_url!r} must start with https:// "
            "(http only on loopback): a respondent's browser randomizes in a secure context only"
        )


def _is_host(host: str) -> bool:
    if not host.startswith("["):
        return True
    try:
        return bool(ipaddress.IPv6Address(host.strip("[]")))
    except ValueError:
        return False


def check_database(url: str) -> None:
    """Raise SettingsError for what is no url of a database.

    No more of it is repeated than how it begins: it may hold a password.
    """
    scheme, separator, rest = url.partition("://")
    begins = f"; it begins with {scheme}://" if separator else ""
    if scheme == "sqlite":
        if not rest.startswith("/") or Path(rest[1:]).name in ("", ".."):
            raise SettingsError(f"{DATABASE}{begins}")
        return
    try:
        parts = urlsplit(url)
        # Else a part of a password would be taken for the host, and told when it is not found.
        whole = scheme == "postgresql" and rest and parts.netloc.count("@") <= 1
        whole = whole and (parts.port or 1) > 0
    except ValueError:
        whole = False
    if not whole:
        encoded = "" if scheme != "postgresql" else "; write signs in a password as %40 for @"
        raise SettingsError(f"{DATABASE}{begins}{encoded}") from None


def host_and_port(text: str) -> tuple[str, int]:
    """The two parts of SURVEY_INTERNAL.

    >>> host_and_port("127.0.0.1:9464"), host_and_port("[::1]:9464")
    (('127.0.0.1', 9464), ('::1', 9464))
    """
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not 0 < int(port) <= LAST_PORT:
        raise SettingsError(f"SURVEY_INTERNAL = {text!r} must be HOST:PORT, as 127.0.0.1:9464")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether a host name means this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("example.org")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
