"""The answer to an evolution: asking a model or the rules for it, and applying it to the store."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from roomlore.core.chat import ChatAnswer, ChatRequest
from roomlore.core.errors import InvalidInput, ModelUnavailable, NotFound, describe
from roomlore.core.evolution.audience import Heard, with_evidence
from roomlore.core.evolution.guards import checked_answer
from roomlore.core.evolution.offline import offline_answer
from roomlore.core.evolution.plan import PlanInput, joined, plan
from roomlore.core.evolution.prompt import comparison_form, find, inert, message_handles, says_nothing, show_memories
from roomlore.core.evolution.requests import Answer, EvolutionResult, Operation, Plan, Refusal, Rejected, is_silent
from roomlore.core.evolution.together import ShownPerson, shown_together, taken_apart
from roomlore.core.evolution.wording import ParsedMessage, similarity
from roomlore.core.memory.memory import Memory, Source
from roomlore.core.memory.reading import own_words
from roomlore.core.models import Origin, StoredMessage
from roomlore.core.prompt import Prompt
from roomlore.core.text import truncate
from roomlore.ports.coordination import Clock
from roomlore.ports.durable import Json, Steps
from roomlore.ports.language import Language, LanguageModels, Prompts
from roomlore.ports.shared import Backends, Service
from roomlore.services.evolution.piece import Answered, CurrentScope, EvolutionOptions, Piece, Read, record, result_of
from roomlore.services.evolution.reading import NO_ROOM, PieceReader, fingerprints_of, utterance_of
from roomlore.storage import UnitOfWork

log = logging.getLogger(__name__)

_ANSWER_TOKENS = 4096
_SHOWN_ANSWER = 16_000
"""Characters of the first answer that are shown again beside the refused lines."""
_MAX_REFUSED = 40
NAME_CHARACTERS = 80
PERSON_PROMPT, PEOPLE_PROMPT = "user_facts", "people_facts"
_MAX_ATTEMPTS = 10
_EARLIER = 800


class ModelAnswers:
    """Ask for answers, for all tenants."""

    def __init__(self, *, models: LanguageModels, prompts: Prompts, clock: Clock, options: EvolutionOptions) -> None:
        self._models = models
        self._prompts = prompts
        self._clock = clock
        self._options = options

    async def check(self, *, of_group: bool) -> None:
        """Raise `ModelUnavailable` if no provider can be asked now. `of_group`: rules could read it instead."""
        model = self._options.model
        if await self._models.can_ask(model):
            return
        resting, without_key = "model_resting", "model_without_key"
        if of_group:
            resting, without_key = "model_resting_but_offline", "model_without_key_but_offline"
        code = resting if await self._models.has_provider(model) else without_key
        raise ModelUnavailable(code, cause="unreachable", model=repr(model))

    async def answer(self, piece: Piece, read: Read, steps: Steps) -> Answered:
        """Return the model's answer to what was read, in a durable step that is never repeated for the same content.

        No model is asked if the mode is 'offline', or if it is 'auto' and no provider is set up that could be asked
        about a group. Raise `ModelUnavailable` if the providers are down: the messages are left for later.
        """

        async def step() -> Json:
            return asdict(await self._ask(piece, read))

        return Answered(**await steps.once(f"answer-{read.basis}", step))

    async def again(
        self, piece: Piece, read: Read, answered: Answered, refused: Sequence[Rejected], steps: Steps
    ) -> Answered:
        """Return the answer with what the model makes of the refused lines, in a durable step. If no provider answers,
        the answer stays as it is."""

        async def step() -> Json:
            try:
                return asdict(await self._ask_again(piece, read, answered, refused))
            except ModelUnavailable as error:
                log.warning("refused lines were not put to the model again", extra={"why": describe(error)})
                return asdict(answered)

        return Answered(**await steps.once(f"again-{read.basis}", step))

    async def asks_about_several(self, language: Language) -> bool:
        """Return False if the prompt about one person was changed in a prompt server, and that about several was
        not."""
        single = await self._prompts.find(PERSON_PROMPT, language=language)
        several = await self._prompts.find(PEOPLE_PROMPT, language=language)
        return bool(several.version) or not single.version

    async def about_several(self, people: str, *, language: Language, tenant: str) -> Answered:
        """Return the model's answer about several people, shown in one text. Raise `ModelUnavailable`."""
        await self.check(of_group=False)
        prompt = await self._prompts.find(PEOPLE_PROMPT, language=language)
        given = await self._call(tenant, {"role": "user", "content": prompt.fill({"people": people})})
        return replace(_answered(given, prompt), prompt=PEOPLE_PROMPT)

    async def _ask_again(self, piece: Piece, read: Read, answered: Answered, refused: Sequence[Rejected]) -> Answered:
        prompt = await self._prompts.find(piece.prompt, language=read.language)
        question = await self._prompts.find("evolve_again", language=read.language)
        lines = "\n".join(
            f"{operation.line}. {inert(operation.text)} ({inert(operation.reason)})"
            for operation in refused[:_MAX_REFUSED]
        )
        given = await self._call(
            piece.tenant,
            {"role": "user", "content": prompt.fill(self.values(piece, read))},
            {"role": "assistant", "content": answered.text[:_SHOWN_ANSWER] or "-"},
            {"role": "user", "content": question.fill({"refused": lines})},
        )
        return replace(
            answered,
            second=given.text,
            input_tokens=answered.input_tokens + given.usage.input_tokens,
            output_tokens=answered.output_tokens + given.usage.output_tokens,
        )

    async def _ask(self, piece: Piece, read: Read) -> Answered:
        if piece.mode == "offline" or await self._uses_rules(piece):
            return Answered(mode="offline")
        await self.check(of_group=piece.is_group)
        return await self._complete(piece, read)

    async def _uses_rules(self, piece: Piece) -> bool:
        return piece.mode == "auto" and piece.is_group and not await self._models.has_provider(self._options.model)

    async def _complete(self, piece: Piece, read: Read) -> Answered:
        prompt = await self._prompts.find(piece.prompt, language=read.language)
        given = await self._call(piece.tenant, {"role": "user", "content": prompt.fill(self.values(piece, read))})
        return _answered(given, prompt)

    async def _call(self, tenant: str, *messages: dict[str, str]) -> ChatAnswer:
        request = ChatRequest(messages=messages, max_tokens=_ANSWER_TOKENS, tenant=tenant)
        try:
            return await self._models.complete(
                self._options.model, request, timeout_seconds=self._options.timeout_seconds
            )
        except NotFound as error:
            raise ModelUnavailable(str(error), cause="unreachable") from error

    def values(self, piece: Piece, read: Read) -> Mapping[str, str]:
        person = piece.user_id or ""
        return {
            "memories": show_memories(read.offered, now=self._clock.now()),
            "messages": read.shown,
            "most": str(self._options.rules_for(piece.kind).most_active),
            "person": truncate(inert(read.people.get(person) or person), NAME_CHARACTERS),
        }


