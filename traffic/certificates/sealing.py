"""Keys of certificates as Postgres keeps them: sealed, so that a reader of the database or of a dump gets none."""

from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from functools import cached_property

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from domain.text.errors import RollwayError


class SealError(RollwayError):
    """The text was sealed with another key."""


@dataclass(frozen=True)
class KeySeal:
    """Seals and opens with the key of the installation (ROLLWAY_CERTIFICATE_KEY): AES-128-CBC with HMAC, by Fernet."""

    key: str = field(repr=False)

    def seal(self, text: str) -> str:
        return self._fernet.encrypt(text.encode()).decode()

    def unseal(self, text: str) -> str:
        """The text that was sealed. Raises SealError when it was sealed with another key, or is damaged."""
        try:
            return self._fernet.decrypt(text.encode()).decode()
        except InvalidToken:
            raise SealError(
                "it was sealed with another ROLLWAY_CERTIFICATE_KEY, which must be the same for the workers and the "
                "servers for proxies"
            ) from None

    @cached_property
    def _fernet(self) -> Fernet:
        key = HKDF(SHA256(), 32, salt=None, info=b"rollway certificates").derive(self.key.encode())
        return Fernet(urlsafe_b64encode(key))
