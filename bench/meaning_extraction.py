"""The judge for extraction: what of a talk reaches the model, and what of its note comes into the next reply.

The model is scripted. Its note names, one after the other, the facts whose words it was shown, as a good model would.
A talk that ends with a person gets a reply, since what nobody has answered yet waits for the next note.
"""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import roomlore
from bench.verdicts import Case, Judged, Verdict, has
from roomlore import Message, Role, Settings
from roomlore.core.chat import SUMMARY_MODEL, ChatAnswer, ChatPiece, ChatRequest, Offer
from roomlore.core.memory.reading import INJECTED_NAME, without_times
from roomlore.core.text import terms

_BLOCK = re.compile(r"<conversation>\n(.*)\n</conversation>", re.DOTALL)


class _Scripted:
    """The port `ChatClient`. `shown`: the conversations that it was given for notes; `told`: the memories it was given
    for a reply."""

    def __init__(self, facts: Sequence[Mapping[str, Any]]) -> None:
        self.shown: list[str] = []
        self.told = ""
        self._facts = facts

    async def complete(
        self, offer: Offer, request: ChatRequest, *, key: str | None, timeout_seconds: float
    ) -> ChatAnswer:
        prompt = str(request.messages[-1]["content"])
        match = _BLOCK.search(prompt)
        self.shown.append(match[1] if match else "")
        known = [fact["say"] for fact in self._facts if has(self.shown[-1], fact["words"])]
        return ChatAnswer(text="; ".join(known) or "NO_MEMORY", finish_reason="stop")

    async def stream(
        self, offer: Offer, request: ChatRequest, *, key: str | None, timeout_seconds: float
    ) -> AsyncGenerator[ChatPiece, None]:
        self.told = "\n".join(
            str(message["content"]) for message in request.messages if message.get("name") == INJECTED_NAME
        )
        yield ChatPiece(text="OK", finish_reason="stop")

    async def close(self) -> None: ...


async def extraction(_: roomlore.Lore, case: Case) -> list[Judged]:
    """Judge each fact twice: its words were shown to the model, and the next reply is told of it. Judge each message of
    a person: it was shown exactly once, with its day."""
    model, agent, talk = _Scripted(case["facts"]), _agent(case), _answered(case)
    async with roomlore.open("sqlite://", settings=_settings(talk), chat=model, background=False) as lore:
        for number, message in enumerate(talk):
            await lore.messages.add(_message(case, number, message))
        await lore.jobs.catch_up()
        last = datetime.fromisoformat(case["messages"][-1]["at"]) + timedelta(days=1)
        question = Message(id="next", room_id=case["id"], sender_id=_person(case), text="?", sent_at=last)
        await lore.replies.reply(question, agent_id=agent, model_id="chat")
    shown = "\n".join(model.shown)
    of_people = [one for one in case["messages"] if one["role"] == "user"]
    return [
        *(_verdict("fact shown to the model", has(shown, fact["words"]), fact["say"]) for fact in case["facts"]),
        *(
            _verdict("fact told in the next reply", _tells(model.told, fact["say"]), fact["say"])
            for fact in case["facts"]
        ),
        *(_verdict("message read once, with its day", _once(shown, one), one["text"]) for one in of_people),
    ]


def _tells(text: str, fact: str) -> bool:
    """Return True if a line has all content words, numbers and names of a fact: a long note is shortened."""
    return any(set(terms(fact)) <= set(terms(line)) for line in text.splitlines())


def _once(shown: str, message: Mapping[str, Any]) -> bool:
    text, day = " ".join(message["text"].split()), message["at"][:10]
    lines = [line for line in shown.splitlines() if without_times(line).partition(": ")[2] == text]
    return len(lines) == 1 and day in lines[0].partition("]")[0]


def _answered(case: Case) -> list[Mapping[str, Any]]:
    talk: list[Mapping[str, Any]] = list(case["messages"])
    if talk[-1]["role"] == "user":
        talk.append({"sender": _agent(case), "role": "assistant", "at": talk[-1]["at"], "text": "OK"})
    return talk


def _settings(talk: Sequence[Mapping[str, Any]]) -> Settings:
    """As many replies make a memory as the talk has."""
    replies = sum(message["role"] == "assistant" for message in talk)
    provider = {"providers": [{"name": "scripted", "model_id": "tiny"}]}
    return Settings(
        models={SUMMARY_MODEL: {"internal": True, **provider}, "chat": provider},
        providers={"scripted": {"base_url": "http://127.0.0.1:9/v1"}},
        durable_work="process",
        extract_every=replies,
        time_zone="Etc/GMT-8" if talk[0]["at"].endswith("+08:00") else "UTC",
    )


def _message(case: Case, number: int, message: Mapping[str, Any]) -> Message:
    return Message(
        id=f"{case['id']}-{number}",
        room_id=case["id"],
        sender_id=message["sender"],
        sender_name=message["sender"],
        role=Role(message["role"]),
        text=message["text"],
        sent_at=datetime.fromisoformat(message["at"]),
    )


def _agent(case: Case) -> str:
    return next(str(message["sender"]) for message in case["messages"] if message["role"] == "assistant")


def _person(case: Case) -> str:
    return next(str(message["sender"]) for message in case["messages"] if message["role"] == "user")


def _verdict(group: str, holds: bool, why: str) -> Judged:
    verdict: Verdict = "right" if holds else "wrong"
    return Judged(group, verdict, why)
