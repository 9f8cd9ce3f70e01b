"""Which facts were shown last in each conversation, in this process."""

from collections import OrderedDict

_MOST = 10_000


class ShownBefore:
    """Of the conversations that lately asked; one that is forgotten is ranked anew."""

    def __init__(self, *, most: int = _MOST) -> None:
        self._most = most
        self._shown: OrderedDict[tuple[str, str], tuple[int, tuple[str, ...]]] = OrderedDict()

    def of(self, tenant: str, conversation_id: str, max_tokens: int) -> tuple[str, ...]:
        """The ids in their order; () where none were shown, or for another budget."""
        budget, memory_ids = self._shown.get((tenant, conversation_id), (max_tokens, ()))
        return memory_ids if budget == max_tokens else ()

    def note(self, tenant: str, conversation_id: str, max_tokens: int, memory_ids: tuple[str, ...]) -> None:
        self._shown[tenant, conversation_id] = max_tokens, memory_ids
        self._shown.move_to_end((tenant, conversation_id))
        while len(self._shown) > self._most:
            self._shown.popitem(last=False)
