"""Providers of models that are known by name: addresses, keys, embeddings, and the models that ship.

Addresses, models and limits are those of the providers' own documentation, read in November 2026.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SUMMARY_MODEL = "memory-summary-model"
EVOLVE_MODEL = "memory-evolve-model"


@dataclass(frozen=True, slots=True)
class Provider:
    """A server that speaks OpenAI's protocol. `key_variable`: the environment variable with its API key, None if it
    needs none. `limit_field`: the provider's name for the maximum of answer tokens."""

    name: str
    base_url: str
    key_variable: str | None = None
    limit_field: str = "max_tokens"


@dataclass(frozen=True, slots=True)
class KnownEmbedding:
    """The embedding model of a provider if the settings name no other. `dimensions`: the length of its vectors.
    `lengths`: the lengths that can be asked for. `batch`: the most texts that one request may hold, None if the
    provider states no limit."""

    model: str
    dimensions: int
    lengths: tuple[int, ...] = ()
    batch: int | None = None


KNOWN_PROVIDERS: Mapping[str, Provider] = {
    provider.name: provider
    for provider in (
        Provider("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        Provider("siliconflow", "https://api.siliconflow.cn/v1", "SILICONFLOW_API_KEY"),
        Provider("deepseek", "https://api.deepseek.com", "DEEPSEEK_API_KEY"),
        Provider("dashscope", "https://dashscope.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"),
        Provider("zhipu", "https://open.bigmodel.cn/api/paas/v4", "ZAI_API_KEY"),
        Provider("moonshot", "https://api.moonshot.cn/v1", "MOONSHOT_API_KEY"),
        Provider("volcengine", "https://ark.cn-beijing.volces.com/api/v3", "ARK_API_KEY"),
        Provider("openai", "https://api.openai.com/v1", "OPENAI_API_KEY", "max_completion_tokens"),
        Provider("ollama", "http://127.0.0.1:11434/v1"),
    )
}

KNOWN_EMBEDDINGS: Mapping[str, KnownEmbedding | None] = {
    "openai": KnownEmbedding("text-embedding-3-small", 1536),
    "dashscope": KnownEmbedding("text-embedding-v4", 1024, (64, 128, 256, 512, 768, 1024, 1536, 2048), 10),
    "siliconflow": KnownEmbedding("BAAI/bge-m3", 1024),
    "zhipu": KnownEmbedding("embedding-3", 2048, (256, 512, 1024, 2048), 64),
    "ollama": KnownEmbedding("bge-m3", 1024),
    "volcengine": None,
}
"""The providers with embeddings. None: the model depends on what the account has enabled."""

_UNTHINKING = {"thinking": {"type": "disabled"}}
_UNTHINKING_QWEN = {"enable_thinking": False}

SHIPPED: Mapping[str, Any] = {
    SUMMARY_MODEL: {
        "display_name": "Memory summary",
        "internal": True,
        "providers": [
            {"name": "openrouter", "model_id": "google/gemma-3-12b-it"},
            {"name": "siliconflow", "model_id": "Qwen/Qwen2.5-7B-Instruct"},
            {"name": "deepseek", "model_id": "deepseek-v4-flash", "options": _UNTHINKING},
            {"name": "dashscope", "model_id": "qwen-flash", "options": _UNTHINKING_QWEN},
            {"name": "zhipu", "model_id": "glm-4-flash"},
            {"name": "moonshot", "model_id": "moonshot-v1-auto"},
            {"name": "volcengine", "model_id": "doubao-seed-1-6-flash-250828", "options": _UNTHINKING},
        ],
    },
    EVOLVE_MODEL: {
        "display_name": "Memory evolution",
        "internal": True,
        "providers": [
            {"name": "openrouter", "model_id": "google/gemini-2.5-flash"},
            {"name": "siliconflow", "model_id": "Qwen/Qwen2.5-72B-Instruct"},
            {"name": "deepseek", "model_id": "deepseek-v4-flash", "options": _UNTHINKING},
            {"name": "dashscope", "model_id": "qwen-plus", "options": _UNTHINKING_QWEN},
            {"name": "zhipu", "model_id": "glm-4-plus"},
            {"name": "moonshot", "model_id": "moonshot-v1-auto"},
            {"name": "volcengine", "model_id": "doubao-seed-1-6-251015", "options": _UNTHINKING},
        ],
    },
}
"""The models that roomlore itself uses. Providers without a key are skipped."""
