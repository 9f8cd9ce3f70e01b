"""The backends that all services of one process share, and the base of the services."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from roomlore.ports.coordination import Clock, Ids, Jobs, Telemetry
from roomlore.ports.language import TokenCounter

if TYPE_CHECKING:
    from roomlore.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Backends:
    """The backends that every service may use."""

    storage: "Storage"
    tokens: TokenCounter
    clock: Clock
    ids: Ids
    telemetry: Telemetry
    jobs: Jobs


class Service:
    """A service, or a part of one, with the backends that it uses."""

    def __init__(self, backends: Backends) -> None:
        self._storage = backends.storage
        self._tokens = backends.tokens
        self._clock = backends.clock
        self._ids = backends.ids
        self._telemetry = backends.telemetry
        self._jobs = backends.jobs
