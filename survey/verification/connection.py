"""HTTP requests of one visitor: headers as received, no cookies, no redirects, an optional proxy.

HTTP libraries merge repeated headers, follow redirects or decode bodies, and so could hide what a
server has altered.
"""

from __future__ import annotations

import http.client
import math
import secrets
import socket
import ssl
import struct
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import Any
from urllib.parse import SplitResult, urlsplit

import brotli

from survey.errors import SurveyError

TIMEOUT_SECONDS = 30.0
MAX_BODY_BYTES = 16 * 2**20
ATTEMPTS = 5
MAX_WAIT_SECONDS = 60.0
MAX_VISIT_SECONDS = 900.0
PROXY_SCHEMES = ("http", "socks5h")

BUSY = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
"""Statuses after which a request is repeated: the server limits requests, or is restarting."""

INERT_TYPES = ("application/problem+json", "application/json", "text/plain")
"""Types of which browsers show the text and nothing else."""

EFFECTS = frozenset(
    [
        *("set-cookie", "refresh", "link", "location", "clear-site-data"),
        *("service-worker-allowed", "onion-location"),
    ]
)
"""Headers that have an effect on a browser whatever the status."""


class UnreachableError(SurveyError):
    """A server or proxy does not answer, so nothing can be compared."""


class CodingError(SurveyError):
    """A body is not encoded as its headers state."""


@dataclass(frozen=True)
class Response:
    """A response as received, with all `headers` in their original order."""

    url: str
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    malformed: str = ""

    @cached_property
    def by_name(self) -> Mapping[str, list[str]]:
        """The values of each header by its name in lower case."""
        values: dict[str, list[str]] = {}
        for name, value in self.headers:
            values.setdefault(name.lower(), []).append(value)
        return values

    def values(self, name: str) -> list[str]:
        """Return the values of a header; write its name in lower case."""
        return self.by_name.get(name, [])

    @cached_property
    def content(self) -> bytes:
        """The body without its content coding; raises CodingError."""
        coding = ",".join(self.values("content-encoding")).strip().lower()
        # Browsers differ in what they make of several codings, and a body can be valid in two ways.
        if "," in coding:
            raise CodingError(f"the body has several codings: {coding!r}")
        return _decode(self.body, coding)

    @cached_property
    def is_inert(self) -> bool:
        """Whether a browser that receives this shows text at most, and keeps nothing."""
        essence = ",".join(self.values("content-type")).partition(";")[0].strip().lower()
        is_text = essence in INERT_TYPES or not self.body
        return is_text and not self.malformed and EFFECTS.isdisjoint(self.by_name)


def _decode(body: bytes, coding: str) -> bytes:
    try:
        match coding:
            case "" | "identity":
                return body
            case "gzip":
                # 16: the header of gzip only.
                return _checked(zlib.decompressobj(16 + zlib.MAX_WBITS), body, coding)
            case "deflate":
                return _checked(zlib.decompressobj(), body, coding)
            case "br":
                return _brotli(body)
            case "zstd":
                return _zstd(body)
    except (zlib.error, brotli.error) as error:
        raise CodingError(f"the body is not valid {coding}: {error}") from None
    raise CodingError(f"the body has the unknown coding {coding!r}")


def _checked(decoder: Any, body: bytes, coding: str) -> bytes:
    content: bytes = decoder.decompress(body, MAX_BODY_BYTES)
    if not decoder.eof or decoder.unused_data:
        raise CodingError(f"the body is not exactly one {coding} stream")
    return content


def _brotli(body: bytes) -> bytes:
    decoder, pieces, size = brotli.Decompressor(), [], 0
    # In small steps, so that a few bytes cannot fill the memory.
    for start in range(0, len(body), 16):
        pieces.append(decoder.process(body[start : start + 16]))
        size += len(pieces[-1])
        if size > MAX_BODY_BYTES:
            raise CodingError(f"the body has more than {MAX_BODY_BYTES:,} bytes")
    if not decoder.is_finished():
        raise CodingError("the body is not a complete br stream")
    return b"".join(pieces)


def _zstd(body: bytes) -> bytes:
    try:
        import zstandard
    except ImportError:
        raise UnreachableError(
            "the response is compressed with zstd; to decode it, run: pip install zstandard"
        ) from None
    try:
        # Browsers decode all frames of a body, so an added one must not be passed over.
        with zstandard.ZstdDecompressor().stream_reader(body, read_across_frames=True) as reader:
            content: bytes = reader.read(MAX_BODY_BYTES + 1)
    except zstandard.ZstdError as error:
        raise CodingError(f"the body is not valid zstd: {error}") from None
    if len(content) > MAX_BODY_BYTES:
        raise CodingError(f"the body has more than {MAX_BODY_BYTES:,} bytes")
    return content


