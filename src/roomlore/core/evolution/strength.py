"""How strong a memory is: it fades without support, and support makes it stronger."""

import math
from datetime import datetime, timedelta

from roomlore.core.memory.models import Memory

_DAY = timedelta(days=1)
_LONG = timedelta(days=14)


def decayed(strength: float, since_support_days: float, half_life_days: float) -> float:
    """What is left of it, in [0, 1]: half after each half-life, which is above 0. Support in the future is of now."""
    return _bounded(strength) * math.exp2(-max(since_support_days, 0.0) / half_life_days)


def raised(strength: float, by: float) -> float:
    """Stronger by this share, in [0, 1], of what is missing to 1."""
    start = _bounded(strength)
    return _bounded(start + _bounded(by) * (1.0 - start))


def strength_at(memory: Memory, now: datetime, half_life_days: float) -> float:
    """How strong it is now, in [0, 1]; what it was when a message last supported it is stored."""
    return decayed(memory.strength, (now - memory.supported_at) / _DAY, half_life_days)


def is_stale(memory: Memory, now: datetime, floor: float, half_life_days: float) -> bool:
    """Whether it has faded below the floor."""
    return strength_at(memory, now, half_life_days) < floor


def is_quiet(memory: Memory, now: datetime, floor: float, half_life_days: float) -> bool:
    """Whether it tells something that nobody spoke of it: it has faded, or went two weeks without support."""
    return is_stale(memory, now, floor, half_life_days) or now - memory.supported_at >= _LONG


def _bounded(value: float) -> float:
    return min(max(value, 0.0), 1.0)
