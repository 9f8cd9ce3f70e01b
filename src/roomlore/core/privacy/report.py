"""What became of forgetting a person, so that it can be checked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Left:
    """Something of the person that is still there. `place`: which table, cache or index; `count`: how many entries;
    `why`: what hinders it, and what to do."""

    place: str
    count: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetReport:
    """What forgetting did, or with `dry_run` what it would do.

    `places`: how many entries were removed or rewritten, by place; those without any are left out. `rooms_removed`: the
    rooms that went as a whole. `retired`: ids of memories that are no longer in force, since they rested on the person
    alone; `rewritten`: ids of memories that stay, without the person. `same_words`: how many entries of others have
    words that the person said too, and stay since nothing links them to the person, by place. `left`: what is still
    there and why; asking again goes on with it. `checked`: how many rows of each table were looked through when all was
    done; none with `dry_run`.
    """

    user_id: str
    dry_run: bool
    places: Mapping[str, int] = field(default_factory=dict)
    rooms_removed: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    same_words: Mapping[str, int] = field(default_factory=dict)
    left: tuple[Left, ...] = ()
    checked: Mapping[str, int] = field(default_factory=dict)
    started_at: datetime
    finished_at: datetime

    @property
    def complete(self) -> bool:
        """Whether nothing is left that roomlore can reach."""
        return not self.left
