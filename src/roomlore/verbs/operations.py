"""The verbs of operators: the work done behind the calls, and the contexts that were used."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from roomlore.core.experiments import MAX_DAYS, UsageReport
from roomlore.core.models import ContextUsageRecord
from roomlore.ports.durable import WorkStatus
from roomlore.services.jobs import KIND, Job
from roomlore.verbs.table import AdminVerb, Argument, Choice, Flag, Id, Number, Page, Reference, Whole

if TYPE_CHECKING:
    from roomlore.wiring import Lore


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    """A page of jobs. `next`: the `after` of the next page; null at the end."""

    jobs: Sequence[Job]
    next: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsagePage:
    """A page of usage records. `next`: the `after` of the next page; null at the end."""

    records: Sequence[ContextUsageRecord]
    next: str | None


async def _jobs(lore: "Lore", _: str | None, *, limit: int, after: int, **which: Any) -> JobPage:
    page = await lore.jobs.page(limit=limit, offset=after, **which)
    following = after + limit if len(page) == limit and after + limit < 2**63 else None
    return JobPage(jobs=page, next=following)


async def _usage(lore: "Lore", _: str | None, *, limit: int, room: str | None = None, **which: Any) -> UsagePage:
    page = await lore.usage.page(room_id=room, limit=limit, **which)
    return UsagePage(records=page, next=page[-1].context_id if len(page) == limit else None)


async def _export(
    lore: "Lore", _: str | None, *, room: str | None = None, **which: Any
) -> AsyncIterator[Mapping[str, Any]]:
    """Return the rows. Raise what is wrong before the first is told."""
    rows = lore.usage.export(room_id=room, **which)
    first = await anext(rows, None)

    async def records() -> AsyncIterator[Mapping[str, Any]]:
        if first is not None:
            yield first
        async for row in rows:
            yield row

    return records()


_JOB = Argument("job_id", Id(), "The id that the list of jobs shows.", "任务列表中的 id。")
LIST_JOBS = AdminVerb(
    "jobs.list",
    "List the work done behind the calls, the newest first.",
    "列出各次调用背后的任务，最新的在前。",
    arguments=(
        Argument("status", Choice(get_args(WorkStatus)), "Only those that stand so.", "只看这种状态的。", None),
        Argument(
            "kind",
            Id(pattern=KIND.pattern),
            "Only this kind, such as `extraction`.",
            "只看这一类，例如 `extraction`。",
            None,
        ),
        Argument("limit", Page.SIZE, "Maximum number of jobs.", "最多多少个任务。", 20),
        Argument("after", Page.OFFSET, "The `next` of the page before; 0 begins.", "上一页的 `next`；从 0 开始。", 0),
    ),
    run=_jobs,
    answer=JobPage,
    route="GET /jobs",
    command="jobs",
)
GET_JOB = AdminVerb(
    "jobs.get",
    "Show a job.",
    "显示一个任务。",
    arguments=(_JOB,),
    run=lambda lore, _, *, job_id: lore.jobs.get(job_id),
    answer=Job,
    route="GET /jobs/{job_id}",
    command="jobs show",
)
RETRY_JOB = AdminVerb(
    "jobs.retry",
    "Run a failed or cancelled job again, in any process that works. Its finished steps are not repeated.",
    "重新执行失败或取消的任务，由任一工作进程执行；已完成的步骤不重复。",
    arguments=(_JOB,),
    run=lambda lore, _, *, job_id: lore.jobs.retry(job_id),
    answer=Job,
    route="POST /jobs/{job_id}/retry",
    command="jobs retry",
)
_DAYS = Argument("days", Number(0, MAX_DAYS, above=True), "Over the last days.", "最近多少天。", 30)
_WHICH = (
    Argument("room", Reference.NEW_ROOM, "This room only.", "只限这个房间。", None),
    Argument("arm", Id(blank=True), "This arm only.", "只看这一组。", None),
    Argument("judged", Flag(), "Only those with a feedback score.", "只看有反馈分数的。", False),
    Argument(
        "days",
        _DAYS.form,
        "Only those of the last days; by default all that are kept.",
        "只看最近几天的；默认是保留的全部。",
        None,
    ),
)
LIST_USAGE = AdminVerb(
    "usage.list",
    "List the contexts that were used, the oldest first, with the model's answers and the feedback.",
    "列出用过的上下文，最早的在前，附模型的回答和反馈。",
    arguments=(
        *_WHICH,
        Argument("after", Id(blank=True), "The id of the last one of the page before.", "上一页最后一个的 id。", None),
        Argument("limit", Whole(1, 10_000), "Maximum number of contexts.", "最多多少个上下文。", 50),
    ),
    run=_usage,
    answer=UsagePage,
    route="GET /usage",
    command="usage list",
)
REPORT_USAGE = AdminVerb(
    "usage.report",
    "Compare the arms of an experiment: contexts, tokens, scores, feedback and degradation.",
    "比较实验的各组：上下文数、token、分数、反馈和降级。",
    arguments=(_DAYS,),
    run=lambda lore, _, *, days: lore.usage.report(days=days),
    answer=UsageReport,
    route="GET /usage/report",
    command="usage report",
)
EXPORT_USAGE = AdminVerb(
    "usage.export",
    "Write contexts as JSON lines for training: the messages with features and scores, the answer, the feedback.\n\n"
    "Contexts for messages that were deleted, or whose senders were forgotten, are left out.",
    "把上下文导出为训练用的 JSON Lines：消息及其特征和分数、回答、反馈。\n\n消息已删除或发送者已被遗忘的上下文不导出。",
    arguments=_WHICH,
    run=_export,
    answer=AsyncIterator[Mapping[str, Any]],
    route="GET /usage/export",
    command="usage export",
)
VERBS = (LIST_JOBS, GET_JOB, RETRY_JOB, LIST_USAGE, REPORT_USAGE, EXPORT_USAGE)
