"""JSON of what a model wrote in its place."""

from json_repair import repair_json

MOST_CHARACTERS = 4_000
"""A wish of a model is far shorter, and of what is longer a repair can take seconds."""


def repaired(text: str) -> str:
    """JSON that says what the text seems to say; '' where nothing can be made of it, or where it is longer than
    `MOST_CHARACTERS`. Never raises."""
    if len(text) > MOST_CHARACTERS:
        return ""
    try:
        return str(repair_json(text, skip_json_loads=True, ensure_ascii=False))
    except Exception:  # noqa: BLE001 - a text nobody foresaw is as good as one that cannot be repaired
        return ""
