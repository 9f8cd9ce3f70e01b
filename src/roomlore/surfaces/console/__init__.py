"""The web console: pages for people, rendered on the server, that work without a script."""

from roomlore.surfaces.console.frame import KEY_COOKIE, Visitor
from roomlore.surfaces.console.health import Watch
from roomlore.surfaces.console.live import Live
from roomlore.surfaces.console.routes import SIGN_IN, console_routes, is_console, is_open
from roomlore.surfaces.console.shell import prepare

__all__ = ["KEY_COOKIE", "SIGN_IN", "Live", "Visitor", "Watch", "console_routes", "is_console", "is_open", "prepare"]
