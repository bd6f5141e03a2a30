"""A name server like Docker's, which a test can give new addresses."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import BaseRequestHandler, UDPServer
from threading import Thread

TTL = 600
"""Docker's: seconds for which a program may use an address."""


class NameServer(UDPServer):
    """Answer every query for IPv4 addresses with `addresses`; no addresses mean no such name."""

    def __init__(self, *addresses: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.addresses = list(addresses)

    @property
    def port(self) -> int:
        return self.server_address[1]


class _Handler(BaseRequestHandler):
    server: NameServer

    def handle(self) -> None:
        query, sender = self.request
        addresses = list(self.server.addresses)
        # A response with recursion available, and NXDOMAIN if there are no addresses.
        flags = b"\x81\x80" if addresses else b"\x81\x83"
        counts = (1, len(addresses), 0, 0)
        response = query[:2] + flags + b"".join(count.to_bytes(2, "big") for count in counts)
        response += query[12:]
        for address in addresses:
            # The name of the question, type A, class IN.
            response += b"\xc0\x0c\x00\x01\x00\x01" + TTL.to_bytes(4, "big")
            response += b"\x00\x04" + socket.inet_aton(address)
        sender.sendto(response, self.client_address)


@contextmanager
def name_server(*addresses: str) -> Iterator[NameServer]:
    """Run a name server on its own port for the duration of the context."""
    with NameServer(*addresses) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
