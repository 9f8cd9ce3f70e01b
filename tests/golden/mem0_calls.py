"""One script of calls for anything with mem0's verbs, and the shapes of what they answer: keys and types, no values.

It imports nothing but the standard library, so that mem0's own environment can run it too.
"""

import inspect
import json
from collections.abc import Callable
from typing import Any

VERBS = ("add", "get", "get_all", "search", "update", "delete", "delete_all", "history", "reset")
ALICE = {"user_id": "alice"}
TALK = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "I moved to Chengdu", "name": "Alice L."},
    {"role": "assistant", "content": "好的，记住了。"},
]
INFERRED = "Is allergic to peanuts"


def signatures(kind: type) -> dict[str, list[str]]:
    """Return the parameters of each verb, without types and defaults; 'more' stands for any other name."""
    found = {}
    for verb in VERBS:
        given = inspect.signature(getattr(kind, verb)).parameters.values()
        found[verb] = [
            "more" if one.kind is one.VAR_KEYWORD else f"{one.name}, {one.kind.description}"
            for one in given
            if one.name != "self"
        ]
    return found


def shape(value: Any, name: str = "") -> Any:
    """Keys and types; of a list the shapes that occur in it, each once; the kind of an event as it is; of what a score
    is made of, that it is told."""
    if name == "score_details":
        return "details"
    if isinstance(value, dict):
        return {key: shape(one, key) for key, one in sorted(value.items())}
    if isinstance(value, list):
        found: list[Any] = []
        for one in value:
            if (its := shape(one)) not in found:
                found.append(its)
        return sorted(found, key=json.dumps)
    return value if name == "event" else type(value).__name__


def play(memory: Any) -> dict[str, Any]:
    """Return the answer of each call, as shapes; an error only as such."""
    answers: dict[str, Any] = {}

    def call(step: str, verb: Callable[..., Any], *given: Any, **named: Any) -> Any:
        try:
            answer = verb(*given, **named)
        except Exception:  # noqa: BLE001 - which errors differ is in the table of the documents
            answers[step] = "raises"
            return None
        answers[step] = shape(answer)
        return answer

    text = call("add text", memory.add, "对花生过敏", user_id="alice", infer=False)
    call("add one message", memory.add, {"role": "user", "content": "Likes oolong"}, user_id="alice", infer=False)
    call("add messages", memory.add, TALK, **ALICE, run_id="trip", metadata={"topic": "home", "n": 3}, infer=False)
    call("add for an agent", memory.add, "Speaks softly", agent_id="guide", infer=False)
    call("add for a run", memory.add, "The trip begins on Friday", run_id="trip", infer=False)
    call("add until", memory.add, "In Rome", **ALICE, expiration_date="2001-01-01", infer=False)
    call("add inferred", memory.add, "I cannot eat peanuts", user_id="ben")
    call("add without an owner", memory.add, "Nobody's", infer=False)
    call("add a number", memory.add, 7, **ALICE, infer=False)
    call("add with a timestamp", memory.add, "Then", **ALICE, timestamp=1, infer=False)
    call("add of another type", memory.add, "Odd", **ALICE, memory_type="odd", infer=False)

    first = text["results"][0]["id"]
    call("get", memory.get, first)
    call("get unknown", memory.get, "00000000-0000-0000-0000-000000000000")
    call("get all", memory.get_all, filters=ALICE)
    call("get all of a run", memory.get_all, filters={**ALICE, "run_id": "trip"})
    call("get all by metadata", memory.get_all, filters={**ALICE, "topic": "home"})
    call("get all of nobody", memory.get_all, filters={"user_id": "nobody"})
    call("get all expired", memory.get_all, filters=ALICE, show_expired=True)
    call("get all inferred", memory.get_all, filters={"user_id": "ben"})
    call("get all without an owner", memory.get_all)
    call("get all the old way", memory.get_all, user_id="alice")
    call("search", memory.search, "对花生过敏", filters=ALICE, top_k=1)
    call("search with reasons", memory.search, "Likes oolong", filters=ALICE, explain=True, top_k=1)
    call("search by metadata", memory.search, "Chengdu", filters={**ALICE, "n": {"gte": 3}}, top_k=1)
    call("search either", memory.search, "Chengdu", filters={**ALICE, "OR": [{"n": 3}, {"n": 4}]}, top_k=1)
    call("search by an unknown operator", memory.search, "Chengdu", filters={**ALICE, "n": {"gte": 3, "like": 4}})
    call("search nothing", memory.search, " ", filters=ALICE)
    call("search the old way", memory.search, "oolong", user_id="alice")
    call("search above one", memory.search, "oolong", filters=ALICE, threshold=2)

    call("update", memory.update, first, "对花生和虾过敏")
    call("update metadata", memory.update, first, metadata={"topic": "food"})
    call("update by the old name", memory.update, first, data="对坚果过敏")
    call("update nothing", memory.update, first)
    call("update unknown", memory.update, "00000000-0000-0000-0000-000000000000", "x")
    call("get updated", memory.get, first)
    call("delete", memory.delete, first)
    call("delete unknown", memory.delete, "00000000-0000-0000-0000-000000000000")
    call("get deleted", memory.get, first)
    call("history", memory.history, first)
    call("history unknown", memory.history, "00000000-0000-0000-0000-000000000000")
    call("delete all", memory.delete_all, user_id="alice", run_id="trip")
    call("delete all of nobody in particular", memory.delete_all)
    call("get all after that", memory.get_all, filters={**ALICE, "run_id": "trip"})
    call("reset", memory.reset)
    call("get all after a reset", memory.get_all, filters=ALICE)
    return answers