def _answered(given: ChatAnswer, prompt: Prompt) -> Answered:
    return Answered(
        mode="llm",
        text=given.text,
        model=f"{given.provider}/{given.model_id}",
        template=prompt.text,
        prompt_hash=prompt.hash,
        input_tokens=given.usage.input_tokens,
        output_tokens=given.usage.output_tokens,
    )


class ScopeChanged(Exception):
    """Raised if others changed, while a model was answering, what its answer refers to. The text names what changed."""


@dataclass(frozen=True, slots=True)
class _ParsedAnswer:
    """An answer ready for planning, with the messages it uses by handle. `fingerprints`: the hashes of all messages it
    rests on. `said`: when and by whom they were sent. `heard`: what supports the offered memories, by their ids."""

    answer: Answer
    handles: dict[str, Source]
    fingerprints: Mapping[str, str]
    said: Mapping[Source, Origin]
    failed: bool
    heard: Mapping[str, Sequence[ParsedMessage]] = field(default_factory=dict)


class Applying(Service):
    """Apply answers, for all tenants. `repair`: turns malformed JSON into JSON."""

    def __init__(
        self,
        backends: Backends,
        *,
        reading: PieceReader,
        options: EvolutionOptions,
        repair: Callable[[str], str],
    ) -> None:
        super().__init__(backends)
        self._reading = reading
        self._options = options
        self._repair = repair

    async def apply(self, piece: Piece, read: Read, answered: Answered) -> EvolutionResult:
        """Apply the changes that the answer asks for, all or none.

        Changes to other memories of the scope are planned around. Raise `ScopeChanged` if others changed the memories
        that the answer refers to, or read the same messages.
        """
        parsed = await self._parse(piece, read, answered)
        for _ in range(_MAX_ATTEMPTS):
            current = await self._reading.current(piece, read)
            planned = await asyncio.to_thread(self._plan, piece, read, answered, parsed, current)
            done = await self._write(piece, read, answered, parsed, planned, current)
            if done is not None:
                return done
        raise ScopeChanged(f"Others keep changing {piece.scope!r:.80}; evolve it again later.")

    async def refused(self, piece: Piece, read: Read, answered: Answered) -> list[Rejected]:
        """Return the lines of the answer that the model may put right, with the reasons; of an answer of which nothing
        can be used, all."""
        if answered.mode == "offline":
            return []
        parsed = await self._parse(piece, read, answered)
        current = await self._reading.current(piece, read)
        planned = await asyncio.to_thread(self._plan, piece, read, answered, parsed, current)
        return [refusal for refusal in planned.rejected if parsed.failed or isinstance(refusal, Refusal)]

    def is_beyond_doubt(self, read: Read, answered: Answered) -> bool:
        """Return True if nothing of an answer is refused or looks doubtful."""
        answer = self._checked(read, answered, answered.text)
        possible = all(_is_possible(operation, read.offered) for operation in answer.operations)
        return possible and not answer.rejected and not any(operation.doubtful for operation in answer.operations)

    async def _parse(self, piece: Piece, read: Read, answered: Answered) -> _ParsedAnswer:
        if answered.mode == "offline":
            return await self._by_rules(piece, read)
        first = await asyncio.to_thread(self._checked, read, answered, answered.text)
        second = await asyncio.to_thread(self._checked, read, answered, answered.second)
        answer = joined(first, second, after=answered.text.count("\n") + 1)
        usable = any(_is_possible(operation, read.offered) for operation in answer.operations)
        failed = not usable and not says_nothing(answered.second or answered.text)
        if failed and not answer.rejected and not answer.operations:
            answer = replace(answer, rejected=(Rejected(1, "", "The answer is empty."),))
        origins = _origins(read.room_id, read.messages)
        heard = await self._reading.heard(piece, read)
        return _ParsedAnswer(answer, dict(read.handles), read.fingerprints, origins, failed, heard)

    def _checked(self, read: Read, answered: Answered, text: str) -> Answer:
        return checked_answer(
            text,
            template=answered.template,
            offered=read.offered,
            shown=read.shown,
            silent=lambda memory: memory.memory_id in read.silent or is_silent(memory, read.at),
            repair=self._repair,
        )

    async def _by_rules(self, piece: Piece, read: Read) -> _ParsedAnswer:
        before = await self._reading.before(piece, read, limit=_EARLIER)
        every = [*before.messages, *read.messages]
        handles = message_handles(Source(read.room_id, message.id) for message in every)
        own = {
            handle: source
            for (handle, source), message in zip(handles.items(), every, strict=True)
            if own_words(message)
        }
        answer = await asyncio.to_thread(
            offline_answer,
            read.messages,
            read.offered,
            handles=own,
            zone=self._options.zone,
            earlier=before.messages,
            people=read.people,
            deleted=before.deleted,
        )
        origins = _origins(read.room_id, every)
        return _ParsedAnswer(answer, own, {**before.fingerprints, **read.fingerprints}, origins, failed=False)

    def _plan(self, piece: Piece, read: Read, answered: Answered, parsed: _ParsedAnswer, current: CurrentScope) -> Plan:
        given = PlanInput(
            offered=read.offered,
            messages=parsed.handles,
            state=current.state,
            rules=self._options.rules_for(piece.kind),
            similar=similarity,
            kind=piece.kind,
            evolution_id=piece.evolution_id,
            actor=answered.actor,
            now=self._clock.now(),
            zone=self._options.zone,
            new_id=self._ids.new,
            by_rules=answered.mode == "offline",
            taken=lambda statement: comparison_form(statement) in current.other_statements,
            said={Source(read.room_id, message.id): utterance_of(message, read.people) for message in read.messages},
            heard=parsed.heard,
        )
        heard = Heard(read.room, parsed.said, read.replaced, read.others)
        return with_evidence(plan(parsed.answer, given), read.offered.values(), heard)

    async def _write(
        self, piece: Piece, read: Read, answered: Answered, parsed: _ParsedAnswer, planned: Plan, current: CurrentScope
    ) -> EvolutionResult | None:
        """Write the planned changes. Return None if the scope has changed since the plan was made."""
        async with self._storage.writing(piece.tenant) as work:
            now = self._clock.now()
            scope = await work.memories.lock(scope=piece.scope, now=now)
            known = await find_result(work, evolution_id=piece.evolution_id)
            if known is not None:
                return known
            await _check(work, piece, read, planned)
            await _check_messages(work, piece, read, parsed.fingerprints)
            if scope.changes != current.state.number:
                return None
            await _move(work, piece, read, now)
            kept = record(piece, read, answered, planned, failed=parsed.failed, now=now)
            await work.memories.add_evolution(evolution=kept)
            await work.memories.apply(scope=piece.scope, changes=planned.changes)
        return result_of(kept, planned.changes)


