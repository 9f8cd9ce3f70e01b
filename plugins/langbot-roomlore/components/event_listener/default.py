"""The hooks of LangBot: hears every message, and shows the model what matters for the one it answers."""

import logging

from langbot_plugin.api.definition.components.common.event_listener import EventListener
from langbot_plugin.api.entities import context, events
from langbot_plugin.api.entities.builtin.provider.message import Message

from .heard import heard_of, query_of
from .room_memory import RoomMemory

log = logging.getLogger("langbot-roomlore")


class RoomMemoryListener(EventListener):
    """One memory for all bots of this LangBot."""

    async def initialize(self) -> None:
        """Register the handlers. roomlore is first asked when there is something to store."""
        await super().initialize()
        self.memory = RoomMemory(self.get_plugin_config)

        @self.handler(events.PersonMessageReceived)
        @self.handler(events.GroupMessageReceived)
        async def hear(ctx: context.EventContext) -> None:
            try:
                self.memory.hear(query_of(ctx), heard_of(ctx.event, await ctx.get_bot_uuid()))
            except Exception:
                log.exception("roomlore: 一条消息没有记录")

        @self.handler(events.PromptPreProcessing)
        async def show(ctx: context.EventContext) -> None:
            block = await self.memory.block(query_of(ctx))
            if block:
                # Of this turn alone: LangBot keeps the prompt of the pipeline, and puts the history after it.
                ctx.event.default_prompt = [*ctx.event.default_prompt, Message(role="system", content=block)]

        @self.handler(events.NormalMessageResponded)
        async def answered(ctx: context.EventContext) -> None:
            self.memory.answered(query_of(ctx), ctx.event.response_text)
