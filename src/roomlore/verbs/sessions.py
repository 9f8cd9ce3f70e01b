"""The verbs of sessions: long conversations inside a model's window."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from roomlore.core.errors import InvalidInput
from roomlore.core.sessions.session import (
    MAX_TURN_ID_CHARS,
    Checkpoint,
    Session,
    SessionContext,
    SessionValue,
    TurnResult,
)
from roomlore.core.sessions.window import MAX_TURNS, MAX_WINDOW
from roomlore.verbs.table import AdminVerb, Argument, Id, Number, Object, Page, Reference, Text, Time, Verb, Whole

if TYPE_CHECKING:
    from roomlore.wiring import Lore


async def _create(
    lore: "Lore", viewer: str | None, *, conversation_id: str, user_id: str | None = None, **more: Any
) -> SessionValue:
    return await lore.sessions.create_session(conversation_id, user_id or "", viewer=viewer, **more)


async def _list(lore: "Lore", viewer: str | None, *, limit: int, after: str | None = None) -> list[Session]:
    return await lore.sessions.page(after=after, limit=limit, viewer=viewer)


async def _get(lore: "Lore", viewer: str | None, *, conversation_id: str) -> SessionValue:
    return await lore.sessions.get_session(conversation_id, viewer=viewer)


async def _context(
    lore: "Lore", viewer: str | None, *, conversation_id: str, query: str | None = None, **options: Any
) -> SessionContext:
    return await lore.sessions.query_context(conversation_id, query or "", viewer=viewer, **options)


async def _turn(
    lore: "Lore",
    _: str | None,
    *,
    conversation_id: str,
    user_id: str | None = None,
    agent_code: str | None = None,
    **turn: Any,
) -> TurnResult:
    return await lore.sessions.write_turn(conversation_id, user_id or "", agent_code or "", **turn)


async def _checkpoint(
    lore: "Lore",
    viewer: str | None,
    *,
    conversation_id: str,
    summary: str | None = None,
    checkpoint_token: str | None = None,
    **about: Any,
) -> Checkpoint | None:
    if summary is not None:
        return await lore.sessions.checkpoint(
            conversation_id, summary, context=checkpoint_token, viewer=viewer, **about
        )
    if any(given is not None for given in (checkpoint_token, *about.values())):
        raise InvalidInput("summary_fields_alone")
    return await lore.sessions.summarise(conversation_id, viewer=viewer)


async def _reset(lore: "Lore", viewer: str | None, *, conversation_id: str) -> SessionValue:
    return await lore.sessions.reset(conversation_id, viewer=viewer)


async def _checkpoints(
    lore: "Lore", viewer: str | None, *, conversation_id: str, limit: int, before: int | None = None
) -> list[Checkpoint]:
    return await lore.sessions.checkpoints(conversation_id, before=before, limit=limit, viewer=viewer)


_CONVERSATION = Argument(
    "conversation_id", Reference.CONVERSATION, "The conversation: the id of its room.", "对话，即所在房间的 id。"
)
_USER = Argument("user_id", Id(blank=True), "Whom the agent talks with.", "与智能体对话的人。", None)
_IDS = (
    Argument(
        "enterprise_id", Id(blank=True), "An enterprise id to keep with the session.", "随会话保存的企业 id。", None
    ),
    Argument("patient_id", Id(blank=True), "A patient id to keep with the session.", "随会话保存的患者 id。", None),
)
_SAID = Text("max_text_chars")
_RECENT = Argument(
    "recent_turns",
    Whole(0, MAX_TURNS),
    "Turns shown verbatim at least; by default the setting recent_turns.",
    "至少原样保留的轮数；默认为设置 recent_turns。",
    None,
)

CREATE = Verb(
    "sessions.create",
    "Create a session, and its room if there is none. An existing one stays as it is; missing ids are filled in.",
    "创建会话，房间不存在时一并创建。已有的保持不变，只补上缺少的 id。",
    scope="write",
    arguments=(
        _CONVERSATION,
        _USER,
        *_IDS,
        Argument(
            "session",
            Object(),
            "The JSON of an older session; its state is taken over where the conversation has none yet.",
            "旧会话的 JSON；对话还没有状态时，沿用其中的状态。",
            None,
        ),
    ),
    run=_create,
    answer=SessionValue,
    route="POST /sessions",
    command="session create",
)
LIST = AdminVerb(
    "sessions.list",
    "List the sessions, by conversation id.",
    "按对话 id 列出会话。",
    arguments=(
        Argument("limit", Page.SIZE, "Maximum number of sessions.", "最多返回多少个会话。"),
        Argument("after", Id(blank=True), "The `next` of the page before.", "上一页的 `next`。", None),
    ),
    run=_list,
    answer=list[Session],
    route="GET /sessions",
    command="session list",
)
GET = Verb(
    "sessions.get",
    "Show a session: the user, its state, the last turns, and the data that agents store with it.",
    "显示会话：用户、状态、最近的轮次，以及智能体保存的数据。",
    scope="read",
    arguments=(_CONVERSATION,),
    run=_get,
    answer=SessionValue,
    route="GET /sessions/{conversation_id}",
    command="session show",
)
CONTEXT = Verb(
    "sessions.context",
    "Show the context for a model: the summary, the turns after it, and how full its window is.",
    "显示给模型的上下文：摘要、之后的轮次，以及窗口用量。",
    scope="read",
    arguments=(
        _CONVERSATION,
        Argument(
            "query",
            Text(None),
            "What the user says now: counted, not returned, not stored.",
            "用户现在说的话：计入长度，不返回，也不保存。",
            None,
        ),
        Argument(
            "token_threshold_ratio",
            Number(0, 1, above=True),
            "Share of the window from which a checkpoint is asked for; by default the setting token_threshold_ratio.",
            "用量超过窗口的这个比例时，建议生成摘要；默认为设置 token_threshold_ratio。",
            None,
        ),
        _RECENT,
        Argument(
            "model_context_window",
            Whole(1, MAX_WINDOW),
            "What the model takes, in tokens; by default the setting model_context_window.",
            "模型的窗口大小，以 token 计；默认为设置 model_context_window。",
            None,
        ),
        *(
            replace(reference, en=f"{reference.en} It needs the scope write.", zh=f"{reference.zh}需要 write 权限。")
            for reference in _IDS
        ),
    ),
    run=_context,
    answer=SessionContext,
    stored=tuple(reference.name for reference in _IDS),
    route="POST /sessions/{conversation_id}/context",
    command="session context",
)
TURN = Verb(
    "sessions.turn",
    "Store a turn in one transaction: the user's query, the agent's answer, or both. Creates the session if there is "
    "none; storing the same turn again changes nothing.",
    "在一个事务里保存一轮对话：用户的话、智能体的回答，或两者。会话不存在时创建；重复保存同一轮没有影响。",
    scope="write",
    viewer=False,
    arguments=(
        _CONVERSATION,
        replace(_USER, en="Who asked; by default the session's user.", zh="提问者；默认是会话的用户。"),
        Argument("agent_code", Id(blank=True), "Which agent answered.", "回答的智能体。", None),
        Argument("user_query", _SAID, "What the user said.", "用户说的话。", None),
        Argument("agent_response", _SAID, "What the agent answered.", "智能体的回答。", None),
        Argument(
            "turn_id",
            Id(MAX_TURN_ID_CHARS, blank=True),
            "An id of your own makes the call safe to repeat.",
            "自定的 id，使重复执行不会产生重复。",
            None,
        ),
        Argument("sent_at", Time(), "When; by default now.", "时间；默认现在。", None),
    ),
    some_of=("user_query", "agent_response"),
    run=_turn,
    answer=TurnResult,
    route="POST /sessions/{conversation_id}/turns",
    command="session turn",
)
CHECKPOINT = Verb(
    "sessions.checkpoint",
    "Replace a part of the history by a summary. Without one roomlore makes it; null if there is nothing new.",
    "用摘要代替一部分历史。不给摘要时由 roomlore 生成；没有新内容时为 null。",
    scope="write",
    arguments=(
        _CONVERSATION,
        Argument(
            "summary",
            Text("max_text_chars", blank=False),
            "The summary. Left out, roomlore makes it from everything no summary covers.",
            "摘要。不写则由 roomlore 根据尚无摘要的全部内容生成。",
            None,
        ),
        _RECENT,
        Argument(
            "covers_through",
            Text(None),
            "Id of the last message the summary stands for: the context's `covers_through`. Without it and "
            "`checkpoint_token` the summary is taken for one of the first context that requested a checkpoint, and its "
            "`coverage_assumed` is true; if none did, it is refused.",
            "摘要覆盖到的最后一条消息的 id，即上下文的 `covers_through`。它与 `checkpoint_token` 都不给时，"
            "视为第一个要求检查点的上下文的摘要，`coverage_assumed` 为 true；没有这样的上下文时拒绝。",
            None,
        ),
        Argument(
            "checkpoint_token",
            Text(None),
            "The `checkpoint_token` of the context that was summarised. Of a context that says `truncated`, summarise "
            "`full_history` and give `covers_through` too.",
            "写摘要时所用上下文的 `checkpoint_token`。上下文标有 `truncated` 时，请对 `full_history` 写摘要，"
            "并同时给出 `covers_through`。",
            None,
        ),
        Argument(
            "expected_checkpoint",
            Text(None),
            "The checkpoint that must be in force: the context's `checkpoint_id`, `''` for none; if another one is, "
            "nothing is changed.",
            "当前必须生效的检查点，即上下文的 `checkpoint_id`，`''` 表示没有；不符时不做改动。",
            None,
        ),
    ),
    run=_checkpoint,
    answer=Checkpoint | None,
    route="POST /sessions/{conversation_id}/checkpoint",
    command="session checkpoint",
)
RESET = Verb(
    "sessions.reset",
    "Reset the conversation: earlier messages are no longer shown. Nothing is deleted.",
    "重置对话：不再显示之前的消息，但不删除。",
    scope="write",
    arguments=(_CONVERSATION,),
    run=_reset,
    answer=SessionValue,
    route="POST /sessions/{conversation_id}/reset",
    command="session reset",
)
CHECKPOINTS = Verb(
    "sessions.checkpoints",
    "List a conversation's checkpoints and resets, newest first.",
    "列出对话的检查点和重置，最新的在前。",
    scope="read",
    arguments=(
        _CONVERSATION,
        Argument("limit", Page.SIZE, "Maximum number of checkpoints and resets.", "最多返回多少条。", 20),
        Argument(
            "before",
            Whole(1, 2**63 - 1),
            "The `next` of the page before: only lower numbers.",
            "上一页的 `next`：只返回编号更小的。",
            None,
        ),
    ),
    run=_checkpoints,
    answer=list[Checkpoint],
    route="GET /sessions/{conversation_id}/checkpoints",
    command="session checkpoints",
)
VERBS = (CREATE, LIST, GET, CONTEXT, TURN, CHECKPOINT, RESET, CHECKPOINTS)
