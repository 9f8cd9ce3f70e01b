"""The one settings object, and the only reader of the environment and of configuration files.

Sources in rising order: the section `memory:` of `roomlore.yaml` (in the working directory, or at the path in an
argument or ROOMLORE_CONFIG), environment variables with the prefix MEMORY_, arguments. An empty value counts as not
given.
"""

from roomlore.settings.model import (
    Row,
    Settings,
    all_sections,
    context_options,
    explain,
    known_fields,
    range_of,
    row,
)
from roomlore.settings.retired import RETIRED
from roomlore.settings.sections import WEIGHTS
from roomlore.settings.sources import CONFIG_FILE, PREFIX

__all__ = [
    "CONFIG_FILE",
    "PREFIX",
    "RETIRED",
    "WEIGHTS",
    "Row",
    "Settings",
    "all_sections",
    "context_options",
    "explain",
    "known_fields",
    "range_of",
    "row",
]
