"""The shipped nginx speaks no old TLS, and knows no device that comes again.

Each is shown on the same nginx with one setting changed, too: this client could have been heard.
"""

from __future__ import annotations

import ssl
import warnings
from contextlib import closing

import pytest

from tests.deploy.headers import asked_for, read
from tests.deploy.proxy import HOST, Proxy

pytestmark = [pytest.mark.web, pytest.mark.security]

PERMISSIVE = """
openssl_conf = all
[all]
ssl_conf = modules
[modules]
system_default = old
[old]
MinProtocol = TLSv1
CipherString = ALL:@SECLEVEL=0
"""
"""Of a system that forbids nothing: what is refused is refused by the shipped file."""

OLD = [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1]
GOOD = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
ALL_VERSIONS = ("ssl_protocols TLSv1.2", "ssl_protocols TLSv1 TLSv1.1 TLSv1.2")


def speaking(proxy: Proxy, version: ssl.TLSVersion) -> ssl.SSLContext:
    """What speaks one version alone."""
    context = proxy.context()
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = version
    return context


def shaken(proxy: Proxy, context: ssl.SSLContext, session: ssl.SSLSession | None = None):
    """A connection on which an answer was read: by then all that a server gives has come."""
    plain = proxy.tcp()
    try:
        connection = context.wrap_socket(plain, server_hostname=HOST, session=session)
    except BaseException:
        plain.close()
        raise
    connection.sendall(asked_for(b"/s/small"))
    assert read(connection)[0] == 200
    return connection


@pytest.fixture
def _permissive(tmp_path, monkeypatch):
    (tmp_path / "openssl.cnf").write_text(PERMISSIVE)
    monkeypatch.setenv("OPENSSL_CONF", str(tmp_path / "openssl.cnf"))


@pytest.mark.usefixtures("_permissive")
@pytest.mark.parametrize("version", [*OLD, *GOOD])
def test_old_versions_of_tls_are_refused(stood_in, version):
    shipped, _ = stood_in()
    if version in OLD:
        with pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION"):
            shaken(shipped, speaking(shipped, version))
    else:
        with closing(shaken(shipped, speaking(shipped, version))) as connection:
            assert connection.version() == version.name.replace("_", ".")
    permissive, _ = stood_in(ALL_VERSIONS)
    shaken(permissive, speaking(permissive, version)).close()


REMEMBERING = [
    ("ssl_session_tickets off", "ssl_session_tickets on"),
    ("ssl_session_cache off", "ssl_session_cache shared:known:1m"),
]


@pytest.mark.parametrize("remembering", REMEMBERING, ids=["tickets", "cache"])
@pytest.mark.parametrize("version", GOOD)
def test_no_device_that_comes_again_is_known_by_its_session(stood_in, version, remembering):
    shipped, _ = stood_in()
    assert not comes_again(shipped, version)
    control, _ = stood_in(remembering)
    assert comes_again(control, version)


def comes_again(proxy: Proxy, version: ssl.TLSVersion) -> bool:
    """Whether a second connection goes on with the session of the first."""
    context = speaking(proxy, version)
    with closing(shaken(proxy, context)) as first:
        session = first.session
    with closing(shaken(proxy, context, session)) as second:
        return bool(second.session_reused)
