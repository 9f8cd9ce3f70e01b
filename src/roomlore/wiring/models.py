"""The backends that the settings name, opened; language models, prompts, telemetry and access tokens, which need no
database."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from roomlore.adapters.inprocess import SystemClock
from roomlore.adapters.prompts import PackagedPrompts
from roomlore.adapters.telemetry import PrometheusTelemetry
from roomlore.core.chat import SUMMARY_MODEL, ModelRegistry, trials
from roomlore.core.errors import InvalidInput
from roomlore.core.intake import Limits
from roomlore.ports.backends import CHAT, PROMPTS, REPORTS, TRACERS, Backend, Host, Kind, PromptServer
from roomlore.ports.coordination import Clock, ErrorReports, SessionCache, Telemetry, Tracer
from roomlore.ports.durable import DurableWork, Work
from roomlore.ports.language import ChatClient, Prompts, Summarizer, TokenCounter
from roomlore.ports.quotas import QuotaChecks
from roomlore.ports.shared import Backends
from roomlore.services.jobs import counted
from roomlore.services.keys import TokenService
from roomlore.services.models import ChainSummarizer, ModelService
from roomlore.settings import Settings

T = TypeVar("T")
C = TypeVar("C", bound=PromptServer | ChatClient | SessionCache | Tracer | ErrorReports)


async def usable(kind: Kind[T], settings: Settings, host: Host) -> list[Backend[T, Any]]:
    """Return the backends that can be used here, the best first. Raise the reason if the settings name one that cannot
    be."""
    named = settings.named(kind) not in ("auto", "off")
    backends = []
    for backend in settings.candidates(kind):
        refusal = await backend.refuses(settings.of(backend), host)
        if refusal is None:
            backends.append(backend)
        elif named:
            raise refusal
    return backends


def opened(backend: Backend[T, Any], settings: Settings, host: Host) -> T:
    """Return the backend, opened with its settings."""
    return backend.open(settings.of(backend), host)


def open_configured(kind: Kind[C], settings: Settings, host: Host, closing: AsyncExitStack) -> C | None:
    """Open the first backend whose settings are complete, and close it with `closing`; None if there is none."""
    candidates = settings.candidates(kind)
    if not candidates:
        return None
    backend = opened(candidates[0], settings, host)
    closing.push_async_callback(backend.close)
    return backend


@dataclass(frozen=True, slots=True, kw_only=True)
class Common(Backends):
    """The dependencies of every part of one process. `closing`: is closed with it. `background`: jobs run here."""

    settings: Settings
    telemetry: PrometheusTelemetry
    limits: Limits
    closing: AsyncExitStack
    background: bool


def host_of(common: Common, url: str = "") -> Host:
    """Return what a backend may use of roomlore. `url`: of the database."""
    return Host(
        url=url,
        clock=common.clock,
        storage=common.storage,
        telemetry=common.telemetry,
        packaged=PackagedPrompts(),
        at_once=common.settings.work.work_at_once,
    )


def define(common: Common, durable: DurableWork, kind: str, work: Work) -> None:
    """Define durable work, which is counted and timed."""
    durable.define(kind, counted(kind, work, clock=common.clock, telemetry=common.telemetry))


def make_prompts(common: Common) -> Prompts:
    """Return the built-in prompts, or those of a configured prompt server first. No request is sent yet."""
    host = host_of(common)
    return open_configured(PROMPTS, common.settings, host, common.closing) or PackagedPrompts()


def make_models(
    settings: Settings,
    *,
    clock: Clock,
    telemetry: Telemetry,
    closing: AsyncExitStack,
    client: ChatClient | None = None,
    quotas: QuotaChecks | None = None,
    tokens: TokenCounter | None = None,
) -> ModelService:
    """Return the chain of the configured models, with the keys in the environment now. `client`: the caller's own.
    `quotas`: of the tenants, None to count nothing. `tokens`: for answers whose tokens a provider does not report. No
    request is sent yet."""
    registry = ModelRegistry.read(settings.language_models.models, settings.language_models.providers)
    if client is None:
        client = open_configured(CHAT, settings, Host(url="", clock=clock), closing)
    else:
        closing.push_async_callback(client.close)
    return ModelService(
        trials=trials(settings.attachments.caption_model, settings.attachments.transcript_model),
        registry=registry,
        client=client,
        keys=settings.environment_keys(registry.key_variables()),
        clock=clock,
        telemetry=telemetry,
        timeout_seconds=settings.language_models.model_timeout_seconds,
        quotas=quotas,
        tokens=tokens,
    )


async def summarizer_of(models: ModelService, settings: Settings) -> Summarizer | None:
    """Return the summarizer of sessions; None if no provider of its model can be asked."""
    if await models.has_provider(SUMMARY_MODEL):
        return ChainSummarizer(
            models=models, prompts=PackagedPrompts(), timeout_seconds=settings.language_models.summary_timeout_seconds
        )
    return None


@asynccontextmanager
async def open_models(settings: Settings) -> AsyncIterator[ModelService]:
    """Open the model chain alone, for callers without a database."""
    clock = SystemClock()
    async with AsyncExitStack() as closing:
        yield make_models(settings, clock=clock, telemetry=PrometheusTelemetry(clock), closing=closing)


def make_telemetry(settings: Settings, *, clock: Clock, closing: AsyncExitStack) -> PrometheusTelemetry:
    """Return the telemetry. Spans are made and errors sent only if a receiver is configured."""
    host = Host(url="", clock=clock)
    tracer = open_configured(TRACERS, settings, host, closing)
    return PrometheusTelemetry(clock, tracer, open_configured(REPORTS, settings, host, closing))


def make_tokens(settings: Settings) -> TokenService | None:
    """Return the access tokens of the authorization server `oauth_issuer`; None if it is not set. Raise `InvalidInput`
    if the extra `mcp` is not installed."""
    server = settings.server
    if not server.oauth_issuer:
        return None
    try:
        from roomlore.adapters.oauth import IssuerTokens
    except ModuleNotFoundError as error:
        raise oauth_missing(error) from error
    tokens = IssuerTokens(server.oauth_issuer, audience=server.oauth_resource)
    return TokenService(verify=tokens.verify, user_claim=server.oauth_user_claim)


def oauth_missing(error: ModuleNotFoundError) -> InvalidInput:
    """Return the error about the extra that `oauth_issuer` needs."""
    return InvalidInput("oauth_not_installed", name=error.name)
