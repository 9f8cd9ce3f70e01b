"""The JSON of answers: what the fast encoder writes is what `to_jsonable` says."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import roomlore
from roomlore.core.json_values import HIDDEN, in_json
from roomlore.surfaces.jsonable import IF_ANY, to_jsonable
from roomlore_server.http.answers import encoded, reply


class Kind(StrEnum):
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class One:
    name: str
    when: datetime
    kind: Kind
    inner: Any
    hidden: str = field(default="hidden", metadata=HIDDEN)
    tenant: str = "shown"

    @property
    @in_json
    def empty(self) -> bool:
        return not self.inner

    @property
    def found(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Left:
    known: int
    unknown: Annotated[str | None, IF_ANY] = None


@dataclass(frozen=True, slots=True)
class Only:
    held: Mapping[str, Any]


TEXTS = st.text(st.characters(codec=None), max_size=20) | st.sampled_from(["部署 👩‍👩‍👧 e\u0301", "\ud800", "\x00"])
TIMES = st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=8))]))
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS | TIMES
VALUES = st.recursive(
    LEAVES | st.sampled_from([Kind.NOTE]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(TEXTS | st.sampled_from([Kind.NOTE]), inner, max_size=3)
        | st.dictionaries(TEXTS, inner, max_size=3).map(MappingProxyType)
        | st.builds(One, TEXTS, TIMES, st.just(Kind.NOTE), inner)
        | st.builds(Left, st.integers(), st.none() | TEXTS)
        | st.builds(Only, st.dictionaries(TEXTS, inner, max_size=2))
    ),
    max_leaves=8,
)


@given(VALUES)
def test_the_encoder_says_what_plain_says(value):
    assert json.loads(encoded(value)) == json.loads(json.dumps(to_jsonable(value)))


def test_fields_are_in_their_order_and_hidden_ones_are_left_out():
    one = One("安娜", datetime(2024, 5, 1, 12, 30, tzinfo=UTC), Kind.NOTE, (Left(1), Left(2, "x")))
    assert encoded(one).decode() == (
        '{"name":"安娜","when":"2024-05-01T12:30:00+00:00","kind":"note",'
        '"inner":[{"known":1},{"known":2,"unknown":"x"}],"tenant":"shown","empty":false}'
    )


def test_what_utf_8_cannot_hold_is_escaped():
    assert encoded(["\ud800", "安"]) == rb'["\ud800","\u5b89"]'


@pytest.mark.parametrize("wrong", [object(), [object()], {"a": Only}])
def test_a_value_without_json_is_an_error(wrong):
    with pytest.raises(TypeError):
        encoded(wrong)


async def test_a_context_is_answered_with_what_it_is():
    async with roomlore.open("sqlite://", background=False) as lore:
        await lore.messages.add(
            [
                roomlore.Message(
                    id=str(n), room_id="tea", sender_id="ann", text=f"绿茶 tea {n}", metadata={"n": [n, 0.1]}
                )
                for n in range(6)
            ]
        )
        for value in (
            await lore.context.build("tea"),
            await lore.messages.search("tea", "绿茶"),
            await lore.messages.page("tea"),
        ):
            assert json.loads(reply(value).body) == json.loads(json.dumps(to_jsonable(value)))
