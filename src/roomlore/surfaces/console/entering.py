"""Signing in with an API key, signing out, and how the console looks."""

from starlette.responses import Response

from roomlore.core.errors import Forbidden
from roomlore.surfaces.console.frame import KEY_COOKIE, LANGUAGE_COOKIE, ROOT, THEME_COOKIE, THEMES, Page
from roomlore.surfaces.console.tongues import LANGUAGES

_YEAR = 31_536_000


async def asked(page: Page) -> Response:
    return page.show("sign_in.html", wrong=False, next=_inside(page.asked("next")))


async def enter(page: Page) -> Response:
    secret = page.form.get("key", "").strip()
    try:
        await page.request.app.state.lore.keys.authenticate(secret)
    except Forbidden:
        return page.show("sign_in.html", 401, wrong=True, next=_inside(page.asked("next")))
    answer = page.go("")
    answer.headers["location"] = _inside(page.asked("next"))
    page.keep(answer, KEY_COOKIE, secret)
    return answer


async def leave(page: Page) -> Response:
    answer = page.go("/sign-in")
    answer.delete_cookie(KEY_COOKIE, path=ROOT)
    return answer


async def look(page: Page) -> Response:
    """Keeps language and theme for a year, and goes back."""
    answer = page.go("")
    answer.headers["location"] = _inside(page.asked("next"))
    for name, choices in ((LANGUAGE_COOKIE, LANGUAGES), (THEME_COOKIE, THEMES)):
        chosen = page.form.get(name, "")
        if chosen in choices:
            page.keep(answer, name, chosen, seconds=_YEAR)
    return answer


def _inside(path: str) -> str:
    """The address where it is one of the console's own pages."""
    fine = path == ROOT or path.startswith((f"{ROOT}/", f"{ROOT}?"))
    return path if fine and path.isascii() and path.isprintable() and "\\" not in path else ROOT
