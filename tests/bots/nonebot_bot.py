"""A NoneBot2 bot as people write it, with the plugin: it answers with what it is told. Arguments: database, the
longest wait for memory in seconds, URLs."""

import sys
from pathlib import Path

import nonebot
from nonebot.adapters.onebot.v11 import Adapter

sys.path.insert(0, str(Path(__file__).parents[2] / "plugins" / "nonebot-plugin-roomlore"))
database, seconds, *urls = sys.argv[1:]
nonebot.init(
    driver="~aiohttp",
    onebot_ws_urls=urls,
    roomlore_database_url=database,
    roomlore_rooms_left_out=["99"],
    roomlore_timeout_seconds=float(seconds),
    log_level="WARNING",
)
nonebot.get_driver().register_adapter(Adapter)
nonebot.require("nonebot_plugin_roomlore")

from nonebot import on_message  # noqa: E402 - after `nonebot.init`, as NoneBot wants it
from nonebot.rule import to_me  # noqa: E402
from nonebot_plugin_roomlore import Remembered  # noqa: E402

asked = on_message(rule=to_me())


@asked.handle()
async def answer(remembered: Remembered) -> None:
    await asked.finish(remembered.text or "(nothing)")


nonebot.run()
