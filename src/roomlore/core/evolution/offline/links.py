"""Links that several people share on several days."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from roomlore.core.evolution.offline.reading import URL, Line
from roomlore.core.evolution.offline.support import Support

_MESSAGES, _DAYS, _PEOPLE = 3, 2, 2
_LONGEST = 120
_NOTHING_WITHOUT_QUERY = frozenset(("watch", "search", "index.php", "view", "item", "playlist", "s"))


@dataclass(frozen=True, slots=True, eq=False)
class SharedLink:
    """`address`: host and path, without what may be somebody's own: user, query and fragment."""

    address: str
    support: Support


def addresses(line: Line) -> Iterator[str]:
    """The links of a sentence that are short enough to be told."""
    if "://" not in line.text:
        return
    for url in URL.findall(line.text):
        try:
            parts = urlsplit(url.rstrip(".,;:!?)]}'\"*_"))
            host = (parts.hostname or "").removeprefix("www.")
        except ValueError:
            continue
        address = host + parts.path.rstrip("/")
        lost = parts.query and address.rsplit("/", 1)[-1] in _NOTHING_WITHOUT_QUERY | {host}
        if not lost and "." in host and len(address) <= _LONGEST:
            yield address


def shared_links(lines: Sequence[Line]) -> list[SharedLink]:
    """The most shared first. Each has a fresh message among its support."""
    places: defaultdict[str, list[Line]] = defaultdict(list)
    for line in lines:
        for address in addresses(line):
            places[address].append(line)
    found = [SharedLink(address, Support.of(held)) for address, held in places.items() if len(held) >= _MESSAGES]
    kept = [one for one in found if one.support.holds(messages=_MESSAGES, days=_DAYS, people=_PEOPLE)]
    return sorted(kept, key=lambda one: (-len(one.support.days), -len(one.support.people), one.address))
