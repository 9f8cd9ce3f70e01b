"""Summaries as durable work, for callers who do not wait for a model."""

from roomlore.core.plain import storable
from roomlore.core.work import owner_prefix, work_name
from roomlore.ports.coordination import Ids
from roomlore.ports.durable import DurableWork, Json, Steps
from roomlore.services.sessions.automatic import AutoCheckpoints

SUMMARY = "summary"
_NOTHING = "Nothing was said since the last checkpoint."


class LaterSummaries:
    """Hands in checkpoints that roomlore makes, and makes them.

    What a model said is not kept as a step of the work, so that a conversation stands in one place alone. Broken off by
    a kill before its checkpoint is stored, the model is asked again; after that there is nothing left to summarise.
    """

    def __init__(self, *, automatic: AutoCheckpoints, durable: DurableWork, ids: Ids) -> None:
        self._automatic = automatic
        self._durable = durable
        self._ids = ids

    async def begin(self, tenant: str, conversation_id: str) -> str:
        """Hands one in; the id of the job."""
        work_id = work_name(tenant, SUMMARY, self._ids.new())
        partition = work_name(tenant, SUMMARY, storable(conversation_id))
        arguments = {"tenant": tenant, "room_id": conversation_id}
        await self._durable.start(SUMMARY, work_id=work_id, partition=partition, arguments=arguments)
        return work_id.removeprefix(owner_prefix(tenant))

    async def work(self, steps: Steps, arguments: Json) -> None:
        """One checkpoint, as durable work."""
        await steps.report("summarising")
        made = await self._automatic.summarise(arguments["tenant"], arguments["room_id"])
        await steps.report(f"checkpoint {made.number}: {made.tokens} tokens" if made else _NOTHING)

    async def sweep(self) -> list[str]:
        """Nothing of this kind is due by itself: only what was asked for is done."""
        return []