def _origins(room_id: str, messages: Iterable[StoredMessage]) -> dict[Source, Origin]:
    return {Source(room_id, message.id): message.origin for message in messages}


async def find_result(work: UnitOfWork, *, evolution_id: str) -> EvolutionResult | None:
    """Return the result of an evolution, None if it is not recorded."""
    evolutions = await work.memories.evolutions_by_id(evolution_ids=[evolution_id])
    if not evolutions or evolutions[0].kind != "evolution":
        return None
    return result_of(evolutions[0], await work.memories.changes_of_evolution(evolution_id=evolution_id))


async def _check(work: UnitOfWork, piece: Piece, read: Read, planned: Plan) -> None:
    """Check that each memory that a change touches is exactly as it was read.

    Versions are compared in full, because a strength changes without a new version. All offered statements must be the
    same too: text that was redacted meanwhile must not survive in what the answer says of another memory.
    """
    offered = {memory.memory_id: memory for memory in read.offered.values()}
    memories = await work.memories.by_id(memory_ids=list(offered))
    now = {memory.memory_id: memory for memory in memories}
    touched = any(now.get(memory.memory_id) != memory for memory in planned.based_on)
    statements = {name: memory.statement for name, memory in now.items()}
    if touched or statements != {name: memory.statement for name, memory in offered.items()}:
        raise ScopeChanged(f"Others changed memories of {piece.scope!r:.80} meanwhile; evolve it again.")


