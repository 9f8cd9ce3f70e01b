"""Group memory for AstrBot: hears every message without waking the bot, and tells the model what matters."""

import asyncio
import zoneinfo
from collections.abc import AsyncIterator, Mapping
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, ClassVar

from astrbot.api import AstrBotConfig, logger
from astrbot.api.event import AstrMessageEvent, filter  # noqa: A004 - AstrBot's own name
from astrbot.api.provider import LLMResponse, ProviderRequest
from astrbot.api.star import Context, Star, StarTools
from astrbot.core.agent.message import TextPart

import roomlore

from .astrbot_models import MODELS, PROVIDERS, AstrBotChat, AstrBotEmbedder
from .heard import message_of, person_of, recall_of
from .room_memory import Language, RoomMemory, texts_of, without_blocks

NAME = "astrbot_plugin_roomlore"
FORGET = {"忘记我": "zh", "forgetme": "en"}
MEMORIES = {"查看记忆": "zh", "memories": "en"}
WHY = {"为什么": "zh", "why": "en"}
IMPORT = {"导入记录": "zh", "importchat": "en"}
UNSTORED = {*FORGET, *MEMORIES, *WHY, *IMPORT, "reset", "new"}
"""Commands that are about memory are no part of it."""
YES = {"确认", "confirm"}


class Overhear(filter.CustomFilter):
    """Hears every event and accepts none. AstrBot asks filters about every message, and a filter that accepts wakes the
    bot: this one listens while it is asked."""

    plugin: ClassVar["RoomlorePlugin | None"] = None

    def filter(self, event: AstrMessageEvent, cfg: AstrBotConfig) -> bool:
        if self.plugin is not None:
            self.plugin.overhear(event, cfg)
        return False


