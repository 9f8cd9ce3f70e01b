"""Looking at everything roomlore depends on, at once, each look in its own time."""

from roomlore.services.doctor.examination import Probe, examine

__all__ = ["Probe", "examine"]
