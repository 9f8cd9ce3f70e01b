"""A long session inside a small window: what fills it turn by turn, and what each turn is covered by."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from bench.pictures.held import held
from bench.pictures.svg import LARGE, SMALL, Sheet
from roomlore import Lore, Settings
from roomlore.adapters.tokens import EncodingTokens
from roomlore.core import summary
from roomlore.core.sessions.session import Language
from roomlore.core.summary.sentences import SpeakerText
from roomlore.samples import demo_path

NAME = "session-window.svg"
WINDOW, THRESHOLD, RECENT, SUMMARY = 900, 0.75, 6, 160
SLOW_TURNS = 2
"""The number of turns written while a summary is being made."""

_CONVERSATION = "long"
_LEFT, _RIGHT = 56, 700
_TOP, _TALL = 118, 190
_BELOW, _DEEP = 388, 226
_COLOURS = {"summary": "c3", "both": "c5", "verbatim": "c0", "missing": "grave"}


@dataclass(frozen=True)
class Moment:
    """After turn `turn`. `tokens`: of all that is shown, `summary_tokens` of them in the summary. `covered`: the first
    so many turns are in the summary; `shown`: these turns are verbatim. `made`: a checkpoint was just put in force.
    `meanwhile`: the turn was written while a summary was being made."""

    turn: int
    tokens: int
    summary_tokens: int
    covered: int
    shown: frozenset[int]
    made: bool = False
    meanwhile: bool = False

    def covers(self, turn: int) -> str:
        """The coverage of this turn: 'summary', 'verbatim', 'both' or, what must not be, 'missing'."""
        if turn in self.shown:
            return "both" if turn <= self.covered else "verbatim"
        return "summary" if turn <= self.covered else "missing"


@dataclass
class _Slow:
    """A summariser that takes so long that turns are written meanwhile; then sentences are chosen."""

    meanwhile: Callable[[], Awaitable[None]] | None = None
    name: str = "slow"

    async def summarise(self, *, previous: str, conversation: str, language: Language, max_tokens: int) -> str:
        if self.meanwhile:
            await self.meanwhile()
        speaker_texts = [SpeakerText(*line.partition(": ")[::2]) for line in conversation.splitlines()]
        return summary.extract(previous, speaker_texts, max_tokens=max_tokens, count=EncodingTokens().count)

    async def close(self) -> None: ...


@dataclass
class _Talk:
    """The demo room's messages, two a turn, said in one session."""

    lore: Lore
    moments: list[Moment] = field(default_factory=list)
    said: int = 0

    async def say(self, *, meanwhile: bool = False) -> bool:
        """The next turn; whether a checkpoint is asked for then."""
        query, answer = TURNS[self.said]
        self.said += 1
        await self.lore.sessions.write_turn(
            _CONVERSATION, "ann", user_query=query, agent_response=answer, turn_id=f"t{self.said}"
        )
        return await self.look(meanwhile=meanwhile)

    async def look(self, *, made: bool = False, meanwhile: bool = False) -> bool:
        context = await self.lore.sessions.query_context(_CONVERSATION)
        marks = [mark for mark in await self.lore.sessions.checkpoints(_CONVERSATION) if mark.kind == "summary"]
        mark = max(marks, key=lambda checkpoint: checkpoint.number, default=None)
        shown = frozenset(int(name.removeprefix("t").partition("-")[0]) for name in context.message_ids)
        moment = Moment(
            turn=self.said,
            tokens=context.estimated_tokens,
            summary_tokens=mark.tokens if mark else 0,
            covered=mark.turns if mark else 0,
            shown=shown,
            made=made,
            meanwhile=meanwhile or (made and bool(self.moments) and self.moments[-1].meanwhile),
        )
        self.moments = [look for look in self.moments if look.turn != moment.turn] + [moment]
        return context.should_checkpoint_summary


def _turns() -> list[tuple[str, str]]:
    with demo_path().open(encoding="utf-8") as lines:
        texts = [text for line in lines if (text := json.loads(line)["text"])]
    return list(zip(texts[::2], texts[1::2], strict=False))


TURNS = _turns()


async def run() -> list[Moment]:
    """Return the state of the session after each turn."""
    slow = _Slow()
    settings = Settings(
        model_context_window=WINDOW,
        token_threshold_ratio=THRESHOLD,
        recent_turns=RECENT,
    )
    async with held(settings, summarizer=slow, summary_tokens=SUMMARY) as (lore, _):
        talk = _Talk(lore)

        async def more() -> None:
            for _ in range(min(SLOW_TURNS, len(TURNS) - talk.said)):
                await talk.say(meanwhile=True)

        slow.meanwhile = more
        while talk.said < len(TURNS):
            if await talk.say():
                await lore.sessions.summarise(_CONVERSATION)
                await talk.look(made=True)
    return talk.moments


