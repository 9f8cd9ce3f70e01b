"""NoneBot2 的群聊记忆：记录 OneBot v11 的每条消息，为回答给出相关的消息和记忆。

Group memory for NoneBot2: records every message of OneBot v11, and gives matchers what matters for an answer.
"""

from typing import Annotated, Any

from nonebot import get_driver, get_plugin_config, logger
from nonebot.adapters.onebot.v11 import Bot, Event, MessageEvent
from nonebot.matcher import current_event
from nonebot.message import event_preprocessor
from nonebot.params import Depends
from nonebot.plugin import PluginMetadata

import roomlore

from .events import raw_of, sent
from .recorder import Recorder, Remembering
from .settings import Settings

__plugin_meta__ = PluginMetadata(
    name="roomlore 群聊记忆",
    description="记录群聊和私聊的每条消息，为回答给出相关的消息和记忆，私聊内容不外泄",
    usage="在事件处理函数里写参数 remembered: Remembered",
    type="library",
    config=Settings,
    supported_adapters={"~onebot.v11"},
)

_driver = get_driver()
_settings = get_plugin_config(Settings)
_recorder: Recorder | None = None


def get_lore() -> roomlore.Lore:
    """Return the store, for what the plugin does not do. It is open between the driver's start and its end."""
    return _open().lore


async def remembered(event: MessageEvent) -> Remembering:
    """Return what matters for the answer to an event's message."""
    return await _open().remember(raw_of(event))


Remembered = Annotated[Remembering, Depends(remembered)]
"""The type of a parameter of a matcher's handler, which then gets what matters for the answer."""


@_driver.on_startup
async def _start() -> None:
    global _recorder
    _recorder = Recorder(await roomlore.connect(_settings.roomlore_database_url), _settings)


@_driver.on_shutdown
async def _end() -> None:
    global _recorder
    closing, _recorder = _recorder, None
    if closing is not None:
        await closing.close()


@event_preprocessor
async def _hear(bot: Bot, event: Event) -> None:
    if _recorder is not None:
        try:
            _recorder.hear(raw_of(event), bot)
        except Exception:  # noqa: BLE001 - whatever one event meets, the bot goes on
            logger.exception("roomlore: 一个事件没有记录")


@Bot.on_called_api
async def _hear_own(bot: Any, exception: Exception | None, api: str, data: dict[str, Any], result: Any) -> None:
    if _recorder is None or exception is not None or not isinstance(bot, Bot):
        return
    answering = current_event.get(None)
    raw = sent(bot.self_id, api, data, result, answering if isinstance(answering, MessageEvent) else None)
    if raw is not None:
        _recorder.hear(raw, bot)


def _open() -> Recorder:
    if _recorder is None:
        raise RuntimeError("roomlore is open between the driver's start and its end; ask it from a handler.")
    return _recorder
