"""Boxes of field mode, in which tablets store reports, and the keys that open the boxes.

A box is a report encrypted by HPKE in base mode (RFC 9180) with DHKEM(P-256, HKDF-SHA256),
HKDF-SHA256 and AES-128-GCM, which browsers have supported since 2021. Its plaintext has the length
of the survey's reports, so all boxes of a survey have the same length. `seal.js` creates them.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from typing import TYPE_CHECKING

from survey.errors import NotFoundError, ReportError
from survey.store.sealed_reports import ID_BYTES, PrivateKeys

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.hpke import Suite

    from survey.questionnaire.definition import Definition

OVERHEAD = 65 + 16
"""Bytes that a box adds to its report: the ephemeral public key and the authenticator."""

CONTEXT = "survey field report "
"""Start of each box's `info`; the definition's hash follows it, which binds the box to it."""


def box_bytes(definition: Definition) -> int:
    """Return the length of each box of a survey."""
    return OVERHEAD + definition.report_bytes


def box_id(box: bytes) -> bytes:
    """Return the id of a box, which is the same if the box is uploaded or imported again.

    A box contains an ephemeral key, so its hash reveals nothing about its report.
    """
    return hashlib.sha256(box).digest()[:ID_BYTES]


def seal_box(definition: Definition, body: bytes) -> bytes:
    """Seal the body of a report that arrived without a tablet."""
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey

    if definition.field is None or len(body) != definition.report_bytes:
        raise ReportError("a box must contain one report of the survey's length")
    public_key = EllipticCurvePublicKey.from_encoded_point(SECP256R1(), definition.field.key)
    return _suite().encrypt(body, public_key, info=_info(definition))


def open_box(private_key: EllipticCurvePrivateKey, definition: Definition, box: bytes) -> bytes:
    """Return the content of a box, or b"" if it was not sealed for this key and definition."""
    from cryptography.exceptions import InvalidTag

    try:
        return _suite().decrypt(box, private_key, info=_info(definition))
    except InvalidTag:
        return b""


def _info(definition: Definition) -> bytes:
    return f"{CONTEXT}{definition.sha256}".encode("ascii")


@cache
def _suite() -> Suite:
    # Import here, because most surveys have no field mode.
    from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

    return Suite(KEM.P256, KDF.HKDF_SHA256, AEAD.AES_128_GCM)


class FieldKeys(PrivateKeys):
    """The private keys of field mode, stored next to the keys of pending reports.

    Each survey version has one as long as tablets may upload its reports; the database contains
    only the public key, in the definition.
    """

    SUFFIX = ".field"

    def _generate(self) -> tuple[bytes, bytes]:
        from cryptography.hazmat.primitives.asymmetric import ec

        private_key = ec.generate_private_key(ec.SECP256R1())
        secret = private_key.private_numbers().private_value.to_bytes(32, "big")
        return _public_bytes(private_key), secret

    def find_field_key(self, public_key: bytes) -> EllipticCurvePrivateKey | None:
        """Return the private key for a public key, or None if this directory lacks it."""
        from cryptography.hazmat.primitives.asymmetric import ec

        try:
            secret = int.from_bytes(self._read(public_key), "big")
        except NotFoundError:
            return None
        try:
            private_key = ec.derive_private_key(secret, ec.SECP256R1())
        except ValueError:
            # After a crash of the machine, the file may be empty or overwritten.
            return None
        return private_key if _public_bytes(private_key) == public_key else None

    def public_keys(self) -> list[bytes]:
        """Return the public keys of all private keys of field mode in the directory."""
        return [
            bytes.fromhex(name) for name in self._names() if re.fullmatch("04[0-9a-f]{128}", name)
        ]


def _public_bytes(private_key: EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return private_key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
