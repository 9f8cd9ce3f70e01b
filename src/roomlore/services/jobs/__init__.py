"""Durable work as people see it, and how it is counted."""

from roomlore.services.jobs.counted import counted
from roomlore.services.jobs.service import Job, JobService, Sweep

__all__ = ["Job", "JobService", "Sweep", "counted"]
