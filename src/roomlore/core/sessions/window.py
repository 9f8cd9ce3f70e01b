"""What of a conversation is shown: the summary and the turns it does not cover, inside the model's window."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from roomlore.core.errors import BudgetTooSmall, InvalidInput
from roomlore.core.sessions.models import Language, Session, SessionContext, SessionMessage
from roomlore.core.sessions.turns import Turn, as_chat, as_text, flat, language_of, lines, summary_line, turns_of
from roomlore.core.sessions.value import SessionValue

MAX_WINDOW = 100_000_000
MAX_TURNS = 10_000

Count = Callable[[Sequence[str]], list[int]]
"""Exact tokens of each text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowOptions:
    """`threshold`: share of the window from which a checkpoint is asked for. `recent_turns`: how many turns are shown
    verbatim at least. `window`: what the model takes, in tokens."""

    threshold: float = 0.75
    recent_turns: int = 8
    window: int = 16_000

    def __post_init__(self) -> None:
        """Raises `InvalidInput` for what is out of range."""
        if not _number(self.threshold) or not 0 < self.threshold <= 1:
            raise InvalidInput(f"token_threshold_ratio is {self.threshold!r}; give a number above 0 and up to 1.")
        if not _whole(self.recent_turns) or not 0 <= self.recent_turns <= MAX_TURNS:
            raise InvalidInput(f"recent_turns is {self.recent_turns!r}; give a whole number from 0 to {MAX_TURNS}.")
        if not _whole(self.window) or not 1 <= self.window <= MAX_WINDOW:
            raise InvalidInput(
                f"model_context_window is {self.window!r}; give how many tokens the model takes, up to {MAX_WINDOW}."
            )


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True)
class Segment:
    """A session with its messages. Those above arrival `start` are all there; `start` is never above what the session
    needs shown. It has no slots, so that what follows from the messages is reckoned once."""

    session: Session
    start: int
    messages: tuple[SessionMessage, ...]

    @property
    def whole(self) -> bool:
        """Whether nothing before `start` could ever be asked for."""
        return self.start <= self.session.boundary

    def uncovered(self) -> list[SessionMessage]:
        """Messages that no summary stands for."""
        return [message for message in self.messages if message.arrival > self.session.covered]

    @cached_property
    def turns(self) -> Sequence[Turn]:
        return turns_of(self.messages)

    def language(self) -> Language:
        checkpoint = self.session.checkpoint
        return checkpoint.language if checkpoint else self._spoken

    @cached_property
    def _spoken(self) -> Language:
        return language_of(self.uncovered())


@dataclass(frozen=True, slots=True)
class Shown:
    """What fits: the turns shown, both forms of them, their tokens with the query, and what was lost.

    `lost`: whether messages that no summary covers had to be left out. `truncated`: that, or fewer turns than asked
    for.
    """

    turns: tuple[Turn, ...]
    history: str
    messages: tuple[dict[str, str], ...]
    tokens: int
    lost: bool
    truncated: bool

    @property
    def count(self) -> int:
        """How many messages are shown."""
        return sum(len(turn.messages) for turn in self.turns)


def verbatim(turns: Sequence[Turn], *, covered: int, recent_turns: int) -> list[Turn]:
    """The turns to show: all with a message that is not covered, and never fewer than the last `recent_turns`."""
    first_open = next((place for place, turn in enumerate(turns) if turn.last > covered), len(turns))
    return list(turns[min(first_open, max(0, len(turns) - recent_turns)) :])


def _parts(turns: Sequence[Turn], covered: int) -> list[Turn]:
    """The turns in the order in which they may be left out: what a summary covers first, the oldest first. A turn that
    goes on after what is covered is two."""
    before = [part for turn in turns if (part := _part(turn, lambda arrival: arrival <= covered))]
    return before + [part for turn in turns if (part := _part(turn, lambda arrival: arrival > covered))]


def _part(turn: Turn, belongs: Callable[[int], bool]) -> Turn | None:
    messages = tuple(message for message in turn.messages if belongs(message.arrival))
    return Turn(messages) if messages else None


def turns_after(turns: Sequence[Turn], arrival: int) -> int:
    """How many turns began after this arrival."""
    return sum(turn.first > arrival for turn in turns)


