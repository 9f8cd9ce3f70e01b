"""One message that several bots of one process hear. Each account has its own ids for what is said in a group."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

_KEPT = 10_000


class Heard:
    """Which message came under which id to which account. The first account to hear a message gives it its id."""

    def __init__(self) -> None:
        self._first: OrderedDict[tuple[str, ...], tuple[str, str]] = OrderedDict()
        self._names: OrderedDict[tuple[str, str], str] = OrderedDict()

    def named(self, room: str, raw: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the event with the ids under which its messages are stored, None if it is a message that another
        account has heard."""
        message = raw.get("message")
        if isinstance(message, list):
            message = [self._quoting(raw, one) for one in message]
            raw = {**raw, "message": message}
        own_id = str(raw.get("message_id"))
        if raw.get("post_type") != "message":
            return {**raw, "message_id": self.id_of(raw, own_id)} if "message_id" in raw else raw
        account = str(raw.get("self_id"))
        said = (room, str(raw.get("user_id")), str(raw.get("time")), _words(message))
        first, stored_id = self._first.setdefault(said, (account, own_id))
        _cut(self._first)
        if first == account:
            return raw
        self._names[account, own_id] = stored_id
        _cut(self._names)
        return None

    def id_of(self, raw: Mapping[str, Any], message_id: Any) -> str:
        """Return the id under which a message is stored that an event names."""
        return self._names.get((str(raw.get("self_id")), str(message_id)), str(message_id))

    def _quoting(self, raw: Mapping[str, Any], segment: Mapping[str, Any]) -> Mapping[str, Any]:
        if segment.get("type") != "reply":
            return segment
        return {**segment, "data": {**segment["data"], "id": self.id_of(raw, segment["data"].get("id"))}}


def _words(message: Any) -> str:
    """Return what is the same for every account: ids of quoted messages and addresses of pictures are not."""
    if not isinstance(message, list):
        return str(message)
    own = {"text": "text", "at": "qq", "face": "id"}
    return "".join(f"[{one['type']}]{one['data'].get(own.get(one['type'], ''), '')}" for one in message)


def _cut(kept: OrderedDict[Any, Any]) -> None:
    while len(kept) > _KEPT:
        kept.popitem(last=False)