@dataclass(frozen=True)
class Proxy:
    """A proxy for all requests; socks5h (Tor) also resolves host names."""

    scheme: str
    host: str
    port: int

    @classmethod
    def parse(cls, url: str) -> Proxy:
        """Read http://HOST:PORT or socks5h://HOST:PORT."""
        parts = urlsplit(url)
        try:
            is_complete = bool(parts.hostname and parts.port)
        except ValueError:
            is_complete = False
        if parts.scheme not in PROXY_SCHEMES or not is_complete or parts.username:
            raise SurveyError(
                f"--proxy {url}: write http://HOST:PORT or socks5h://HOST:PORT "
                "(for Tor: socks5h://127.0.0.1:9050)"
            )
        return cls(parts.scheme, str(parts.hostname), int(parts.port or 0))


class Connections:
    """One visitor's connections, one to each server; they stay open for the whole visit."""

    def __init__(
        self, proxy: Proxy | None = None, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._proxy = proxy
        self._sleep = sleep
        # Tor uses a separate circuit, and so usually another address, for each user name.
        self._identity = secrets.token_hex(8).encode("ascii")
        self._open: dict[tuple[str, str], http.client.HTTPConnection] = {}
        self._is_late = False
        self._timer = threading.Timer(MAX_VISIT_SECONDS, self._end)
        self._timer.daemon = True
        self._timer.start()

    def close(self) -> None:
        """Close all connections."""
        self._timer.cancel()
        while self._open:
            self._open.popitem()[1].close()

    def _end(self) -> None:
        """End a visit that takes too long because the server sends one byte at a time."""
        self._is_late = True
        for connection in list(self._open.values()):
            # A connection that is closed has no socket.
            with suppress(OSError, AttributeError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def get(self, url: str, headers: Mapping[str, str]) -> Response:
        """Request a URL; repeat while the server is busy, and raise UnreachableError in the end.

        A request is never repeated after anything that a browser would show or keep: a server could
        send an altered page with status 503 or cut it off, and the genuine one when asked again.
        """
        reason = ""
        for attempt in range(ATTEMPTS):
            try:
                response = self._request(url, headers)
            except (OSError, http.client.HTTPException) as error:
                self._forget(url)
                if self._is_late:
                    raise UnreachableError(f"{url}: the visit takes too long") from None
                if isinstance(error, ssl.SSLCertVerificationError):
                    raise UnreachableError(f"{url}: {error.verify_message}") from None
                reason, wait = str(error) or type(error).__name__, 0.2 * attempt
            else:
                if response.status not in BUSY or not response.is_inert:
                    return response
                reason, wait = f"status {response.status}", _retry_after(response)
            if attempt < ATTEMPTS - 1:
                self._sleep(wait)
        raise UnreachableError(f"{url}: {reason}")

    def _request(self, url: str, headers: Mapping[str, str]) -> Response:
        parts = urlsplit(url)
        connection = self._connection(parts)
        target = url if self._is_forwarded(parts) else parts._replace(scheme="", netloc="").geturl()
        connection.putrequest("GET", target or "/", skip_accept_encoding=True, skip_host=True)
        connection.putheader("Host", parts.netloc)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        received, body = self._receive(connection, url)
        if received.will_close:
            self._forget(url)
        # The parser treats all headers after a malformed line as text.
        rest = str(received.msg.get_payload() or "").strip()
        defects = ", ".join(type(defect).__name__ for defect in received.msg.defects)
        malformed = rest or defects or _describe_framing(received)
        return Response(url, received.status, tuple(received.getheaders()), body, malformed)

    def _receive(
        self, connection: http.client.HTTPConnection, url: str
    ) -> tuple[http.client.HTTPResponse, bytes]:
        """Return a response and its body; raise OSError only if there is no response at all."""
        try:
            received = connection.getresponse()
        except http.client.RemoteDisconnected:
            raise
        except (TimeoutError, http.client.HTTPException) as error:
            raise self._failure(url, str(error) or type(error).__name__) from None
        try:
            body = received.read(MAX_BODY_BYTES + 1)
        except (OSError, http.client.HTTPException):
            raise self._failure(url, "the response was cut off") from None
        if len(body) > MAX_BODY_BYTES:
            raise self._failure(url, f"more than {MAX_BODY_BYTES:,} bytes")
        if received.length or self._is_late:
            raise self._failure(url, "the response was cut off")
        return received, body

    def _failure(self, url: str, reason: str) -> UnreachableError:
        return UnreachableError(f"{url}: {'the visit takes too long' if self._is_late else reason}")

    def _is_forwarded(self, parts: SplitResult) -> bool:
        return self._proxy is not None and self._proxy.scheme == parts.scheme == "http"

    def _connection(self, parts: SplitResult) -> http.client.HTTPConnection:
        key = (parts.scheme, parts.netloc)
        if key not in self._open:
            self._open[key] = self._connect(parts)
        return self._open[key]

    def _forget(self, url: str) -> None:
        parts = urlsplit(url)
        if connection := self._open.pop((parts.scheme, parts.netloc), None):
            connection.close()

    def _connect(self, parts: SplitResult) -> http.client.HTTPConnection:
        host = parts.hostname or ""
        port = parts.port or (443 if parts.scheme == "https" else 80)
        proxy = self._proxy
        if proxy and proxy.scheme == "http" and parts.scheme == "https":
            tunnel = http.client.HTTPSConnection(proxy.host, proxy.port, timeout=TIMEOUT_SECONDS)
            tunnel.set_tunnel(host, port)
            tunnel.sock = socket.create_connection((proxy.host, proxy.port), TIMEOUT_SECONDS)
            tunnel._tunnel()  # type: ignore[attr-defined]
            tunnel.sock = ssl.create_default_context().wrap_socket(
                tunnel.sock, server_hostname=host
            )
            return tunnel
        if proxy and proxy.scheme == "http":
            return http.client.HTTPConnection(proxy.host, proxy.port, timeout=TIMEOUT_SECONDS)
        connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
        address = (proxy.host, proxy.port) if proxy else (host, port)
        stream = socket.create_connection(address, TIMEOUT_SECONDS)
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if proxy:
            socks_connect(stream, host, port, self._identity)
        if parts.scheme == "https":
            stream = ssl.create_default_context().wrap_socket(stream, server_hostname=host)
        connection.sock = stream
        return connection


def _describe_framing(received: http.client.HTTPResponse) -> str:
    """Return a Transfer-Encoding that browsers may read differently, "" if there is none."""
    values = received.msg.get_all("transfer-encoding", [])
    is_usual = received.version == 11 and [value.lower() for value in values] == ["chunked"]
    if not values or (is_usual and "content-length" not in received.msg):
        return ""
    return f"Transfer-Encoding {', '.join(values)} in HTTP {received.version / 10}"


def socks_connect(stream: socket.socket, host: str, port: int, identity: bytes) -> None:
    """Connect a stream to a host through a SOCKS proxy, which resolves the host's name.

    Source: RFC 1928, RFC 1929.
    """
    no_login, login = 0, 2
    stream.sendall(bytes([5, 2, no_login, login]))
    version, method = _receive(stream, 2)
    if version != 5 or method not in (no_login, login):
        raise OSError("the proxy does not speak SOCKS 5")
    if method == login:
        field = bytes([len(identity)]) + identity
        stream.sendall(b"\x01" + field + field)
        if _receive(stream, 2)[1]:
            raise OSError("the proxy rejects the user name")
    name = host.encode("idna")
    stream.sendall(b"\x05\x01\x00\x03" + bytes([len(name)]) + name + struct.pack(">H", port))
    _, status, _, kind = _receive(stream, 4)
    if status:
        raise OSError(f"the proxy cannot reach {host} (SOCKS status {status})")
    n_bytes = {1: 4, 4: 16}.get(kind) or _receive(stream, 1)[0]
    _receive(stream, n_bytes + 2)


def _receive(stream: socket.socket, n_bytes: int) -> bytes:
    data = b""
    while len(data) < n_bytes:
        piece = stream.recv(n_bytes - len(data))
        if not piece:
            raise OSError("the proxy closed the connection")
        data += piece
    return data


def _retry_after(response: Response) -> float:
    try:
        seconds = float(response.values("retry-after")[0])
    except (IndexError, ValueError):
        seconds = 2.0
    return min(max(seconds, 0.5), MAX_WAIT_SECONDS) if math.isfinite(seconds) else 2.0