async def _check_messages(work: UnitOfWork, piece: Piece, read: Read, fingerprints: Mapping[str, str]) -> None:
    """Check that no message was deleted meanwhile: its text must not survive in a memory."""
    if await fingerprints_of(work, piece, read.room_id, list(fingerprints)) != fingerprints:
        raise ScopeChanged(f"Messages of {read.room_id!r:.80} were edited or deleted meanwhile; evolve it again.")


async def _move(work: UnitOfWork, piece: Piece, read: Read, now: datetime) -> None:
    """Move the watermark past what was read, whatever the model made of it: no message is paid for twice."""
    its: dict[str, Any] = {"name": piece.watermark, "now": now}
    if not piece.is_group:
        await work.progress.move_mark(**its, room_id=NO_ROOM, arrival=int(read.since.timestamp()), was=0)
    if not await work.progress.move_mark(**its, room_id=read.room_id, arrival=read.last, was=read.was):
        raise ScopeChanged(f"Others read the same messages of {piece.scope!r:.80}; evolve it again.")


def _is_possible(operation: Operation, offered: Mapping[str, Memory]) -> bool:
    """Return True if it refers only to memories that were offered."""
    try:
        return all(find(handle, offered) for handle in operation.handles)
    except InvalidInput:
        return False


_FEWEST = 2


