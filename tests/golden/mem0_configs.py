"""Configurations as the documentation of mem0 and its users write them."""

_COUNT = {"temperature": 0.1, "max_tokens": 2000}
AZURE = {
    "azure_deployment": "chat",
    "azure_endpoint": "https://me.openai.azure.com/",
    "api_key": "k",
    "api_version": "2024-10-21",
}


def _one(part, provider, **config):
    return {part: {"provider": provider, "config": config}}


CONFIGS = {
    "qdrant-host": _one("vector_store", "qdrant", collection_name="test", host="localhost", port=6333),
    "qdrant-cloud": _one("vector_store", "qdrant", collection_name="c", url="https://q.example", api_key="k"),
    "qdrant-path": _one("vector_store", "qdrant", path="/tmp/q", on_disk=True, embedding_model_dims=1536),
    "chroma": _one("vector_store", "chroma", collection_name="test", path="db"),
    "pgvector": _one("vector_store", "pgvector", user="u", password="p", host="127.0.0.1", port="5432"),
    "pgvector-url": _one(
        "vector_store",
        "pgvector",
        connection_string="postgresql://u:p@db/m",
        collection_name="memories",
        embedding_model_dims=1536,
        hnsw=True,
    ),
    "supabase": _one(
        "vector_store",
        "supabase",
        connection_string="postgresql://u:p@db/m",
        collection_name="memories",
        index_method="hnsw",
        index_measure="cosine_distance",
    ),
    "faiss": _one("vector_store", "faiss", collection_name="t", path="/tmp/f", distance_strategy="euclidean"),
    "redis": {
        **_one(
            "vector_store",
            "redis",
            collection_name="mem0",
            embedding_model_dims=1536,
            redis_url="redis://localhost:6379",
        ),
        "version": "v1.1",
    },
    "pinecone": _one(
        "vector_store",
        "pinecone",
        collection_name="testing",
        embedding_model_dims=1536,
        api_key="k",
        namespace="mine",
        serverless_config={"cloud": "aws", "region": "us-east-1"},
        metric="cosine",
    ),
    "milvus": _one(
        "vector_store",
        "milvus",
        collection_name="t",
        embedding_model_dims=1536,
        url="127.0.0.1",
        token="k",
        db_name="d",
    ),
    "openai-key": _one("llm", "openai", model="gpt-4o-mini", api_key="k", **_COUNT),
    "openai-elsewhere": _one("llm", "openai", model="qwen", api_key="k", openai_base_url="http://here:8000/v1"),
    "azure": _one("llm", "azure_openai", model="gpt-5.4-mini", azure_kwargs=AZURE, **_COUNT),
    "anthropic": _one("llm", "anthropic", model="claude-sonnet-4-6", api_key="k", **_COUNT),
    "groq": _one("llm", "groq", model="llama-3.3-70b-versatile", api_key="k", **_COUNT),
    "litellm": _one("llm", "litellm", model="anthropic/claude-sonnet-4-6", api_key="k", temperature=0.2),
    "gemini": _one("llm", "gemini", model="gemini-2.0-flash-001", api_key="k", top_p=1.0),
    "deepseek": _one("llm", "deepseek", api_key="k", deepseek_base_url="https://d.example"),
    "bedrock": _one("llm", "aws_bedrock", model="anthropic.claude-3-5-haiku-20241022-v1:0", temperature=0.2),
    "ollama": {
        **_one("vector_store", "qdrant", collection_name="o", host="h", port=6333, embedding_model_dims=768),
        **_one("llm", "ollama", model="llama3.1:latest", ollama_base_url="http://localhost:11434", **_COUNT),
        **_one("embedder", "ollama", model="nomic-embed-text:latest", ollama_base_url="http://localhost:11434"),
    },
    "embedder-key": _one("embedder", "openai", model="text-embedding-3-large", api_key="k"),
    "embedder-azure": _one("embedder", "azure_openai", model="text-embedding-3-large", azure_kwargs=AZURE),
    "huggingface": _one("embedder", "huggingface", model="multi-qa-MiniLM-L6-cos-v1"),
    "huggingface-server": _one(
        "embedder", "huggingface", huggingface_base_url="http://localhost:3000/v1", embedding_dims=384
    ),
    "custom": {
        "history_db_path": "/tmp/history.db",
        "version": "v1.1",
        "custom_instructions": "Only food.",
        "custom_fact_extraction_prompt": "Only food.",
        "reranker": {"provider": "cohere", "config": {"model": "rerank-v3.5", "api_key": "k"}},
        "graph_store": {"provider": "neo4j", "config": {"url": "neo4j://h", "username": "u", "password": "p"}},
    },
}
