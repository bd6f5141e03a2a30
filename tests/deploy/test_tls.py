"""The shipped nginx rejects old TLS versions and cannot recognize a returning device.

Each test also changes one setting, to show that the client would otherwise succeed.
"""

from __future__ import annotations

import ssl
import warnings
from contextlib import closing

import pytest

from tests.deploy.headers import read_answer, request_head
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
"""A system configuration without restrictions, so that only the shipped file rejects anything."""

OLD_VERSIONS = [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1]
CURRENT_VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
ALL_VERSIONS = ("ssl_protocols TLSv1.2", "ssl_protocols TLSv1 TLSv1.1 TLSv1.2")


def context_for(proxy: Proxy, version: ssl.TLSVersion) -> ssl.SSLContext:
    """Return a context that supports a single version."""
    context = proxy.context()
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = version
    return context


def handshake(proxy: Proxy, context: ssl.SSLContext, session: ssl.SSLSession | None = None):
    """Connect and read one response; by then the server has sent all session data."""
    plain = proxy.tcp()
    try:
        connection = context.wrap_socket(plain, server_hostname=HOST, session=session)
    except BaseException:
        plain.close()
        raise
    connection.sendall(request_head(b"/s/small"))
    assert read_answer(connection)[0] == 200
    return connection


@pytest.fixture
def _permissive(tmp_path, monkeypatch):
    (tmp_path / "openssl.cnf").write_text(PERMISSIVE)
    monkeypatch.setenv("OPENSSL_CONF", str(tmp_path / "openssl.cnf"))


@pytest.mark.usefixtures("_permissive")
@pytest.mark.parametrize("version", [*OLD_VERSIONS, *CURRENT_VERSIONS])
def test_nginx_rejects_old_versions_of_tls(stub_proxy, version):
    shipped, _ = stub_proxy()
    if version in OLD_VERSIONS:
        with pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION"):
            handshake(shipped, context_for(shipped, version))
    else:
        with closing(handshake(shipped, context_for(shipped, version))) as connection:
            assert connection.version() == version.name.replace("_", ".")
    permissive, _ = stub_proxy(ALL_VERSIONS)
    handshake(permissive, context_for(permissive, version)).close()


RESUMPTION = [
    ("ssl_session_tickets off", "ssl_session_tickets on"),
    ("ssl_session_cache off", "ssl_session_cache shared:known:1m"),
]


@pytest.mark.parametrize("resumption", RESUMPTION, ids=["tickets", "cache"])
@pytest.mark.parametrize("version", CURRENT_VERSIONS)
def test_nginx_does_not_resume_the_session_of_a_returning_device(stub_proxy, version, resumption):
    shipped, _ = stub_proxy()
    assert not resumes_session(shipped, version)
    control, _ = stub_proxy(resumption)
    assert resumes_session(control, version)


def resumes_session(proxy: Proxy, version: ssl.TLSVersion) -> bool:
    """Tell whether a second connection resumes the session of the first."""
    context = context_for(proxy, version)
    with closing(handshake(proxy, context)) as first:
        session = first.session
    with closing(handshake(proxy, context, session)) as second:
        return bool(second.session_reused)
