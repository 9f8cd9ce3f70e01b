"""What the settings say about choosing contexts."""

from dataclasses import fields
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticKnownError

from roomlore.core.context import ContextOptions
from roomlore.core.relevance import Weights
from roomlore.services.contexts import STRATEGIES

if TYPE_CHECKING:
    from roomlore.settings.model import Settings

WEIGHTS = (
    "reply_chain_weight",
    "user_continuity_weight",
    "time_decay_weight",
    "mention_relation_weight",
    "keyword_overlap_weight",
)


def _known_strategy(name: str) -> str:
    if name in STRATEGIES:
        return name
    *others, last = (f"'{known}'" for known in STRATEGIES)
    raise PydanticKnownError("literal_error", {"expected": f"{', '.join(others)} or {last}"})


StrategyName = Annotated[
    str, AfterValidator(_known_strategy), Field(json_schema_extra={"enum": list[str | int](STRATEGIES)})
]
"""The name of a strategy that there is."""


def context_options(settings: "Settings") -> ContextOptions:
    """Return them as they stand in the settings; a room may have its own."""
    single = {f.name for f in fields(ContextOptions)} - {"weights", "strategies"}
    weights = {name.removesuffix("_weight"): getattr(settings, name) for name in WEIGHTS}
    return ContextOptions(
        weights=Weights(**weights),
        strategies=tuple(STRATEGIES),
        **{name: getattr(settings, name) for name in single},
    )
