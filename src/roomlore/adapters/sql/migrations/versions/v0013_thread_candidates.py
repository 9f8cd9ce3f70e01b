"""Thread candidates in their packed form."""

import numpy as np
import sqlalchemy as sa
from alembic import op

from roomlore.core.linking.candidates import ThreadCandidates

revision = "0013"
down_revision = "0012"

_AT_ONCE = 2_000
_TEN_BYTES = np.dtype([("arrival", "<i8"), ("share", "<u2")])
_PAGE = sa.text(
    "SELECT room_key, arrival, mates FROM message_features WHERE (room_key, arrival) > (:room, :arrival) "
    "ORDER BY room_key, arrival LIMIT :most"
)
_SET = sa.text("UPDATE message_features SET mates = :packed WHERE room_key = :room AND arrival = :arrival")


def upgrade() -> None:
    """Pack the candidates of each message anew, and name their column as the code does."""
    connection, after = op.get_bind(), (-1, -1)
    while page := connection.execute(_PAGE, {"room": after[0], "arrival": after[1], "most": _AT_ONCE}).all():
        packed = [{"room": room, "arrival": at, "packed": _packed(bytes(rows))} for room, at, rows in page if rows]
        if packed:
            connection.execute(_SET, packed)
        after = page[-1][:2]
    op.execute("ALTER TABLE message_features RENAME COLUMN mates TO thread_candidates")


def _packed(before: bytes) -> bytes:
    rows = np.frombuffer(before, _TEN_BYTES)
    return ThreadCandidates.of(rows["arrival"], rows["share"] / 65535.0).pack()
