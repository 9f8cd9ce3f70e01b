"""As much of langbot-plugin 0.7.18 as the plugin and its test use, for where it is not installed: it is 125 MB."""

import sys
from datetime import datetime
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


class Chain(list):
    @property
    def source(self) -> Any:
        return next((one for one in self if one.type == "Source"), None)


class EventListener:
    def __init__(self) -> None:
        self.registered_handlers: dict[type, list[Any]] = {}

    async def initialize(self) -> None: ...

    def get_plugin_config(self) -> dict[str, Any]:
        return self.plugin.get_config()

    def handler(self, event_type: type) -> Any:
        def register(handler: Any) -> Any:
            self.registered_handlers.setdefault(event_type, []).append(handler)
            return handler

        return register


class Sender(SimpleNamespace):
    def get_name(self) -> str:
        return self.nickname if hasattr(self, "nickname") else self.member_name


def _component(kind: str) -> type:
    return type(kind, (SimpleNamespace,), {"type": kind, "display": "", "id": None})


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the modules of the stand-in where the plugin imports them from."""
    context = SimpleNamespace(EventContext=SimpleNamespace)
    events = {name: type(name, (SimpleNamespace,), {}) for name in (
        "PersonMessageReceived", "GroupMessageReceived", "PromptPreProcessing", "NormalMessageResponded",
    )}  # fmt: skip
    components = {name: _component(name) for name in ("Source", "Plain", "At", "Quote", "Image")}
    names = {
        "langbot_plugin.api.definition.components.common.event_listener": {"EventListener": EventListener},
        "langbot_plugin.api.entities": {"context": context, "events": SimpleNamespace(**events)},
        "langbot_plugin.api.entities.builtin.provider.message": {"Message": type("Message", (SimpleNamespace,), {})},
        "langbot_plugin.api.entities.builtin.platform.message": {"MessageChain": Chain, **components},
        "langbot_plugin.api.entities.builtin.platform.events": dict.fromkeys(
            ("FriendMessage", "GroupMessage"), SimpleNamespace
        ),
        "langbot_plugin.api.entities.builtin.platform.entities": {
            **dict.fromkeys(("Friend", "GroupMember", "Group"), Sender),
            "Permission": SimpleNamespace(Member="MEMBER"),
        },
    }
    for path, content in names.items():
        parts = path.split(".")
        for depth in range(1, len(parts) + 1):
            name = ".".join(parts[:depth])
            if name not in sys.modules:
                monkeypatch.setitem(sys.modules, name, ModuleType(name))
        for name, one in content.items():
            setattr(sys.modules[path], name, one)


def local(second: int) -> datetime:
    return datetime(2026, 11, 2, 10, 0, second)