@dataclass(frozen=True, slots=True)
class OwnSteps:
    """The steps of one person within the work of several. `answers`: those that the model gave about several, by the
    name of the step that would ask."""

    steps: Steps
    piece: Piece
    answers: Mapping[str, Json]

    async def once(self, name: str, step: Callable[[], Awaitable[Json]]) -> Json:
        if name in self.answers:
            return self.answers[name]
        return await self.steps.once(f"{self.piece.evolution_id} {name}", step)

    async def report(self, progress: str) -> None:
        await self.steps.report(progress)


class AskingTogether:
    """Ask about several people at a time, for all tenants. `repair`: turns malformed JSON into JSON."""

    def __init__(
        self, *, reading: PieceReader, asking: ModelAnswers, applying: Applying, repair: Callable[[str], str]
    ) -> None:
        self._reading = reading
        self._asking = asking
        self._applying = applying
        self._repair = repair

    async def answers(self, pieces: Sequence[Piece], steps: Steps) -> Mapping[str, Json]:
        """Return the answers about those whose part of the model's answer is beyond doubt, by the name of the step that
        would ask about one of them alone. In one durable step, so that no answer is paid for twice.

        Only people with little to read in the same room are asked about together: everything that the model is shown
        was heard there, or may be known there. Raise `ModelUnavailable`.
        """

        async def step() -> Json:
            return await self._ask(await self._together(pieces))

        answers_made: Mapping[str, Json] = await steps.once("together", step)
        return answers_made

    async def _together(self, pieces: Sequence[Piece]) -> list[tuple[Piece, Read, ShownPerson]]:
        """Return those of the room that most of them have spoken in."""
        read = [(piece, read_piece) for piece in pieces if (read_piece := await self._reading.read(piece))]
        small = [
            (piece, window_read, shown)
            for piece, window_read in read
            if (shown := self._shown(piece, window_read)).is_small
        ]
        rooms = Counter(window_read.room_id for _, window_read, _ in small)
        room_id = max(rooms, key=lambda name: rooms[name], default="")
        return [each for each in small if each[1].room_id == room_id]

    def _shown(self, piece: Piece, read: Read) -> ShownPerson:
        values = self._asking.values(piece, read)
        return ShownPerson(values["person"], values["memories"], values["messages"])

    async def _ask(self, people: Sequence[tuple[Piece, Read, ShownPerson]]) -> Json:
        if len(people) < _FEWEST:
            return {}
        shown, language = [shown_person for _, _, shown_person in people], people[0][1].language
        if not await self._asking.asks_about_several(language):
            return {}
        tenant = people[0][0].tenant
        given = await self._asking.about_several(shown_together(shown), language=language, tenant=tenant)
        parts = taken_apart(given.text, shown, repair=self._repair)
        answers = {}
        for at, ((_, read, _), part) in enumerate(zip(people, parts, strict=True)):
            answered = _part_of(given, part or "", at, len(people))
            if part is not None and self._applying.is_beyond_doubt(read, answered):
                answers[f"answer-{read.basis}"] = asdict(answered)
        alone = len(people) - len(answers)
        if alone:
            log.info("people are asked about alone after an answer about several", extra={"people": alone})
        return answers


def _part_of(given: Answered, text: str, at: int, count: int) -> Answered:
    """Return a person's part of an answer, with their part of its tokens."""
    return Answered(
        mode=given.mode,
        text=text,
        model=given.model,
        template=given.template,
        prompt=given.prompt,
        prompt_hash=given.prompt_hash,
        input_tokens=_share(given.input_tokens, at, count),
        output_tokens=_share(given.output_tokens, at, count),
    )


def _share(total: int, at: int, count: int) -> int:
    return total // count + (at < total % count)
