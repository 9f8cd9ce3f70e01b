"""The verbs of memories on a store, at a time that stands still, and evolutions whose operations a test makes up."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from zoneinfo import ZoneInfo

from roomlore.adapters.json_repair import repaired
from roomlore.adapters.prompts import PackagedPrompts
from roomlore.core.chat import ChatAnswer, ChatRequest
from roomlore.core.evolution.plan import PlanInput, plan
from roomlore.core.evolution.prompt import handles_of, message_handles
from roomlore.core.evolution.requests import Answer, Operation, Plan, Rules, ScopeState
from roomlore.core.memory.memory import Change, Memory, MemoryKind, Scope, Source
from roomlore.services.evolution import (
    Applying,
    EvolutionLeases,
    EvolutionOptions,
    EvolutionService,
    ModelAnswers,
    PieceReader,
)
from roomlore.services.evolution.applying import AskingTogether
from roomlore.services.memories import InForceCache, MemoryPast, MemoryService, MemoryWriter, Reviser
from roomlore.storage import Storage, UnitOfWork
from roomlore.wiring import Lore
from roomlore_testkit import FrozenClock, SequentialIds, backends, evolution

TENANT = "default"
RULES = Rules()


def never(*_: object, **__: object) -> None:
    raise AssertionError("Nobody searches or imports here.")


@dataclass
class Thinking:
    """The port `Models` of evolutions: gives the answer that a test wrote, after what happens meanwhile, if anything.

    It is asked again where what happened meanwhile was in the answer's way; that happens once.
    """

    answer: str = ""
    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def can_ask(self, model_id: str) -> bool:
        return True

    async def has_provider(self, model_id: str) -> bool:
        return True

    async def complete(self, model_id: str, request: ChatRequest, **_: object) -> ChatAnswer:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        return ChatAnswer(text=self.answer, provider="first", model_id="tiny")


@dataclass
class Rig:
    storage: Storage
    lore: Lore | None = None
    thinking: Thinking = field(default_factory=Thinking)
    clock: FrozenClock = field(default_factory=FrozenClock)
    ids: SequentialIds = field(default_factory=SequentialIds)
    tenant: str = TENANT

    def __post_init__(self) -> None:
        self.backends = backends(storage=self.storage, clock=self.clock, ids=self.ids)
        its = {"tenant": self.tenant}
        self.cache = cache = InForceCache(storage=self.storage)
        self.memories = MemoryService(
            self.backends,
            **its,
            writer=MemoryWriter(self.backends, **its, cache=cache),
            past=MemoryPast(self.backends, **its),
            reviser=Reviser(self.backends, **its, cache=cache),
            read_memories=never,
            evolver=self._engine(),
            searcher=never,
        )

    def _engine(self) -> EvolutionService:
        options = EvolutionOptions(model="any", timeout_seconds=5, zone=ZoneInfo("UTC"), rules=RULES)
        reading = PieceReader(self.backends, zone=options.zone)
        asking = ModelAnswers(models=self.thinking, prompts=PackagedPrompts(), clock=self.clock, options=options)
        applying = Applying(self.backends, reading=reading, options=options, repair=repaired)  # fmt: skip
        together = AskingTogether(reading=reading, asking=asking, applying=applying, repair=repaired)
        leases = EvolutionLeases(self.backends)
        return EvolutionService(
            self.backends,
            durable=never,
            reading=reading,
            asking=asking,
            applying=applying,
            together=together,
            leases=leases,
        )

    async def offer(self, scope: str) -> tuple[Scope | None, list[Memory]]:
        """The scope, and its active group memories in an order that does not change."""
        async with self.storage.reading(self.tenant) as work:
            stored = await work.memories.scope(scope=scope)
        found = await self.memories.page(scope, kinds=[MemoryKind.GROUP], limit=500)
        return stored, sorted(found, key=lambda one: one.memory_id)

    def plan(
        self, scope: str, offer: tuple[Scope | None, list[Memory]], operations: Sequence[Operation], evolution_id: str,
        sources: Sequence[Source] = (), latest: dict[str, int] | None = None,
    ) -> Plan:  # fmt: skip
        stored, offered = offer
        state = ScopeState(
            scope=scope, number=stored.changes if stored else 0, active=len(offered), latest=latest or {}
        )  # fmt: skip
        return plan(
            Answer(tuple(operations), ()),
            PlanInput(
                offered=handles_of(offered), messages=message_handles(sources), similar=None, rules=RULES,
                state=state, kind=MemoryKind.GROUP, evolution_id=evolution_id, new_id=self.ids.new,
                actor="first/tiny", now=self.clock.now(),
            ),
        )  # fmt: skip

    async def latest(self, memories: Sequence[Memory]) -> dict[str, int]:
        """The highest version of each lineage: an earlier one may be in force."""
        async with self.storage.reading(self.tenant) as work:
            found = [
                await work.memories.lineage(lineage_id=one.lineage_id) for one in memories
            ]  # fmt: skip
        return {lineage[0].lineage_id: max(one.version for one in lineage) for lineage in found}

    async def apply(self, scope: str, made: Plan, evolution_id: str, stop: BaseException | None = None) -> None:
        """Raises `Conflict` where the scope was changed since it was read; `stop` before it is committed."""
        async with self.storage.writing(self.tenant) as work:
            await work.memories.lock(scope=scope, now=self.clock.now())
            await self._record(work, scope, evolution_id)
            await work.memories.apply(scope=scope, changes=made.changes)
            if stop is not None:
                raise stop

    async def _record(self, work: UnitOfWork, scope: str, evolution_id: str) -> None:
        record = evolution(evolution_id, scope=scope, kind="evolution")
        assert await work.memories.add_evolution(evolution=record)

    async def evolve(
        self, scope: str, *operations: Operation, evolution_id: str = "e1", sources: Sequence[Source] = ()
    ) -> list[Change]:
        """Handles are m1, m2, … of what is in force by id, and c1, c2, … of `sources`."""
        offer = await self.offer(scope)
        numbered = [replace(operation, line=line) for line, operation in enumerate(operations, 1)]
        made = self.plan(scope, offer, numbered, evolution_id, sources, await self.latest(offer[1]))
        await self.apply(scope, made, evolution_id)
        return list(made.changes)


def create(statement: str, *evidence: str) -> Operation:
    return Operation(line=1, kind="create", statement=statement, evidence=evidence)


def update(handle: str, statement: str, *evidence: str) -> Operation:
    return Operation(line=1, kind="update", handles=(handle,), statement=statement, evidence=evidence)


def merge(statement: str, *handles: str) -> Operation:
    return Operation(line=1, kind="update", handles=handles, statement=statement)


def delete(handle: str, reason: str = "") -> Operation:
    return Operation(line=1, kind="delete", handles=(handle,), reason=reason)
