"""The verbs of `lore.recall`."""

from collections.abc import Sequence
from dataclasses import dataclass

from roomlore.core.memory.intake import check_kinds
from roomlore.core.memory.models import MemoryKind
from roomlore.core.recall.facts import FactSet
from roomlore.core.recall.models import RECALLED, RecallOptions, Recollection, Similarity
from roomlore.core.recall.options import check_conversation, check_previous, otherwise, scopes_of
from roomlore.core.recall.recollect import recollect
from roomlore.core.recall.topic import Topic, topic_of
from roomlore.core.search import Floats
from roomlore.ports.coordination import Clock, Telemetry
from roomlore.ports.language import TokenCounter
from roomlore.services.recall.messages import SaidBefore, said_of
from roomlore.services.recall.shelf import FactShelf, Shelved
from roomlore.services.recall.shown import Form, ShownBefore
from roomlore.services.recall.vectors import FactVectors, NoVectors


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallParts:
    """What the recall of all tenants shares. `enabled`: if not, nothing is ever recalled. `wait_seconds`: for vectors,
    None for as long as they say themselves."""

    enabled: bool
    options: RecallOptions
    shelf: FactShelf
    vectors: FactVectors
    shown: ShownBefore
    tokens: TokenCounter
    clock: Clock
    telemetry: Telemetry
    wait_seconds: float | None = None


class RecallService:
    """Recall from the memories of one tenant."""

    def __init__(self, *, tenant: str, parts: RecallParts) -> None:
        self._tenant = tenant
        self._parts = parts

    async def build(
        self,
        scopes: Sequence[str],
        messages: Sequence[SaidBefore],
        *,
        max_tokens: int | None = None,
        max_context_turns: int | None = None,
        similarity_weight: float | None = None,
        confidence_weight: float | None = None,
        similarity: Similarity | None = None,
        kinds: Sequence[MemoryKind] = RECALLED,
        conversation_id: str | None = None,
        previous: Sequence[str] | None = None,
    ) -> Recollection:
        """The facts and group memories of these scopes, such as 'user:ann', that matter for a conversation, in at most
        `max_tokens`.

        `messages`: the conversation, the newest last, as `Said`, messages of a room, or mappings with role and content.
        `conversation_id`: what was shown in it before, by this process, stays as long as relevance has not clearly
        changed. `previous`: the ids of the facts shown before, for callers that keep them themselves. What is not
        given is as the settings say. Raises `InvalidInput`, `StorageUnavailable`; without vectors it goes by words and
        says so in `degraded`.
        """
        started = self._parts.clock.monotonic()
        options = otherwise(
            self._parts.options,
            max_tokens=max_tokens,
            max_context_turns=max_context_turns,
            similarity_weight=similarity_weight,
            confidence_weight=confidence_weight,
            similarity=similarity,
        )
        whose, which, said = scopes_of(scopes), check_kinds(kinds), said_of(messages)
        form = options.max_tokens, len(whose) > 1
        before = self._before(conversation_id, previous, form)
        if not self._parts.enabled or not whose or not which:
            return Recollection(facts=(), text="", tokens=0, considered=0)
        shelved, facts = await self._parts.shelf.find(self._tenant, whose, which)
        topic = topic_of(said, options.max_context_turns)
        cosines, degraded = await self._cosines(topic, facts, shelved, options)
        found = recollect(
            facts,
            topic,
            options,
            count=self._parts.tokens.count,
            cosines=cosines,
            confidence=facts.confidence_at(self._parts.clock.now(), options.half_life_days),
            previous=before,
            degraded=degraded,
        )
        shown = tuple(one.memory.memory_id for one in found.facts)
        if conversation_id is not None:
            self._parts.shown.note(self._tenant, conversation_id, form, shown)
        self._measure(found, tuple(before), shown, self._parts.clock.monotonic() - started)
        return found

    async def memory_prompt(
        self,
        scopes: Sequence[str],
        messages: Sequence[SaidBefore],
        *,
        max_tokens: int | None = None,
        max_context_turns: int | None = None,
        similarity_weight: float | None = None,
        confidence_weight: float | None = None,
        similarity: Similarity | None = None,
        kinds: Sequence[MemoryKind] = RECALLED,
        conversation_id: str | None = None,
        previous: Sequence[str] | None = None,
    ) -> str:
        """The block of `build` alone, '' where there is nothing to recall."""
        found = await self.build(
            scopes,
            messages,
            max_tokens=max_tokens,
            max_context_turns=max_context_turns,
            similarity_weight=similarity_weight,
            confidence_weight=confidence_weight,
            similarity=similarity,
            kinds=kinds,
            conversation_id=conversation_id,
            previous=previous,
        )
        return found.text

    def _before(self, conversation_id: str | None, previous: Sequence[str] | None, form: Form) -> Sequence[str]:
        check_conversation(conversation_id)
        if previous is not None:
            return check_previous(previous)
        return () if conversation_id is None else self._parts.shown.of(self._tenant, conversation_id, form)

    async def _cosines(
        self, topic: Topic, facts: FactSet, shelved: Shelved, options: RecallOptions
    ) -> tuple[Floats | None, str | None]:
        if options.similarity == "tfidf" or not topic.parts or not len(facts):
            return None, None
        try:
            return await self._parts.vectors.cosines(topic, facts, shelved, most_seconds=self._parts.wait_seconds), None
        except NoVectors as error:
            return None, f"by words alone: {error}"

    def _measure(self, found: Recollection, before: tuple[str, ...], shown: tuple[str, ...], seconds: float) -> None:
        telemetry = self._parts.telemetry
        block = "kept" if shown == before else "changed"
        labels = {"block": block if before else "new", "degraded": "yes" if found.degraded else "no"}
        telemetry.count("roomlore_recall_blocks_total", labels=labels)
        telemetry.observe("roomlore_recall_seconds", seconds)
        telemetry.observe("roomlore_recall_tokens", found.tokens)
