"""Measure how often the block changes over multi-session chats, and what keeping it costs.

A chat is one conversation. Each session is replayed message by message; every message of a person is a call, whose
context is the last three turns of the session. What is remembered at a call are the messages of the sessions before it.
A question is asked in the session after the last one its gold lies in, those of a session spread evenly over it; after
the last session only questions are left.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from bench.recall_data import Question, RoomOfFacts, rooms_of, say
from roomlore.adapters.tokens import EncodingTokens
from roomlore.core.mentions import sounds_like_agent
from roomlore.core.recall.ranking import FactSet, recollect, topic_of
from roomlore.core.recall.recollection import ConversationMessage, RecallOptions, Recollection

FEWER, LOST = 70, 2.0
SESSIONS = 2
WAYS = {"re-ranked": RecallOptions(sticky=False), "sticky": RecallOptions()}


@dataclass(frozen=True, slots=True)
class Call:
    """`said`: the session so far; the last one is answered. `remembered`: how many of the room's facts there are."""

    said: Sequence[ConversationMessage]
    remembered: int
    gold: frozenset[str] = frozenset()


@dataclass(slots=True)
class Tally:
    """Of one way: whether each call's prefix changed, and the shares of gold in the block."""

    changed: list[bool] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    before: list[str] = field(default_factory=list)

    def note(self, prefix: list[str], call: Call, recollection: Recollection) -> None:
        """`prefix`: what a provider could have cached at the call before must still stand at the beginning."""
        if self.before:
            self.changed.append(prefix[: len(self.before)] != self.before)
        self.before = prefix
        if call.gold:
            shown = {fact.memory.memory_id for fact in recollection.facts}
            self.shares.append(len(call.gold & shown) / len(call.gold))


def report(sets: Mapping[str, Path], *, seed: int = 0) -> None:
    print(
        "\n| chats | calls, questions | changed: re-ranked | sticky | fewer | trailing | recall: re-ranked | sticky |"
    )
    print("|---|---|---|---|---|---|---|---|")
    rows = []
    for name, folder in sets.items():
        rooms = [room for room in rooms_of(folder, seed=seed) if len(sessions_of(room)) >= SESSIONS]
        if rooms:
            tallies = lived(rooms)
            rows.append([*(100 * fmean(tally.changed) for tally in tallies.values())])
            rows[-1] += [100 * fmean(tallies[way].shares) for way in WAYS]
            size = f"{len(tallies['sticky'].changed):,}, {len(tallies['sticky'].shares):,}"
            line(name, size, rows[-1])
    if rows:
        mean = [fmean(column) for column in zip(*rows, strict=True)]
        line("mean", "", mean)
        judge(mean)


def line(name: str, size: str, row: Sequence[float]) -> None:
    again, sticky, trailing, recall, kept = row
    shares = (again, sticky, 100 * (1 - sticky / again), trailing)
    cells = [*(f"{share:.1f} %" for share in shares), f"{recall:.1f}", f"{kept:.1f}"]
    print(f"| {name} | {size} | {' | '.join(cells)} |")


def judge(mean: Sequence[float]) -> None:
    again, sticky, trailing, recall, kept = mean
    fewer, lost = 100 * (1 - sticky / again), recall - kept
    print()
    for passed, text in (
        (trailing == 0, f"trailing: {trailing:.1f} % of prefixes changed, 0 wanted"),
        (fewer >= FEWER, f"sticky: {fewer:.1f} % fewer changes than re-ranking, {FEWER} wanted"),
        (lost <= LOST, f"sticky: {lost:.1f} points of recall lost, {LOST:.0f} at most wanted"),
    ):
        say(passed, text)


def lived(rooms: Iterable[RoomOfFacts]) -> dict[str, Tally]:
    """The tallies of re-ranking and sticky with the block first, and of the block behind the conversation."""
    tallies = {name: Tally() for name in (*WAYS, "trailing")}
    for room in rooms:
        for tally in tallies.values():
            tally.before = []
        live(room, tallies)
    return tallies


def live(room: RoomOfFacts, tallies: Mapping[str, Tally]) -> None:
    count, facts, history = EncodingTokens().count, None, list[str]()
    shown: dict[str, tuple[str, ...]] = dict.fromkeys(WAYS, ())
    for call in calls_of(room):
        history.append(call.said[-1].text)
        if not call.remembered:
            continue
        if facts is None or len(facts) != call.remembered:
            facts = FactSet(room.facts[: call.remembered], count=count, known=facts)
        topic = topic_of(call.said, WAYS["sticky"].max_context_turns)
        for way, options in WAYS.items():
            recollection = recollect(facts, topic, options, count=count, previous=shown[way])
            shown[way] = tuple(fact.memory.memory_id for fact in recollection.facts)
            tallies[way].note([recollection.text, *history[:-1]], call, recollection)
        tallies["trailing"].note(history[:-1], call, recollection)


def calls_of(room: RoomOfFacts) -> Iterator[Call]:
    """Everything people say, in order."""
    questions = questions_by_session(room)
    remembered = 0
    for number, session in enumerate([*sessions_of(room).values(), []]):
        spoken: list[ConversationMessage] = []
        for message, gold in with_questions(session, questions[number]):
            spoken.append(message)
            if message.role == "user":
                yield Call(tuple(spoken), remembered, gold)
        remembered += len(session)


def with_questions(
    session: Sequence[ConversationMessage], questions: Sequence[Question]
) -> Iterator[tuple[ConversationMessage, frozenset[str]]]:
    """The session with the questions spread evenly between what people say."""
    people = sum(message.role == "user" for message in session)
    due = [((place + 1) * people // (len(questions) + 1), one) for place, one in enumerate(questions)]
    spoken = 0
    for message in session:
        if message.role == "user":
            while due and due[0][0] <= spoken:
                question = due.pop(0)[1]
                yield ConversationMessage("user", question.text), question.gold
            spoken += 1
        yield message, frozenset()
    for _, question in due:
        yield ConversationMessage("user", question.text), question.gold


def questions_by_session(room: RoomOfFacts) -> Mapping[int, list[Question]]:
    places = {name: place for place, name in enumerate(sessions_of(room))}
    at = {row["id"]: places[row["metadata"]["session"]] for row in room.messages} if places else {}
    by_session: dict[int, list[Question]] = defaultdict(list)
    for question in room.questions:
        known = [at[fact_id] for fact_id in question.gold if fact_id in at]
        if known:
            by_session[max(known) + 1].append(question)
    return by_session


def sessions_of(room: RoomOfFacts) -> dict[str, list[ConversationMessage]]:
    """Empty where the messages do not say which session they are of."""
    by_session: dict[str, list[ConversationMessage]] = {}
    for row in room.messages:
        if "session" not in row.get("metadata", {}):
            return {}
        bot = row["role"] == "assistant" or sounds_like_agent(row["sender_id"])
        by_session.setdefault(row["metadata"]["session"], []).append(
            ConversationMessage("assistant" if bot else "user", row["text"])
        )
    return by_session
