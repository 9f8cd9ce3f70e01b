"""Repair of almost-JSON in the output of a model."""

from json_repair import repair_json

MAX_CHARACTERS = 4_000
"""The longest text that is repaired. Outputs of models are far shorter, and a longer text can take seconds."""


def repaired(text: str) -> str:
    """Return JSON with the text's content; '' if it cannot be repaired or is longer than `MAX_CHARACTERS`. Never
    raises."""
    if len(text) > MAX_CHARACTERS:
        return ""
    try:
        return str(repair_json(text, skip_json_loads=True, ensure_ascii=False))
    except Exception:  # noqa: BLE001 - a text nobody foresaw is as good as one that cannot be repaired
        return ""
