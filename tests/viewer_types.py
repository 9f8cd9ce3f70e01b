"""A plugin of mypy: a face says to whom it shows what it asks for.

In the library `viewer` may be left out, and the caller then decides who is shown the answer. A face has no such right:
in the folders of `FACES` a call without `viewer` is an error, and `viewer=None` says that everything is meant.
"""

from collections.abc import Callable
from pathlib import Path

from mypy.nodes import ARG_NAMED, ARG_NAMED_OPT
from mypy.plugin import MethodSigContext, Plugin
from mypy.types import CallableType, FunctionLike

FACES = {"surfaces", "roomlore_server", "roomlore_console", "roomlore_integrations"}


def _named(context: MethodSigContext) -> FunctionLike:
    """Return the signature of a method as faces see it: `viewer` has no default."""
    told = context.default_signature
    if not isinstance(told, CallableType) or FACES.isdisjoint(Path(context.api.path).parts):
        return told
    pairs = zip(told.arg_names, told.arg_kinds, strict=True)
    kinds = [ARG_NAMED if (name, kind) == ("viewer", ARG_NAMED_OPT) else kind for name, kind in pairs]
    return told.copy_modified(arg_kinds=kinds)


class Viewers(Plugin):
    def get_method_signature_hook(self, fullname: str) -> Callable[[MethodSigContext], FunctionLike] | None:
        return _named if fullname.startswith(("roomlore.services.", "roomlore.wiring.", "roomlore.sync.")) else None


def plugin(version: str) -> type[Plugin]:
    return Viewers
