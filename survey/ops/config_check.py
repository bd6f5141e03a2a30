"""Check the configuration of an instance for unsafe settings: `survey config check`."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from survey.errors import SettingsError, SurveyError
from survey.ops.health import free_megabytes, internal_address
from survey.settings import SECRET_FILE, Settings, is_loopback
from survey.store import database_file, open_store
from survey.store.sqlite import file_mode

OFF = ("", "0", "false", "no")
"""Values with which FLASK_DEBUG is off; Python's own two variables are on with any text."""

ENCRYPTED = ("verify-full", "verify-ca")
GROUP_AND_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True)
class Finding:
    """An unsafe setting: its problem, the remedy, and whether the server refuses to start."""

    setting: str
    problem: str
    remedy: str
    is_fatal: bool = False


@dataclass(frozen=True)
class Deployment:
    """The way an instance will run: its settings, its environment and its listening address.

    `has_keeper` is false for a server whose keeper is a separate process.
    """

    settings: Settings
    environment: Mapping[str, str]
    address: str = "127.0.0.1"
    has_keeper: bool = True


def findings(deployment: Deployment) -> list[Finding]:
    """Return everything that is unsafe, fatal findings first."""
    results = [finding for check in CHECKS for finding in check(deployment)]
    return sorted(results, key=lambda finding: not finding.is_fatal)


def database_findings(settings: Settings) -> list[Finding]:
    """Return why a server cannot use the database, by opening it."""
    try:
        store = open_store(settings.database)
        try:
            store.check_complete()
        finally:
            store.close_connections()
    except SurveyError as error:
        problem, _, remedy = str(error).partition("; ")
        return [Finding("SURVEY_DATABASE", problem, remedy or "see the runbook", is_fatal=True)]
    return []


def refuse_unsafe(deployment: Deployment) -> None:
    """Raise SettingsError with all fatal findings, for a server that is about to start."""
    _refuse(findings(deployment))


def refuse_unsafe_keeper(deployment: Deployment) -> None:
    """Raise SettingsError with the fatal findings for a keeper, which needs no secret."""
    checks = (_private_keys, _readable_files, _folders)
    _refuse([finding for check in checks for finding in check(deployment)])


def _refuse(findings: Iterable[Finding]) -> None:
    fatal = [finding for finding in findings if finding.is_fatal]
    if fatal:
        lines = (f"{finding.setting}: {finding.problem}; {finding.remedy}" for finding in fatal)
        raise SettingsError("\n".join(lines))


def _secret(deployment: Deployment) -> Iterable[Finding]:
    try:
        deployment.settings.with_real_secret()
    except SettingsError as error:
        problem, _, remedy = str(error).removeprefix("SURVEY_SECRET ").partition("; ")
        yield Finding("SURVEY_SECRET", problem, remedy, is_fatal=True)


def _debug(deployment: Deployment) -> Iterable[Finding]:
    for name, off in (("FLASK_DEBUG", OFF), ("PYTHONDEVMODE", ("",)), ("PYTHONINSPECT", ("",))):
        if deployment.environment.get(name, "").lower() not in off:
            problem = "debugging shows the content of requests"
            yield Finding(name, problem, "unset it", is_fatal=True)


def _plain_http(deployment: Deployment) -> Iterable[Finding]:
    if not is_loopback(deployment.address) and not deployment.settings.trusted_proxies:
        yield Finding(
            "--address",
            f"{deployment.address} accepts plain http from other machines without a proxy",
            "listen on 127.0.0.1 behind a proxy that terminates TLS, or set "
            "SURVEY_TRUSTED_PROXIES=1 if only such a proxy can reach the server",
            is_fatal=True,
        )
    elif not is_loopback(deployment.address):
        yield Finding(
            "--address",
            f"clients that reach {deployment.address} without the proxy can claim any address",
            "use a separate network or a firewall so that only the proxy can reach it",
        )


