"""Rigs of the pages that bring roomlore to bots and frameworks."""

import contextlib
import re
from collections import Counter

import doc_lark
import doc_slack
import doc_telegram
import doc_wecom
from doc_discord import ANN, BOT, CHANNEL, GUILD, LI, MESSAGE_CONTENT, Discord, message, reply
from doc_lark import Lark
from doc_page import Page
from doc_rigs import rig
from doc_rigs_shell import at_openai
from doc_slack import Slack
from doc_stand_in import beside, start_bots
from doc_telegram import Telegram
from doc_wecom import WeCom

import roomlore
from roomlore_testkit.model_server import Asked, Says, serve_models

TEA = [
    "ann: the printer is jammed again",
    "li: 周五茶会谁来？带什么茶点？",
    "bob (回复 ann): ann: the one on the second floor?",
    "wang (回复 li): 我来，我带杏仁饼干",
    "ann (回复 bob): yes, tray two, same as last week",
    "li (回复 wang): 好，那我带绿茶",
    "wang: @tea-bot 绿茶配杏仁饼干行吗？",
]
"""The whole room, which has few messages, without the times."""


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
    assert [role for role, _ in decaf] == ["system", *["user", "assistant"] * 2, "user", "user"]
    assert server.requests[2].streaming
    assert _spoken(tea) == TEA
    assert "the printer is jammed again" in str(printer)
    assert "我带杏仁饼干" in str(white)


@rig("docs/how-to/openai-protocol.md")
def openai_protocol(page: Page):
    with serve_models(lambda asked: Says(text=f"({len(asked.body['messages'])})")) as server:
        at_openai(page, server.url)
        yield
        page.names["client"].close()
    _first, cake, group, both = (asked.prompt for asked in server.requests)
    assert "我对坚果过敏" in cake
    assert "坚果" not in group + both, "said alone"
    assert "周五带什么茶？" in both


@rig("docs/how-to/langgraph.md")
def langgraph(page: Page):
    with serve_models(lambda asked: Says(text=f"({asked.body['messages'][-1]['content']})")) as server:
        page.environment["OPENAI_BASE_URL"] = server.url
        yield
    group, *talks = map(_said, server.requests)
    assert _spoken(group) == TEA
    assert "王姐对花生过敏" in group[-2][1]
    for sent, questions, facts in (
        (talks[:3], ("Which biscuits shall I bake?", "换一种吧", "Thanks"), 1),
        (talks[3:], ("Green or black?", "那冬天呢？", "Thanks"), 0),
    ):
        turns = [turn for asked in questions for turn in (("user", asked), ("assistant", f"({asked})"))]
        for number, (system, *said) in enumerate(sent):
            assert system == group[0]
            assert [("花生" in text) for _, text in said].count(True) == facts
            assert [turn for turn in said if "花生" not in turn[1]] == turns[: 2 * number + 1]
            assert not facts or "花生" in said[-2][1]


def _said(asked: Asked) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in asked.body["messages"]]


def _spoken(said: list[tuple[str, str]]) -> list[str]:
    """Return people's lines as the model reads them, without the times and the notes between."""
    lines = (line for role, text in said if role == "user" for line in text.splitlines())
    found = (re.fullmatch(r"(?:\[\d\d:\d\d\] )?(\w+(?: \([^)]*\))?: .*)", line) for line in lines)
    return [re.sub(r" \d\d:\d\d(?=\))", "", line[1]) for line in found if line]


def _counts(asked: Asked) -> Says:
    """Return the number of messages shown, and a tea, in two pieces."""
    return Says(pieces=[f"({len(asked.body['messages'])} ", "条) 绿茶。"])


