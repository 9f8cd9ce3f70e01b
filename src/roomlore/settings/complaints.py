"""What is wrong with settings, in sentences."""

from collections.abc import Collection, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from roomlore.core.errors import InvalidInput
from roomlore.settings.words import range_of_field, shown


def sentences(
    error: ValidationError,
    found: Mapping[str, tuple[Any, str]],
    settings: Mapping[str, FieldInfo],
    *,
    hidden: Collection[str],
) -> str:
    """One sentence a line, each once. `found`: values and their sources; those of `hidden` settings are not shown."""

    def told(detail: Mapping[str, Any]) -> str:
        why = detail.get("ctx", {}).get("error")
        if not detail["loc"] or isinstance(why, InvalidInput):
            return str(why)
        name = str(detail["loc"][0])
        value, source = found[name]
        value = "***" if name in hidden else shown(value)[:120]
        return f"{name} is {value} (from {source}); it must be {range_of_field(settings[name])}."

    return "\n".join(dict.fromkeys(map(told, error.errors())))
