"""The verb of contexts: choose the messages that matter for one message."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

from roomlore.core.context import Context
from roomlore.core.errors import NotFound, Unavailable
from roomlore.core.json_values import IF_KNOWN
from roomlore.settings.registry import known_strategies
from roomlore.verbs.messages import ROOM
from roomlore.verbs.table import Argument, Choice, Id, Verb, Whole

if TYPE_CHECKING:
    from roomlore.wiring import Lore


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedMessage:
    """A message for a chat model."""

    role: Literal["user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltContext(Context):
    """The messages that matter for one message, in time order, each with its reason. `rendered`: the context and the
    message in the form that `render` asks for; left out without it."""

    rendered: Sequence[RenderedMessage] | str | None = field(default=None, metadata=IF_KNOWN)


async def _build(
    lore: "Lore",
    viewer: str | None,
    *,
    room: str,
    message_id: str | None = None,
    render: str | None = None,
    agent_id: str | None = None,
    **options: Any,
) -> BuiltContext:
    built = await lore.context.build(room, message_id, viewer=viewer, **options)
    rendered = None if render is None else await _rendered(lore, viewer, built, render, agent_id)
    return BuiltContext(**{field_.name: getattr(built, field_.name) for field_ in fields(Context)}, rendered=rendered)


async def _rendered(
    lore: "Lore", viewer: str | None, built: Context, render: str, agent_id: str | None
) -> list[RenderedMessage] | str:
    """Return the context in the requested form, with the message itself at the end.

    If the database does not answer, the message is missing, as the context is: `degraded` says so.
    """
    query = None
    with suppress(NotFound, Unavailable):
        query = (await lore.messages.get(built.room_id, built.message_id, viewer=viewer)).message
    zone = lore.settings.search.zone
    if render == "prompt":
        return built.to_prompt(query=query, zone=zone)
    messages: Any = built.to_messages(agent=agent_id, query=query, zone=zone)
    return [RenderedMessage(**message) for message in messages]


_STRATEGIES = Choice(tuple(known_strategies()), open=True)
_TOKENS = Whole(1, 1_000_000)

BUILD = Verb(
    "contexts.build",
    "Show the messages that matter for a message, each with its reason.",
    "显示与一条消息相关的前文，每条附理由。",
    scope="read",
    arguments=(
        ROOM,
        Argument("message_id", Id(), "By default the newest that a user wrote.", "默认是最新一条用户消息。", None),
        Argument("strategy", _STRATEGIES, "By default the room's.", "默认按房间设置。", None),
        Argument(
            "max_messages",
            Whole(1, 200),
            "Maximum number of messages; by default the room's.",
            "最多返回多少条消息；默认按房间设置。",
            None,
        ),
        Argument(
            "min_messages",
            Whole(0, 200),
            "Add the newest up to this number; by default the room's.",
            "用最新的消息补足到这个条数；默认按房间设置。",
            None,
        ),
        Argument(
            "max_tokens",
            _TOKENS,
            "Maximum number of tokens of its text; by default the room's.",
            "其文字的 token 上限；默认按房间设置。",
            None,
        ),
        Argument(
            "render",
            Choice(("messages", "prompt")),
            "Also give it in `rendered`, the message asked about last: as messages for a chat model, or as one text.",
            "另在 `rendered` 里给出：对话模型的消息，或一段文字；所问的消息在最后。",
            None,
        ),
        Argument(
            "agent_id",
            Id(),
            "The sender whose messages are the `assistant`'s in `rendered`; by default all with that role.",
            "在 `rendered` 里作为 `assistant` 的发送者；默认是所有该角色的消息。",
            None,
        ),
    ),
    run=_build,
    answer=BuiltContext,
    route="POST /context",
    tool="room_context",
    command="context",
)
VERBS = (BUILD,)