@rig("docs/how-to/discord.md")
def discord(page: Page):
    stand_in = Discord(_tea_in_discord)
    with serve_models(_counts) as server, beside(stand_in):
        at_openai(page, server.url)
        start_bots(page, {"bot.py": stand_in})
        yield
    assert stand_in.identified["token"] == "..."
    assert stand_in.identified["intents"] & MESSAGE_CONTENT
    asked, again = map(_said, server.requests)
    assert "喝什么茶？乌龙？" in str(asked)
    assert "door code is 7319" not in str(asked)
    assert ("assistant", "(2 条) 绿茶。") in again
    with roomlore.open_sync(f"sqlite:///{page.folder}/discord.db") as lore:
        stored = {one.id: one for one in lore.messages.page(CHANNEL)}
        first, second = (lore.replies.find(CHANNEL, one, agent_id=BOT).reply_id for one in ("105", "106"))
    assert set(stored) == {"102", "103", "105", first, second}, "what Ann said is forgotten"
    assert (stored["102"].text, stored["103"].sender_name) == ("喝什么茶？乌龙？", "小李")
    assert (stored["105"].reply_to, stored["105"].mentions) == ("102", (BOT,))


async def _tea_in_discord(there: Discord) -> None:
    first = message("101", ANN, "which tea for Friday?")
    await there.tell("MESSAGE_CREATE", **first)
    await there.tell("MESSAGE_CREATE", **message("102", LI, "红茶？"))
    await there.tell("MESSAGE_CREATE", **reply("103", LI, "green, I would say", first))
    edited = message("102", LI, "喝什么茶？乌龙？", edited_timestamp="2026-06-01T09:50:00+00:00")
    await there.tell("MESSAGE_UPDATE", **edited)
    await there.tell("MESSAGE_CREATE", **message("104", ANN, "my door code is 7319"))
    await there.tell("MESSAGE_DELETE", id="104", channel_id=CHANNEL, guild_id=GUILD)
    await there.tell("MESSAGE_CREATE", **reply("105", LI, f"<@{BOT}> 选哪个好？", edited))
    answered = await there.until_said("(2 条) 绿茶。", "105")
    await there.tell("MESSAGE_CREATE", **reply("106", ANN, f"<@{BOT}> why?", answered))
    await there.until_said("(4 条) 绿茶。", "106")
    await there.tell("MESSAGE_CREATE", **message("107", ANN, f"<@{BOT}> Forget me"))
    assert "for good" in (await there.until_answered("107"))["content"]
    await there.tell("MESSAGE_CREATE", **message("108", ANN, f"<@{BOT}> forget me now"))
    assert "Forgotten" in (await there.until_answered("108"))["content"]


@rig("docs/how-to/lark.md")
def lark(page: Page):
    stand_in = Lark(_tea_in_lark, f"http://127.0.0.1:{page.port}/lark")
    with serve_models(_counts) as server, beside(stand_in):
        at_openai(page, server.url)
        start_bots(page, {"lark_bot.py": stand_in})
        page.instead["https://open.feishu.cn"] = stand_in.url
        yield
    assert stand_in.tokens == 1
    assert Counter(stand_in.replied) == {"om_3": 2, "om_4": 1, "om_5": 1}
    asked, again, _ = map(_said, server.requests)
    assert "@李雷 周五喝什么茶？" in str(asked)
    assert "door code is 7319" not in str(asked)
    assert ("assistant", "(2 条) 绿茶。") in again
    with roomlore.open_sync(f"sqlite:///{page.folder}/lark.db") as lore:
        stored = {one.id: one for one in lore.messages.page(doc_lark.CHAT)}
        answer = lore.replies.find(doc_lark.CHAT, "om_3", agent_id=doc_lark.BOT)
    assert [stored[one].sender_name for one in ("om_1", "om_3", "om_4", "om_5")] == ["", "李雷", "", ""]
    assert stored["om_4"].reply_to == answer.reply_id
    assert stored["om_3"].text == "菜单\n@茶 which is green? menu (menu.example)"


