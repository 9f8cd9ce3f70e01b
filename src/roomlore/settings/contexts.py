"""What the settings say about choosing contexts."""

from dataclasses import fields
from typing import TYPE_CHECKING

from roomlore.core.context import ContextOptions
from roomlore.core.relevance import Weights

if TYPE_CHECKING:
    from roomlore.settings.model import Settings

WEIGHTS = (
    "reply_chain_weight",
    "user_continuity_weight",
    "time_decay_weight",
    "mention_relation_weight",
    "keyword_overlap_weight",
)


def context_options(settings: "Settings") -> ContextOptions:
    """As they stand in the settings; a room may have its own."""
    single = {f.name for f in fields(ContextOptions)} - {"weights"}
    weights = {name.removesuffix("_weight"): getattr(settings, name) for name in WEIGHTS}
    return ContextOptions(weights=Weights(**weights), **{name: getattr(settings, name) for name in single})
