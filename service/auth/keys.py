"""The form of API keys: `tm_`, 37 random base62 characters, 6 of checksum.

A typo is recognised without asking the database, and secret scanners can find keys by their form. Only
`fingerprint(secret, token)` is ever stored.
"""

import hashlib
import hmac
import re
import secrets
import string
import zlib

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_FORM = re.compile(r"tm_([0-9A-Za-z]{37})([0-9A-Za-z]{6})")


def new_token() -> str:
    """A fresh key, about 220 bits."""
    body = "".join(secrets.choice(ALPHABET) for _ in range(37))
    return f"tm_{body}{_checksum(body)}"


def well_formed(token: str) -> bool:
    """Whether the text has the form and checksum of a key."""
    found = _FORM.fullmatch(token)
    return found is not None and hmac.compare_digest(found[2], _checksum(found[1]))


def fingerprint(secret: bytes, token: str) -> str:
    """What is stored of a key: HMAC-SHA256 under the server's secret, 64 hex digits."""
    return hmac.new(secret, b"key:" + token.encode(), hashlib.sha256).hexdigest()


def _checksum(body: str) -> str:
    value, digits = zlib.crc32(body.encode()), ""
    for _ in range(6):
        value, rest = divmod(value, 62)
        digits = ALPHABET[rest] + digits
    return digits
