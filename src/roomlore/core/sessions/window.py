"""A conversation in turns, rendered as text for a model, as JSON for other programs, and in the form for caches."""

import hashlib
import hmac
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import islice, pairwise, takewhile
from typing import Any, TypeVar

from roomlore.core.attachments import caption_of
from roomlore.core.errors import BudgetTooSmall, InvalidInput
from roomlore.core.models import Role, StoredMessage
from roomlore.core.patterns import lazy_pattern
from roomlore.core.prompt import is_label, neutral
from roomlore.core.sessions.session import (
    FlowContext,
    Language,
    MessageContext,
    Meta,
    Session,
    SessionContext,
    SessionMessage,
    SessionValue,
)
from roomlore.core.text import language
from roomlore.core.texts import Phrase

_SUMMARY = {"zh": "历史摘要: ", "en": "Summary: "}
_LABELS = {
    "zh": {Role.USER: "用户", Role.ASSISTANT: "助手", Role.SYSTEM: "系统", Role.TOOL: "工具"},
    "en": {Role.USER: "User", Role.ASSISTANT: "Assistant", Role.SYSTEM: "System", Role.TOOL: "Tool"},
}
_FIRST_MESSAGES = 8
LONG_TOKEN = 8
"""Characters. No text is expected to have more per token; conversations have two to five."""
LINE_TOKENS = 3
"""The least tokens of a line besides its text: a label, a colon and the end of the line."""
_TURNS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class TurnMessages:
    """Messages that belong together, in order of arrival; never empty."""

    messages: tuple[SessionMessage, ...]

    @property
    def first(self) -> int:
        """The arrival of its first message."""
        return self.messages[0].arrival

    @property
    def last(self) -> int:
        return self.messages[-1].arrival


def shown(message: StoredMessage) -> SessionMessage:
    """Return the message as a session shows it; a picture's caption replaces a missing text."""
    return SessionMessage(
        arrival=message.arrival,
        id=message.id,
        role=message.role,
        name=" ".join(message.sender_name.split()) if message.role is Role.USER else "",
        text=message.text or caption_of(message),
        turn_id=message.turn_id,
    )


def turns_of(messages: Iterable[SessionMessage]) -> list[TurnMessages]:
    """Return messages in order of arrival as turns, in the order they began.

    Messages with one turn id are one turn, wherever they are. Without an id a user's message begins a turn and
    everything else joins the turn that began last.
    """
    groups: list[list[SessionMessage]] = []
    by_id: dict[str, list[SessionMessage]] = {}
    for message in messages:
        if message.turn_id:
            group = by_id.get(message.turn_id)
        else:
            group = groups[-1] if groups and message.role is not Role.USER else None
        if group is None:
            group = []
            groups.append(group)
        if message.turn_id:
            by_id[message.turn_id] = group
        group.append(message)
    return [TurnMessages(tuple(group)) for group in groups]


def flat(turns: Iterable[TurnMessages]) -> list[SessionMessage]:
    """Return the messages of the turns in order of arrival."""
    return sorted((message for turn in turns for message in turn.messages), key=lambda message: message.arrival)


def language_of(messages: Sequence[SessionMessage]) -> Language:
    """Return the language of a conversation, by its first messages, so that it stays the same as the conversation
    grows."""
    return language("\n".join(message.text[:2000] for message in messages[:_FIRST_MESSAGES]))


def summary_line(summary: str, tongue: Language) -> str:
    """Return the summary as the beginning of a history: 'Summary: ...' or '历史摘要: ...'."""
    return _SUMMARY[tongue] + neutral(summary)


def speaker(message: SessionMessage, tongue: Language) -> str:
    """Return the label of the speaker: a user's name, unless it equals the label of another role."""
    return _label(message.role, message.name, tongue)


@lru_cache(maxsize=1_000)
def _label(role: Role, name: str, tongue: Language) -> str:
    return _LABELS[tongue][role] if not name or is_label(name) else neutral(name)


def lines(messages: Iterable[SessionMessage], tongue: Language) -> Iterator[str]:
    """Yield each message with a text as 'Speaker: text'."""
    for message in messages:
        if message.text:
            yield f"{speaker(message, tongue)}: {neutral(message.text)}"


