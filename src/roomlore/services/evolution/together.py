"""Asking a model about several people of a room in one call."""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

from roomlore.core.evolution.together import Shown, shown_together, taken_apart
from roomlore.ports.durable import Json, Steps
from roomlore.services.evolution.applying import Applying, Asking
from roomlore.services.evolution.piece import Answered, Piece, Read
from roomlore.services.evolution.reading import Reading

log = logging.getLogger(__name__)

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

    def __init__(self, *, reading: Reading, asking: Asking, applying: Applying, repair: Callable[[str], str]) -> None:
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

        found: Mapping[str, Json] = await steps.once("together", step)
        return found

    async def _together(self, pieces: Sequence[Piece]) -> list[tuple[Piece, Read, Shown]]:
        """Return those of the room that most of them have spoken in."""
        read = [(piece, found) for piece in pieces if (found := await self._reading.read(piece))]
        small = [(piece, one, shown) for piece, one in read if (shown := self._shown(piece, one)).is_small]
        rooms = Counter(one.room_id for _, one, _ in small)
        room_id = max(rooms, key=lambda name: rooms[name], default="")
        return [each for each in small if each[1].room_id == room_id]

    def _shown(self, piece: Piece, read: Read) -> Shown:
        values = self._asking.values(piece, read)
        return Shown(values["person"], values["memories"], values["messages"])

    async def _ask(self, people: Sequence[tuple[Piece, Read, Shown]]) -> Json:
        if len(people) < _FEWEST:
            return {}
        shown, language = [one for _, _, one in people], people[0][1].language
        if not await self._asking.asks_about_several(language):
            return {}
        given = await self._asking.about_several(shown_together(shown), language=language)
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
