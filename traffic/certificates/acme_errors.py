"""What an authority that gives no certificate means: away, unknown, or refused."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import josepy.errors
import requests
from acme import errors, messages

from domain.text.errors import RollwayError

_MOST_SAID = 300


class AuthorityError(RollwayError):
    """The authority gave no certificate; the message says why."""


class AuthorityAwayError(RollwayError):
    """The authority cannot be reached, or is in trouble itself; what was ordered may still come."""


class UnknownOrderError(RollwayError):
    """The authority does not know the order, or has given it up."""


class UnknownAccountError(RollwayError):
    """The authority does not know the account."""


@contextmanager
def told_apart() -> Iterator[None]:
    """Raise for what the library raises what it means for who asked: away, unknown, or refused."""
    try:
        yield
    except messages.Error as error:
        raise _refusal(error) from error
    except errors.ClientError as error:
        if "404" in str(error):
            raise UnknownOrderError("the authority does not know the order any more") from error
        raise _unreadable(error) from error
    except errors.IssuanceError as error:
        raise _refusal(error.error) from error
    except OSError as error:  # the library lets those of its own requests through, and of the file of authorities
        raise AuthorityAwayError(f"the authority {_unreached(error)}") from error
    except (errors.Error, josepy.errors.Error, ValueError) as error:
        raise _unreadable(error) from error


def _refusal(error: messages.Error) -> RollwayError:
    said = str(error.detail or error.code)[:_MOST_SAID]
    match error.code:
        case "accountDoesNotExist":
            return UnknownAccountError("the authority does not know the account any more")
        case "serverInternal" | "badNonce":
            return AuthorityAwayError(f"the authority is in trouble: {said}")
        case "rateLimited":
            return AuthorityError(f"the authority was asked too often: {said}")
    return AuthorityError(f"the authority refused: {said}")


def _unreached(error: OSError) -> str:
    if not isinstance(error, requests.RequestException):
        return f"cannot be asked: {str(error)[:_MOST_SAID]}"
    at = urlsplit(str(error.request.url)).netloc if error.request is not None else "its address"
    match error:
        case requests.exceptions.SSLError():
            return (
                f"at {at} shows a certificate that nobody here believes; ROLLWAY_ACME_CA says who else may be believed"
            )
        case requests.Timeout():
            return f"at {at} does not answer in time"
        case requests.ConnectionError() if "NameResolutionError" in str(error):
            return f"cannot be reached: no name server knows {at}"
    return f"cannot be reached at {at}"


def _unreadable(error: Exception) -> AuthorityError:
    return AuthorityError(
        f"the authority answered what cannot be read: {type(error).__name__}: {str(error)[:_MOST_SAID]}"
    )