def as_text(summary: str, messages: Iterable[SessionMessage], tongue: Language) -> str:
    """Return the summary, if any, and the messages, a line each."""
    head = [summary_line(summary, tongue), ""] if summary else []
    return "\n".join([*head, *lines(messages, tongue)])


def as_chat(summary: str, messages: Iterable[SessionMessage], tongue: Language) -> tuple[dict[str, str], ...]:
    """Return the same as role and content. A tool's message has the role `assistant`, since chat models accept the role
    `tool` only beside its call. Some refuse a message without content, so one without a text is omitted."""
    head = [{"role": "system", "content": summary_line(summary, tongue)}] if summary else []
    chat = [{"role": _chat_role(message.role), "content": message.text} for message in messages if message.text]
    return (*head, *chat)


def _chat_role(role: Role) -> str:
    return Role.ASSISTANT.value if role is Role.TOOL else role.value


MAX_WINDOW = 100_000_000
MAX_TURNS = 10_000

Count = Callable[[Sequence[str]], list[int]]
"""Returns the exact tokens of each text."""


def sums_of(groups: Sequence[Sequence[str]], count: Count) -> list[int]:
    """Return the tokens of each group of texts, all counted in one call."""
    tokens = iter(count([text for group in groups for text in group]))
    return [sum(islice(tokens, len(group))) for group in groups]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowOptions:
    """The limits of a window. `threshold`: share of the window from which a checkpoint is requested. `recent_turns`:
    the least number of verbatim turns. `window`: the model's limit, in tokens."""

    threshold: float = 0.75
    recent_turns: int = 8
    window: int = 16_000

    def __post_init__(self) -> None:
        """Raise `InvalidInput` if a value is out of range."""
        if not _number(self.threshold) or not 0 < self.threshold <= 1:
            raise InvalidInput("token_threshold_invalid", value=repr(self.threshold))
        if not _whole(self.recent_turns) or not 0 <= self.recent_turns <= MAX_TURNS:
            raise InvalidInput(
                "number_to_give_outside", name="recent_turns", value=repr(self.recent_turns), most=MAX_TURNS
            )
        if not _whole(self.window) or not 1 <= self.window <= MAX_WINDOW:
            raise InvalidInput("window_invalid", value=repr(self.window), most=MAX_WINDOW)

    @property
    def kept(self) -> int:
        """The most tokens of covered turns that stay while coverage is assumed: half of the threshold."""
        return int(self.threshold * self.window / 2)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True)
class Segment:
    """A session with its messages. It contains all of those above arrival `start`; `start` is never above the first
    message that the session must show. `partial`: True if others, which no summary covers, were not read or are in an
    archive; its language, if there is no checkpoint, is then that of its first message here. It has no slots, so that
    derived values are computed once."""

    session: Session
    start: int
    messages: tuple[SessionMessage, ...]
    partial: bool = False

    @property
    def whole(self) -> bool:
        """True if nothing before `start` can ever be needed."""
        return self.start <= self.session.boundary

    def uncovered(self) -> list[SessionMessage]:
        """Return the messages that no summary covers."""
        return [message for message in self.messages if message.arrival > self.session.covered]

    @cached_property
    def turns(self) -> Sequence[TurnMessages]:
        return turns_of(self.messages)

    def language(self) -> Language:
        checkpoint = self.session.checkpoint
        return checkpoint.language if checkpoint else self._spoken

    @cached_property
    def _spoken(self) -> Language:
        return language_of(self.uncovered())


@dataclass(frozen=True, slots=True)
class ShownWindow:
    """The part that fits: the turns shown, both forms of them, their tokens with the query, and the loss.

    `source`: the messages that the next summary is to be made of, whether they fit or not.
    `lost`: True if messages that no summary covers were dropped. `truncated`: that, or fewer turns than asked for.
    """

    source: tuple[SessionMessage, ...]
    turns: tuple[TurnMessages, ...]
    history: str
    messages: tuple[dict[str, str], ...]
    tokens: int
    lost: bool
    truncated: bool

    @property
    def count(self) -> int:
        """The number of messages shown."""
        return sum(len(turn.messages) for turn in self.turns)

    @property
    def message_ids(self) -> tuple[str, ...]:
        return tuple(message.id for message in flat(self.turns))

    def ratio(self, options: WindowOptions) -> float:
        """Return the share of the window that is used."""
        return self.tokens / options.window

    def asks(self, options: WindowOptions) -> bool:
        """Return True if a checkpoint is requested."""
        return self.truncated or self.ratio(options) >= options.threshold


