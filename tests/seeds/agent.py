"""An agent of LangChain whose model says what a script has it say."""

from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatResult
from langchain_core.tools import tool
from pydantic import Field
from rig import memory_middleware

import roomlore


class Model(FakeMessagesListChatModel):
    """`sent`: the messages of each call."""

    sent: list[list[BaseMessage]] = Field(default_factory=list)

    def bind_tools(self, *_tools: Any, **_more: Any) -> "Model":
        return self

    def _generate(self, messages: list[BaseMessage], *more: Any, **named: Any) -> ChatResult:
        self.sent.append(list(messages))
        return super()._generate(messages, *more, **named)


@tool
def look_up(word: str) -> str:
    """Looks a word up."""
    return f"docker {word}"


def looks_up(word: str) -> AIMessage:
    """An answer that calls the tool."""
    return AIMessage("", tool_calls=[{"name": "look_up", "args": {"word": word}, "id": "call-1", "type": "tool_call"}])


def agent_of(lore: roomlore.SyncLore, *script: AIMessage, scopes: tuple[str, ...], **options: Any) -> tuple[Any, Model]:
    model = Model(responses=list(script or [AIMessage("好的")]))
    middleware = [memory_middleware(lore, scopes, **options)]
    return create_agent(model, [look_up], system_prompt="Be brief.", middleware=middleware), model


def blocks(messages: list[BaseMessage]) -> list[BaseMessage]:
    """The messages that hold the memory."""
    return [message for message in messages if message.name == "memory_context"]
