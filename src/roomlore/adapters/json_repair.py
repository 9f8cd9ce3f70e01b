"""JSON of what a model wrote in its place."""

from json_repair import repair_json


def repaired(text: str) -> str:
    """JSON that says what the text seems to say; '' where nothing can be made of it. Never raises.

    The time it takes grows with the square of the length at worst: hand it no more than a few thousand characters.
    """
    try:
        return str(repair_json(text, skip_json_loads=True, ensure_ascii=False))
    except Exception:  # noqa: BLE001 - a text nobody foresaw is as good as one that cannot be repaired
        return ""
