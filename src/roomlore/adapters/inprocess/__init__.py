"""Adapters without a server: clock, ids, durable work, background jobs and telemetry in memory."""

from roomlore.ports.backends import DURABLE, DurableBackend, Host, NoSettings
from roomlore.ports.durable import DurableWork


def _open(_: NoSettings, host: Host) -> DurableWork:
    from roomlore.adapters.inprocess.durable import InProcessWork

    return InProcessWork(clock=host.clock, at_once=host.at_once)


PROCESS = DurableBackend(kind=DURABLE, name="process", open=_open, settings=NoSettings)
