"""Recall over HTTP."""

import pytest

from roomlore_testkit.case_table import all_cases

ANNA = "user:anna"


@pytest.fixture
async def facts(http):
    said = {"Likes green tea": 0.9, "对花生过敏": 0, "Works on the payment gateway": 0.5, "周末去爬山": None}
    sent = [{"scope": ANNA, "statement": text, "confidence": sure} for text, sure in said.items()]
    answer = await http.post("/facts", json={"facts": sent})
    return {one["statement"]: one["memory_id"] for one in answer.json()["facts"]}


async def ask(http, *said, **more):
    messages = [{"role": "user", "content": text} for text in said]
    answer = await http.post("/recall", json={"scopes": [ANNA], "messages": messages} | more)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_what_matters_comes_first(http, facts):
    found = await ask(http, "他对花生过敏吗？", similarity_weight=1, confidence_weight=0)
    assert found["facts"][0]["memory"]["memory_id"] == facts["对花生过敏"]
    assert (found["facts"][0]["confidence"], found["considered"], found["degraded"]) == (0.0, 4, None)
    assert "对花生过敏" in found["text"]
    assert (await ask(http, "green tea?", confidence_weight=0))["facts"][0]["memory"]["memory_id"] == facts[
        "Likes green tea"
    ]


async def test_the_budget_holds(http, facts):
    whole = await ask(http, "tea")
    less = await ask(http, "tea", max_tokens=whole["tokens"] - 1)
    assert less["tokens"] < whole["tokens"]
    assert len(less["facts"]) < len(whole["facts"]) == 4
    assert (await ask(http, "tea", max_tokens=0))["text"] == ""
    assert (await ask(http, scopes=[]))["facts"] == []


async def test_tools_and_what_was_recalled_before_say_nothing(http, facts):
    said = [
        {"role": "user", "content": [{"type": "text", "text": "green tea?"}, {"type": "image_url"}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "tool", "content": "payment gateway"},
        {"role": "user", "name": "memory_context", "content": "爬山"},
    ]
    found = await ask(http, messages=said, similarity_weight=1, confidence_weight=0)
    assert {one["memory"]["statement"]: one["similarity"] > 0 for one in found["facts"]} == {
        text: text == "Likes green tea" for text in facts
    }


async def test_a_deleted_fact_is_not_recalled(http, facts):
    await http.delete(f"/facts/{facts['Likes green tea']}")
    await http.patch(f"/facts/{facts['周末去爬山']}", json={"statement": "周末去游泳"})
    text = (await ask(http, "tea"))["text"]
    assert "green tea" not in text
    assert "游泳" in text
    assert "爬山" not in text


async def test_a_conversation_keeps_its_block(http, facts):
    first = await ask(http, "green tea", conversation_id="c")
    again = await ask(http, "green tea", "thanks", conversation_id="c")
    assert (again["kept"], again["text"]) == (True, first["text"])
    shown = [one["memory"]["memory_id"] for one in first["facts"]]
    assert (await ask(http, "green tea", "thanks", previous=shown))["text"] == first["text"]


NOT_TO_BE_ASKED = [
    ({}, "scopes"),
    ({"scopes": "user:anna"}, "scopes"),
    ({"scopes": ["anna"]}, "user:<id>"),
    ({"scopes": [ANNA], "messages": [{"role": "bot", "content": "x"}]}, "messages[0] has the role"),
    ({"scopes": [ANNA], "messages": ["x"]}, "messages.0"),
    ({"scopes": [ANNA], "max_tokens": -1}, "max_tokens"),
    ({"scopes": [ANNA], "similarity_weight": 2}, "similarity_weight"),
    ({"scopes": [ANNA], "similarity": "bm25"}, "similarity"),
    ({"scopes": [ANNA], "kinds": ["long"]}, "kinds"),
    ({"scopes": [ANNA] * 101}, "scopes"),
    ({"scopes": [ANNA], "similarity_weight": 0, "confidence_weight": 0}, ""),
]


async def test_what_cannot_be_asked_says_what_to_mend(http):
    with all_cases() as case:
        for body, said in NOT_TO_BE_ASKED:
            with case(body):
                answer = await http.post("/recall", json=body)
                assert answer.status_code in ((422,) if said else (200, 422)), answer.text
                assert said in answer.text
