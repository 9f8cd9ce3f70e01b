"""Asking a model, or nobody, what an evolution comes to."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import tzinfo
from typing import Any, Protocol

from roomlore.core.chat.models import ChatAnswer, ChatRequest
from roomlore.core.errors import ModelUnavailable, NotFound
from roomlore.core.evolution.asking import inert, show_memories
from roomlore.core.evolution.models import Answer
from roomlore.core.memory.models import Memory, Source
from roomlore.core.models import StoredMessage
from roomlore.core.text import truncate
from roomlore.ports.coordination import Clock
from roomlore.ports.durable import Json, Steps
from roomlore.ports.language import Prompts
from roomlore.services.evolution.options import EvolutionOptions
from roomlore.services.evolution.piece import Answered, Piece, Read

_ANSWER_TOKENS = 4096
_NAME_CHARACTERS = 80


class Models(Protocol):
    """The chain of models, as far as it is needed here."""

    async def can_ask(self, model_id: str) -> bool: ...

    async def has_provider(self, model_id: str) -> bool: ...

    async def complete(
        self, model_id: str, request: ChatRequest, *, timeout_seconds: float | None = None, check: Any = None
    ) -> ChatAnswer: ...


class Offline(Protocol):
    """What answers without a model."""

    def __call__(
        self,
        messages: Sequence[StoredMessage],
        memories: Mapping[str, Memory],
        *,
        handles: Mapping[str, Source],
        zone: tzinfo,
        earlier: Sequence[StoredMessage] = (),
        people: Mapping[str, str] | None = None,
        deleted: Sequence[str] = (),
    ) -> Answer: ...


class Asking:
    """Asks for all tenants."""

    def __init__(self, *, models: Models, prompts: Prompts, clock: Clock, options: EvolutionOptions) -> None:
        self._models = models
        self._prompts = prompts
        self._clock = clock
        self._options = options

    async def check(self) -> None:
        """Raises `ModelUnavailable` where no provider can be asked now."""
        model = self._options.model
        if await self._models.can_ask(model):
            return
        if await self._models.has_provider(model):
            why = (
                f"Every provider of the model {model!r} failed just now and is left alone for a while; try again later"
            )
        else:
            why = f"No provider of the model {model!r} can be asked: give one a key"
        raise ModelUnavailable(
            f"{why}, or ask for the mode 'offline'. `roomlore models` shows how each stands.", cause="unreachable"
        )

    async def answer(self, piece: Piece, read: Read, steps: Steps) -> Answered:
        """What a model says to what was read, in a step that is never done twice for the same; that nobody was asked,
        where the mode is 'offline', or 'auto' and no provider is set up that could be asked about a group. Raises
        `ModelUnavailable`: what a provider that is down would have read is left for when it is back."""

        async def step() -> Json:
            return asdict(await self._ask(piece, read))

        return Answered(**await steps.once(f"answer-{read.basis}", step))

    async def _ask(self, piece: Piece, read: Read) -> Answered:
        if piece.mode == "offline" or await self._goes_by_rules(piece):
            return Answered(mode="offline")
        await self.check()
        return await self._complete(piece, read)

    async def _goes_by_rules(self, piece: Piece) -> bool:
        return piece.mode == "auto" and piece.is_group and not await self._models.has_provider(self._options.model)

    async def _complete(self, piece: Piece, read: Read) -> Answered:
        prompt = await self._prompts.find(piece.prompt, language=read.language)
        request = ChatRequest(
            messages=({"role": "user", "content": prompt.fill(self._values(piece, read))},), max_tokens=_ANSWER_TOKENS
        )
        try:
            given = await self._models.complete(
                self._options.model, request, timeout_seconds=self._options.timeout_seconds
            )
        except NotFound as error:
            raise ModelUnavailable(str(error), cause="unreachable") from error
        return Answered(
            mode="llm",
            text=given.text,
            model=f"{given.provider}/{given.model_id}",
            template=prompt.text,
            prompt_hash=prompt.hash,
            input_tokens=given.usage.input_tokens,
            output_tokens=given.usage.output_tokens,
        )

    def _values(self, piece: Piece, read: Read) -> Mapping[str, str]:
        options = self._options
        person = piece.user_id or ""
        return {
            "memories": show_memories(
                read.offered,
                now=self._clock.now(),
                floor=options.strength_floor,
                half_life_days=options.rules.half_life_days,
            ),
            "messages": read.shown,
            "most": str(options.rules_for(piece.kind).most_active),
            "person": truncate(inert(read.people.get(person) or person), _NAME_CHARACTERS),
        }
