"""The settings of an instance: read once from SURVEY_* variables, checked and frozen.

Plain dataclasses read them, not pydantic-settings. That ignores a mistyped SURVEY_ name, accepts
1_00 as a number, quotes a rejected secret, and costs 0.17 s of CPU at each start (measured).
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from survey.errors import SettingsError

MIN_SECRET_LENGTH = 32
MIN_DISTINCT_CHARACTERS = 8
"""Smallest number of distinct characters in a secret; 32 random hexadecimal digits have fewer once
in about 25,000,000 (at most C(16,7) (7/16)^32)."""

GUESSED_WORDS = (
    *("changeme", "secret", "example", "replace", "password", "default", "please", "insecure"),
    *("qwerty", "asdfgh", "zxcvbn", "letmein"),
)
"""Words of examples and keyboard rows. The letters of 43 random base64 characters contain one of
them once in about 900,000 (12 words at 30 places, 26^-6 each at most); hexadecimal digits never."""


@dataclass(frozen=True)
class Caps:
    """The maximum epsilon of surveys on this instance.

    `question` bounds one question, `survey` the sum over all questions. Researchers are warned of
    weak protection above an odds factor of 20 (`privacy_loss.WEAK_REPORT_ABOVE`), as respondents
    are, and earlier if the sum exceeds a smaller `warning`.
    """

    question: Decimal = Decimal(8)
    survey: Decimal = Decimal(20)
    warning: Decimal = Decimal("2.996")  # ln 20 = 2.9957


@dataclass(frozen=True)
class Settings:
    """All settings that an operator can choose; each field is a SURVEY_* variable."""

    secret: str = field(default="", repr=False)
    database: str = "sqlite:///survey.db"
    public_url: str = "http://127.0.0.1:8000"
    research_url: str = ""
    onion_url: str = ""
    caps: Caps = Caps()
    keys: str = "survey-keys"
    release_every: int = 3_600
    password_cost: int = 3
    trusted_proxies: int = 0
    internal: str = ""
    disk_minimum: int = 200
    backups: str = ""
    retention_days: int = 0
    client_origins: str = ""
    smtp: str = field(default="", repr=False)
    mail_from: str = ""
    webhook_hosts: str = ""
    oidc_issuer: str = ""
    oidc_client_id: str = ""
    oidc_client_secret: str = field(default="", repr=False)
    oidc_create_accounts: int = 0

    def __post_init__(self) -> None:
        self._check_addresses()
        check_database(self.database)
        if self.internal:
            host_and_port(self.internal)
        check_mail(self.smtp, self.mail_from)
        for host in self.webhook_hosts.split():
            check_address("SURVEY_WEBHOOK_HOSTS", f"https://{host}")
        self._check_provider()
        for name, variable in VARIABLES.items():
            variable.check(name, self)
        if self.release_every < MIN_RELEASE_SECONDS and not self.opens_here_only:
            raise SettingsError(
                f"SURVEY_RELEASE_EVERY = {self.release_every} must be {MIN_RELEASE_SECONDS} or "
                "more, unless SURVEY_PUBLIC_URL is a loopback address"
            )

    def _check_addresses(self) -> None:
        check_address("SURVEY_PUBLIC_URL", self.public_url)
        if self.research_url:
            check_address("SURVEY_RESEARCH_URL", self.research_url)
        for origin in self.client_origins.split():
            check_address("SURVEY_CLIENT_ORIGINS", origin)
        if self.onion_url and not is_onion(self.onion_url):
            raise SettingsError(
                f"SURVEY_ONION_URL = {self.onion_url!r} must be http:// followed by the content of "
                "Tor's file `hostname`: 56 characters and .onion"
            )
        addresses = (self.public_url, self.research_url, self.onion_url)
        hosts = [host_of(address) for address in addresses if address]
        if len(set(hosts)) < len(hosts):
            raise SettingsError(
                "SURVEY_PUBLIC_URL, SURVEY_RESEARCH_URL and SURVEY_ONION_URL must differ in host "
                "or port, because the host determines which pages the server sends"
            )

    def _check_provider(self) -> None:
        if not self.oidc_issuer:
            return
        if not (self.oidc_client_id and self.oidc_client_secret):
            raise SettingsError(
                "SURVEY_OIDC_ISSUER also needs SURVEY_OIDC_CLIENT_ID and SURVEY_OIDC_CLIENT_SECRET"
            )
        parts = urlsplit(self.oidc_issuer)
        is_safe = parts.scheme == "https" or is_loopback(parts.hostname or "")
        if not (parts.scheme in ("https", "http") and parts.hostname and is_safe):
            raise SettingsError(
                f"SURVEY_OIDC_ISSUER = {self.oidc_issuer!r} must be the https:// address of an "
                "OpenID Connect provider, such as https://login.example.org/realms/staff"
            )

    @property
    def researchers_url(self) -> str:
        """The address of researchers' pages and the API, without a slash at its end."""
        return (self.research_url or self.public_url).rstrip("/")

    @property
    def secure_cookies(self) -> bool:
        """Whether researchers open the instance with https."""
        return self.researchers_url.startswith("https://")

    @property
    def listed_origins(self) -> tuple[str, ...]:
        """The origins, as browsers send them, whose copies of the respondents' page may send."""
        urls = self.client_origins.split()
        return tuple(f"{url.partition('://')[0]}://{host_of(url)}" for url in urls)

    @property
    def opens_here_only(self) -> bool:
        """Whether the public address can be opened only on this machine."""
        return is_loopback(urlsplit(self.public_url).hostname or "")

    def with_real_secret(self) -> Settings:
        """Return these settings; raise SettingsError if the secret is too weak to sign sessions."""
        if len(self.secret) < MIN_SECRET_LENGTH or is_guessable(self.secret):
            raise SettingsError(
                f"SURVEY_SECRET must be {MIN_SECRET_LENGTH} or more random characters; make one "
                'with: python -c "import secrets; print(secrets.token_hex(32))"'
            )
        return self

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Read the variables of `VARIABLES`; raise SettingsError for unknown SURVEY_* names.

        >>> Settings.from_environment({"SURVEY_RELEASE_EVERY": "86400"}).release_every
        86400
        """
        variables = {
            name: text
            for name, text in environment.items()
            if name.startswith("SURVEY_") and not name.startswith("SURVEY_TEST_")
        }
        if unknown := sorted(set(variables) - set(VARIABLES)):
            raise SettingsError(
                f"unknown setting {unknown[0]}; the known settings are {', '.join(VARIABLES)}"
            )
        for name in (SECRET_FILE, SMTP_FILE, OIDC_SECRET_FILE):
            if name in variables:
                variables = _read_secret(variables, name)
        caps: dict[str, Any] = {}
        values: dict[str, Any] = {}
        for name, text in variables.items():
            variable = VARIABLES[name]
            target = caps if variable.of_caps else values
            target[variable.field] = variable.parse(name, text)
        return cls(**values, caps=Caps(**caps))


@dataclass(frozen=True)
class Variable:
    """An environment variable: the field it sets, its meaning, and the limits of a number.

    The handbook shows the meaning, and `unset`: what it means that a text is empty by default.
    """

    field: str
    meaning: str
    limits: tuple[int, int] | tuple[Decimal, Decimal] | None = None
    of_caps: bool = False
    unset: str = ""

    def parse(self, name: str, text: str) -> Any:
        """Return a text as the number that it means, or unchanged if it is none."""
        if self.limits is None:
            return text
        try:
            # Python would also accept 1_0, and digits of other scripts.
            if re.fullmatch(r"-?[0-9.]+", text):
                return type(self.limits[0])(text)
        except (ValueError, InvalidOperation):
            pass
        raise SettingsError(f"{name} = {text!r} is not a number")

    def check(self, name: str, settings: Settings) -> None:
        """Raise SettingsError if the value is outside the limits."""
        value = getattr(settings.caps if self.of_caps else settings, self.field)
        # NaN fails this comparison too.
        if self.limits and not (
            Decimal(value).is_finite() and self.limits[0] <= value <= self.limits[1]
        ):
            raise SettingsError(
                f"{name} = {value} must be from {self.limits[0]} to {self.limits[1]}"
            )


MIN_RELEASE_SECONDS = 600
"""Minimum time between releases of a public instance; coarse times hide when reports arrive."""

SECRET_FILE = "SURVEY_SECRET_FILE"  # noqa: S105  the name of a setting
SMTP_FILE = "SURVEY_SMTP_FILE"
OIDC_SECRET_FILE = "SURVEY_OIDC_CLIENT_SECRET_FILE"  # noqa: S105  the name of a setting
MIN_CAP = Decimal("0.1")

VARIABLES: Mapping[str, Variable] = {
    "SURVEY_SECRET": Variable(
        "secret",
        "Signs researchers' sessions and encrypts the secrets of their authenticator apps; at "
        "least 32 random characters.",
        unset="none: must be set to serve",
    ),
    SECRET_FILE: Variable(
        "secret",
        "File that contains the secret, instead of `SURVEY_SECRET`.",
        unset="none: must be set to serve",
    ),
    "SURVEY_DATABASE": Variable(
        "database",
        "Database of the instance: `sqlite:///PATH` or `postgresql://USER:PASSWORD@HOST/DATABASE`.",
    ),
    "SURVEY_PUBLIC_URL": Variable(
        "public_url", "Public address: https, or http for loopback and onion addresses."
    ),
    "SURVEY_RESEARCH_URL": Variable(
        "research_url",
        "Separate address for researchers' pages and the API, which are then available only there. "
        "The public address then serves only respondents, and requests for other hosts get 404.",
        unset="none: one address for everybody",
    ),
    "SURVEY_ONION_URL": Variable(
        "onion_url",
        "Onion address of respondents' pages (`http://`, 56 characters, `.onion`). Tor Browser "
        "offers it to visitors of the public address.",
        unset="none: no onion address",
    ),
    "SURVEY_EPSILON_PER_QUESTION": Variable(
        "question", "Maximum epsilon of a question.", (MIN_CAP, Decimal(12)), of_caps=True
    ),
    "SURVEY_EPSILON_PER_SURVEY": Variable(
        "survey", "Maximum total epsilon of a survey.", (MIN_CAP, Decimal(20)), of_caps=True
    ),
    "SURVEY_EPSILON_WARNING": Variable(
        "warning",
        "Total epsilon above which researchers are warned. It can only lower the threshold, which "
        "is an odds factor of 20.",
        (MIN_CAP, Decimal(20)),
        of_caps=True,
    ),
    "SURVEY_KEYS": Variable(
        "keys",
        "Directory of the private keys of pending reports. No backup or snapshot may cover it.",
    ),
    "SURVEY_RELEASE_EVERY": Variable(
        "release_every",
        f"Seconds between release times, from {MIN_RELEASE_SECONDS} (on loopback, from 1) to "
        "604800. 3600 means every full hour in UTC.",
        (1, 7 * 86_400),
    ),
    "SURVEY_TRUSTED_PROXIES": Variable(
        "trusted_proxies", "Number of proxies in front that add `X-Forwarded-*` headers.", (0, 10)
    ),
    "SURVEY_PASSWORD_COST": Variable(
        "password_cost", "Passes of argon2id over memory for a researcher's password.", (1, 20)
    ),
    "SURVEY_INTERNAL": Variable(
        "internal",
        "HOST:PORT, on loopback or a private network, that serves `/healthz`, `/readyz` and "
        "`/metrics`.",
        unset="none: nothing answers there",
    ),
    "SURVEY_DISK_MINIMUM": Variable(
        "disk_minimum",
        "Megabytes of free disk (of an SQLite file) below which `/readyz` fails.",
        (0, 1_000_000),
    ),
    "SURVEY_BACKUPS": Variable(
        "backups",
        "Directory of the nightly backups; `/metrics` states the time and size of the newest one.",
        unset="none: no metrics of backups",
    ),
    "SURVEY_CLIENT_ORIGINS": Variable(
        "client_origins",
        "Origins, separated by spaces, of other hosts whose pages may load definitions and send "
        "reports: copies of the respondents' page (`survey bundle`), forms with the npm package.",
        unset="none: this server only",
    ),
    "SURVEY_SMTP": Variable(
        "smtp",
        "Mail server that sends messages about releases: `smtps://USER:PASSWORD@HOST`, "
        "`smtp://…` with STARTTLS, or `smtp://localhost` without encryption.",
        unset="none: no e-mail",
    ),
    SMTP_FILE: Variable(
        "smtp",
        "File that contains this address with its password, instead of `SURVEY_SMTP`; no e-mail "
        "if it is empty.",
        unset="none",
    ),
    "SURVEY_MAIL_FROM": Variable(
        "mail_from",
        "Sender of these messages, an e-mail address; required with `SURVEY_SMTP`.",
        unset="none",
    ),
    "SURVEY_WEBHOOK_HOSTS": Variable(
        "webhook_hosts",
        "Hosts (with a port unless it is 443), separated by spaces, to which webhooks may "
        "send messages about releases.",
        unset="none: no webhooks",
    ),
    "SURVEY_RETENTION_DAYS": Variable(
        "retention_days",
        "Days after closing until `survey retention` deletes a survey; 0 keeps it.",
        (0, 36_500),
    ),
    "SURVEY_OIDC_ISSUER": Variable(
        "oidc_issuer",
        "Address of an OpenID Connect provider with which researchers can also sign in; needs the "
        "extra `oidc`.",
        unset="none: passwords only",
    ),
    "SURVEY_OIDC_CLIENT_ID": Variable(
        "oidc_client_id", "Name by which the provider knows this server.", unset="none"
    ),
    "SURVEY_OIDC_CLIENT_SECRET": Variable(
        "oidc_client_secret", "Secret that the provider gave to this server.", unset="none"
    ),
    OIDC_SECRET_FILE: Variable(
        "oidc_client_secret",
        "File that contains this secret, instead of `SURVEY_OIDC_CLIENT_SECRET`.",
        unset="none",
    ),
    "SURVEY_OIDC_CREATE_ACCOUNTS": Variable(
        "oidc_create_accounts",
        "1 creates an account for everybody who signs in with the provider; 0 admits existing "
        "accounts only.",
        (0, 1),
    ),
}


def _read_secret(variables: Mapping[str, str], file_name: str) -> dict[str, str]:
    """Return the variables with a secret in place of the name of its file."""
    name = file_name.removesuffix("_FILE")
    if name in variables:
        raise SettingsError(f"{name} and {file_name} are both set; remove one")
    file = Path(variables[file_name])
    try:
        secret = file.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        raise SettingsError(f"{file_name}: {file} cannot be read as text") from None
    others = {other: text for other, text in variables.items() if other != file_name}
    return {**others, name: secret}


def is_guessable(secret: str) -> bool:
    """Return whether a secret contains a known word, repetitions or sequences.

    >>> [is_guessable(text) for text in ("qwertyui" * 4, "abcdefghijklmnopqrstuvwxyz0123456789")]
    [True, True]
    >>> is_guessable("3f1c9b0a77e2d4586b1e90c2fa43d875")
    False
    """
    steps = sum(abs(ord(a) - ord(b)) <= 1 for a, b in pairwise(secret))
    return (
        any(word in re.sub("[^a-z]", "", secret.lower()) for word in GUESSED_WORDS)
        or len(set(secret)) < MIN_DISTINCT_CHARACTERS
        or len(zlib.compress(secret.encode())) < MIN_SECRET_LENGTH
        or 2 * steps > len(secret)
    )


LAST_PORT = 65_535

ORIGIN = re.compile(
    r"(?P<scheme>https?)://(?P<host>(?!-)[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])"
    r"(?::(?P<port>[1-9][0-9]{0,4}))?/?"
)
"""The address that people open, without a user, path or query."""

DATABASE = "SURVEY_DATABASE must be sqlite:///PATH or postgresql://USER:PASSWORD@HOST/DATABASE"


def check_address(name: str, url: str) -> None:
    """Raise SettingsError unless a URL has the only accepted spelling of a public address."""
    # Secure cookies, links and the comparison of origins depend on this spelling.
    match = ORIGIN.fullmatch(url)
    if not match or int(match["port"] or 0) > LAST_PORT or not _is_host(match["host"]):
        raise SettingsError(
            f"{name} = {url!r} must be a scheme, a host in lower case and "
            "optionally a port, such as https://survey.example.org; leave out any path"
        )
    if match["scheme"] == "http" and not (is_loopback(match["host"].strip("[]")) or is_onion(url)):
        raise SettingsError(
            f"{name} = {url!r} must start with https:// (http only for loopback and onion "
            "addresses): browsers randomize answers only in a secure context"
        )


def host_of(url: str) -> str:
    """Return the host of a checked address, with its port unless that is the scheme's default.

    >>> host_of("https://survey.example.org:443/"), host_of("http://127.0.0.1:8000")
    ('survey.example.org', '127.0.0.1:8000')
    """
    scheme, _, host = url.rstrip("/").partition("://")
    return host.removesuffix(":443" if scheme == "https" else ":80")


ONION = re.compile(r"http://(?P<name>[a-z2-7]{56})\.onion/?")


def is_onion(url: str) -> bool:
    """Return whether a URL is an onion address with a correct checksum.

    The 56 characters are the base32 form of the service's public key, the first two bytes of
    SHA3-256(".onion checksum" + key + version), and the version, 3 (Tor's rend-spec-v3, section 6).
    """
    if not (match := ONION.fullmatch(url)):
        return False
    address = base64.b32decode(match["name"].upper())
    key, checksum, version = address[:32], address[32:34], address[34:]
    digest = hashlib.sha3_256(b".onion checksum" + key + version).digest()
    return version == b"\x03" and digest[:2] == checksum


def _is_host(host: str) -> bool:
    if not host.startswith("["):
        return True
    try:
        return bool(ipaddress.IPv6Address(host.strip("[]")))
    except ValueError:
        return False


def check_database(url: str) -> None:
    """Raise SettingsError if a URL does not name a database.

    The message quotes only the scheme, because a URL may contain a password.
    """
    scheme, separator, rest = url.partition("://")
    scheme_note = f"; it begins with {scheme}://" if separator else ""
    if scheme == "sqlite":
        if not rest.startswith("/") or Path(rest[1:]).name in ("", ".."):
            raise SettingsError(f"{DATABASE}{scheme_note}")
        return
    try:
        parts = urlsplit(url)
        # With two @, part of a password would be used, and later quoted, as the name of the host.
        is_valid = scheme == "postgresql" and rest and parts.netloc.count("@") <= 1
        is_valid = is_valid and (parts.port or 1) > 0
    except ValueError:
        is_valid = False
    if not is_valid:
        note = "; encode special characters in a password, @ as %40"
        raise SettingsError(
            f"{DATABASE}{scheme_note}{note if scheme == 'postgresql' else ''}"
        ) from None


def check_mail(smtp: str, mail_from: str) -> None:
    """Raise SettingsError if a mail server is set, unless it and the sender are valid.

    The message quotes no part of the server's URL, because it may contain a password.
    """
    if not smtp:
        return
    try:
        parts = urlsplit(smtp)
        is_valid = parts.scheme in ("smtp", "smtps") and bool(parts.hostname)
        is_valid = is_valid and parts.netloc.count("@") <= 1 and parts.path in ("", "/")
        is_valid = is_valid and (parts.port or 1) > 0
        # Python's library sends neither other names of hosts nor other passwords.
        (parts.hostname or "").encode("idna")
        unquote(parts.netloc).encode("ascii")
    except ValueError:
        is_valid = False
    if not is_valid:
        raise SettingsError(
            "SURVEY_SMTP must be smtps://USER:PASSWORD@HOST:PORT or smtp://HOST:PORT; encode "
            "special characters in a password, @ as %40"
        )
    if not is_email(mail_from):
        raise SettingsError(
            f"SURVEY_MAIL_FROM = {mail_from!r} must be the e-mail address of the sender, because "
            "SURVEY_SMTP is set"
        )


def is_email(text: str) -> bool:
    """Return whether a text is an e-mail address of letters, digits and unquoted signs.

    >>> is_email("surveys@example.org"), is_email("a@b@example.org"), is_email("a b@example.org")
    (True, False, False)
    """
    return bool(re.fullmatch(r"[\w.!#$%&'*+/^`{|}~-]{1,64}@[a-z0-9.-]{1,190}", text, re.A | re.I))


def host_and_port(text: str) -> tuple[str, int]:
    """Return the host and the port of SURVEY_INTERNAL.

    >>> host_and_port("127.0.0.1:9464"), host_and_port("[::1]:9464")
    (('127.0.0.1', 9464), ('::1', 9464))
    """
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not 0 < int(port) <= LAST_PORT:
        raise SettingsError(f"SURVEY_INTERNAL = {text!r} must be HOST:PORT, such as 127.0.0.1:9464")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Return whether a host name means this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("example.org")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
