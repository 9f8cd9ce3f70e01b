"""Looking at the console's pages as a browser in one of its languages does."""

from urllib.parse import quote

import httpx

from roomlore_console.frame import VIEWER_COOKIE
from roomlore_server.http import create_app

LANGUAGES = {"en": {"Accept-Language": "en"}, "zh": {"Accept-Language": "zh"}}


def asking(lore, key: str = "", viewer: str = "") -> httpx.AsyncClient:
    transport = httpx.ASGITransport(create_app(lore), client=("127.0.0.1", 1))
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    cookies = {VIEWER_COOKIE: quote(viewer, safe="")} if viewer else {}
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers, cookies=cookies)


async def page(http, path: str, status: int = 200, language: str = "en") -> str:
    answer = await http.get(path, headers=LANGUAGES[language])
    assert answer.status_code == status, answer.text[:500]
    return answer.text