async def _tea_in_lark(there: Lark) -> None:
    says, said = "im.message.receive_v1", doc_lark.message
    checking = {"type": "url_verification", "challenge": "c-7", "token": doc_lark.SECRET}
    assert await there.post(checking, signed=False) == (200, {"challenge": "c-7"})
    assert (await there.post({**checking, "token": "guessed"}))[0] == 401
    first = said("om_1", "ou_ann", {"text": "@_user_1 周五喝什么茶？"}, mentions=[doc_lark.mention(1, "ou_li", "李雷")])
    assert await there.tell(says, signed=False, **first) == 401
    for strange in ({}, {"header": {}}, {"header": {"token": 5}}, {"type": "url_verification"}):
        assert (await there.post(strange))[0] == 401
    assert (await there.post({"header": {"token": doc_lark.SECRET, "event_type": says}}))[0] == 200
    assert await there.tell(says, **first) == 200
    assert await there.tell(says, **said("om_2", "ou_li", {"text": "my door code is 7319"})) == 200
    assert await there.tell("im.message.recalled_v1", message_id="om_2", chat_id=doc_lark.CHAT) == 200
    elements = [{"tag": "at", "user_id": "@_user_1", "user_name": "茶"}, {"tag": "text", "text": " which is green? "},
                {"tag": "a", "text": "menu", "href": "menu.example"}]  # fmt: skip
    asked = said("om_3", "ou_li", {"title": "菜单", "content": [elements]}, "post", parent_id="om_1", root_id="om_1",
                 mentions=[doc_lark.mention(1, doc_lark.BOT, "茶")])  # fmt: skip
    for age in (3600, -3600):
        assert await there.tell(says, age=age, **asked) == 401
        assert await there.replay() == 401
    assert await there.tell(says, **asked) == 200
    assert await there.replay() == 200
    answer = await there.until_answered("om_3")
    assert await there.replay() == 200
    again = said("om_4", "ou_ann", {"text": "@_user_1 为什么？"}, parent_id=answer["message_id"], root_id="om_1",
                 mentions=[doc_lark.mention(1, doc_lark.BOT, "茶")])  # fmt: skip
    await there.tell(says, **again)
    await there.until_answered("om_4")
    assert await there.tell(says, **asked) == 200, "as after a restart: told of by an id that the bot does not know"
    assert len(there.said) == 2
    late = said(
        "om_5", doc_lark.LATE, {"text": "@_user_1 现在呢？"}, mentions=[doc_lark.mention(1, doc_lark.BOT, "茶")]
    )
    assert await there.tell(says, **late) == 200


@rig("docs/how-to/small-bots.md", "docs/how-to/small-bots.zh.md")
def small_bots(page: Page):
    at_port = f"http://127.0.0.1:{page.port}"
    bots = {
        "discord_bot.py": Discord(_short_tea_in_discord),
        "lark_bot.py": Lark(_short_tea_in_lark, f"{at_port}/lark"),
        "slack_bot.py": Slack(_tea_in_slack),
        "telegram_bot.py": Telegram(_tea_in_telegram),
        "wecom_bot.py": WeCom(_tea_in_wecom, f"{at_port}/wecom"),
    }
    with serve_models(_counts) as server, contextlib.ExitStack() as all_of_them:
        for stand_in in bots.values():
            all_of_them.enter_context(beside(stand_in))
        at_openai(page, server.url)
        start_bots(page, bots)
        page.environment |= {
            f"{name.removesuffix('_bot.py').upper()}_URL": stand_in.url for name, stand_in in bots.items()
        } | {"PORT": str(page.port), "WECOM_AES_KEY": doc_wecom.AES_KEY}
        yield
    places = {path.name: path.parent for path in page.folder.rglob("*_bot.py") if path.parent != page.folder}
    lines = {name: (place / name).read_text(encoding="utf-8").split("\n") for name, place in places.items()}
    shown = page.folder / "discord_bot.py"
    assert shown.exists() != page.path.endswith("zh.md"), "the English page alone shows a program"
    if shown.exists():
        assert shown.read_text(encoding="utf-8").split("\n") == lines["discord_bot.py"], "the page shows another"
    assert {name: sum(map(bool, text)) for name, text in lines.items() if sum(map(bool, text)) > 40} == {}
    assert lines.keys() == bots.keys()
    for platform, room, agent, (text, third, fourth) in (
        ("discord", CHANNEL, BOT, ("喝什么茶？乌龙？", "105", "106")),
        ("lark", doc_lark.CHAT, doc_lark.BOT, ("@李雷 周五喝什么茶？", "om_3", "om_4")),
        ("slack", doc_slack.CHANNEL, doc_slack.BOT, ("喝什么茶？乌龙？", doc_slack.ts(3), doc_slack.ts(4))),
        ("telegram", "1234", "user900", ("喝什么茶？乌龙？", "3", "4")),
    ):
        with roomlore.open_sync(f"sqlite:///{places[f'{platform}_bot.py'] / 'bot.db'}") as lore:
            stored = {one.id: one for one in lore.messages.page(room)}
            answer = lore.replies.find(room, third, agent_id=agent)
        assert text in [one.text for one in stored.values()], platform
        assert "door code is 7319" not in str(stored), platform
        assert answer.reply_id in (stored[fourth].reply_to, stored[fourth].root_id), platform
    (alone,) = [said for request in server.requests if "hello" in (said := str(_said(request)))]
    assert "乌龙" not in alone, "what was said in a group stays there"
    with roomlore.open_sync(f"sqlite:///{places['telegram_bot.py'] / 'bot.db'}") as lore:
        forum = [(one.text, one.topic_id, bool(one.reply_to)) for one in lore.messages.page("5678")]
        assert {topic for _, topic, _ in forum} == {"6"}
        assert [answers for _, _, answers in forum] == [False, False, True, True, True], forum
    with roomlore.open_sync(f"sqlite:///{places['wecom_bot.py'] / 'bot.db'}") as lore:
        assert [one.text for one in lore.messages.page("wecom:ann")][::2] == ["which tea?", "为什么？"]


