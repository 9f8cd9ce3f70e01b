# The image of server, worker and every other command: docker build -t roomlore .
# Behind a slow connection, from mirrors: --build-arg REGISTRY=mirror.example/library/ --build-arg PIP_INDEX_URL=https://mirror.example/simple
ARG PYTHON=3.12
ARG REGISTRY=

FROM ${REGISTRY}python:${PYTHON}-slim AS build
ARG PIP_INDEX_URL=
WORKDIR /source
COPY pyproject.toml README.md LICENSE NOTICE requirements.lock ./
COPY src ./src
COPY packages ./packages
# Versions are those of the lock file; its hashes are for `make setup`, since pip cannot check those of a folder.
RUN sed -e '/--hash=/d' -e 's/ \\$//' requirements.lock > /constraints.txt \
 && if [ -z "$PIP_INDEX_URL" ]; then unset PIP_INDEX_URL; fi \
 && python -m venv /opt/roomlore \
 && /opt/roomlore/bin/pip install --no-cache-dir --disable-pip-version-check --constraint /constraints.txt \
    '.[server,postgres,durable,redis,qdrant,embeddings,kernel,openai,langfuse,mcp,otel,sentry]' -r packages/folders.txt \
    ./packages/roomlore-kernel

FROM ${REGISTRY}python:${PYTHON}-slim
RUN groupadd --system --gid 10001 roomlore \
 && useradd --system --uid 10001 --gid roomlore --home-dir /var/lib/roomlore --create-home roomlore
COPY --from=build /opt/roomlore /opt/roomlore
ENV PATH=/opt/roomlore/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    MEMORY_HOST=0.0.0.0 \
    MEMORY_PORT=8765 \
    MEMORY_LOG_FORMAT=json \
    MEMORY_DATABASE_URL=sqlite:////var/lib/roomlore/roomlore.db
WORKDIR /var/lib/roomlore
VOLUME /var/lib/roomlore
USER 10001:10001
EXPOSE 8765
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 \
  CMD ["python", "-c", "import urllib.request as web; web.urlopen('http://127.0.0.1:8765/health/live', timeout=4)"]
ENTRYPOINT ["roomlore"]
CMD ["serve"]
