"""A chat model that says what a script has it say, and remembers what it was sent."""

from collections.abc import Iterator
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import Field


class ScriptedChat(BaseChatModel):
    """`script`: what it says, one after the other; when there is nothing left, 'ok'. `sent`: each call's messages."""

    script: list[AIMessage] = Field(default_factory=list)
    sent: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, *_tools: Any, **_more: Any) -> "ScriptedChat":
        return self

    def _next(self, messages: list[BaseMessage]) -> AIMessage:
        self.sent.append([message.model_copy(deep=True) for message in messages])
        return self.script.pop(0) if self.script else AIMessage("ok")

    def _generate(self, messages: list[BaseMessage], *_more: Any, **_named: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages))])

    def _stream(self, messages: list[BaseMessage], *_more: Any, **_named: Any) -> Iterator[ChatGenerationChunk]:
        said = self._next(messages)
        calls = [
            {"name": call["name"], "args": str(call["args"]).replace("'", '"'), "id": call["id"], "index": 0}
            for call in said.tool_calls
        ]
        for word in said.text.split(" "):
            yield ChatGenerationChunk(message=AIMessageChunk(word + " "))
        if calls:
            yield ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=calls))


def wants(tool: str, number: int, **arguments: Any) -> AIMessage:
    """An answer that calls a tool."""
    return AIMessage("", tool_calls=[{"name": tool, "args": arguments, "id": f"call-{number}", "type": "tool_call"}])


def human(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}
