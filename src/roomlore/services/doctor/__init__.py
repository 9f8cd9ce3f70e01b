"""Looking at everything roomlore depends on, at once, each look in its own time."""

from roomlore.services.doctor.examination import Probe, examine
from roomlore.services.doctor.readiness import Readiness

__all__ = ["Probe", "Readiness", "examine"]