class RoomlorePlugin(Star):
    """The hooks. What they do is in `room_memory`."""

    def __init__(self, context: Context, config: AstrBotConfig) -> None:
        super().__init__(context)
        self.config = config
        self.memory: RoomMemory | None = None

    async def initialize(self) -> None:
        """Open the store."""
        lore = await roomlore.connect(
            self.config.get("database_url") or f"sqlite:///{self._folder() / 'roomlore.db'}",
            settings=roomlore.Settings(**self._settings()),
            chat=AstrBotChat(self._provider) if self.config.get("use_models", True) else None,
            embedder=self._embedder(),
        )
        self.memory = RoomMemory(
            lore,
            zone=self._zone(),
            context_tokens=int(self.config.get("context_tokens", 1500)),
            memory_tokens=int(self.config.get("memory_tokens", 600)),
        )
        Overhear.plugin = self

    async def terminate(self) -> None:
        """Store what waits, and close the store."""
        Overhear.plugin = None
        if self.memory is not None:
            await self.memory.close()
            self.memory = None

    # What is heard.

    @filter.custom_filter(Overhear, False)
    async def hear(self, event: AstrMessageEvent) -> None:
        """群聊记忆：旁听消息，不唤醒机器人"""

    def overhear(self, event: AstrMessageEvent, cfg: Mapping[str, Any]) -> None:
        """Note an event. It must not fail, as AstrBot would tell the group."""
        try:
            if self.memory is None or not self._records(event, cfg):
                return
            recalled = recall_of(event)
            if recalled is not None:
                self.memory.recalled(event.unified_msg_origin, recalled)
            elif not _is_about_memory(event) and (message := message_of(event)) is not None:
                self.memory.hear(message, direct=event.is_private_chat())
        except Exception:  # noqa: BLE001 - whatever one event meets, the bot goes on
            logger.exception("roomlore: 一条消息没有记录")

    @filter.on_llm_response()
    async def store_reply(self, event: AstrMessageEvent, response: LLMResponse) -> None:
        """Store what the bot answers."""
        text = (response.completion_text or "").strip()
        if self.memory is not None and response.role == "assistant" and text and event.get_extra("roomlore_heard"):
            self.memory.replied(
                event.unified_msg_origin,
                str(event.message_obj.message_id),
                text,
                agent_id=_agent(event),
                agent_name=str(self.config.get("bot_name") or ""),
            )

    @filter.after_message_sent()
    async def hear_reset(self, event: AstrMessageEvent) -> None:
        """Begin anew where /reset or /new was carried out."""
        if self.memory is not None and event.get_extra("_clean_ltm_session", False):
            await self.memory.reset(event.unified_msg_origin, _person(event))

    # What is shown to the model.

    @filter.on_llm_request()
    async def remember(self, event: AstrMessageEvent, request: ProviderRequest) -> None:
        """Add what matters as a part of the user's message, so that everything before it stays byte for byte the same
        and the provider's prompt cache goes on working."""
        if self.memory is None or not self._records(event, self.context.get_config(event.unified_msg_origin)):
            return
        event.set_extra("roomlore_heard", True)
        request.contexts = without_blocks(request.contexts)
        try:
            async with asyncio.timeout(float(self.config.get("timeout_seconds", 5))):
                block = await self.memory.block(
                    event.unified_msg_origin,
                    str(event.message_obj.message_id),
                    agent_id=_agent(event),
                    known=texts_of(request.contexts),
                )
        except (roomlore.RoomloreError, TimeoutError) as error:
            logger.warning("roomlore: 这次回答没有用上记忆：%s", error or "超时")
            return
        if block:
            part = TextPart(text=block)
            if hasattr(part, "mark_as_temp"):  # later versions of AstrBot do not store such a part
                part = part.mark_as_temp()
            request.extra_user_content_parts.append(part)

    # Commands.

    @filter.command("忘记我", alias={"forgetme"})
    async def forget_me(self, event: AstrMessageEvent, confirmed: str = "") -> AsyncIterator[Any]:
        """忘记关于我的一切（需要确认）。Forget me."""
        if self.memory is not None:
            language = _language(event, FORGET)
            told = await self.memory.forget(_person(event), really=confirmed in YES, language=language)
            yield event.plain_result(told)

    @filter.command("查看记忆", alias={"memories"})
    async def show_memories(self, event: AstrMessageEvent) -> AsyncIterator[Any]:
        """查看机器人记得的关于我的事。What is remembered of me."""
        if self.memory is not None:
            told = await self.memory.memories(
                _person(event),
                event.unified_msg_origin,
                direct=event.is_private_chat(),
                language=_language(event, MEMORIES),
            )
            yield event.plain_result(told)

    @filter.command("为什么", alias={"why"})
    async def explain(self, event: AstrMessageEvent) -> AsyncIterator[Any]:
        """上一次回答参考了哪些消息和记忆。What the last answer was based on."""
        if self.memory is not None:
            yield event.plain_result(self.memory.why(event.unified_msg_origin, _language(event, WHY)))

    @filter.permission_type(filter.PermissionType.ADMIN)
    @filter.command("导入记录", alias={"importchat"})
    async def take_in(self, event: AstrMessageEvent, name: str = "") -> AsyncIterator[Any]:
        """管理员：把插件数据目录 imports 中的聊天记录导入本会话。Import an export into this chat."""
        if self.memory is None:
            return
        folder = self._folder() / "imports"
        folder.mkdir(exist_ok=True)
        path = (folder / name).resolve()
        language = _language(event, IMPORT)
        if not name or folder.resolve() not in path.parents or not path.exists():
            told = {
                "zh": f"请把导出的文件放进 {folder}，再发送：/导入记录 文件名",
                "en": f"Put it into {folder} first.",
            }
            yield event.plain_result(told[language])
            return
        yield event.plain_result(await self.memory.take_in(path, event.unified_msg_origin, language))

    # Settings.

    def _records(self, event: AstrMessageEvent, cfg: Mapping[str, Any]) -> bool:
        """Return True if the room is remembered: AstrBot answers there, and the settings do not leave it out."""
        if event.is_private_chat() and not self.config.get("record_private", True):
            return False
        ids = {event.unified_msg_origin, str(event.get_group_id() or "")}
        if ids & {str(one).strip() for one in self.config.get("rooms_left_out", [])}:
            return False
        platform = cfg.get("platform_settings", {})
        listed = {str(one).strip() for one in platform.get("id_whitelist", []) if str(one).strip()}
        return not platform.get("enable_id_white_list") or not listed or bool(ids & listed)

    def _settings(self) -> dict[str, Any]:
        given: dict[str, Any] = {"time_zone": name} if (name := self._zone_name()) else {}
        if self.config.get("use_models", True):
            given |= {"models": MODELS, "providers": PROVIDERS}
        return given

    def _zone_name(self) -> str:
        name = str(self.context.get_config().get("timezone") or "")
        return name if name in zoneinfo.available_timezones() else ""

    def _zone(self) -> tzinfo:
        name = self._zone_name()
        local = datetime.now().astimezone().tzinfo
        assert local is not None
        return zoneinfo.ZoneInfo(name) if name else local

    def _provider(self) -> Any:
        name = str(self.config.get("model_provider") or "")
        return self.context.get_provider_by_id(name) if name else self.context.get_using_provider()

    def _embedder(self) -> AstrBotEmbedder | None:
        name = str(self.config.get("embedding_provider") or "")
        if not name:
            return None
        provider = self.context.get_provider_by_id(name)
        if provider is None or not hasattr(provider, "get_embeddings"):
            logger.warning("roomlore: 没有名为 %s 的嵌入模型，只按词语搜索", name)
            return None
        return AstrBotEmbedder(provider, name=name)

    def _folder(self) -> Path:
        return Path(StarTools.get_data_dir(NAME))


def _person(event: AstrMessageEvent) -> str:
    return person_of(event.get_platform_name(), str(event.get_sender_id()))


def _agent(event: AstrMessageEvent) -> str:
    return person_of(event.get_platform_name(), str(event.get_self_id() or event.get_platform_id()))


def _is_about_memory(event: AstrMessageEvent) -> bool:
    words = event.message_str.split()
    return bool(event.is_at_or_wake_command and words and words[0] in UNSTORED)


def _language(event: AstrMessageEvent, names: Mapping[str, str]) -> Language:
    words = event.message_str.split()
    return "en" if words and names.get(words[0]) == "en" else "zh"
