"""Made from the async client by `make reference`; a test compares the two."""

# ruff: noqa: A002
import builtins
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeVar, type_check_only

from roomlore.core.audience import EvidenceRoom, Member, RoomKind, RoomPeople
from roomlore.core.chat import ChatAnswer, ChatPiece, ChatRequest, ModelStatus, ToolCall
from roomlore.core.context import Context
from roomlore.core.deletion import RoomReport
from roomlore.core.digest.digest import Digest
from roomlore.core.digest.overview import Overview
from roomlore.core.evaluation import Evaluation
from roomlore.core.evolution.requests import BegunEvolution, EvolutionResult
from roomlore.core.experiments import UsageReport
from roomlore.core.health import Finding
from roomlore.core.integrity import VerifyProgress, VerifyReport
from roomlore.core.memory.memory import Blame, Change, Evolution, Memory, MemoryAnswer, MemoryDiff, MemoryKind, Source
from roomlore.core.memory.versions import AddedFact, FactImport, Remembered
from roomlore.core.memory.writing import Keep, NewMemory
from roomlore.core.models import (
    AddReport,
    ApiKey,
    ContextUsageRecord,
    CorrectedEntry,
    Correction,
    Entry,
    Explanation,
    Heading,
    Message,
    Room,
    StoredMessage,
    Thread,
)
from roomlore.core.privacy import ForgetReport
from roomlore.core.quotas import Standing
from roomlore.core.recall.recollection import ConversationMessage, Recollection
from roomlore.core.records import ImportReport
from roomlore.core.replies.reply import Reply, ReplyStarted, ReplyText, Tool, ToolDone, ToolResult, ToolsWanted
from roomlore.core.search.hits import SearchAnswer
from roomlore.core.sessions.session import Checkpoint, Session, SessionContext, SessionValue, SessionWindow, TurnResult
from roomlore.core.tuning import TuningReport
from roomlore.core.visibility import SeenIn, Visibility
from roomlore.ports.coordination import SessionCache
from roomlore.ports.durable import DurableWork
from roomlore.ports.language import ChatClient, Describer, Embedder, Summarizer
from roomlore.ports.vectors import VectorIndex
from roomlore.services.archives import ArchiveReport
from roomlore.services.contexts.strategies import Strategy
from roomlore.services.indexing.index_service import IndexProgress, IndexStatus
from roomlore.services.jobs import Job
from roomlore.services.models import ModelTrial
from roomlore.settings.model import Settings
from roomlore.storage.values import Archive
from roomlore.wiring.lore import Lore

T = TypeVar("T")

