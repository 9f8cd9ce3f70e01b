"""The web console: pages for people, rendered on the server, that work without a script."""

from roomlore_console.frame import KEY_COOKIE, Visitor
from roomlore_console.health import Watch
from roomlore_console.live import Live
from roomlore_console.routes import SIGN_IN, console_routes, is_console, is_open
from roomlore_console.shell import prepare

__all__ = ["KEY_COOKIE", "SIGN_IN", "Live", "Visitor", "Watch", "console_routes", "is_console", "is_open", "prepare"]
