"""What is told when every provider of a chain that was asked failed."""

from collections.abc import Sequence

from roomlore.core.errors import BadModelOutput, ModelUnavailable

Failure = ModelUnavailable | BadModelOutput


def all_failed(model_id: str, failures: Sequence[tuple[str, Failure]]) -> Failure:
    """One error for all of them. `failures`: of each provider by name, in the order in which they were asked; at least
    one. Kind, cause and wait are the last one's; a single one is told as it is."""
    last = failures[-1][1]
    if len(failures) == 1:
        return last
    told = " ".join(f"{place}. {_told(name, error)}" for place, (name, error) in enumerate(failures, start=1))
    message = f"None of the {len(failures)} providers of the model {model_id!r} that were asked could be used: {told}"
    if isinstance(last, ModelUnavailable):
        return ModelUnavailable(message, cause=last.cause, wait_seconds=last.wait_seconds)
    return BadModelOutput(message)


def _told(name: str, error: Failure) -> str:
    """Its text, which need not name the provider."""
    text = str(error)
    return text if f"provider {name} " in text else f"The provider {name}: {text}"