def verbatim(turns: Sequence[TurnMessages], *, covered: int, recent_turns: int) -> list[TurnMessages]:
    """Return the turns to show: all with a message that is not covered, and never fewer than the last
    `recent_turns`."""
    first_open = next((place for place, turn in enumerate(turns) if turn.last > covered), len(turns))
    return list(turns[min(first_open, max(0, len(turns) - recent_turns)) :])


def _parts(turns: Sequence[TurnMessages], covered: int) -> list[TurnMessages]:
    """Return the turns in the order in which they may be dropped: covered ones first, the oldest first. A turn that is
    partly covered is split."""
    old = list(takewhile(lambda turn: turn.first <= covered, turns))
    before = [part for turn in old if (part := _part(turn, lambda arrival: arrival <= covered))]
    split = [part for turn in old if (part := _part(turn, lambda arrival: arrival > covered))]
    return [*before, *split, *turns[len(old) :]]


def _part(turn: TurnMessages, belongs: Callable[[int], bool]) -> TurnMessages | None:
    messages = tuple(message for message in turn.messages if belongs(message.arrival))
    return TurnMessages(messages) if messages else None


def reopened(segment: Segment, options: WindowOptions, count: Count) -> Segment:
    """Return the segment that the next summary is to be made of: if the coverage of the current one is assumed, the
    newest covered turns count as uncovered, up to half of the threshold."""
    checkpoint = segment.session.checkpoint
    if checkpoint is None or not checkpoint.coverage_assumed:
        return segment
    covered, tongue, room = checkpoint.covers_arrival, segment.language(), options.kept
    parts = [part for turn in segment.turns if (part := _part(turn, lambda arrival: arrival <= covered))]
    first = covered + 1
    sums = sums_of([[line + "\n" for line in lines(part.messages, tongue)] for part in parts], count)
    for part, tokens in zip(reversed(parts), reversed(sums), strict=True):
        room -= tokens
        if room < 0:
            break
        first = part.first
    lower = replace(checkpoint, covers_arrival=first - 1)
    return replace(segment, session=replace(segment.session, checkpoint=lower))


def turns_after(turns: Sequence[TurnMessages], arrival: int) -> int:
    """Return the number of turns that began after this arrival."""
    return sum(turn.first > arrival for turn in turns)


def show(segment: Segment, query: str, options: WindowOptions, count: Count) -> ShownWindow:
    """Return the session inside the window. If necessary, drop what the summary covers, then the oldest whole turns.
    Raises `BudgetTooSmall` if the summary and the query alone are too long."""
    covered, tongue = segment.session.covered, segment.language()
    summary, turns = segment.session.summary, segment.turns
    source = reopened(segment, options, count)
    wanted = verbatim(turns, covered=source.session.covered, recent_turns=options.recent_turns)
    parts = _parts(wanted, covered)
    query_tokens = count([query])[0] if query else 0
    kept = _fitting(summary, parts, tongue, options.window - query_tokens, count)
    dropped = parts[: len(parts) - len(kept.turns)]
    lost = any(turn.last > covered for turn in dropped)
    left = {message.arrival for turn in dropped for message in turn.messages}
    whole = sum(left.isdisjoint(message.arrival for message in turn.messages) for turn in wanted)
    few = whole < min(options.recent_turns, len(turns))
    return ShownWindow(
        source=tuple(source.uncovered()),
        turns=tuple(part for turn in wanted if (part := _part(turn, lambda arrival: arrival not in left))),
        history=kept.text,
        messages=as_chat(summary, kept.messages, tongue),
        tokens=kept.tokens + query_tokens,
        lost=lost,
        truncated=lost or (bool(dropped) and few),
    )


