"""Which facts were shown last in each conversation, in this process."""

from collections import OrderedDict
from typing import TypeAlias

_MOST = 10_000
Form: TypeAlias = "tuple[int, bool]"
"""What a block depends on beside its facts: its budget, and whether its lines name their scopes."""


class ShownBefore:
    """Of the conversations that lately asked; one that is forgotten is ranked anew."""

    def __init__(self, *, most: int = _MOST) -> None:
        self._most = most
        self._shown: OrderedDict[tuple[str, str], tuple[Form, tuple[str, ...]]] = OrderedDict()

    def of(self, tenant: str, conversation_id: str, form: Form) -> tuple[str, ...]:
        """The ids in their order; () where none were shown, or in another form."""
        before, memory_ids = self._shown.get((tenant, conversation_id), (form, ()))
        return memory_ids if before == form else ()

    def note(self, tenant: str, conversation_id: str, form: Form, memory_ids: tuple[str, ...]) -> None:
        self._shown[tenant, conversation_id] = form, memory_ids
        self._shown.move_to_end((tenant, conversation_id))
        while len(self._shown) > self._most:
            self._shown.popitem(last=False)