@type_check_only
class SyncMessageService:
    def add(
        self, messages: Message | Sequence[Message], *, on_conflict: Literal["raise", "report"] = "raise"
    ) -> AddReport: ...
    def get(self, room_id: str, message_id: str, *, viewer: str | None = None) -> Entry: ...
    def named(self, room_id: str, part: str) -> str: ...
    def page(
        self, room_id: str, *, after: int = 0, limit: int = 100, viewer: str | None = None
    ) -> list[StoredMessage]: ...
    def search(
        self,
        room_id: str | None = None,
        query: str = "",
        *,
        viewer: str | None = None,
        limit: int = 10,
        mode: Literal["hybrid", "lexical"] = "hybrid",
        sender_ids: Sequence[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        asked_at: datetime | Literal["newest"] | None = None,
        conversation: bool = False,
        neighbours: bool = False,
    ) -> SearchAnswer: ...
    def edit(
        self,
        room_id: str,
        message_id: str,
        *,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        mentions: Sequence[str] | None = None,
        edited_at: datetime | None = None,
    ) -> StoredMessage: ...
    def delete(self, room_id: str, message_ids: str | Sequence[str]) -> int: ...
    def export(self, room_id: str | None = None) -> Iterator[StoredMessage]: ...

@type_check_only
class SyncLinkService:
    def correct(
        self, room_id: str, message_id: str, *, answers: str | None, by: str = "caller", at: datetime | None = None
    ) -> CorrectedEntry: ...
    def undo(self, room_id: str, message_id: str, *, by: str = "caller") -> CorrectedEntry: ...
    def catch_up(self, corrected: CorrectedEntry) -> CorrectedEntry: ...
    def corrections(self, room_id: str, *, before: int | None = None, limit: int = 100) -> list[Correction]: ...
    def in_force(self, *, after: tuple[str, int] = ..., limit: int = 100) -> list[Correction]: ...

@type_check_only
class SyncIndexingService:
    def status(self) -> IndexStatus: ...
    def rebuild(
        self, *, part: Literal["words", "vectors"] | None = None, resume: bool = False
    ) -> Iterator[IndexProgress]: ...
    def drain(self) -> Iterator[IndexProgress]: ...
    def relink(self) -> Iterator[IndexProgress]: ...
    def relink_slowly(self) -> None: ...
    def catch_up(self) -> None: ...

@type_check_only
class SyncContextService:
    def build(
        self,
        room_id: str,
        message_id: str | None = None,
        *,
        strategy: str | None = None,
        max_messages: int | None = None,
        min_messages: int | None = None,
        max_tokens: int | None = None,
        viewer: str | None = None,
    ) -> Context: ...
    def compare(
        self,
        room_id: str,
        message_id: str | None = None,
        *,
        max_messages: int | None = None,
        max_tokens: int | None = None,
        viewer: str | None = None,
    ) -> list[Explanation]: ...
    def usage(self, context_id: str, *, viewer: str | None = None) -> ContextUsageRecord: ...
    def respond(self, context_id: str, text: str, *, viewer: str | None = None) -> None: ...
    def feedback(
        self, context_id: str, *, text: str | None = None, score: float | None = None, viewer: str | None = None
    ) -> None: ...

@type_check_only
class SyncUsageService:
    def page(
        self,
        *,
        room_id: str | None = None,
        arm: str | None = None,
        judged: bool = False,
        days: float | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> list[ContextUsageRecord]: ...
    def export(
        self, *, room_id: str | None = None, arm: str | None = None, judged: bool = False, days: float | None = None
    ) -> Iterator[dict[str, Any]]: ...
    def report(self, *, days: float = 30) -> UsageReport: ...

@type_check_only
class SyncSessionService:
    def create_session(
        self,
        conversation_id: str,
        user_id: str = "",
        *,
        enterprise_id: str | None = None,
        patient_id: str | None = None,
        session: SessionValue | Mapping[str, Any] | None = None,
        viewer: str | None = None,
    ) -> SessionValue: ...
    def get_session(self, conversation_id: str, *, viewer: str | None = None) -> SessionValue: ...
    def find(self, conversation_id: str, *, viewer: str | None = None) -> Session: ...
    def page(self, *, after: str | None = None, limit: int = 100, viewer: str | None = None) -> list[Session]: ...
    def patch_state(
        self, conversation_id: str, patch: Mapping[str, Any], *, viewer: str | None = None
    ) -> SessionValue: ...
    def query_context(
        self,
        conversation_id: str,
        query: str = "",
        token_threshold_ratio: float | None = None,
        recent_turns: int | None = None,
        model_context_window: int | None = None,
        *,
        enterprise_id: str | None = None,
        patient_id: str | None = None,
        viewer: str | None = None,
    ) -> SessionContext: ...
    def preview_context(
        self,
        conversation_id: str,
        query: str = "",
        token_threshold_ratio: float | None = None,
        recent_turns: int | None = None,
        model_context_window: int | None = None,
        *,
        viewer: str | None = None,
    ) -> SessionContext: ...
    def query_window(
        self, conversation_id: str, model_context_window: int | None = None, *, viewer: str | None = None
    ) -> SessionWindow: ...
    def write_turn(
        self,
        conversation_id: str,
        user_id: str = "",
        agent_code: str = "",
        user_query: str | None = None,
        agent_response: str | None = None,
        *,
        turn_id: str | None = None,
        sent_at: datetime | None = None,
    ) -> TurnResult: ...
    def add_messages(
        self,
        conversation_id: str,
        messages: Sequence[Message],
        *,
        user_id: str = "",
        agent_code: str = "",
        turn_id: str = "",
    ) -> TurnResult: ...
    def checkpoint(
        self,
        conversation_id: str,
        summary: str,
        recent_turns: int | None = None,
        covers_through: str | None = None,
        context: SessionContext | str | None = None,
        expected_checkpoint: str | None = None,
        *,
        viewer: str | None = None,
    ) -> Checkpoint: ...
    def summarise(self, conversation_id: str, *, viewer: str | None = None) -> Checkpoint | None: ...
    def begin_summary(self, conversation_id: str, *, viewer: str | None = None) -> str: ...
    def reset(self, conversation_id: str, *, viewer: str | None = None) -> SessionValue: ...
    def checkpoints(
        self, conversation_id: str, *, before: int | None = None, limit: int = 100, viewer: str | None = None
    ) -> list[Checkpoint]: ...
    def messages(
        self, conversation_id: str, *, limit: int | None = None, viewer: str | None = None
    ) -> list[StoredMessage]: ...
    def catch_up(self) -> int: ...

@type_check_only
class SyncMemoryService:
    def add(
        self,
        scope: str,
        statement: str,
        *,
        kind: MemoryKind = ...,
        confidence: float | None = ...,
        category: str = ...,
        tags: Sequence[str] = ...,
        owner: str = ...,
        said_by: Sequence[str] = ...,
        valid_from: datetime | date | None = ...,
        valid_until: datetime | date | None = ...,
        sources: Sequence[Source] = ...,
        evidence: Sequence[EvidenceRoom] = ...,
        memory_id: str | None = ...,
        created_at: datetime | None = ...,
        updated_at: datetime | None = ...,
        made_by: str = ...,
        reason: str = ...,
    ) -> Memory: ...
    def add_all(
        self, memories: Sequence[NewMemory], *, on_conflict: Literal["raise", "report"] = "raise"
    ) -> list[Remembered]: ...
    def add_told(self, memories: Sequence[NewMemory], *, viewer: str | None = None) -> list[AddedFact]: ...
    def update(
        self,
        memory_id: str,
        *,
        expected: str | None = None,
        reason: str = "",
        viewer: str | None = None,
        statement: str | None = ...,
        confidence: float | Keep | None = ...,
        category: str | None = ...,
        tags: Sequence[str] | None = ...,
        owner: str | None = ...,
        said_by: Sequence[str] | None = ...,
        valid_from: datetime | date | Keep | None = ...,
        valid_until: datetime | date | Keep | None = ...,
        sources: Sequence[Source] | None = ...,
    ) -> Memory: ...
    def delete(self, memory_id: str, reason: str = "", *, expected: str | None = None) -> Memory: ...
    def import_facts(
        self,
        source: Path | str | bytes | Mapping[str, Any] | Sequence[Any],
        *,
        form: str | None = None,
        scope: str | None = None,
        dry_run: bool = False,
    ) -> FactImport: ...
    def head(self, memory_id: str, *, viewer: str | None = None) -> Memory: ...
    def check_shown(self, memory_id: str, viewer: str | None) -> None: ...
    def check_changeable(self, memory_id: str, viewer: str | None, *, citing: Sequence[Source] = ...) -> None: ...
    def as_told(self, memories: Sequence[Memory], viewer: str | None) -> list[Memory]: ...
    def check_cited(self, sources: Sequence[Source], viewer: str | None) -> None: ...
    def check_new(self, memories: Sequence[NewMemory], viewer: str | None) -> list[NewMemory]: ...
    def count(
        self,
        scope: str,
        *,
        kinds: Sequence[MemoryKind] = ...,
        status: Literal["active", "ended", "deprecated", "all"] = "active",
        viewer: str | None = None,
    ) -> int: ...
    def page(
        self,
        scope: str,
        *,
        kinds: Sequence[MemoryKind] = ...,
        status: Literal["active", "ended", "deprecated", "all"] = "active",
        limit: int = 100,
        offset: int = 0,
        viewer: str | None = None,
    ) -> list[Memory]: ...
    def visible(self, viewer: str, *, scope: str | None = None) -> list[Visibility]: ...
    def seen_in(self, memory_id: str) -> SeenIn: ...
    def get(self, memory_id: str, *, viewer: str | None = None) -> Memory: ...
    def named(self, part: str, what: Literal["memory", "evolution"] = "memory") -> str: ...
    def history(self, memory_id: str, *, viewer: str | None = None) -> list[Memory]: ...
    def changes(
        self, scope: str, *, after: int = 0, limit: int = 100, since: datetime | None = None
    ) -> list[Change]: ...
    def latest_changes(
        self, scope: str, *, before: int | None = None, limit: int = 100, since: datetime | None = None
    ) -> list[Change]: ...
    def as_of(self, scope: str, at: datetime) -> list[Memory]: ...
    def diff(self, scope: str, start: datetime, end: datetime | None = None) -> MemoryDiff: ...
    def blame(self, memory_id: str) -> Blame: ...
    def revert(self, evolution_id: str, reason: str = "") -> list[Change]: ...
    def restore(self, memory_id: str, reason: str = "") -> Memory: ...
    def strength(self, memory_id: str, value: float, reason: str = "") -> Memory: ...
    def share(self, memory_id: str, with_: str, *, by: str | None = None, reason: str = "") -> Memory: ...
    def unshare(self, memory_id: str, with_: str, *, by: str | None = None, reason: str = "") -> Memory: ...
    def search(
        self,
        group_id: str,
        q: str,
        *,
        limit: int = 5,
        threshold: float = 0.7,
        include_ended: bool = False,
        viewer: str | None = None,
    ) -> MemoryAnswer: ...
    def evolve(
        self, group_id: str, *, days: float = 1, mode: Literal["auto", "llm", "rules", "offline"] = "auto"
    ) -> EvolutionResult: ...
    def begin_evolution(
        self, group_id: str, *, days: float = 1, mode: Literal["auto", "llm", "rules", "offline"] = "auto"
    ) -> BegunEvolution: ...
    def evolved(self, evolution_id: str) -> EvolutionResult: ...
    def evolution(self, evolution_id: str) -> Evolution: ...
    def evolutions(self, scope: str, *, before: str | None = None, limit: int = 20) -> list[Evolution]: ...

@type_check_only
class SyncRecallService:
    def build(
        self,
        scopes: Sequence[str],
        messages: Sequence[ConversationMessage | Message | Mapping[str, Any]],
        *,
        max_tokens: int | None = ...,
        max_context_turns: int | None = ...,
        similarity_weight: float | None = ...,
        confidence_weight: float | None = ...,
        similarity: Literal["tfidf", "embedding", "hybrid"] | None = ...,
        kinds: Sequence[MemoryKind] = ...,
        conversation_id: str | None = ...,
        previous: Sequence[str] | None = ...,
        include_ended: bool = ...,
        viewer: str | None = ...,
    ) -> Recollection: ...
    def memory_prompt(
        self,
        scopes: Sequence[str],
        messages: Sequence[ConversationMessage | Message | Mapping[str, Any]],
        *,
        max_tokens: int | None = ...,
        max_context_turns: int | None = ...,
        similarity_weight: float | None = ...,
        confidence_weight: float | None = ...,
        similarity: Literal["tfidf", "embedding", "hybrid"] | None = ...,
        kinds: Sequence[MemoryKind] = ...,
        conversation_id: str | None = ...,
        previous: Sequence[str] | None = ...,
        include_ended: bool = ...,
        viewer: str | None = ...,
    ) -> str: ...

@type_check_only
class SyncModelService:
    def list_available_models(self, *, internal: bool = False) -> list[ModelStatus]: ...
    def can_ask(self, model_id: str) -> bool: ...
    def has_provider(self, model_id: str) -> bool: ...
    def test(self, model_id: str | None = None) -> list[ModelTrial]: ...
    def complete(
        self,
        model_id: str,
        request: ChatRequest,
        *,
        timeout_seconds: float | None = None,
        check: Callable[[ChatAnswer], None] | None = None,
    ) -> ChatAnswer: ...
    def stream(
        self, model_id: str, request: ChatRequest, *, timeout_seconds: float | None = None
    ) -> Generator[ChatPiece]: ...

@type_check_only
class SyncJobService:
    def page(
        self,
        *,
        status: Literal["waiting", "running", "done", "failed", "cancelled"] | None = None,
        kind: str | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[Job]: ...
    def get(self, job_id: str) -> Job: ...
    def wait(self, job_id: str, seconds: float = 30.0) -> Job: ...
    def retry(self, job_id: str) -> Job: ...
    def begin(self) -> None: ...
    def works_here(self) -> bool: ...
    def catch_up(self, *, seconds: float = 300.0) -> int: ...

@type_check_only
class SyncReplyService:
    def stream(
        self,
        message: Message,
        *,
        agent_id: str = ...,
        agent_name: str = ...,
        model_id: str | None = ...,
        system_prompt: str | None = ...,
        temperature: float | None = ...,
        max_tokens: int | None = ...,
        model_context_window: int | None = ...,
        tools: Sequence[Tool] = ...,
        call_tool: Callable[[ToolCall], str | Awaitable[str]] | None = ...,
        tool_results: Sequence[ToolResult] = ...,
        max_tool_iterations: int | None = ...,
        options: Mapping[str, Any] | None = ...,
        shown: Sequence[str] = ...,
    ) -> Generator[ReplyStarted | ReplyText | ToolsWanted | ToolDone | Reply]: ...
    def reply(
        self,
        message: Message,
        *,
        agent_id: str = ...,
        agent_name: str = ...,
        model_id: str | None = ...,
        system_prompt: str | None = ...,
        temperature: float | None = ...,
        max_tokens: int | None = ...,
        model_context_window: int | None = ...,
        tools: Sequence[Tool] = ...,
        call_tool: Callable[[ToolCall], str | Awaitable[str]] | None = ...,
        tool_results: Sequence[ToolResult] = ...,
        max_tool_iterations: int | None = ...,
        options: Mapping[str, Any] | None = ...,
        shown: Sequence[str] = ...,
    ) -> Reply: ...
    def model(self, model_id: str | None = None) -> str: ...
    def check(
        self,
        message: Message,
        *,
        agent_id: str = ...,
        agent_name: str = ...,
        model_id: str | None = ...,
        system_prompt: str | None = ...,
        temperature: float | None = ...,
        max_tokens: int | None = ...,
        model_context_window: int | None = ...,
        tools: Sequence[Tool] = ...,
        call_tool: Callable[[ToolCall], str | Awaitable[str]] | None = ...,
        tool_results: Sequence[ToolResult] = ...,
        max_tool_iterations: int | None = ...,
        options: Mapping[str, Any] | None = ...,
        shown: Sequence[str] = ...,
    ) -> None: ...
    def find(self, room_id: str, message_id: str, *, agent_id: str = "assistant") -> Reply | None: ...

@type_check_only
class SyncPrivacyService:
    def check_person(self, user_id: str) -> None: ...
    def person_named(self, name: str) -> str: ...
    def forget(
        self, user_id: str, *, dry_run: bool = False, same_words: bool = False, is_id: bool = False
    ) -> ForgetReport: ...
    def begin_forgetting(self, user_id: str, *, same_words: bool = False, is_id: bool = False) -> str: ...
    def forgetting_job(self, user_id: str) -> str | None: ...
    def forgotten(self, job_id: str, user_id: str, *, same_words: bool = False) -> ForgetReport: ...
    def is_being_forgotten(self, user_id: str) -> bool: ...
    def verify(
        self, scope: str | None = None, *, progress: Callable[[VerifyProgress], None] | None = None
    ) -> VerifyReport: ...

@type_check_only
class SyncRoomService:
    def get(self, room_id: str) -> Room: ...
    def named(self, name: str, *, viewer: str | None = None, or_new: bool = False) -> str: ...
    def scope_named(self, scope: str, *, viewer: str | None = None) -> str: ...
    def check_there(self, scope: str) -> None: ...
    def meant(self, name: str, *, viewer: str | None = None) -> str: ...
    def check_shown(self, room_id: str, viewer: str | None) -> None: ...
    def page(self, *, after: str | None = None, limit: int = 100, viewer: str | None = None) -> list[Room]: ...
    def threads(self, room_id: str, *, after: int = 0, limit: int = 100) -> list[tuple[int, Thread]]: ...
    def headings(
        self, room_id: str, message_ids: Sequence[str], *, viewer: str | None = None
    ) -> dict[str, Heading]: ...
    def mark_read(self, room_id: str, user_id: str, message_id: str | None = None) -> int: ...
    def thread(self, room_id: str, message_id: str, *, limit: int = 100) -> list[Entry]: ...
    def settings(self, room_id: str) -> dict[str, tuple[Any, str]]: ...
    def configure(self, room_id: str, changes: Mapping[str, Any]) -> Room: ...
    def set_kind(self, room_id: str, kind: RoomKind | str | None, *, since: datetime | None = None) -> Room: ...
    def rename(self, room_id: str, name: str) -> Room: ...
    def delete(self, room_id: str, *, dry_run: bool = False) -> RoomReport: ...
    def begin_deletion(self, room_id: str) -> RoomReport: ...
    def people(self, room_id: str) -> RoomPeople: ...
    def set_members(self, room_id: str, members: Sequence[Member | str]) -> RoomPeople: ...
    def add_members(self, room_id: str, members: Sequence[Member | str]) -> RoomPeople: ...
    def remove_members(self, room_id: str, people: Sequence[str], *, at: datetime | None = None) -> RoomPeople: ...

@type_check_only
class SyncKeyService:
    def create(self, name: str, *, scopes: Sequence[str] = ...) -> tuple[ApiKey, str]: ...
    def list(self, *, all_tenants: bool = False) -> builtins.list[ApiKey]: ...
    def revoke(self, key_id: str) -> str: ...
    def authenticate(self, secret: str) -> ApiKey: ...
    def any(self) -> bool: ...

@type_check_only
class SyncQuotaService:
    def admit(self) -> None: ...
    def standing(self, tenant: str | None = None) -> list[Standing]: ...
    def tenants(self) -> list[str]: ...
    def own(self) -> Mapping[str, int | None]: ...
    def set(
        self,
        *,
        messages_a_day: int | None = ...,
        model_tokens_a_day: int | None = ...,
        messages_kept: int | None = ...,
        requests_a_minute: int | None = ...,
        attachments_a_day: int | None = ...,
        attachment_bytes_a_day: int | None = ...,
    ) -> Mapping[str, int | None]: ...
    def reset(self, names: Sequence[str] = ...) -> Mapping[str, int | None]: ...

@type_check_only
class SyncArchiveService:
    def run(self, *, days: int, room_id: str | None = None) -> ArchiveReport: ...
    def kept(self, room_id: str | None = None) -> list[Archive]: ...
    def restore(self, archive_id: str | None = None, *, room_id: str | None = None) -> ArchiveReport: ...
    def check(self) -> list[str]: ...

@type_check_only
class SyncImportService:
    def run(
        self,
        paths: Path | str | Sequence[Path | str],
        *,
        format: str | None = None,
        room_id: str | None = None,
        timezone: str | None = None,
        day: str | None = None,
        resume: bool = True,
        progress: Callable[[int, int, int], None] | None = None,
        processes: int = 1,
    ) -> ImportReport: ...

@type_check_only
class SyncTuningService:
    def run(
        self,
        labels: Iterable[Mapping[str, Any]] | None = None,
        *,
        rooms: Sequence[str] | None = None,
        folds: int = 5,
        apply: bool = False,
    ) -> TuningReport: ...

@type_check_only
class SyncEvaluationService:
    def run(
        self,
        rooms: Sequence[str] | None = None,
        *,
        questions: Iterable[Mapping[str, Any]] | None = None,
        forbidden: Iterable[Mapping[str, Any]] | None = None,
        sample: int = 300,
        seed: int = 0,
    ) -> Evaluation: ...

class SyncLore:
    tenant: str
    messages: SyncMessageService
    links: SyncLinkService
    index: SyncIndexingService
    context: SyncContextService
    usage: SyncUsageService
    sessions: SyncSessionService
    memories: SyncMemoryService
    recall: SyncRecallService
    models: SyncModelService
    jobs: SyncJobService
    replies: SyncReplyService
    privacy: SyncPrivacyService
    rooms: SyncRoomService
    keys: SyncKeyService
    quotas: SyncQuotaService
    archives: SyncArchiveService
    imports: SyncImportService
    tuning: SyncTuningService
    evaluation: SyncEvaluationService
    @property
    def settings(self) -> Settings: ...
    def for_tenant(self, tenant: str) -> SyncLore: ...
    def now(self) -> datetime: ...
    def metrics(self) -> Mapping[str, float | None]: ...
    def prometheus(self) -> bytes: ...
    def series(self, name: str) -> Sequence[tuple[Mapping[str, str], float]]: ...
    def bounds(self, name: str) -> tuple[float, ...]: ...
    def remember(
        self,
        about: Room | str,
        statement: str,
        *,
        viewer: str | None = None,
        kind: MemoryKind = ...,
        confidence: float | None = ...,
        category: str = ...,
        tags: Sequence[str] = ...,
        owner: str = ...,
        said_by: Sequence[str] = ...,
        valid_from: datetime | date | None = ...,
        valid_until: datetime | date | None = ...,
        sources: Sequence[Source] = ...,
        evidence: Sequence[EvidenceRoom] = ...,
        memory_id: str | None = ...,
        created_at: datetime | None = ...,
        updated_at: datetime | None = ...,
        made_by: str = ...,
        reason: str = ...,
    ) -> AddedFact: ...
    def ask(
        self,
        room: Room | str | None,
        question: str,
        *,
        viewer: str | None = None,
        limit: int = ...,
        mode: Literal["hybrid", "lexical"] = ...,
        sender_ids: Sequence[str] | None = ...,
        since: datetime | None = ...,
        until: datetime | None = ...,
        asked_at: datetime | Literal["newest"] | None = ...,
        conversation: bool = ...,
        neighbours: bool = ...,
    ) -> SearchAnswer: ...
    def digest(
        self,
        room_id: str,
        *,
        since: datetime | None = None,
        for_user: str | None = None,
        max_tokens: int = 800,
        viewer: str | None = None,
        mode: Literal["auto", "llm", "rules", "offline"] = "auto",
    ) -> Digest: ...
    def overview(
        self, *, since: datetime, person: str | None = None, viewer: str | None = None, part: int = 1
    ) -> Overview: ...
    def examine(self, *, timeout_seconds: float = 10.0) -> list[Finding]: ...
    def ping(self) -> None: ...
    def ready(self) -> None: ...
    def close(self) -> None: ...
    def wait(self, work: Callable[[Lore], Coroutine[Any, Any, T]]) -> T: ...

def connect_sync(
    url: str | PathLike[str] | None = None,
    *,
    tenant: str = "default",
    settings: Settings | None = None,
    background: bool = True,
    embedder: Embedder | None = ...,
    summarizer: Summarizer | None = ...,
    vectors: VectorIndex | None = ...,
    durable: DurableWork | None = ...,
    chat: ChatClient | None = ...,
    cache: SessionCache | None = ...,
    strategies: Mapping[str, Strategy] | None = ...,
    describer: Describer | None = ...,
) -> SyncLore: ...
@contextmanager
def open_sync(
    url: str | PathLike[str] | None = None,
    *,
    tenant: str = "default",
    settings: Settings | None = None,
    background: bool = True,
    embedder: Embedder | None = ...,
    summarizer: Summarizer | None = ...,
    vectors: VectorIndex | None = ...,
    durable: DurableWork | None = ...,
    chat: ChatClient | None = ...,
    cache: SessionCache | None = ...,
    strategies: Mapping[str, Strategy] | None = ...,
    describer: Describer | None = ...,
) -> Iterator[SyncLore]: ...
