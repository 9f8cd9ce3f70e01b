"""Rigs of the pages that bring roomlore to bots and frameworks."""

from doc_page import Page
from doc_rigs import rig
from doc_rigs_shell import at_openai

from roomlore.testing.model_answers import Asked, Says
from roomlore.testing.model_server import serve_models

TEA = [
    "li: 周五茶会谁来？带什么茶点？",
    "wang: 我来，我带杏仁饼干",
    "li: 好，那我带绿茶",
    "wang: @tea-bot 绿茶配杏仁饼干行吗？",
]


@rig("docs/how-to/openai-chat.md")
def openai_chat(page: Page):
    with serve_models(lambda asked: Says(text=f"({asked.body['messages'][-1]['content']})")) as server:
        page.environment["OPENAI_BASE_URL"] = server.url
        at_openai(page, server.url)
        yield
        page.wait(page.names["client"].close())
    cake, nuts, decaf, tea, printer, white = map(_said, server.requests)
    assert [role for role, _ in nuts] == ["system", "user", "assistant", "user", "user"]
    assert nuts[:2] == cake[:1] + cake[-1:], "what was sent before stays at the beginning"
    assert decaf[: len(nuts) - 2] == nuts[:-2]
    assert all("Ann is allergic to nuts" in asked[-2][1] for asked in (cake, nuts, decaf))
    assert server.requests[2].streaming
    assert tea[-1][1].splitlines() == TEA
    assert "the printer is jammed again" in str(printer)
    assert "茶点" not in str(printer)
    assert "我带杏仁饼干" in str(white)


@rig("docs/how-to/langgraph.md")
def langgraph(page: Page):
    with serve_models(lambda asked: Says(text=f"({asked.body['messages'][-1]['content']})")) as server:
        page.environment["OPENAI_BASE_URL"] = server.url
        yield
    group, bakes, other, green, winter = map(_said, server.requests)
    assert group[-1][1].splitlines() == TEA
    assert all("王姐对花生过敏" in asked[-2][1] for asked in (group, bakes, other))
    bakes_said = "Which biscuits shall I bake?"
    assert [text for _, text in other if "花生" not in text][1:] == [bakes_said, f"({bakes_said})", "换一种吧"]
    assert [text for _, text in winter][1:] == ["Green or black?", "(Green or black?)", "那冬天呢？"]
    assert len(green) == 2


def _said(asked: Asked) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in asked.body["messages"]]