def context_of(segment: Segment, shown: ShownWindow, options: WindowOptions, value: SessionValue) -> SessionContext:
    """Return the shown part as the result for a caller. `value`: the session for other programs."""
    session, checkpoint = segment.session, segment.session.checkpoint
    new, tongue = segment.uncovered(), segment.language()
    return SessionContext(
        conversation_id=session.conversation_id,
        mode=session.mode,
        session=value,
        history=shown.history,
        messages=shown.messages,
        full_history=as_text(session.summary, shown.source, tongue),
        covers_through=new[-1].id if new else (checkpoint.covers_through if checkpoint else None),
        checkpoint_id=session.checkpoint_id,
        checkpoint_token=mark_of(segment, cut=shown.lost or segment.partial).token,
        estimated_tokens=shown.tokens,
        token_ratio=shown.ratio(options),
        should_checkpoint_summary=shown.asks(options),
        truncated=shown.truncated or segment.partial,
        coverage_assumed=session.coverage_assumed,
        turns=len(shown.turns),
        message_ids=shown.message_ids,
        language=tongue,
    )


# The parts of a signed token.
_TOKEN = lazy_pattern(r"(\d{1,18})\.([01])\.([0-9a-f]{32})\.(.*)", re.ASCII | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Mark:
    """The messages and the summary that a context was made from. `covers`: the arrival of its last message. `cut`: its
    history lacked messages that no summary covers. `digest`: of the summary and the messages after it, as they were.
    `checkpoint_id`: the one in force then."""

    covers: int
    cut: bool
    digest: str
    checkpoint_id: str

    @property
    def token(self) -> str:
        return f"{self.covers}.{self.cut:d}.{self.digest}.{self.checkpoint_id}"

    @classmethod
    def read(cls, token: object) -> "Mark | None":
        """Return the mark with this token; None if it is no token."""
        match = _TOKEN.fullmatch(token) if isinstance(token, str) else None
        return cls(int(match[1]), match[2] == "1", match[3], match[4]) if match else None

    def holds(self, segment: Segment) -> bool:
        """Return True if what the context was made from is there as it was; messages that came later do not count."""
        return self.checkpoint_id == segment.session.checkpoint_id and self.digest == _digest(segment, self.covers)


def mark_of(segment: Segment, *, cut: bool) -> Mark:
    """Return the mark of a context of the segment."""
    session, new = segment.session, segment.uncovered()
    covers = new[-1].arrival if new else session.covered
    return Mark(covers, cut, _digest(segment, covers), session.checkpoint_id)


def _digest(segment: Segment, covers: int) -> str:
    session = segment.session
    made = session.created_at.isoformat(), session.conversation_id, session.boundary, session.summary
    digest = hashlib.blake2b(_bytes(repr(made)), digest_size=16)
    for message in segment.uncovered():
        if message.arrival <= covers:
            digest.update(_bytes(f"{message.arrival} {len(message.id)} {message.id}{message.text}"))
    return digest.hexdigest()


def mark_in(context: SessionContext | str | None, conversation_id: str) -> Mark | None:
    """Return the mark of the context that a caller hands in, or of its token. Raises `InvalidInput`."""
    if context is None:
        return None
    if isinstance(context, SessionContext) and context.conversation_id != conversation_id:
        raise InvalidInput("context_of_other_conversation", conversation=f"{context.conversation_id!r:.60}")
    mark = Mark.read(context.checkpoint_token if isinstance(context, SessionContext) else context)
    if mark is None:
        raise InvalidInput("summary_context_invalid", value=f"{context!r:.60}")
    return mark


@dataclass(frozen=True, slots=True)
class _Fit:
    turns: Sequence[TurnMessages]
    messages: Sequence[SessionMessage]
    text: str
    tokens: int


def _fitting(summary: str, turns: Sequence[TurnMessages], tongue: Language, budget: int, count: Count) -> _Fit:
    """Return the most of the last turns that fit. Line counts give the starting point, the count of the whole text
    decides."""
    first = _first_to_try(summary, turns, tongue, budget, count) if _is_long(turns, budget) else 0
    fit = _fit(summary, turns[first:], tongue, count)
    if fit.tokens > budget and first == 0:
        first = max(1, _first_to_try(summary, turns, tongue, budget, count))
        fit = _fit(summary, turns[first:], tongue, count)
    while fit.tokens > budget:
        first += 1
        if first > len(turns):
            raise BudgetTooSmall(_too_small(summary, budget, fit.tokens))
        fit = _fit(summary, turns[first:], tongue, count)
    while first and _may_hold(turns[first - 1], budget - fit.tokens, tongue, count):
        more = _fit(summary, turns[first - 1 :], tongue, count)
        if more.tokens > budget:
            break
        first, fit = first - 1, more
    return fit


def _may_hold(turn: TurnMessages, room: int, tongue: Language, count: Count) -> bool:
    """Return True if a turn may fit in so many tokens: where lines meet, a tokenizer may merge two tokens into one."""
    own = list(lines(turn.messages, tongue))
    return sum(count(own)) <= room + len(own)


def _is_long(turns: Sequence[TurnMessages], budget: int) -> bool:
    """Return True if the turns are surely too long, so that counting all of them is wasted work."""
    return sum(len(message.text) for turn in turns for message in turn.messages) > LONG_TOKEN * budget


def _fit(summary: str, turns: Sequence[TurnMessages], tongue: Language, count: Count) -> _Fit:
    messages = flat(turns)
    text = as_text(summary, messages, tongue)
    return _Fit(turns, messages, text, count([text])[0] if text else 0)


def _first_to_try(summary: str, turns: Sequence[TurnMessages], tongue: Language, budget: int, count: Count) -> int:
    """Return the first turn that may fit, by the sum of the lines' tokens.

    The sum nearly always equals the whole text's count: tokens do not cross a line's end.
    """
    room = budget - (count([summary_line(summary, tongue) + "\n\n"])[0] if summary else 0)
    end, ended = len(turns), False
    while end > 0:
        batch = range(max(0, end - _TURNS_AT_ONCE), end)
        texts = [[line + "\n" for line in lines(turns[place].messages, tongue)] for place in batch]
        spoken = [of_turn for of_turn in texts if of_turn]
        if spoken and not ended:  # the last line of all has no end
            spoken[-1][-1] = spoken[-1][-1].removesuffix("\n")
            ended = True
        sums = sums_of(texts, count)
        for place in reversed(batch):
            room -= sums[place - batch.start]
            if room < 0:
                return place + 1
        end = batch.start
    return 0


def _too_small(summary: str, budget: int, needed: int) -> str:
    if budget < 0:
        return Phrase("query_too_large")
    return Phrase("summary_too_large", needed=needed, budget=budget) if summary else Phrase("window_too_small")


_FORM = 2
_OWN = "roomlore"
_MARK = f', "{_OWN}": '
_SIGNATURE = "roomlore_signature"
_ROLES = {role.value: role for role in Role}
_Part = TypeVar("_Part", Meta, FlowContext, MessageContext)


def value_of(segment: Segment, *, recent_turns: int) -> SessionValue:
    """Return the session for other programs, with the last `recent_turns` turns as its window."""
    session = segment.session
    turns = segment.turns
    kept = SessionValue.from_json(session.state) if session.state else SessionValue()
    window = flat(turns[max(0, len(turns) - recent_turns) :])
    checkpoint = session.checkpoint
    meta = Meta(
        conversation_id=session.conversation_id,
        user_id=session.user_id,
        updated_at=int(session.updated_at.timestamp()),
        enterprise_id=session.enterprise_id,
        patient_id=session.patient_id,
    )
    flow = FlowContext(
        current_agent_key=session.agent_key,
        last_bot_message=_last_answer(segment),
        turn_count=(checkpoint.turns if checkpoint else 0) + turns_after(turns, session.covered),
    )
    context = MessageContext(
        summary=session.summary,
        window_messages=as_chat("", window, segment.language()),
        mode=session.mode.value,
        checkpoint_message_id=session.checkpoint_id,
    )
    snapshot = kept.user_snapshot
    return replace(
        kept,
        meta=_beside(kept.meta, meta),
        flow_context=_beside(kept.flow_context, flow),
        message_context=_beside(kept.message_context, context),
        user_snapshot=snapshot if snapshot.user_id else replace(snapshot, user_id=session.user_id),
    )


def _beside(kept: _Part, derived: _Part) -> _Part:
    """Return the derived part with the unknown fields that are kept."""
    return replace(derived, extra=kept.extra)


def _last_answer(segment: Segment) -> str:
    answers = (m.text for m in reversed(segment.messages) if m.role is Role.ASSISTANT and m.text)
    return next(answers, "")


@dataclass(frozen=True, slots=True)
class Cached:
    """The cached messages of a session: those above `start`, as of the room's `revision`, with the session for other
    programs, as of its `version`. `made`: the creation time of the session, since two databases may use one cache."""

    tenant: str
    conversation_id: str
    made: str
    revision: int
    version: int
    start: int
    messages: tuple[SessionMessage, ...]

    def serves(self, session: Session) -> bool:
        """Return True if it belongs to this session, is no newer (a database may be restored), and reaches far enough
        back."""
        named = (session.tenant, session.conversation_id, session.created_at.isoformat())
        same = (self.tenant, self.conversation_id, self.made) == named
        return same and self.revision <= session.revision and self.start <= session.covered

    def equals(self, session: Session) -> bool:
        """Return True if nothing was added or changed since."""
        return (self.revision, self.version) == (session.revision, session.version)


def to_text(segment: Segment, value: SessionValue) -> str:
    """Return the session as JSON for other programs, with the data for `from_text` at its end."""
    session, messages = segment.session, segment.messages
    own = {
        "form": _FORM,
        "tenant": session.tenant,
        "conversation_id": session.conversation_id,
        "made": session.created_at.isoformat(),
        "revision": session.revision,
        "version": session.version,
        "start": segment.start,
        "arrivals": [message.arrival for message in messages],
        "ids": [message.id for message in messages],
        "roles": [message.role.value for message in messages],
        "names": [message.name for message in messages],
        "texts": [message.text for message in messages],
        "turn_ids": [message.turn_id for message in messages],
    }
    data = value.to_json()
    for name in (_OWN, _SIGNATURE):
        data.pop(name, None)
    return json.dumps({**data, _OWN: own})


def signed(text: str, *, key: bytes, tenant: str, conversation_id: str) -> str:
    """Return the JSON object `text` with a signature for this session as its last field."""
    return text[:-1] + _signature(text, key, tenant, conversation_id)


def verified(text: str, *, key: bytes, tenant: str, conversation_id: str) -> str | None:
    """Return the text given to `signed` with the same key and session; None for any other text."""
    end = len(text) - len(_signature("", key, tenant, conversation_id))
    if end < 0:
        return None
    whole = text[:end] + "}"
    expected = _signature(whole, key, tenant, conversation_id)
    return whole if hmac.compare_digest(_bytes(text[end:]), _bytes(expected)) else None


def _signature(text: str, key: bytes, tenant: str, conversation_id: str) -> str:
    """Return the signature. The names form a JSON line of their own, so no other names and text give the same bytes."""
    whose = json.dumps([tenant, conversation_id])
    digest = hmac.digest(key, _bytes(f"{whose}\n{text}"), hashlib.sha256).hex()
    return f', "{_SIGNATURE}": "{digest}"}}'


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def from_text(text: str) -> Cached | None:
    """Parse the output of `to_text`; None for any other text. Only the end is parsed: no bare quote occurs inside a
    string, so the last mark found is the last one written."""
    try:
        own = json.loads(text[text.rindex(_MARK) + len(_MARK) : -1])
        if own["form"] != _FORM:
            return None
        tenant, conversation_id, made = _all_of((own["tenant"], own["conversation_id"], own["made"]), str)
        revision, version, start = _all_of((own["revision"], own["version"], own["start"]), int)
        messages = tuple(_messages(own))
        if revision < 0 or not _ascending([-1, start, *own["arrivals"]]):
            return None
        return Cached(tenant, conversation_id, made, revision, version, start, messages)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _messages(own: Mapping[str, Any]) -> Iterator[SessionMessage]:
    roles = [_ROLES[role] for role in own["roles"]]
    columns = (
        _all_of(own["arrivals"], int),
        _all_of(own["ids"], str),
        roles,
        _all_of(own["names"], str),
        _all_of(own["texts"], str),
        _all_of(own["turn_ids"], str, type(None)),
    )
    return map(SessionMessage._make, zip(*columns, strict=True))


def _ascending(numbers: Sequence[int]) -> bool:
    return all(before < after for before, after in pairwise(numbers))


def _all_of(values: Collection[Any], *kinds: type) -> Collection[Any]:
    if not set(map(type, values)) <= set(kinds):
        raise TypeError("values of another type")
    return values