async def _short_tea_in_discord(there: Discord) -> None:
    first = message("101", ANN, "which tea for Friday?")
    await there.tell("MESSAGE_CREATE", **first)
    await there.tell("MESSAGE_CREATE", **message("102", LI, "红茶？"))
    edited = message("102", LI, "喝什么茶？乌龙？", edited_timestamp="2026-06-01T09:50:00+00:00")
    await there.tell("MESSAGE_UPDATE", **edited)
    await there.tell("MESSAGE_CREATE", **message("104", ANN, "my door code is 7319"))
    await there.tell("MESSAGE_DELETE", id="104", channel_id=CHANNEL, guild_id=GUILD)
    await there.tell("MESSAGE_DELETE", id="99", channel_id=CHANNEL, guild_id=GUILD)
    await there.tell("MESSAGE_CREATE", **reply("105", LI, f"<@{BOT}> 选哪个好？", edited))
    answered = await there.until_answered("105")
    await there.tell("MESSAGE_CREATE", **message("107", LI, f"<@{BOT}> 谢谢"))
    await there.until_answered("107")  # by now the bot knows the id of the answer before
    await there.tell("MESSAGE_CREATE", **reply("106", ANN, f"<@{BOT}> why?", answered))
    await there.until_answered("106")


async def _short_tea_in_lark(there: Lark) -> None:
    says, said = "im.message.receive_v1", doc_lark.message
    first = said("om_1", "ou_ann", {"text": "@_user_1 周五喝什么茶？"}, mentions=[doc_lark.mention(1, "ou_li", "李雷")])
    assert await there.tell_plainly(says, token="guessed", **first) == 401
    assert await there.tell_plainly(says, **first) == 200
    assert await there.tell_plainly(says, **said("om_2", "ou_li", {"text": "my door code is 7319"})) == 200
    for recalled in ("om_2", "om_9"):
        assert await there.tell_plainly("im.message.recalled_v1", message_id=recalled, chat_id=doc_lark.CHAT) == 200
    to_bot = [doc_lark.mention(1, doc_lark.BOT, "茶")]
    third = said("om_3", "ou_li", {"text": "@_user_1 绿茶？"}, parent_id="om_1", mentions=to_bot)
    assert await there.tell_plainly(says, **third) == 200
    answer = await there.until_answered("om_3")
    thanks = said("om_5", "ou_li", {"text": "@_user_1 谢谢"}, mentions=to_bot)
    assert await there.tell_plainly(says, **thanks) == 200
    await there.until_answered("om_5")  # by now the bot knows the id of the answer before
    fourth = said("om_4", "ou_ann", {"text": "@_user_1 为什么？"}, parent_id=answer["message_id"], mentions=to_bot)
    assert await there.tell_plainly(says, **fourth) == 200
    await there.until_answered("om_4")


