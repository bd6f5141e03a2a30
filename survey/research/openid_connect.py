"""Sign-in with an OpenID Connect provider: authorization code flow with PKCE, state and nonce.

The session cookie is SameSite=Strict, so browsers omit it when they return from the provider. The
state of a sign-in is therefore in a separate signed cookie (SameSite=Lax), which browsers send to
these addresses only.
"""

from __future__ import annotations

import importlib
import logging
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from flask import request
from itsdangerous import BadSignature, URLSafeTimedSerializer
from werkzeug.wrappers import Response

from survey.errors import ForbiddenError, RemoteError, require_extra
from survey.settings import Settings

if TYPE_CHECKING:
    from authlib.integrations.flask_client import FlaskOAuth2App

logger = logging.getLogger(__name__)

COOKIE_PATH = "/research/sign-in/provider"
COOKIE_SECONDS = 600
TIMEOUT_SECONDS = 10
"""Maximum time for each answer of the provider, for which a request waits."""

SAFE_ALGORITHMS = {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"}
"""Signature algorithms with a private key: neither "none" nor those with a shared secret."""

UNCONFIRMED = "The sign-in service did not confirm who you are. Start again from the sign-in page."
NO_ANSWER = "The sign-in service does not answer. Try again later, or sign in with your password."
UNVERIFIED = "The sign-in service does not state a verified email address for you."


class Pending(NamedTuple):
    """The state of a sign-in, which the browser stores until it returns from the provider."""

    state: str
    nonce: str
    code_verifier: str
    target: str


class Provider:
    """The provider of an instance, whose metadata and keys are read at the first sign-in."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._serializer = URLSafeTimedSerializer(settings.secret, salt="sign-in with a provider")
        prefix = "__Secure-" if settings.secure_cookies else ""
        self._cookie = f"{prefix}survey-provider"
        if settings.oidc_issuer:
            with require_extra("oidc"):
                # Fail when the server starts, not at the first sign-in.
                importlib.import_module("authlib.integrations.flask_client")

    @property
    def name(self) -> str:
        """The host name of the provider, or "" if there is none."""
        return urlsplit(self._settings.oidc_issuer).hostname or ""

    def begin(self, target: str) -> tuple[str, Pending]:
        """Return the provider's address to open, and the state of the sign-in to store.

        Raises RemoteError if the provider does not answer.
        """
        self._check_metadata()
        with _provider_errors():
            parts = self._client.create_authorization_url(self._return_address)
        return parts["url"], Pending(parts["state"], parts["nonce"], parts["code_verifier"], target)

    def remember(self, response: Response, pending: Pending | None) -> None:
        """Store the state of a sign-in in a cookie; None deletes the cookie."""
        response.set_cookie(
            self._cookie,
            str(self._serializer.dumps(pending)) if pending else "",
            max_age=COOKIE_SECONDS if pending else 0,
            path=COOKIE_PATH,
            secure=self._settings.secure_cookies,
            httponly=True,
            samesite="Lax",
        )

    def pending(self) -> Pending:
        """Return the state of the sign-in from which the browser of this request returns.

        Raises ForbiddenError if that sign-in began in another browser, or too long ago.
        """
        try:
            values = self._serializer.loads(
                request.cookies.get(self._cookie, ""), max_age=COOKIE_SECONDS
            )
        except BadSignature:
            raise ForbiddenError(UNCONFIRMED) from None
        pending = Pending(*values)
        if not secrets.compare_digest(
            pending.state.encode(), request.args.get("state", "").encode()
        ):
            raise ForbiddenError(UNCONFIRMED)
        return pending

    def verified_email(self, pending: Pending) -> str:
        """Return the verified email address for the authorization code in this request.

        Raises ForbiddenError if the provider confirms none, RemoteError if it does not answer.
        """
        code = request.args.get("code", "")
        self._check_metadata()
        # RFC 9207: the response must come from the provider to which the request went.
        names_itself = self._client.server_metadata.get(
            "authorization_response_iss_parameter_supported"
        )
        issuer = request.args.get("iss", "" if names_itself else self._settings.oidc_issuer)
        if not code or issuer.rstrip("/") != self._settings.oidc_issuer.rstrip("/"):
            raise ForbiddenError(UNCONFIRMED)
        with _provider_errors():
            token = self._client.fetch_access_token(
                self._return_address, code=code, code_verifier=pending.code_verifier
            )
            claims = self._client.parse_id_token(token, nonce=pending.nonce)
            if claims is None or not self._is_addressed(claims, pending.nonce):
                raise ForbiddenError(UNCONFIRMED)
            if "email" not in claims and self._client.server_metadata.get("userinfo_endpoint"):
                claims = self._user_information(token, claims)
        email = claims.get("email")
        if claims.get("email_verified") is not True or not isinstance(email, str):
            raise ForbiddenError(UNVERIFIED)
        if "@" not in email or len(email) > 254 or not email.isprintable():
            raise ForbiddenError(UNVERIFIED)
        return email

    def _is_addressed(self, claims: Mapping[str, Any], nonce: str) -> bool:
        """Return whether this provider issued an ID token for this server and this sign-in.

        OpenID Connect Core 1.0, 3.1.3.7, steps 2 to 5 and 11; Authlib accepts a token for another
        audience if it names this server as the authorized party.
        """
        audience, client = claims.get("aud"), self._settings.oidc_client_id
        audiences = audience if isinstance(audience, list) else [audience]
        authorized = claims.get("azp", client if len(audiences) == 1 else None)
        return (
            claims.get("iss") == self._client.server_metadata["issuer"]
            and client in audiences
            and authorized == client
            and claims.get("nonce") == nonce
        )

    def _user_information(self, token: Mapping[str, Any], claims: Mapping[str, Any]) -> Any:
        information = self._client.userinfo(token=token)
        # OpenID Connect Core 1.0, 5.3.2: another person's information could be substituted.
        if information.get("sub") != claims.get("sub"):
            raise ForbiddenError(UNCONFIRMED)
        return information

    @property
    def _return_address(self) -> str:
        return f"{self._settings.researchers_url}{COOKIE_PATH}/return"

    @cached_property
    def _client(self) -> FlaskOAuth2App:
        from authlib.integrations.flask_client import FlaskIntegration, FlaskOAuth2App

        issuer = self._settings.oidc_issuer.rstrip("/")
        return FlaskOAuth2App(
            FlaskIntegration("provider"),
            "provider",
            client_id=self._settings.oidc_client_id,
            client_secret=self._settings.oidc_client_secret,
            server_metadata_url=f"{issuer}/.well-known/openid-configuration",
            client_kwargs={
                "scope": "openid email",
                "code_challenge_method": "S256",
                "default_timeout": TIMEOUT_SECONDS,
            },
        )

    def _check_metadata(self) -> None:
        """Read the provider's metadata once, and check that its issuer is this provider."""
        with _provider_errors():
            metadata = self._client.load_server_metadata()
            if metadata["issuer"].rstrip("/") != self._settings.oidc_issuer.rstrip("/"):
                metadata.pop("_loaded_at", None)
                raise ForbiddenError(UNCONFIRMED)
            algorithms = set(metadata.get("id_token_signing_alg_values_supported", ["RS256"]))
            metadata["id_token_signing_alg_values_supported"] = sorted(algorithms & SAFE_ALGORITHMS)


@contextmanager
def _provider_errors() -> Iterator[None]:
    """Replace the errors of libraries when the provider's answer is missing or invalid."""
    from authlib.common.errors import AuthlibBaseError
    from joserfc.errors import JoseError
    from requests import RequestException

    try:
        yield
    except RequestException as error:
        logger.exception("the OpenID Connect provider does not answer")
        raise RemoteError(NO_ANSWER) from error
    except (AuthlibBaseError, JoseError, KeyError, TypeError, ValueError, RuntimeError) as error:
        logger.exception("the OpenID Connect provider confirmed nobody")
        raise ForbiddenError(UNCONFIRMED) from error