def show(segment: Segment, query: str, options: WindowOptions, count: Count) -> Shown:
    """The session inside the window. Where it must it drops what the summary covers, then the oldest whole turns;
    `BudgetTooSmall` where the summary and
    the query alone are too long."""
    covered, tongue = segment.session.covered, segment.language()
    checkpoint = segment.session.checkpoint
    summary = checkpoint.summary if checkpoint else ""
    turns = segment.turns
    wanted = verbatim(turns, covered=covered, recent_turns=options.recent_turns)
    parts = _parts(wanted, covered)
    query_tokens = count([query])[0] if query else 0
    kept = _fitting(summary, parts, tongue, options.window - query_tokens, count)
    dropped = parts[: len(parts) - len(kept.turns)]
    lost = any(turn.last > covered for turn in dropped)
    left = {message.arrival for turn in dropped for message in turn.messages}
    whole = sum(left.isdisjoint(message.arrival for message in turn.messages) for turn in wanted)
    few = whole < min(options.recent_turns, len(turns))
    return Shown(
        turns=tuple(part for turn in wanted if (part := _part(turn, lambda arrival: arrival not in left))),
        history=kept.text,
        messages=as_chat(summary, kept.messages, tongue),
        tokens=kept.tokens + query_tokens,
        lost=lost,
        truncated=lost or (bool(dropped) and few),
    )


def context_of(segment: Segment, shown: Shown, options: WindowOptions, value: SessionValue) -> SessionContext:
    """What is shown as the answer to a caller. `value`: the session for other programs."""
    session, checkpoint = segment.session, segment.session.checkpoint
    new, tongue = segment.uncovered(), segment.language()
    ratio = shown.tokens / options.window
    return SessionContext(
        conversation_id=session.conversation_id,
        mode=session.mode,
        session=value,
        history=shown.history,
        messages=shown.messages,
        full_history=as_text(checkpoint.summary if checkpoint else "", new, tongue),
        covers_through=new[-1].id if new else (checkpoint.covers_through if checkpoint else None),
        checkpoint_id=session.checkpoint_id,
        estimated_tokens=shown.tokens,
        token_ratio=ratio,
        should_checkpoint_summary=shown.truncated or ratio >= options.threshold,
        truncated=shown.truncated,
        turns=len(shown.turns),
        message_ids=tuple(message.id for message in flat(shown.turns)),
        language=tongue,
    )


@dataclass(frozen=True, slots=True)
class _Fit:
    turns: Sequence[Turn]
    messages: Sequence[SessionMessage]
    text: str
    tokens: int


def _fitting(summary: str, turns: Sequence[Turn], tongue: Language, budget: int, count: Count) -> _Fit:
    """The most of the last turns that fit. Lines reckoned one by one say where to begin, the whole text decides."""
    fit = _fit(summary, turns, tongue, count)
    if fit.tokens <= budget:
        return fit
    first = _first_to_try(summary, turns, tongue, budget, count)
    while fit.tokens > budget:
        if first > len(turns):
            raise BudgetTooSmall(_too_small(summary, budget, fit.tokens))
        fit = _fit(summary, turns[first:], tongue, count)
        first += 1
    return fit


def _fit(summary: str, turns: Sequence[Turn], tongue: Language, count: Count) -> _Fit:
    messages = flat(turns)
    text = as_text(summary, messages, tongue)
    return _Fit(turns, messages, text, count([text])[0] if text else 0)


def _first_to_try(summary: str, turns: Sequence[Turn], tongue: Language, budget: int, count: Count) -> int:
    """Which turn the window can begin with, by the sum of the lines' tokens. At least one turn goes.

    The sum is the whole text's count but for the rarest cases: tokens do not reach over a line's end.
    """
    room = budget - (count([summary_line(summary, tongue) + "\n\n"])[0] if summary else 0)
    end = ""
    for place in range(len(turns) - 1, 0, -1):
        texts = [line + "\n" for line in lines(turns[place].messages, tongue)]
        if not texts:
            continue
        room -= sum(count([*texts[:-1], texts[-1].removesuffix("\n") + end]))
        if room < 0:
            return place + 1
        end = "\n"
    return 1


def _too_small(summary: str, budget: int, needed: int) -> str:
    if budget < 0:
        return "The query alone is longer than model_context_window; shorten it or name a larger window."
    return (
        f"The summary needs {needed} tokens and the query leaves {budget} of model_context_window; write a shorter "
        "summary with a new checkpoint, shorten the query, or name a larger window."
        if summary
        else "model_context_window has no room; name a larger one."
    )
