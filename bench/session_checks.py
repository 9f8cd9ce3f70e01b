"""Check what is stored after a load against what the writers know and against itself, read with Redis and without."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import roomlore
from bench.session_writers import Report, turns_of
from roomlore import SessionContext, SessionMode, StoredMessage


@dataclass(slots=True)
class Known:
    """The knowledge of all writers about one conversation."""

    conversation_id: str
    turns: int
    acknowledged: list[str] = field(default_factory=list)
    put: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Findings:
    """`wrong`: a line for each thing that is lost, there twice or different."""

    turns: int = 0
    found: int = 0
    conversations: int = 0
    checkpoints: int = 0
    wrong: list[str] = field(default_factory=list)


def gathered(reports: Sequence[Report], conversation_ids: Sequence[str], turns: int) -> list[Known]:
    known = {name: Known(name, turns) for name in conversation_ids}
    for report in reports:
        for name, turn_ids in report.acknowledged.items():
            known[name].acknowledged += turn_ids
        for name, put in report.put.items():
            known[name].put |= put
    return list(known.values())


async def check(cached: roomlore.Lore, plain: roomlore.Lore, known: Sequence[Known]) -> Findings:
    findings = Findings()
    for conversation in known:
        wrong = [
            *await _stored(plain, conversation, findings),
            *await _alike(cached, plain, conversation.conversation_id),
        ]
        findings.wrong += [f"{conversation.conversation_id}: {line}" for line in wrong]
        findings.conversations += 1
    return findings


async def _stored(plain: roomlore.Lore, known: Known, findings: Findings) -> list[str]:
    name = known.conversation_id
    messages = await plain.sessions.messages(name)
    checkpoints = await plain.sessions.checkpoints(name)
    session = await plain.sessions.get_session(name)
    context = await plain.sessions.query_context(name)
    findings.turns += len(known.acknowledged)
    findings.found += sum(_whole(turn_id, messages) for turn_id in known.acknowledged)
    findings.checkpoints += len(checkpoints)
    force = {each.checkpoint_id: each.summary for each in checkpoints}
    wrong = [*_lost(known, messages)]
    if force != known.put:
        wrong.append(f"{len(force)} checkpoints are stored, {len(known.put)} were acknowledged, or they differ")
    if session.flow_context.turn_count != len(known.acknowledged):
        wrong.append(f"turn_count is {session.flow_context.turn_count}, not {len(known.acknowledged)}")
    if session.flow_context.last_bot_message != messages[-1].text:
        wrong.append("last_bot_message is not the last answer")
    newest = checkpoints[0] if checkpoints else None
    if context.checkpoint_id != (newest.checkpoint_id if newest else ""):
        wrong.append("the checkpoint in force is not the newest one")
    if context.mode is not (SessionMode.SUMMARY_N if newest else SessionMode.FULL_HISTORY):
        wrong.append(f"the mode is {context.mode}")
    return [*wrong, *_gap(context, messages, newest.covers_arrival if newest else 0)]


def _whole(turn_id: str, messages: Sequence[StoredMessage]) -> bool:
    """Return True if both messages of the turn are stored, each once."""
    return Counter(message.id for message in messages if message.turn_id == turn_id) == {
        f"{turn_id}-query": 1,
        f"{turn_id}-answer": 1,
    }


def _lost(known: Known, messages: Sequence[StoredMessage]) -> Iterator[str]:
    texts = turns_of(known.conversation_id, known.turns)
    wanted: dict[str, str] = {}
    for turn_id in known.acknowledged:
        query, answer = texts[int(turn_id.removeprefix("turn-"))]
        wanted |= {f"{turn_id}-query": query, f"{turn_id}-answer": answer}
    stored_ids = Counter(message.id for message in messages)
    for message_id in wanted.keys() - stored_ids.keys():
        yield f"{message_id} was acknowledged and is lost"
    for message_id in stored_ids.keys() - wanted.keys():
        yield f"{message_id} is stored and was never acknowledged"
    for message_id, times in stored_ids.items():
        if times > 1:
            yield f"{message_id} is there {times} times"
    for message in messages:
        if message.text != wanted.get(message.id, message.text):
            yield f"{message.id} says something else"


def _gap(context: SessionContext, messages: Sequence[StoredMessage], covered: int) -> list[str]:
    """Every message that no summary covers is shown, in order, at the end."""
    wanted = [message.text for message in messages if message.arrival > covered]
    given = [message["content"] for message in context.messages]
    if context.truncated or not wanted or given[-len(wanted) :] == wanted:
        return []
    return ["messages are neither covered nor shown"]


async def _alike(cached: roomlore.Lore, plain: roomlore.Lore, name: str) -> list[str]:
    """With Redis as it was left, and once more, when it has just been told."""
    session, context = await plain.sessions.get_session(name), await plain.sessions.query_context(name, "and now?")
    wrong: list[str] = []
    for time in ("first", "second"):
        with_redis = await cached.sessions.get_session(name), await cached.sessions.query_context(name, "and now?")
        differing = [
            *_differing(session.to_json(), with_redis[0].to_json()),
            *_differing(asdict(context), asdict(with_redis[1])),
        ]
        wrong += [f"{field} differs with Redis, {time} read" for field in differing]
    return wrong


def _differing(row: Mapping[str, object], other: Mapping[str, object]) -> list[str]:
    return [name for name in sorted(row.keys() | other.keys()) if row.get(name) != other.get(name)]
