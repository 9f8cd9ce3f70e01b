"""Whatever goes wrong with Qdrant, as `VectorsUnavailable` that says what to do.

The client raises a zoo: its own errors for refusals and broken connections, assertions for an answer without a result,
plain Python errors for answers of a wrong shape and for its local mode. No text of an answer is quoted: it could repeat
a message.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

from roomlore.core.errors import RoomloreError, VectorsUnavailable

_WRONG_SHAPE = (AssertionError, AttributeError, LookupError, TypeError, ValueError)
CLIENT_ERRORS = (ApiException, QdrantException, OSError, RuntimeError, *_WRONG_SHAPE)

_CHECK = "Check that it runs, that its address is right, and try again."


@contextmanager
def translated() -> Iterator[None]:
    """Turn what the client raises into `VectorsUnavailable`; the project's own errors go on as they are."""
    try:
        yield
    except RoomloreError:
        raise
    except CLIENT_ERRORS as exc:
        raise VectorsUnavailable(_advice(exc)) from exc


@contextmanager
def passing_over_missing() -> Iterator[None]:
    """Ends the block quietly where the collection is not there."""
    try:
        yield
    except CLIENT_ERRORS as exc:
        if not is_missing(exc):
            raise


def is_missing(exc: Exception) -> bool:
    """A server's 404 is JSON; that of something else at this address is not, and says nothing about the collection."""
    if isinstance(exc, UnexpectedResponse):
        return exc.status_code == 404 and exc.content.lstrip().startswith(b"{")
    return type(exc) is ValueError and str(exc).endswith(" not found")


def _advice(exc: Exception) -> str:
    if isinstance(exc, TimeoutError):
        return "Qdrant did not answer in time. Check its load and the time limit in the settings, and try again."
    if isinstance(exc, UnexpectedResponse):
        return _refused(exc.status_code or 0)
    if isinstance(exc, ResponseHandlingException):
        return f"Qdrant could not be reached, or its answer not understood ({type(exc.source).__name__}). {_CHECK}"
    return f"Qdrant does not answer as it should ({type(exc).__name__}). {_CHECK}"


def _refused(status: int) -> str:
    if status in (401, 403):
        return f"Qdrant refuses the API key (HTTP {status}). Check the key in the settings and what it may do."
    if status in (400, 413, 422):
        return f"Qdrant refuses the request (HTTP {status}). Check that the server is 1.10 or later."
    return f"Qdrant answered with HTTP {status}. {_CHECK}"