def _readable_files(deployment: Deployment) -> Iterable[Finding]:
    """Check that only the owner of an SQLite database, or the group that shares it, can read it."""
    if (path := database_file(deployment.settings.database)) is None:
        return
    # The database writes beside the file itself, not beside a link to it.
    file = path.resolve()
    allowed = file_mode(file.parent) if file.parent.is_dir() else 0o600
    for path in (file, *(Path(f"{file}-{kind}") for kind in ("wal", "shm"))):
        if path.exists() and not path.is_file():
            yield Finding("SURVEY_DATABASE", f"{path} is not a file", "name a file", is_fatal=True)
        elif _mode(path) & GROUP_AND_OTHERS & ~allowed:
            yield Finding(
                "SURVEY_DATABASE",
                f"other users of this machine can read or change {path}",
                f"run: chmod {allowed:o} {path}",
                is_fatal=True,
            )
        elif _mode(path) & allowed != allowed and path.exists():
            yield Finding(
                "SURVEY_DATABASE",
                f"the keeper's user cannot read and change {path}, so nothing is released",
                f"run: chmod {allowed:o} {path}",
            )


def _private_keys(deployment: Deployment) -> Iterable[Finding]:
    """Check the directory of private keys, which make pending reports readable."""
    directory = Path(deployment.settings.keys).absolute()
    is_missing = not os.path.lexists(directory)
    is_usable = os.access(directory, os.R_OK | os.W_OK | os.X_OK)
    if is_missing and not directory.parent.is_dir():
        yield Finding(
            "SURVEY_KEYS",
            f"there is no directory {directory.parent} for the private keys",
            "mount the volume for the keys, or name another directory",
            is_fatal=True,
        )
    elif not is_missing and not directory.is_dir():
        yield Finding("SURVEY_KEYS", f"{directory} is not a directory", "name one", is_fatal=True)
    elif _mode(directory) & GROUP_AND_OTHERS:
        yield Finding(
            "SURVEY_KEYS",
            f"other users of this machine can read the private keys in {directory}",
            f"run: chmod 700 {directory}",
            is_fatal=True,
        )
    elif deployment.has_keeper and not is_missing and not is_usable:
        yield Finding(
            "SURVEY_KEYS",
            f"this user cannot use the private keys in {directory}",
            "make this user its owner, or use --without-keeper",
            is_fatal=True,
        )
    elif not deployment.has_keeper and is_usable:
        yield Finding(
            "SURVEY_KEYS",
            f"the server can read the private keys in {directory}, but does not need them",
            "run `survey keeper` as another user, and make that user the owner of the directory",
        )
    database = database_file(deployment.settings.database)
    if database and _device(database.absolute()) == _device(directory):
        yield Finding(
            "SURVEY_KEYS",
            "the private keys and the database share a file system, so one image reveals both",
            "mount a separate volume for the keys, which no backup or snapshot covers",
        )


def _device(path: Path) -> int:
    """Return the file system that contains a path, or will contain it."""
    return next(
        folder.stat().st_dev for folder in (path, *path.parents) if os.access(folder, os.F_OK)
    )


def _mode(path: Path) -> int:
    """Return the access rights of a file, or 0 if it is missing or inaccessible."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0


def _secret_file(deployment: Deployment) -> Iterable[Finding]:
    """Check the secret's file: users who can read or write it can sign sessions."""
    if SECRET_FILE not in deployment.environment:
        return
    path = Path(deployment.environment[SECRET_FILE]).resolve()
    if mode := _mode(path) & GROUP_AND_OTHERS:
        yield Finding(
            SECRET_FILE,
            f"other users of this machine can read or change {path}",
            f"run: chmod 600 {path}",
            # Its group may read it.
            is_fatal=bool(mode & ~stat.S_IRGRP),
        )


def _folders(deployment: Deployment) -> Iterable[Finding]:
    """Check the folders: users who can write to one can replace any file in it."""
    secret = deployment.environment.get(SECRET_FILE)
    files = (database_file(deployment.settings.database), Path(secret) if secret else None)
    paths = [file.absolute() for file in files if file]
    # The folders of the path, and of the file that links lead to.
    parents = {folder for path in paths for folder in (*path.parents, *path.resolve().parents)}
    for folder in sorted(parents):
        mode = _mode(folder)
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            yield Finding(
                "folder",
                f"every user of this machine can replace files in {folder}",
                f"run: chmod 700 {folder}",
                is_fatal=True,
            )