async def draw() -> str:
    moments = await run()
    sheet = Sheet(
        _BELOW + _DEEP + 62,
        title="A session's window and its summaries never lose a turn",
        alternative=_alternative_text(moments),
    )
    sheet.text(24, 34, "Every turn is in the summary or verbatim, at every moment", size=LARGE, bold=True)
    made = sum(look.made for look in moments)
    caption = (
        f"{len(moments)} turns in a window of {WINDOW} tokens, {made} summaries; {SLOW_TURNS} turns written during each"
    )
    sheet.text(24, 56, f"{caption}.", colour="soft")
    _stack(sheet, moments)
    _coverage(sheet, moments)
    for moment in moments:
        if moment.made:
            for top, ground in ((_TOP - 4, _TOP + _TALL), (_BELOW - 22, _BELOW + _DEEP)):
                x = _x(moment.turn) - _step() / 2
                sheet.line(x, top, x, ground, "soft", width=1, dashed=True)
    return sheet.drawn()


def _stack(sheet: Sheet, moments: Sequence[Moment]) -> None:
    sheet.text(24, 92, "Tokens that the model sees", size=SMALL, bold=True)
    _key(sheet, 92, ("summary", "the summary"), ("verbatim", "turns, word for word"))
    limit = round(WINDOW * THRESHOLD)
    sheet.text(_x(22), _y(limit) - 7, "time to summarise", size=SMALL, colour="soft")
    for tokens, name in ((0, "0"), (limit, str(limit)), (WINDOW, str(WINDOW))):
        y = _y(tokens)
        sheet.line(_LEFT, y, _RIGHT, y, "line", width=1, dashed=0 < tokens < WINDOW)
        sheet.text(_LEFT - 8, y + 5, name, size=SMALL, colour="soft", anchor="end")
    for moment in moments:
        x, summary_y, y = _x(moment.turn) - _step() * 0.42, _y(moment.summary_tokens), _y(moment.tokens)
        sheet.rect(x, y, _step() * 0.84, summary_y - y, "c0")
        if moment.summary_tokens:
            sheet.rect(x, summary_y, _step() * 0.84, _y(0) - summary_y, "c3")


def _coverage(sheet: Sheet, moments: Sequence[Moment]) -> None:
    sheet.text(24, _BELOW - 40, "What covers each turn", size=SMALL, bold=True)
    _key(sheet, _BELOW - 40, ("summary", "summary"), ("both", "both"), ("verbatim", "verbatim"), ("missing", "nothing"))
    high = _DEEP / len(moments)
    for moment in moments:
        x, below = _x(moment.turn) - _step() / 2, 0
        for what, run_of in groupby(range(1, moment.turn + 1), key=moment.covers):
            count = len(list(run_of))
            top = _BELOW + _DEEP - (below + count) * high
            sheet.rect(x, top, _step() - 0.8, count * high, _COLOURS[what])
            below += count
        if moment.meanwhile:
            sheet.rect(x - 0.5, _BELOW + _DEEP - moment.turn * high - 3, _step() + 0.5, 3, "c1")
    sheet.text(_LEFT - 8, _BELOW + 10, str(len(moments)), size=SMALL, colour="soft", anchor="end")
    sheet.text(_LEFT - 8, _BELOW + _DEEP, "1", size=SMALL, colour="soft", anchor="end")
    sheet.text(_LEFT - 8, _BELOW + _DEEP / 2, "turn", size=SMALL, colour="soft", anchor="end")
    for turn in (1, *range(10, len(moments) + 1, 10)):
        sheet.text(_x(turn), _BELOW + _DEEP + 20, str(turn), size=SMALL, colour="soft", anchor="middle")
    caption = "turns so far; dashed: a summary comes into force"
    sheet.text(_RIGHT, _BELOW + _DEEP + 42, caption, size=SMALL, colour="soft", anchor="end")
    sheet.rect(_LEFT, _BELOW + _DEEP + 36, 16, 4, "c1")
    sheet.text(_LEFT + 24, _BELOW + _DEEP + 42, "written while a summary was made", size=SMALL, colour="soft")


def _key(sheet: Sheet, y: float, *entries: tuple[str, str]) -> None:
    x = 250.0
    for name, words in entries:
        sheet.rect(x, y - 10, 12, 12, _COLOURS[name], round_by=2)
        sheet.text(x + 18, y, words, size=SMALL, colour="soft")
        x += 34 + len(words) * 8.2


def _step() -> float:
    return (_RIGHT - _LEFT) / len(TURNS)


def _x(turn: int) -> float:
    return _LEFT + _step() * (turn - 0.5)


def _y(tokens: float) -> float:
    return _TOP + _TALL * (1 - tokens / WINDOW)


def _alternative_text(moments: Sequence[Moment]) -> str:
    made = ", ".join(f"after turn {moment.turn} for turns 1 to {moment.covered}" for moment in moments if moment.made)
    lost = sum(moment.covers(turn) == "missing" for moment in moments for turn in range(1, moment.turn + 1))
    most = max(moment.tokens for moment in moments)
    return (
        f"Above, the tokens shown after each of {len(moments)} turns, divided into summary and turns, in a window of "
        f"{WINDOW}: {most} at most. Below, for each moment, what covers each turn so far: the summary, the verbatim "
        f"turns, or both. Summaries came into force {made}. Turns covered by nothing, over all moments: {lost}."
    )
