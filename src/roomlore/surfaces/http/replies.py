"""JSON that can carry any stored text: a lone surrogate is escaped where UTF-8 cannot hold it."""

import json
from typing import Any

from starlette.responses import Response


def dump(content: Any) -> bytes:
    """Compact UTF-8 JSON."""
    try:
        return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def reply(content: Any, status: int = 200) -> Response:
    return Response(dump(content), status, media_type="application/json")