def _internal(deployment: Deployment) -> Iterable[Finding]:
    if not deployment.settings.internal:
        yield Finding(
            "SURVEY_INTERNAL",
            "monitoring cannot read the server's readiness and metrics",
            "set it to 127.0.0.1:9464 and read them there",
        )
        return
    try:
        internal_address(deployment.settings.internal)
    except SettingsError as error:
        problem, _, remedy = str(error).partition("; ")
        yield Finding("SURVEY_INTERNAL", problem, remedy or "change it", is_fatal=True)


def _public(deployment: Deployment) -> Iterable[Finding]:
    settings = deployment.settings
    if settings.opens_here_only:
        yield Finding(
            "SURVEY_PUBLIC_URL",
            f"{settings.public_url} opens on this machine only",
            "set it to the https address that people open",
        )
    elif not settings.trusted_proxies:
        yield Finding(
            "SURVEY_TRUSTED_PROXIES",
            "the TLS proxy is not trusted: all attempts to sign in count as the same visitor's",
            "set it to 1 when that proxy sets X-Forwarded-For itself",
            is_fatal=True,
        )
    if not settings.opens_here_only and not settings.research_url:
        yield Finding(
            "SURVEY_RESEARCH_URL",
            "respondents and researchers share one origin, so a vulnerability in the "
            "researchers' pages could affect respondents",
            "set it to the address of a second host name; deploy/nginx.conf has a server for it",
        )


def _postgresql(deployment: Deployment) -> Iterable[Finding]:
    parts = urlsplit(deployment.settings.database)
    if parts.scheme != "postgresql":
        return
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    if parts.password or "password" in options:
        yield Finding(
            "SURVEY_DATABASE",
            "it contains a password, which process lists and crash reports may show",
            "put the password into a file and name the file in PGPASSFILE",
        )
    mode = options.get("sslmode", deployment.environment.get("PGSSLMODE", ""))
    host = options.get("host", parts.hostname or deployment.environment.get("PGHOST", ""))
    # A path is the folder of a socket on this machine.
    if host and not host.startswith("/") and not is_loopback(host) and mode not in ENCRYPTED:
        yield Finding(
            "SURVEY_DATABASE",
            f"reports are sent to {host} without verifying the server",
            "add ?sslmode=verify-full, unless the network between is private",
        )


def _strength(deployment: Deployment) -> Iterable[Finding]:
    default = Settings()
    if deployment.settings.password_cost < default.password_cost:
        yield Finding(
            "SURVEY_PASSWORD_COST",
            "passwords in a stolen database can be guessed faster",
            f"leave it at {default.password_cost}",
        )
    if deployment.settings.caps.warning > default.caps.warning:
        yield Finding(
            "SURVEY_EPSILON_WARNING",
            "this has no effect, because researchers are always warned above an odds factor of 20",
            f"remove it, or set it below {default.caps.warning}",
        )


def _retention(deployment: Deployment) -> Iterable[Finding]:
    if not deployment.settings.retention_days:
        yield Finding(
            "SURVEY_RETENTION_DAYS",
            "closed surveys are kept until somebody deletes them",
            "set the number of days after which `survey retention` deletes them",
        )


def _disk(deployment: Deployment) -> Iterable[Finding]:
    try:
        free = free_megabytes(deployment.settings)
    except OSError:
        return  # The check of the database reports that.
    if free is not None and free < deployment.settings.disk_minimum:
        yield Finding(
            "SURVEY_DISK_MINIMUM",
            f"only {free} MB are free where the database is",
            "free some space: with a full disk, the server refuses reports",
        )


def _user(_: Deployment) -> Iterable[Finding]:
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        yield Finding(
            "user",
            "the server runs as root",
            "run it as a separate user, as deploy/survey.service does",
        )


CHECKS: tuple[Callable[[Deployment], Iterable[Finding]], ...] = (
    *(_secret, _debug, _plain_http, _readable_files, _private_keys, _secret_file, _folders),
    *(_internal, _public, _postgresql, _strength, _retention, _disk, _user),
)
