"""What is unsafe in how an instance is set up, and what to do: `survey config check`."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from survey.addresses import is_loopback
from survey.errors import SettingsError, SurveyError
from survey.ops.health import free_megabytes, internal_address
from survey.settings import SECRET_FILE, Settings
from survey.store import database_file, open_store

OFF = ("", "0", "false", "no")
"""What Flask takes for no in FLASK_DEBUG; Python takes any text for yes in its own two."""

ENCRYPTED = ("verify-full", "verify-ca")
OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True)
class Finding:
    """Something unsafe: what it is, what to do, and whether the server refuses to start so."""

    setting: str
    what: str
    do: str
    refused: bool = False


@dataclass(frozen=True)
class SetUp:
    """How an instance is about to run: its settings, its environment, where it listens."""

    settings: Settings
    environment: Mapping[str, str]
    address: str = "127.0.0.1"


def findings(set_up: SetUp) -> list[Finding]:
    """All there is to say, what is refused first."""
    found = [finding for check in CHECKS for finding in check(set_up)]
    return sorted(found, key=lambda finding: not finding.refused)


def unusable(settings: Settings) -> list[Finding]:
    """Why the database that is named cannot be served from, asked of itself."""
    try:
        store = open_store(settings.database)
        try:
            store.check_complete()
        finally:
            store.close_connections()
    except SurveyError as error:
        what, _, do = str(error).partition("; ")
        return [Finding("SURVEY_DATABASE", what, do or "see the runbook", refused=True)]
    return []


def refuse_unsafe(set_up: SetUp) -> None:
    """Raise SettingsError with everything for which a server does not start."""
    refused = [finding for finding in findings(set_up) if finding.refused]
    if refused:
        raise SettingsError(
            "\n".join(f"{each.setting}: {each.what}; {each.do}" for each in refused)
        )


def _secret(set_up: SetUp) -> Iterable[Finding]:
    try:
        set_up.settings.with_real_secret()
    except SettingsError as error:
        what, _, do = str(error).removeprefix("SURVEY_SECRET ").partition("; ")
        yield Finding("SURVEY_SECRET", what, do, refused=True)


def _debug(set_up: SetUp) -> Iterable[Finding]:
    for name, off in (("FLASK_DEBUG", OFF), ("PYTHONDEVMODE", ("",)), ("PYTHONINSPECT", ("",))):
        if set_up.environment.get(name, "").lower() not in off:
            yield Finding(name, "debugging shows what requests hold", "unset it", refused=True)


def _plain_http(set_up: SetUp) -> Iterable[Finding]:
    if not is_loopback(set_up.address) and not set_up.settings.trusted_proxies:
        yield Finding(
            "--address",
            f"{set_up.address} takes plain http from other machines, with no proxy in front",
            "listen on 127.0.0.1 behind a proxy that ends TLS, or say with "
            "SURVEY_TRUSTED_PROXIES=1 that only such a proxy reaches it",
            refused=True,
        )
    elif not is_loopback(set_up.address):
        yield Finding(
            "--address",
            f"who reaches {set_up.address} without the proxy may claim any address",
            "let nothing but the proxy reach it, by a network of their own or a firewall",
        )


def _readable_files(set_up: SetUp) -> Iterable[Finding]:
    """The files of an SQLite database must be its owner's alone."""
    if (named := database_file(set_up.settings.database)) is None:
        return
    # The database writes beside the file itself, wherever a link to it stands.
    file = named.resolve()
    for path in (file, *(Path(f"{file}-{kind}") for kind in ("wal", "shm"))):
        if path.exists() and not path.is_file():
            yield Finding("SURVEY_DATABASE", f"{path} is no file", "name a file", refused=True)
        elif _mode(path) & OTHERS:
            yield Finding(
                "SURVEY_DATABASE",
                f"others on this machine can read or change {path}",
                f"run: chmod 600 {path}",
                refused=True,
            )


