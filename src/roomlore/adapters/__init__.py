"""The backends that ship. Where the settings leave the choice, the first of a kind that can be used is taken."""

BACKENDS = (
    "roomlore.adapters.qdrant:QDRANT",
    "roomlore.adapters.vectors:PGVECTOR",
    "roomlore.adapters.vectors:SQL",
    "roomlore.adapters.dbos:DBOS",
    "roomlore.adapters.inprocess:PROCESS",
    "roomlore.adapters.embedding:OFFLINE",
    "roomlore.adapters.embedding:OPENAI",
    "roomlore.adapters.embedding:DASHSCOPE",
    "roomlore.adapters.embedding:SILICONFLOW",
    "roomlore.adapters.embedding:ZHIPU",
    "roomlore.adapters.embedding:VOLCENGINE",
    "roomlore.adapters.embedding:OLLAMA",
    "roomlore.adapters.chat:OPENAI",
    "roomlore.adapters.redis:REDIS",
    "roomlore.adapters.langfuse:LANGFUSE",
    "roomlore.adapters.otel:OTEL",
    "roomlore.adapters.sentry:SENTRY",
)
