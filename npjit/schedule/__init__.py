"""Scheduling: from a Graph to a Plan of fused kernels. `schedule` is the way in; see `assemble`."""

from npjit.schedule.assemble import schedule
from npjit.schedule.cells import NotScheduled

__all__ = ["NotScheduled", "schedule"]