def _mode(path: Path) -> int:
    """The rights of a file; none where there is no file, or none that we may look at."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0


def _secret_file(set_up: SetUp) -> Iterable[Finding]:
    """A secret that others write is theirs; one that they read signs sessions for them."""
    if SECRET_FILE not in set_up.environment:
        return
    path = Path(set_up.environment[SECRET_FILE]).resolve()
    mode = _mode(path) & OTHERS
    if mode:
        yield Finding(
            SECRET_FILE,
            f"others on this machine can read or change {path}",
            f"run: chmod 600 {path}",
            # A group of one's own may read it; everybody else would sign sessions with it.
            refused=bool(mode & ~stat.S_IRGRP),
        )


def _folders(set_up: SetUp) -> Iterable[Finding]:
    """Who may write a folder may put another file, link or folder in the place of any in it."""
    file, secret = database_file(set_up.settings.database), set_up.environment.get(SECRET_FILE)
    named = [path.absolute() for path in (file, secret and Path(secret)) if path]
    for folder in sorted({above for path in named for above in _above(path)}):
        mode = _mode(folder)
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            yield Finding(
                "folder",
                f"everybody on this machine can replace files in {folder}",
                f"run: chmod 700 {folder}",
                refused=True,
            )


def _above(path: Path) -> Iterable[Path]:
    """Every folder on the way to a file: as it is named, and where links lead."""
    return (*path.parents, *path.resolve().parents)


def _internal(set_up: SetUp) -> Iterable[Finding]:
    if not set_up.settings.internal:
        yield Finding(
            "SURVEY_INTERNAL",
            "nobody can ask whether the server is ready, or for its figures",
            "set it to 127.0.0.1:9464, and let your monitoring ask there",
        )
        return
    try:
        internal_address(set_up.settings.internal)
    except SettingsError as error:
        what, _, do = str(error).partition("; ")
        yield Finding("SURVEY_INTERNAL", what, do or "set it anew", refused=True)


def _public(set_up: SetUp) -> Iterable[Finding]:
    settings = set_up.settings
    if settings.opens_here_only:
        yield Finding(
            "SURVEY_PUBLIC_URL",
            f"{settings.public_url} opens on this machine only",
            "set it to the https address that people open",
        )
    elif not settings.trusted_proxies:
        yield Finding(
            "SURVEY_TRUSTED_PROXIES",
            "the proxy that ends TLS is not trusted: all tries to sign in count as one visitor's",
            "set it to 1 when that proxy sets X-Forwarded-For itself",
            refused=True,
        )


def _postgresql(set_up: SetUp) -> Iterable[Finding]:
    parts = urlsplit(set_up.settings.database)
    if parts.scheme != "postgresql":
        return
    given = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    if parts.password or "password" in given:
        yield Finding(
            "SURVEY_DATABASE",
            "it holds a password, which lists of processes and crash reports may show",
            "put it into a file that PGPASSFILE names",
        )
    mode = given.get("sslmode", set_up.environment.get("PGSSLMODE", ""))
    host = given.get("host", parts.hostname or set_up.environment.get("PGHOST", ""))
    # A path is the folder of a socket on this machine.
    if host and not host.startswith("/") and not is_loopback(host) and mode not in ENCRYPTED:
        yield Finding(
            "SURVEY_DATABASE",
            f"reports go to {host} without a check of who answers",
            "add ?sslmode=verify-full; leave it where the network between is yours alone",
        )


def _strength(set_up: SetUp) -> Iterable[Finding]:
    usual = Settings()
    if set_up.settings.password_cost < usual.password_cost:
        yield Finding(
            "SURVEY_PASSWORD_COST",
            "a stolen database gives its passwords away sooner",
            f"leave it at {usual.password_cost}",
        )
    if set_up.settings.caps.warning > usual.caps.warning:
        yield Finding(
            "SURVEY_EPSILON_WARNING",
            "researchers are not warned where all answers together are protected little",
            f"leave it at {usual.caps.warning}",
        )


def _keeping(set_up: SetUp) -> Iterable[Finding]:
    if not set_up.settings.retention_days:
        yield Finding(
            "SURVEY_RETENTION_DAYS",
            "closed surveys stay until somebody deletes them",
            "set after how many days `survey retention` deletes them, as your ethics board asks",
        )


def _disk(set_up: SetUp) -> Iterable[Finding]:
    try:
        free = free_megabytes(set_up.settings)
    except OSError:
        return  # The database itself says that it cannot be reached.
    if free is not None and free < set_up.settings.disk_minimum:
        yield Finding(
            "SURVEY_DISK_MINIMUM",
            f"only {free} MB are free where the database is",
            "make room: a full disk refuses reports, and none that was acknowledged is lost",
        )


def _person(_: SetUp) -> Iterable[Finding]:
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        yield Finding(
            "user", "it runs as root", "run it as a user of its own, as deploy/survey.service does"
        )


CHECKS: tuple[Callable[[SetUp], Iterable[Finding]], ...] = (
    _secret,
    _debug,
    _plain_http,
    _readable_files,
    _secret_file,
    _folders,
    _internal,
    _public,
    _postgresql,
    _strength,
    _keeping,
    _disk,
    _person,
)