async def _tea_in_slack(there: Slack) -> None:
    said, ann, li = doc_slack.said, doc_slack.ANN, doc_slack.LI
    await there.tell(said(1, ann, "which tea for Friday?"))
    await there.tell(said(2, li, "红茶？"))
    now = {"ts": doc_slack.ts(2), "text": "喝什么茶？乌龙？", "edited": {"user": li, "ts": doc_slack.ts(5)}}
    await there.tell({"type": "message", "subtype": "message_changed", "channel": doc_slack.CHANNEL, "message": now})
    await there.tell(said(6, ann, "my door code is 7319"))
    gone = {"type": "message", "subtype": "message_deleted", "channel": doc_slack.CHANNEL}
    for number in (6, 99):
        await there.tell({**gone, "deleted_ts": doc_slack.ts(number)})
    await there.disconnect()
    await there.tell(said(3, li, f"<@{doc_slack.BOT}> 选哪个好？"))
    answer = await there.until_answered()
    await there.tell(said(8, li, f"<@{doc_slack.BOT}> 谢谢"))
    await there.until_answered(count=2)  # by now the bot knows the id of the answer before
    await there.tell(said(7, doc_slack.BOT, answer["text"], bot_id="B1"))
    await there.tell(said(4, ann, f"<@{doc_slack.BOT}> why?", thread_ts=answer["ts"]))
    await there.until_answered(answer["ts"])


async def _tea_in_telegram(there: Telegram) -> None:
    said, ann, li = doc_telegram.message, doc_telegram.ANN, doc_telegram.LI
    await there.tell(message=said(1, ann, "which tea for Friday?"))
    second = said(2, li, "红茶？")
    await there.tell(message=second)
    await there.tell(edited_message=said(2, li, "喝什么茶？乌龙？"))
    await there.tell(edited_message=said(99, li, "from before the bot was there"))
    await there.tell(message=said(3, li, "@lore_bot 选哪个好？", reply_to_message=second))
    answer = await there.until_answered(3)
    bot = said(answer["message_id"], doc_telegram.BOT, answer["text"])
    await there.tell(message=said(4, ann, "why?", reply_to_message=bot))
    await there.until_answered(4)
    await there.tell(message=said(5, ann, "hello", {"id": 1, "type": "private"}))
    await there.until_answered(5)
    forum, topic = {**doc_telegram.GROUP, "id": -1005678}, {"message_thread_id": 6, "is_topic_message": True}
    opening = said(6, ann, "", forum, **topic, forum_topic_created={"name": "茶"})
    await there.tell(message=opening)
    await there.tell(message=said(7, li, "@lore_bot 哪种茶？", forum, **topic, reply_to_message=opening))
    answer = await there.until_answered(7)
    bot = said(answer["message_id"], doc_telegram.BOT, answer["text"], forum, **topic)
    await there.tell(message=said(8, ann, "@lore_bot why?", forum, **topic, reply_to_message=bot))
    await there.until_answered(8)


async def _tea_in_wecom(there: WeCom) -> None:
    assert await there.verify() == (200, "echo-7")
    assert (await there.verify(signed=False))[0] == 401
    assert await there.tell(1, doc_wecom.ANN, "my door code is 7319", signed=False) == 401
    assert await there.tell(2, doc_wecom.ANN, "which tea?") == 200
    await there.until_said(1)
    assert await there.tell(3, doc_wecom.ANN, "为什么？") == 200
    await there.until_said(2)
    assert [said["touser"] for said in there.said.values()] == [doc_wecom.ANN] * 2
