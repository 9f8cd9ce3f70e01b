"""The place of a memory block among OpenAI-style messages."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore import InvalidInput, with_memory

BLOCK = "<memory>\n- 爱喝茶\n</memory>"


def of(*roles):
    return [{"role": role, "content": f"{role} {place}"} for place, role in enumerate(roles)]


def order(messages):
    return ["memory" if message.get("name") == "memory_context" else message["role"] for message in messages]


@pytest.mark.parametrize(
    ("roles", "system", "trailing"),
    [
        ((), 0, 0),
        (("user",), 0, 0),
        (("system", "user"), 1, 1),
        (("developer", "system", "user", "assistant", "user"), 2, 4),
        (("user", "assistant", "system", "user", "assistant", "tool"), 0, 3),
        (("system", "assistant"), 1, 1),
        (("system",), 1, 1),
    ],
)
def test_where_it_stands(roles, system, trailing):
    for placement, place in (("system", system), ("trailing", trailing)):
        messages = with_memory(of(*roles), BLOCK, placement=placement)
        assert order(messages)[place] == "memory"
        assert [one for one in messages if one.get("name") != "memory_context"] == of(*roles)


def test_what_it_is():
    assert with_memory(of("user"), BLOCK)[0] == {"role": "system", "name": "memory_context", "content": BLOCK}
    assert with_memory(of("user"), BLOCK, placement="trailing")[0] == {
        "role": "user", "name": "memory_context", "content": BLOCK,
    }  # fmt: skip


def test_no_block_is_no_message():
    assert with_memory(of("system", "user"), "") == of("system", "user")


conversations = st.lists(st.sampled_from(["system", "user", "assistant", "tool"]), max_size=8)
placements = st.sampled_from(["system", "trailing"])


@given(conversations, placements, placements)
def test_another_block_takes_the_place_of_the_first(roles, first, second):
    messages = of(*roles)
    before = copy.deepcopy(messages)
    earlier = with_memory(messages, "<memory>\n- old\n</memory>", placement=first)
    assert with_memory(earlier, BLOCK, placement=second) == with_memory(messages, BLOCK, placement=second)
    assert with_memory(earlier, "") == messages == before


@given(st.lists(st.sampled_from(["user", "assistant", "tool"]), max_size=8))
def test_trailing_leaves_what_was_sent_before_as_it_was(roles):
    messages = of("system", *roles, "user", "assistant", "user")
    now = with_memory(messages, BLOCK, placement="trailing")
    earlier = with_memory(messages[:-2], "<memory>\n- other\n</memory>", placement="trailing")
    assert now[: len(earlier) - 2] == earlier[:-2]
    assert order(now)[-2:] == ["memory", "user"]


def test_what_agents_and_tools_of_that_name_said_stays():
    named = [{**message, "name": "memory_context"} for message in of("assistant", "tool", "function")]
    assert with_memory([*named, *of("user")], BLOCK)[1:] == [*named, *of("user")]


def test_another_placement_is_refused():
    with pytest.raises(InvalidInput, match="system, trailing"):
        with_memory(of("user"), BLOCK, placement="middle")
