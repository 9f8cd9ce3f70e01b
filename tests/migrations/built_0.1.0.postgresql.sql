SELECT pg_catalog.set_config('search_path', '', false);
CREATE FUNCTION public.roomlore_postings(its_room bigint, its_tenant text, asked text) RETURNS TABLE(place bigint, found bytea)
    LANGUAGE plpgsql STABLE
    SET enable_bitmapscan TO 'on'
    SET enable_indexscan TO 'off'
    SET enable_seqscan TO 'off'
    AS $$
BEGIN
    RETURN QUERY
    SELECT asked_for.number - 1, (
        SELECT string_agg(
            int8send((w.arrival << 10) | w.length) || float4send(
                CASE WHEN length(w.words) = w.length THEN 0 ELSE ts_rank('{1,1,1,1}', w.words, q.word) END
            ), ''
        )
        FROM message_words w
        WHERE w.words @@ q.word AND w.tenant = its_tenant
    )
    FROM jsonb_array_elements_text(asked::jsonb) WITH ORDINALITY AS asked_for (word, number),
         LATERAL (SELECT ('''' || to_hex(its_room) || 'x' || asked_for.word || '''')::tsquery AS word) AS q;
END
$$;
CREATE TABLE public.checkpoints (
    room_key bigint NOT NULL,
    number bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    checkpoint_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    summary text NOT NULL,
    covers_arrival bigint NOT NULL,
    covers_through text COLLATE pg_catalog."C",
    turns bigint NOT NULL,
    tokens bigint NOT NULL,
    recent_turns bigint NOT NULL,
    language text NOT NULL,
    made_by text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL
);
CREATE TABLE public.messages (
    room_key bigint NOT NULL,
    arrival bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    message_id text NOT NULL COLLATE pg_catalog."C",
    sender_id text NOT NULL COLLATE pg_catalog."C",
    sender_name text NOT NULL,
    role text NOT NULL,
    text text NOT NULL,
    sent_at bigint NOT NULL,
    sent_at_estimated boolean NOT NULL,
    reply_to text COLLATE pg_catalog."C",
    root_id text COLLATE pg_catalog."C",
    turn_id text COLLATE pg_catalog."C",
    mentions text NOT NULL,
    has_tool_calls boolean NOT NULL,
    metadata text NOT NULL,
    tokens bigint NOT NULL,
    content_hash text NOT NULL,
    edited_at bigint,
    deleted_at bigint,
    heard_from bigint,
    heard_until bigint,
    topic_id text COLLATE pg_catalog."C"
);
CREATE TABLE public.rooms (
    room_key bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    room_id text NOT NULL COLLATE pg_catalog."C",
    next_arrival bigint NOT NULL,
    revision bigint NOT NULL,
    messages bigint NOT NULL,
    created_at bigint NOT NULL,
    last_sent_at bigint,
    settings text NOT NULL,
    words bigint DEFAULT '0'::bigint NOT NULL,
    index_version bigint DEFAULT '0'::bigint NOT NULL,
    linked_by text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    link_walk text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    link_walked bigint DEFAULT '0'::bigint NOT NULL,
    calibration text DEFAULT ''::text NOT NULL,
    kind text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    members_told boolean DEFAULT false NOT NULL,
    past_kinds text DEFAULT ''::text NOT NULL,
    room_name text DEFAULT ''::text NOT NULL,
    pending_from bigint
);
CREATE VIEW public.ai_message AS
 SELECT q.message_id,
    r.room_id AS conversation_id,
    q.text AS query,
    a.text AS answer,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((q.sent_at)::double precision * '00:00:00.000001'::interval)) AS create_time,
    q.sender_id AS create_by,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((COALESCE(a.edited_at, a.sent_at, q.edited_at))::double precision * '00:00:00.000001'::interval)) AS update_time,
    COALESCE(a.sender_id,
        CASE
            WHEN (q.edited_at IS NOT NULL) THEN q.sender_id
            ELSE NULL::text
        END) AS update_by,
    q.tenant
   FROM ((public.messages q
     JOIN public.rooms r ON ((r.room_key = q.room_key)))
     LEFT JOIN public.messages a ON (((a.room_key = q.room_key) AND (a.arrival = ( SELECT s.arrival
           FROM public.messages s
          WHERE ((s.room_key = q.room_key) AND (s.turn_id = q.turn_id) AND (s.role = 'assistant'::text) AND (s.deleted_at IS NULL))
          ORDER BY s.has_tool_calls, s.arrival DESC
         LIMIT 1)))))
  WHERE ((q.role = 'user'::text) AND (q.deleted_at IS NULL) AND (NOT (EXISTS ( SELECT 1
           FROM public.messages s
          WHERE ((s.room_key = q.room_key) AND (s.turn_id = q.turn_id) AND (s.role = 'user'::text) AND (s.deleted_at IS NULL) AND (s.arrival < q.arrival))))))
UNION ALL
 SELECT a.message_id,
    r.room_id AS conversation_id,
    NULL::text AS query,
    a.text AS answer,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((a.sent_at)::double precision * '00:00:00.000001'::interval)) AS create_time,
    a.sender_id AS create_by,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((a.edited_at)::double precision * '00:00:00.000001'::interval)) AS update_time,
        CASE
            WHEN (a.edited_at IS NOT NULL) THEN a.sender_id
            ELSE NULL::text
        END AS update_by,
    a.tenant
   FROM (public.messages a
     JOIN public.rooms r ON ((r.room_key = a.room_key)))
  WHERE ((a.role = 'assistant'::text) AND (a.deleted_at IS NULL) AND (NOT (EXISTS ( SELECT 1
           FROM public.messages s
          WHERE ((s.room_key = a.room_key) AND (s.turn_id = a.turn_id) AND (s.deleted_at IS NULL) AND ((s.role = 'user'::text) OR ((s.role = 'assistant'::text) AND ((s.has_tool_calls < a.has_tool_calls) OR ((s.has_tool_calls = a.has_tool_calls) AND (s.arrival > a.arrival))))))))))
UNION ALL
 SELECT c.checkpoint_id AS message_id,
    r.room_id AS conversation_id,
    '[MEMORY_CHECKPOINT]'::text AS query,
    (
        CASE c.language
            WHEN 'zh'::text THEN '历史摘要: '::text
            ELSE 'Summary: '::text
        END || c.summary) AS answer,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((c.created_at)::double precision * '00:00:00.000001'::interval)) AS create_time,
    c.made_by AS create_by,
    NULL::timestamp with time zone AS update_time,
    NULL::text AS update_by,
    c.tenant
   FROM (public.checkpoints c
     JOIN public.rooms r ON ((r.room_key = c.room_key)))
  WHERE (c.kind = 'summary'::text);
CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.api_keys (
    key_id text NOT NULL COLLATE pg_catalog."C",
    tenant text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    scopes text NOT NULL,
    secret_hash text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    revoked_at bigint
);
CREATE TABLE public.archives (
    tenant text NOT NULL COLLATE pg_catalog."C",
    archive_id text NOT NULL COLLATE pg_catalog."C",
    room_id text NOT NULL COLLATE pg_catalog."C",
    phase text NOT NULL,
    file text NOT NULL,
    first_arrival bigint NOT NULL,
    last_arrival bigint NOT NULL,
    messages bigint NOT NULL,
    bytes bigint NOT NULL,
    checksum text NOT NULL,
    archived_at bigint NOT NULL
);
CREATE TABLE public.context_usage_records (
    tenant text NOT NULL COLLATE pg_catalog."C",
    context_id text NOT NULL COLLATE pg_catalog."C",
    room_id text NOT NULL COLLATE pg_catalog."C",
    user_id text NOT NULL COLLATE pg_catalog."C",
    trigger_message_id text NOT NULL COLLATE pg_catalog."C",
    strategy text NOT NULL,
    context_message_ids text NOT NULL,
    relevance_scores text NOT NULL,
    tokens bigint NOT NULL,
    window_tokens bigint NOT NULL,
    build_ms double precision NOT NULL,
    created_at bigint NOT NULL,
    degraded text,
    arm text,
    llm_response text,
    user_feedback text,
    success_indicator double precision,
    mean_score double precision
);
CREATE VIEW public.context_usage_record AS
 SELECT context_id,
    room_id AS group_id,
    user_id,
    trigger_message_id,
    strategy,
    arm,
    (
        CASE
            WHEN (strpos(context_message_ids, '\u0000'::text) = 0) THEN replace(context_message_ids, chr(26), '\u001a'::text)
            ELSE regexp_replace(replace(context_message_ids, chr(26), '\u001a'::text), '(?<!\\)((\\\\)*)\\u0000'::text, '\1\\u001a0'::text, 'g'::text)
        END)::jsonb AS context_message_ids,
    (
        CASE
            WHEN (strpos(relevance_scores, '\u0000'::text) = 0) THEN replace(relevance_scores, chr(26), '\u001a'::text)
            ELSE regexp_replace(replace(relevance_scores, chr(26), '\u001a'::text), '(?<!\\)((\\\\)*)\\u0000'::text, '\1\\u001a0'::text, 'g'::text)
        END)::jsonb AS relevance_scores,
    mean_score,
    tokens,
    window_tokens,
    build_ms,
    degraded,
    llm_response,
    user_feedback,
    success_indicator,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((created_at)::double precision * '00:00:00.000001'::interval)) AS created_at,
    tenant
   FROM public.context_usage_records u;
CREATE TABLE public.evolutions (
    tenant text NOT NULL COLLATE pg_catalog."C",
    evolution_id text NOT NULL COLLATE pg_catalog."C",
    scope text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    status text NOT NULL,
    room_id text NOT NULL COLLATE pg_catalog."C",
    first_arrival bigint NOT NULL,
    last_arrival bigint NOT NULL,
    messages bigint NOT NULL,
    prompt_name text NOT NULL,
    prompt_hash text NOT NULL,
    model text NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    raw_answer text NOT NULL,
    quarantined text NOT NULL,
    facts text NOT NULL,
    error text NOT NULL,
    started_at bigint NOT NULL,
    finished_at bigint NOT NULL
);
CREATE TABLE public.import_positions (
    tenant text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL COLLATE pg_catalog."C",
    "position" text NOT NULL,
    saved_at bigint NOT NULL
);
CREATE TABLE public.index_outbox (
    room_key bigint NOT NULL,
    arrival bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    queued bigint NOT NULL,
    leased_until bigint,
    lease bigint
);
CREATE TABLE public.index_states (
    name text NOT NULL COLLATE pg_catalog."C",
    model text NOT NULL,
    dimensions bigint NOT NULL,
    generation text NOT NULL,
    cursor text,
    updated_at bigint NOT NULL
);
CREATE TABLE public.keyword_counts (
    room_key bigint NOT NULL,
    keyword text NOT NULL COLLATE pg_catalog."C",
    tenant text NOT NULL COLLATE pg_catalog."C",
    messages bigint NOT NULL
);
CREATE TABLE public.leases (
    tenant text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    holder text NOT NULL COLLATE pg_catalog."C",
    until bigint NOT NULL
);
CREATE TABLE public.link_corrections (
    room_key bigint NOT NULL,
    arrival bigint NOT NULL,
    number bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    answers bigint,
    standing boolean NOT NULL,
    corrected_by text NOT NULL,
    at bigint NOT NULL,
    model text NOT NULL,
    errors text NOT NULL
);
CREATE TABLE public.memories (
    memory_key bigint NOT NULL,
    scope_key bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    memory_id text NOT NULL COLLATE pg_catalog."C",
    lineage_id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    head boolean NOT NULL,
    merged_into text COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    statement text NOT NULL,
    tags text NOT NULL,
    category text NOT NULL,
    strength double precision NOT NULL,
    confidence double precision,
    parents text NOT NULL,
    sources text NOT NULL,
    change_summary text NOT NULL,
    evolution_id text COLLATE pg_catalog."C",
    made_by text NOT NULL,
    fallback boolean NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    supported_at bigint NOT NULL,
    evidence text DEFAULT '[]'::text NOT NULL,
    shared_with text DEFAULT '[]'::text NOT NULL,
    doubtful text DEFAULT ''::text NOT NULL,
    owner text DEFAULT ''::text NOT NULL,
    said_by text DEFAULT '[]'::text NOT NULL,
    valid_from bigint,
    valid_until bigint,
    CONSTRAINT ck_memories_active_is_head CHECK ((head OR (status = 'deprecated'::text)))
);
CREATE SEQUENCE public.memories_memory_key_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.memories_memory_key_seq OWNED BY public.memories.memory_key;
CREATE TABLE public.memory_changes (
    scope_key bigint NOT NULL,
    number bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    action text NOT NULL,
    memory_id text NOT NULL COLLATE pg_catalog."C",
    memory text NOT NULL,
    closes text NOT NULL,
    old_statement text,
    reason text NOT NULL,
    evolution_id text COLLATE pg_catalog."C",
    undoes text COLLATE pg_catalog."C",
    actor text NOT NULL,
    at bigint NOT NULL
);
CREATE TABLE public.memory_scopes (
    scope_key bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    scope text NOT NULL COLLATE pg_catalog."C",
    changes bigint NOT NULL,
    active bigint NOT NULL,
    created_at bigint NOT NULL,
    index_version bigint DEFAULT '0'::bigint NOT NULL
);
CREATE VIEW public.memory_change_log AS
 SELECT c.number,
    c.memory_id,
    m.lineage_id,
    s.scope,
        CASE
            WHEN (substr(s.scope, 1, 6) = 'group:'::text) THEN substr(s.scope, 7)
            ELSE NULL::text
        END AS group_id,
    c.action,
    c.old_statement,
        CASE
            WHEN (((
            CASE
                WHEN (strpos(c.memory, '\u0000'::text) = 0) THEN replace(c.memory, chr(26), '\u001a'::text)
                ELSE regexp_replace(replace(c.memory, chr(26), '\u001a'::text), '(?<!\\)((\\\\)*)\\u0000'::text, '\1\\u001a0'::text, 'g'::text)
            END)::jsonb ->> 'status'::text) = 'active'::text) THEN m.statement
            ELSE NULL::text
        END AS new_statement,
        CASE
            WHEN (c.reason <> ''::text) THEN c.reason
            ELSE m.change_summary
        END AS change_summary,
    m.version,
    m.kind,
    (((
        CASE
            WHEN (strpos(c.memory, '\u0000'::text) = 0) THEN replace(c.memory, chr(26), '\u001a'::text)
            ELSE regexp_replace(replace(c.memory, chr(26), '\u001a'::text), '(?<!\\)((\\\\)*)\\u0000'::text, '\1\\u001a0'::text, 'g'::text)
        END)::jsonb ->> 'strength'::text))::double precision AS strength,
    m.doubtful,
    (
        CASE
            WHEN (strpos(m.tags, '\u0000'::text) = 0) THEN replace(m.tags, chr(26), '\u001a'::text)
            ELSE regexp_replace(replace(m.tags, chr(26), '\u001a'::text), '(?<!\\)((\\\\)*)\\u0000'::text, '\1\\u001a0'::text, 'g'::text)
        END)::jsonb AS tags,
    (
        CASE
            WHEN (strpos(m.sources, '\u0000'::text) = 0) THEN replace(m.sources, chr(26), '\u001a'::text)
            ELSE regexp_replace(replace(m.sources, chr(26), '\u001a'::text), '(?<!\\)((\\\\)*)\\u0000'::text, '\1\\u001a0'::text, 'g'::text)
        END)::jsonb AS sources,
    (
        CASE
            WHEN (strpos(c.closes, '\u0000'::text) = 0) THEN replace(c.closes, chr(26), '\u001a'::text)
            ELSE regexp_replace(replace(c.closes, chr(26), '\u001a'::text), '(?<!\\)((\\\\)*)\\u0000'::text, '\1\\u001a0'::text, 'g'::text)
        END)::jsonb AS closes,
    c.evolution_id,
    c.undoes,
    c.actor,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((c.at)::double precision * '00:00:00.000001'::interval)) AS created_at,
    c.tenant
   FROM ((public.memory_changes c
     JOIN public.memory_scopes s ON ((s.scope_key = c.scope_key)))
     LEFT JOIN public.memories m ON (((m.tenant = c.tenant) AND (m.memory_id = c.memory_id))));
CREATE TABLE public.memory_outbox (
    scope_key bigint NOT NULL,
    memory_key bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    queued bigint NOT NULL,
    leased_until bigint,
    lease bigint
);
CREATE SEQUENCE public.memory_scopes_scope_key_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.memory_scopes_scope_key_seq OWNED BY public.memory_scopes.scope_key;
CREATE TABLE public.memory_snapshots (
    scope_key bigint NOT NULL,
    number bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL,
    reached_from bigint NOT NULL,
    in_force text NOT NULL
);
CREATE TABLE public.memory_sources (
    tenant text NOT NULL COLLATE pg_catalog."C",
    room_id text NOT NULL COLLATE pg_catalog."C",
    message_id text NOT NULL COLLATE pg_catalog."C",
    memory_key bigint NOT NULL
);
CREATE TABLE public.message_features (
    room_key bigint NOT NULL,
    arrival bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    message_type text NOT NULL,
    mentions text NOT NULL,
    addressed text NOT NULL,
    mentions_all boolean NOT NULL,
    keywords text NOT NULL,
    reply text,
    partners text NOT NULL,
    link_kind text NOT NULL,
    thread bigint NOT NULL,
    parent bigint,
    parent_probability double precision NOT NULL,
    new_probability double precision NOT NULL,
    thread_candidates bytea NOT NULL
);
CREATE TABLE public.message_words (
    room_key bigint NOT NULL,
    arrival bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    length bigint NOT NULL,
    changed bigint NOT NULL,
    words tsvector NOT NULL,
    pending boolean DEFAULT false NOT NULL
);
CREATE TABLE public.participants (
    room_key bigint NOT NULL,
    sender_id text NOT NULL COLLATE pg_catalog."C",
    tenant text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    first_arrival bigint NOT NULL,
    last_arrival bigint NOT NULL,
    messages bigint NOT NULL,
    first_spoke_at bigint,
    last_spoke_at bigint,
    answers boolean DEFAULT false NOT NULL
);
CREATE TABLE public.room_members (
    room_key bigint NOT NULL,
    person_id text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    told_at bigint NOT NULL,
    joined_at bigint,
    left_at bigint
);
CREATE TABLE public.rooms_due (
    work text NOT NULL COLLATE pg_catalog."C",
    tenant text NOT NULL COLLATE pg_catalog."C",
    room_id text NOT NULL COLLATE pg_catalog."C",
    noted bigint NOT NULL,
    noted_at bigint NOT NULL,
    leased_until bigint
);
CREATE SEQUENCE public.rooms_room_key_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.rooms_room_key_seq OWNED BY public.rooms.room_key;
CREATE TABLE public.sessions (
    room_key bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    user_id text NOT NULL COLLATE pg_catalog."C",
    enterprise_id text COLLATE pg_catalog."C",
    patient_id text COLLATE pg_catalog."C",
    agent_key text NOT NULL COLLATE pg_catalog."C",
    boundary bigint NOT NULL,
    state text NOT NULL,
    checkpoint bigint,
    version bigint NOT NULL,
    marks bigint NOT NULL,
    due_at bigint,
    due_tries bigint NOT NULL,
    due_window bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE TABLE public.signing_keys (
    name text NOT NULL COLLATE pg_catalog."C",
    secret text NOT NULL
);
CREATE TABLE public.tenant_counts (
    tenant text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    period bigint NOT NULL,
    amount bigint NOT NULL
);
CREATE TABLE public.tenant_limits (
    tenant text NOT NULL COLLATE pg_catalog."C",
    limits text NOT NULL,
    changed_at bigint NOT NULL
);
CREATE TABLE public.thread_titles (
    room_key bigint NOT NULL,
    thread bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    title text NOT NULL,
    messages bigint NOT NULL,
    made_by text NOT NULL,
    at bigint NOT NULL
);
CREATE TABLE public.vector_collections (
    collection text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    model text NOT NULL,
    dimensions bigint NOT NULL,
    generation text NOT NULL,
    epoch bigint NOT NULL
);
CREATE TABLE public.vector_scopes (
    scope_key bigint NOT NULL,
    collection text NOT NULL COLLATE pg_catalog."C",
    epoch bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    scope text NOT NULL COLLATE pg_catalog."C",
    stamp bigint NOT NULL
);
CREATE SEQUENCE public.vector_scopes_scope_key_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.vector_scopes_scope_key_seq OWNED BY public.vector_scopes.scope_key;
CREATE TABLE public.vectors (
    vector_key bigint NOT NULL,
    scope_key bigint NOT NULL,
    number bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    vector bytea
);
CREATE TABLE public.watermarks (
    tenant text NOT NULL COLLATE pg_catalog."C",
    room_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    arrival bigint NOT NULL,
    updated_at bigint NOT NULL
);
ALTER TABLE ONLY public.memories ALTER COLUMN memory_key SET DEFAULT nextval('public.memories_memory_key_seq'::regclass);
ALTER TABLE ONLY public.memory_scopes ALTER COLUMN scope_key SET DEFAULT nextval('public.memory_scopes_scope_key_seq'::regclass);
ALTER TABLE ONLY public.rooms ALTER COLUMN room_key SET DEFAULT nextval('public.rooms_room_key_seq'::regclass);
ALTER TABLE ONLY public.vector_scopes ALTER COLUMN scope_key SET DEFAULT nextval('public.vector_scopes_scope_key_seq'::regclass);
INSERT INTO public.alembic_version VALUES ('0028');
INSERT INTO public.api_keys VALUES ('01a22cbe860d7b2689cacf507509a7c8', 'default', 'console', '["read"]', '785cd5474b563e40be50eb759b9e8c4c59a64a3c8116a2cf32d0a46b5a184fa6', 1796047013389710, NULL);
INSERT INTO public.checkpoints VALUES (3, 1, 'default', '01a22cbe860b7158adf9811b09602217', 'summary', '问了两个问题 Two questions', 4, 't2-answer', 2, 7, 8, 'zh', 'caller', 1796047013387067);
INSERT INTO public.context_usage_records VALUES ('default', '01a22cbe858a765681ae7d70fb05c544', 'tea', 'bo', 'm5', 'threaded', '["m1","m2","m3","m4"]', '{"m1":1.0,"m2":1.0,"m3":0.6701457236591134,"m4":1.0}', 55, 55, 15.139584000280593, 1796047013258603, NULL, NULL, 'The deploy works', 'helpful 有用', 1, 0.9175364309147783);
INSERT INTO public.evolutions VALUES ('default', '01a22cbe85c07a08a75c0c2533859820', 'group:tea', 'evolution', 'applied', 'tea', 1, 10, 9, '', '', '', 0, 0, '', '[]', '{"mode":"offline","kept":0,"remaining":0,"lines":[]}', '', 1796047013323462, 1796047013339415);
INSERT INTO public.index_states VALUES ('messages', 'hash', 64, '01a22cbe86187912a9f62a23d83aa110', NULL, 1796047013451073);
INSERT INTO public.index_states VALUES ('memories', 'hash', 64, '01a22cbe861d7916ac7d78c45c94ca7f', NULL, 1796047013469375);
INSERT INTO public.keyword_counts VALUES (1, '部署', 'default', 2);
INSERT INTO public.keyword_counts VALUES (1, '失败', 'default', 1);
INSERT INTO public.keyword_counts VALUES (1, '日志', 'default', 2);
INSERT INTO public.keyword_counts VALUES (1, 'deploy', 'default', 2);
INSERT INTO public.keyword_counts VALUES (1, 'failed', 'default', 1);
INSERT INTO public.keyword_counts VALUES (1, '内存不足', 'default', 1);
INSERT INTO public.keyword_counts VALUES (1, 'lunch', 'default', 1);
INSERT INTO public.keyword_counts VALUES (1, 'noon', 'default', 2);
INSERT INTO public.keyword_counts VALUES (1, '内存', 'default', 1);
INSERT INTO public.keyword_counts VALUES (1, '加', 'default', 1);
INSERT INTO public.keyword_counts VALUES (1, 'gb', 'default', 1);
INSERT INTO public.keyword_counts VALUES (1, 'work', 'default', 1);
INSERT INTO public.keyword_counts VALUES (1, 'café', 'default', 1);
INSERT INTO public.keyword_counts VALUES (1, 'bar', 'default', 1);
INSERT INTO public.keyword_counts VALUES (1, '记下', 'default', 1);
INSERT INTO public.keyword_counts VALUES (1, '中午', 'default', 1);
INSERT INTO public.keyword_counts VALUES (1, '吃面', 'default', 1);
INSERT INTO public.keyword_counts VALUES (1, 'stand-up', 'default', 1);
INSERT INTO public.keyword_counts VALUES (1, 'monday', 'default', 1);
INSERT INTO public.keyword_counts VALUES (1, 'blue', 'default', 1);
INSERT INTO public.keyword_counts VALUES (1, 'room', 'default', 1);
INSERT INTO public.keyword_counts VALUES (1, 'dumpling', 'default', 1);
INSERT INTO public.link_corrections VALUES (1, 7, 1, 'default', 'answers', 3, true, 'ann', 1796047013235048, 'f743af7c4380cfe8', '[2411, 5198, 8713, 12187, 15103, 17328, 107114, 96244, 86565, 78144, 71014, 65170, 60572, 71014, 71014, 71014, 71014, 71014, 71014, 184283, 142681, 104293, 71014, 44689, 26082]');
INSERT INTO public.memories VALUES (1, 1, 'default', '01a22cbe85987c97bad2b08c49c5986e', '01a22cbe85987c97bad2b08c49c5986e', 1, true, NULL, 'active', 'fact', 'Ann drinks green tea', '[]', '', 1, NULL, '[]', '[["tea","m1"]]', '', NULL, 'caller', false, 1796047013266582, 1796047013266582, 1796047013266582, '[["tea",1793610060000000,1793610060000000]]', '[]', '', 'ann', '["ann"]', NULL, NULL);
INSERT INTO public.memories VALUES (2, 1, 'default', '01a22cbe85a67170b52ddf361bd2a9a0', '01a22cbe85a67170b52ddf361bd2a9a0', 1, true, NULL, 'active', 'fact', '喜欢在周一早上部署', '["部署"]', '', 1, NULL, '[]', '[]', '', NULL, 'caller', false, 1796047013284811, 1796047013284811, 1796047013284811, '[]', '[]', '', 'ann', '[]', NULL, NULL);
INSERT INTO public.memories VALUES (3, 2, 'default', '01a22cbe85ab71919cd1ae81524af333', '01a22cbe85ab71919cd1ae81524af333', 1, false, NULL, 'deprecated', 'fact', 'The team meets on Fridays', '[]', '', 1, NULL, '[]', '[["tea","m3"]]', '', NULL, 'caller', false, 1796047013288971, 1796047013288971, 1796047013288971, '[["tea",1793610180000000,1793610180000000]]', '[]', '', '', '["cy"]', NULL, NULL);
INSERT INTO public.memories VALUES (4, 2, 'default', '01a22cbe85b3737cb7444445210f7f44', '01a22cbe85ab71919cd1ae81524af333', 2, true, NULL, 'active', 'fact', '团队每周四开会', '[]', '', 1, NULL, '["01a22cbe85ab71919cd1ae81524af333"]', '[["tea","m3"]]', 'moved', NULL, 'caller', false, 1796047013288971, 1796047013296336, 1796047013296336, '[["tea",1793610180000000,1793610180000000]]', '[]', '', '', '["cy"]', NULL, NULL);
INSERT INTO public.memories VALUES (5, 2, 'default', '01a22cbe85b9765ab69a49951a5cff04', '01a22cbe85b9765ab69a49951a5cff04', 1, true, NULL, 'deprecated', 'fact', 'The printer is broken', '[]', '', 1, NULL, '[]', '[]', 'repaired', NULL, 'caller', false, 1796047013304299, 1796047013304299, 1796047013304299, '[]', '[]', '', '', '[]', NULL, NULL);
INSERT INTO public.memories VALUES (6, 2, 'default', '01a22cbe85db714395e4ff700874c7c0', '01a22cbe85db714395e4ff700874c7c0', 1, true, NULL, 'deprecated', 'group', 'Ann（2026-11-02）：@Bo 把内存加到 4 GB 再部署【关于：Lunch at noon? 🍜；同意：Bo】', '[]', '', 0.5, NULL, '[]', '[["tea","m4"],["tea","m5"]]', 'too early', '01a22cbe85c07a08a75c0c2533859820', 'offline', false, 1796047013338793, 1796047013338793, 1796047013338793, '[["tea",1793610240000000,1793610300000000]]', '[]', '', '', '["ann","bo"]', NULL, NULL);
INSERT INTO public.memories VALUES (7, 2, 'default', '01a22cbe85db7210987f89dc46a3a13c', '01a22cbe85db7210987f89dc46a3a13c', 1, true, NULL, 'deprecated', 'group', 'Ann (2026-11-02): From now on stand-up is every Monday at 9 in the blue room [agreed: Bo]', '["change"]', '', 0.5, NULL, '[]', '[["tea","m9"],["tea","m10"]]', 'too early', '01a22cbe85c07a08a75c0c2533859820', 'offline', false, 1796047013338793, 1796047013338793, 1796047013338793, '[["tea",1793610540000000,1793610600000000]]', '[]', '', '', '["ann","bo"]', NULL, NULL);
INSERT INTO public.memory_changes VALUES (1, 1, 'default', 'create', '01a22cbe85987c97bad2b08c49c5986e', '{"memory_id":"01a22cbe85987c97bad2b08c49c5986e","lineage_id":"01a22cbe85987c97bad2b08c49c5986e","kind":"fact","statement":"Ann drinks green tea","version":1,"parents":[],"status":"active","tags":[],"category":"","strength":1.0,"confidence":null,"sources":[["tea","m1"]],"evidence":[["tea",1793610060000000,1793610060000000]],"shared_with":[],"change_summary":"","evolution_id":null,"made_by":"caller","fallback":false,"doubtful":"","owner":"ann","said_by":["ann"],"valid_from":null,"valid_until":null,"created_at":1796047013266582,"updated_at":1796047013266582,"supported_at":1796047013266582}', '[]', NULL, '', NULL, NULL, 'caller', 1796047013266582);
INSERT INTO public.memory_changes VALUES (1, 2, 'default', 'create', '01a22cbe85a67170b52ddf361bd2a9a0', '{"memory_id":"01a22cbe85a67170b52ddf361bd2a9a0","lineage_id":"01a22cbe85a67170b52ddf361bd2a9a0","kind":"fact","statement":"喜欢在周一早上部署","version":1,"parents":[],"status":"active","tags":["部署"],"category":"","strength":1.0,"confidence":null,"sources":[],"evidence":[],"shared_with":[],"change_summary":"","evolution_id":null,"made_by":"caller","fallback":false,"doubtful":"","owner":"ann","said_by":[],"valid_from":null,"valid_until":null,"created_at":1796047013284811,"updated_at":1796047013284811,"supported_at":1796047013284811}', '[]', NULL, '', NULL, NULL, 'caller', 1796047013284811);
INSERT INTO public.memory_changes VALUES (2, 1, 'default', 'create', '01a22cbe85ab71919cd1ae81524af333', '{"memory_id":"01a22cbe85ab71919cd1ae81524af333","lineage_id":"01a22cbe85ab71919cd1ae81524af333","kind":"fact","statement":"The team meets on Fridays","version":1,"parents":[],"status":"active","tags":[],"category":"","strength":1.0,"confidence":null,"sources":[["tea","m3"]],"evidence":[["tea",1793610180000000,1793610180000000]],"shared_with":[],"change_summary":"","evolution_id":null,"made_by":"caller","fallback":false,"doubtful":"","owner":"","said_by":["cy"],"valid_from":null,"valid_until":null,"created_at":1796047013288971,"updated_at":1796047013288971,"supported_at":1796047013288971}', '[]', NULL, '', NULL, NULL, 'caller', 1796047013288971);
INSERT INTO public.memory_changes VALUES (2, 2, 'default', 'update', '01a22cbe85b3737cb7444445210f7f44', '{"memory_id":"01a22cbe85b3737cb7444445210f7f44","lineage_id":"01a22cbe85ab71919cd1ae81524af333","kind":"fact","statement":"团队每周四开会","version":2,"parents":["01a22cbe85ab71919cd1ae81524af333"],"status":"active","tags":[],"category":"","strength":1.0,"confidence":null,"sources":[["tea","m3"]],"evidence":[["tea",1793610180000000,1793610180000000]],"shared_with":[],"change_summary":"moved","evolution_id":null,"made_by":"caller","fallback":false,"doubtful":"","owner":"","said_by":["cy"],"valid_from":null,"valid_until":null,"created_at":1796047013288971,"updated_at":1796047013296336,"supported_at":1796047013296336}', '["01a22cbe85ab71919cd1ae81524af333"]', 'The team meets on Fridays', 'moved', NULL, NULL, 'caller', 1796047013296336);
INSERT INTO public.memory_changes VALUES (2, 3, 'default', 'create', '01a22cbe85b9765ab69a49951a5cff04', '{"memory_id":"01a22cbe85b9765ab69a49951a5cff04","lineage_id":"01a22cbe85b9765ab69a49951a5cff04","kind":"fact","statement":"The printer is broken","version":1,"parents":[],"status":"active","tags":[],"category":"","strength":1.0,"confidence":null,"sources":[],"evidence":[],"shared_with":[],"change_summary":"","evolution_id":null,"made_by":"caller","fallback":false,"doubtful":"","owner":"","said_by":[],"valid_from":null,"valid_until":null,"created_at":1796047013304299,"updated_at":1796047013304299,"supported_at":1796047013304299}', '[]', NULL, '', NULL, NULL, 'caller', 1796047013304299);
INSERT INTO public.memory_changes VALUES (2, 4, 'default', 'delete', '01a22cbe85b9765ab69a49951a5cff04', '{"memory_id":"01a22cbe85b9765ab69a49951a5cff04","lineage_id":"01a22cbe85b9765ab69a49951a5cff04","kind":"fact","statement":"The printer is broken","version":1,"parents":[],"status":"deprecated","tags":[],"category":"","strength":1.0,"confidence":null,"sources":[],"evidence":[],"shared_with":[],"change_summary":"repaired","evolution_id":null,"made_by":"caller","fallback":false,"doubtful":"","owner":"","said_by":[],"valid_from":null,"valid_until":null,"created_at":1796047013304299,"updated_at":1796047013304299,"supported_at":1796047013304299}', '[]', 'The printer is broken', 'repaired', NULL, NULL, 'caller', 1796047013307569);
INSERT INTO public.memory_changes VALUES (2, 5, 'default', 'create', '01a22cbe85db714395e4ff700874c7c0', '{"memory_id":"01a22cbe85db714395e4ff700874c7c0","lineage_id":"01a22cbe85db714395e4ff700874c7c0","kind":"group","statement":"Ann（2026-11-02）：@Bo 把内存加到 4 GB 再部署【关于：Lunch at noon? 🍜；同意：Bo】","version":1,"parents":[],"status":"active","tags":[],"category":"","strength":0.5,"confidence":null,"sources":[["tea","m4"],["tea","m5"]],"evidence":[["tea",1793610240000000,1793610300000000]],"shared_with":[],"change_summary":"消息里定了规矩，另有 1 人认可。","evolution_id":"01a22cbe85c07a08a75c0c2533859820","made_by":"offline","fallback":false,"doubtful":"","owner":"","said_by":["ann","bo"],"valid_from":null,"valid_until":null,"created_at":1796047013338793,"updated_at":1796047013338793,"supported_at":1796047013338793}', '[]', NULL, '消息里定了规矩，另有 1 人认可。', '01a22cbe85c07a08a75c0c2533859820', NULL, 'offline', 1796047013338793);
INSERT INTO public.memory_changes VALUES (2, 6, 'default', 'create', '01a22cbe85db7210987f89dc46a3a13c', '{"memory_id":"01a22cbe85db7210987f89dc46a3a13c","lineage_id":"01a22cbe85db7210987f89dc46a3a13c","kind":"group","statement":"Ann (2026-11-02): From now on stand-up is every Monday at 9 in the blue room [agreed: Bo]","version":1,"parents":[],"status":"active","tags":["change"],"category":"","strength":0.5,"confidence":null,"sources":[["tea","m9"],["tea","m10"]],"evidence":[["tea",1793610540000000,1793610600000000]],"shared_with":[],"change_summary":"A message says what changes, and one other agreed.","evolution_id":"01a22cbe85c07a08a75c0c2533859820","made_by":"offline","fallback":false,"doubtful":"","owner":"","said_by":["ann","bo"],"valid_from":null,"valid_until":null,"created_at":1796047013338793,"updated_at":1796047013338793,"supported_at":1796047013338793}', '[]', NULL, 'A message says what changes, and one other agreed.', '01a22cbe85c07a08a75c0c2533859820', NULL, 'offline', 1796047013338793);
INSERT INTO public.memory_changes VALUES (2, 7, 'default', 'revert', '01a22cbe85db7210987f89dc46a3a13c', '{"memory_id":"01a22cbe85db7210987f89dc46a3a13c","lineage_id":"01a22cbe85db7210987f89dc46a3a13c","kind":"group","statement":"Ann (2026-11-02): From now on stand-up is every Monday at 9 in the blue room [agreed: Bo]","version":1,"parents":[],"status":"deprecated","tags":["change"],"category":"","strength":0.5,"confidence":null,"sources":[["tea","m9"],["tea","m10"]],"evidence":[["tea",1793610540000000,1793610600000000]],"shared_with":[],"change_summary":"too early","evolution_id":"01a22cbe85c07a08a75c0c2533859820","made_by":"offline","fallback":false,"doubtful":"","owner":"","said_by":["ann","bo"],"valid_from":null,"valid_until":null,"created_at":1796047013338793,"updated_at":1796047013338793,"supported_at":1796047013338793}', '[]', 'Ann (2026-11-02): From now on stand-up is every Monday at 9 in the blue room [agreed: Bo]', 'too early', NULL, '01a22cbe85c07a08a75c0c2533859820', 'caller', 1796047013348600);
INSERT INTO public.memory_changes VALUES (2, 8, 'default', 'revert', '01a22cbe85db714395e4ff700874c7c0', '{"memory_id":"01a22cbe85db714395e4ff700874c7c0","lineage_id":"01a22cbe85db714395e4ff700874c7c0","kind":"group","statement":"Ann（2026-11-02）：@Bo 把内存加到 4 GB 再部署【关于：Lunch at noon? 🍜；同意：Bo】","version":1,"parents":[],"status":"deprecated","tags":[],"category":"","strength":0.5,"confidence":null,"sources":[["tea","m4"],["tea","m5"]],"evidence":[["tea",1793610240000000,1793610300000000]],"shared_with":[],"change_summary":"too early","evolution_id":"01a22cbe85c07a08a75c0c2533859820","made_by":"offline","fallback":false,"doubtful":"","owner":"","said_by":["ann","bo"],"valid_from":null,"valid_until":null,"created_at":1796047013338793,"updated_at":1796047013338793,"supported_at":1796047013338793}', '[]', 'Ann（2026-11-02）：@Bo 把内存加到 4 GB 再部署【关于：Lunch at noon? 🍜；同意：Bo】', 'too early', NULL, '01a22cbe85c07a08a75c0c2533859820', 'caller', 1796047013348600);
INSERT INTO public.memory_scopes VALUES (2, 'default', 'group:tea', 8, 1, 1796047013288971, 1);
INSERT INTO public.memory_scopes VALUES (1, 'default', 'user:ann', 2, 2, 1796047013266582, 1);
INSERT INTO public.memory_sources VALUES ('default', 'tea', 'm1', 1);
INSERT INTO public.memory_sources VALUES ('default', 'tea', 'm3', 3);
INSERT INTO public.memory_sources VALUES ('default', 'tea', 'm3', 4);
INSERT INTO public.memory_sources VALUES ('default', 'tea', 'm4', 6);
INSERT INTO public.memory_sources VALUES ('default', 'tea', 'm5', 6);
INSERT INTO public.memory_sources VALUES ('default', 'tea', 'm9', 7);
INSERT INTO public.memory_sources VALUES ('default', 'tea', 'm10', 7);
INSERT INTO public.message_features VALUES (1, 1, 'default', 'question', '[]', '[]', false, '["部署","失败","日志","deploy","failed"]', NULL, '[]', 'new', 1, NULL, 0, 1, '\x');
INSERT INTO public.message_features VALUES (1, 2, 'default', 'answer', '[]', '[]', false, '["日志","内存不足"]', '["reply","m1",null]', '[]', 'platform', 1, 1, 1, 0, '\x01000000000000000100ffff');
INSERT INTO public.message_features VALUES (1, 3, 'default', 'question', '[]', '[]', false, '["lunch","noon"]', NULL, '[]', 'guess', 1, 1, 0.5148735461837328, 0.3298572253227892, '\x01000000000000000100018eab8eab');
INSERT INTO public.message_features VALUES (1, 4, 'default', 'answer', '["bo"]', '["bo"]', false, '["内存","加","gb","部署"]', '["thread","m1",null]', '[]', 'guess', 1, 1, 1, 0, '\x0100000000000000000107ffffffff8eab');
INSERT INTO public.message_features VALUES (1, 5, 'default', 'answer', '[]', '[]', false, '["deploy","work","café"]', '["reply","m4",null]', '["ann"]', 'platform', 1, 4, 1, 0, '\x010000000000000000010fffffffff8eabffff');
INSERT INTO public.message_features VALUES (2, 1, 'default', 'discussion', '[]', '[]', false, '["budget","tea","shop","5000"]', NULL, '[]', 'new', 1, NULL, 0, 1, '\x');
INSERT INTO public.message_features VALUES (2, 2, 'default', 'answer', '[]', '[]', false, '["预算","保密"]', '["reply","m1",null]', '[]', 'platform', 1, 1, 1, 0, '\x01000000000000000100ffff');
INSERT INTO public.message_features VALUES (1, 6, 'default', 'discussion', '[]', '[]', false, '[]', NULL, '[]', 'guess', 1, 5, 0.28685329034841245, 0.01685030207838058, '\x');
INSERT INTO public.message_features VALUES (1, 7, 'default', 'discussion', '[]', '[]', false, '["noon","dumpling","bar"]', NULL, '[]', 'corrected', 1, 3, 1, 0, '\x010000000000000000011f8eab8eabffff8eab8eab');
INSERT INTO public.message_features VALUES (1, 8, 'default', 'answer', '[]', '[]', false, '["记下","中午","吃面"]', NULL, '[]', 'guess', 1, 7, 0.7166340157463194, 0.011324088112319792, '\x010000000000000000015f98bc98bc1dea98bc98bc1dea');
INSERT INTO public.message_features VALUES (1, 9, 'default', 'discussion', '[]', '[]', false, '["stand-up","monday","blue","room"]', NULL, '["bo"]', 'guess', 1, 5, 0.5121607801918883, 0.12267476878617833, '\x01000000000000000001df6cc76cc723af6cc76cc723af82b6');
INSERT INTO public.message_features VALUES (1, 10, 'default', 'casual', '[]', '[]', false, '[]', NULL, '["ann"]', 'guess', 1, 9, 0.953367651795437, 0.0019038556743663703, '\x01000000000000000002df014bc74bc7dbb04bc74bc7dbb017b85bfc');
INSERT INTO public.message_features VALUES (3, 1, 'default', 'question', '[]', '[]', false, '["question"]', NULL, '[]', 'new', 1, NULL, 0, 1, '\x');
INSERT INTO public.message_features VALUES (3, 2, 'default', 'answer', '[]', '[]', false, '["answer","回答"]', '["reply","t1-query",null]', '[]', 'platform', 1, 1, 1, 0, '\x01000000000000000100ffff');
INSERT INTO public.message_features VALUES (3, 3, 'default', 'question', '[]', '[]', false, '["question"]', NULL, '[]', 'new', 3, 2, 0.15845928834787823, 0.6232464058096907, '\x010000000000000001000173607360');
INSERT INTO public.message_features VALUES (3, 4, 'default', 'answer', '[]', '[]', false, '["answer","回答"]', '["reply","t2-query",null]', '["ann"]', 'platform', 3, 3, 1, 0, '\x010000000000000000010773607360ffff');
INSERT INTO public.message_features VALUES (3, 5, 'default', 'question', '[]', '[]', false, '["question"]', NULL, '[]', 'new', 5, 4, 0.06464514403151653, 0.7694649262180678, '\x010000000000000000010f4b1f4b1ff531f531');
INSERT INTO public.message_features VALUES (3, 6, 'default', 'answer', '[]', '[]', false, '["answer","回答"]', '["reply","t3-query",null]', '["ann"]', 'platform', 5, 5, 1, 0, '\x010000000000000000011f4b1f4b1ff531f531ffff');
INSERT INTO public.message_features VALUES (3, 7, 'default', 'question', '[]', '[]', false, '["question"]', NULL, '[]', 'new', 7, 6, 0.07516167706160685, 0.707354389723333, '\x010000000000000000013f531353133f1c3f1c51385138');
INSERT INTO public.message_features VALUES (3, 8, 'default', 'answer', '[]', '[]', false, '["answer","回答"]', '["reply","t4-query",null]', '["ann"]', 'platform', 7, 7, 1, 0, '\x010000000000000000017f531353133f1c3f1c51385138ffff');
INSERT INTO public.message_features VALUES (4, 1, 'acme', 'discussion', '[]', '[]', false, '["tenant","别的","租户"]', NULL, '[]', 'new', 1, NULL, 0, 1, '\x');
INSERT INTO public.message_words VALUES (2, 1, 'default', 5, 3, '''2x5000'':1 ''2xann'':1 ''2xbudget'':1 ''2xshop'':1 ''2xtea'':1', true);
INSERT INTO public.message_words VALUES (2, 2, 'default', 11, 3, '''2xdee'':1 ''2x保'':1 ''2x保密'':1 ''2x先'':1 ''2x先保'':1 ''2x密'':1 ''2x算'':1 ''2x算先'':1 ''2x预'':1 ''2x预算'':1 ''2x🤫'':1', true);
INSERT INTO public.message_words VALUES (1, 1, 'default', 24, 3, '''1xann'':1 ''1xdeploy'':1 ''1xfail'':1 ''1x一'':1 ''1x一下'':1 ''1x下'':1 ''1x下日'':1 ''1x失'':1 ''1x失败'':1 ''1x志'':1 ''1x日'':1 ''1x日志'':1 ''1x看'':1 ''1x看一'':1 ''1x署'':1 ''1x署失'':1 ''1x能'':1 ''1x能看'':1 ''1x谁'':1 ''1x谁能'':1 ''1x败'':1 ''1x败了'':1 ''1x部'':1 ''1x部署'':1', false);
INSERT INTO public.message_words VALUES (1, 2, 'default', 17, 3, '''1xbo'':1 ''1x不足'':1 ''1x内'':1 ''1x内存'':1 ''1x写'':1 ''1x写着'':1 ''1x存'':1 ''1x存不'':1 ''1x志'':1 ''1x志里'':1 ''1x日'':1 ''1x日志'':1 ''1x着内'':1 ''1x足'':1 ''1x里'':1 ''1x里写'':1 ''1x😱'':1', false);
INSERT INTO public.message_words VALUES (1, 3, 'default', 4, 3, '''1xcy'':1 ''1xlunch'':1 ''1xnoon'':1 ''1x🍜'':1', false);
INSERT INTO public.message_words VALUES (1, 4, 'default', 17, 3, '''1x4'':1 ''1xann'':1 ''1xbo'':1 ''1xgb'':1 ''1x内'':1 ''1x内存'':1 ''1x再'':1 ''1x再部'':1 ''1x加'':1 ''1x加到'':1 ''1x存'':1 ''1x存加'':1 ''1x把'':1 ''1x把内'':1 ''1x署'':1 ''1x部'':1 ''1x部署'':1', false);
INSERT INTO public.message_words VALUES (1, 5, 'default', 8, 3, '''1xbo'':1 ''1xcafe'':1 ''1xcafé'':1 ''1xdeploy'':1 ''1xdone'':1 ''1xnow'':1 ''1xwork'':1 ''1x✅'':1', false);
INSERT INTO public.message_words VALUES (1, 6, 'default', 0, 5, '', false);
INSERT INTO public.message_words VALUES (1, 7, 'default', 5, 6, '''1xbar'':1 ''1xcy'':1 ''1xdumpl'':1 ''1xnoon'':1 ''1x🥟'':1', false);
INSERT INTO public.message_words VALUES (1, 8, 'default', 12, 6, '''1xbot'':1 ''1x下'':1 ''1x下了'':1 ''1x中'':1 ''1x中午'':1 ''1x午'':1 ''1x午吃'':1 ''1x吃'':1 ''1x吃面'':1 ''1x记'':1 ''1x记下'':1 ''1x面'':1', false);
INSERT INTO public.message_words VALUES (1, 9, 'default', 8, 6, '''1x9'':1 ''1xann'':1 ''1xblue'':1 ''1xeveri'':1 ''1xmonday'':1 ''1xnow'':1 ''1xroom'':1 ''1xstand'':1', false);
INSERT INTO public.message_words VALUES (1, 10, 'default', 3, 6, '''1xbo'':1 ''1xok'':1 ''1x👍'':1', false);
INSERT INTO public.message_words VALUES (3, 1, 'default', 6, 1, '''3x1'':1 ''3xann'':1 ''3xquestion'':1 ''3x问'':1 ''3x问题'':1 ''3x题'':1', true);
INSERT INTO public.message_words VALUES (3, 2, 'default', 6, 1, '''3x1'':1 ''3xanswer'':1 ''3xguid'':1 ''3x回'':1 ''3x回答'':1 ''3x答'':1', true);
INSERT INTO public.message_words VALUES (3, 3, 'default', 6, 2, '''3x2'':1 ''3xann'':1 ''3xquestion'':1 ''3x问'':1 ''3x问题'':1 ''3x题'':1', true);
INSERT INTO public.message_words VALUES (3, 4, 'default', 6, 2, '''3x2'':1 ''3xanswer'':1 ''3xguid'':1 ''3x回'':1 ''3x回答'':1 ''3x答'':1', true);
INSERT INTO public.message_words VALUES (3, 5, 'default', 6, 3, '''3x3'':1 ''3xann'':1 ''3xquestion'':1 ''3x问'':1 ''3x问题'':1 ''3x题'':1', true);
INSERT INTO public.message_words VALUES (3, 6, 'default', 6, 3, '''3x3'':1 ''3xanswer'':1 ''3xguid'':1 ''3x回'':1 ''3x回答'':1 ''3x答'':1', true);
INSERT INTO public.message_words VALUES (3, 7, 'default', 6, 4, '''3x4'':1 ''3xann'':1 ''3xquestion'':1 ''3x问'':1 ''3x问题'':1 ''3x题'':1', true);
INSERT INTO public.message_words VALUES (3, 8, 'default', 6, 4, '''3x4'':1 ''3xanswer'':1 ''3xguid'':1 ''3x回'':1 ''3x回答'':1 ''3x答'':1', true);
INSERT INTO public.message_words VALUES (4, 1, 'acme', 9, 1, '''4xanoth'':1 ''4xtenant'':1 ''4xzed'':1 ''4x别'':1 ''4x别的'':1 ''4x户'':1 ''4x的租'':1 ''4x租'':1 ''4x租户'':1', true);
INSERT INTO public.messages VALUES (1, 1, 'default', 'm1', 'ann', 'Ann', 'user', '部署失败了，谁能看一下日志？ The deploy failed', 1793610060000000, false, NULL, NULL, NULL, '[]', false, '{}', 18, 'iem0oUo045MvmgXnFx0E9A', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.messages VALUES (1, 2, 'default', 'm2', 'bo', 'Bo', 'user', '日志里写着内存不足 😱', 1793610120000000, false, 'm1', NULL, NULL, '[]', false, '{}', 13, '1omREFKVyYTVf/wh3pF6Cw', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.messages VALUES (1, 3, 'default', 'm3', 'cy', 'Cy', 'user', 'Lunch at noon? 🍜', 1793610180000000, false, NULL, NULL, NULL, '[]', false, '{"client":"手机","hard":"a\u0000b"}', 8, 'WuAJDVsgyxD4GRwNJv42bQ', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.messages VALUES (1, 4, 'default', 'm4', 'ann', 'Ann', 'user', '@Bo 把内存加到 4 GB 再部署', 1793610240000000, false, NULL, 'm1', NULL, '["bo"]', false, '{}', 16, 'ha1LWX/2LQSvWGbg9vDECQ', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.messages VALUES (1, 5, 'default', 'm5', 'bo', 'Bo', 'user', 'Done, the deploy works now ✅ café', 1793610300000000, false, 'm4', 'm1', NULL, '[]', false, '{}', 10, '+zxVZjVNkDjJrSlwRrTbFg', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.messages VALUES (1, 8, 'default', 'm8', 'bot', 'Bot', 'assistant', '记下了：中午吃面', 1793610480000000, false, NULL, NULL, NULL, '[]', false, '{}', 9, 'eNhVjIOWmrnZRkI6BAeMIw', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.messages VALUES (1, 9, 'default', 'm9', 'ann', 'Ann', 'user', 'From now on stand-up is every Monday at 9 in the blue room', 1793610540000000, false, NULL, NULL, NULL, '[]', false, '{}', 15, 'COkcLhHnKG+ljdonvaMjrA', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.messages VALUES (1, 10, 'default', 'm10', 'bo', 'Bo', 'user', 'ok 👍', 1793610600000000, false, NULL, NULL, NULL, '[]', false, '{}', 3, 'fmxGigFdGGhkJqI3HWvebA', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.messages VALUES (2, 1, 'default', 'm1', 'ann', 'Ann', 'user', 'The budget of the tea shop is 5000', 1793610060000000, false, NULL, NULL, NULL, '[]', false, '{}', 10, 'jsg0SIavM1Ybhpz6J+pfsA', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.messages VALUES (2, 2, 'default', 'm2', 'dee', 'Dee', 'user', '预算先保密 🤫', 1793610120000000, false, 'm1', NULL, NULL, '[]', false, '{}', 8, 'RIRIKfN2wRV3Hj25E4Tqyg', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.messages VALUES (1, 7, 'default', 'm7', 'cy', 'Cy', 'user', 'Noon it is, at the dumpling bar 🥟', 1793610420000000, false, NULL, NULL, NULL, '[]', false, '{}', 13, 'UpBTIc5z0LTYW6VgQD4UMg', 1796047013183773, NULL, NULL, NULL, NULL);
INSERT INTO public.messages VALUES (1, 6, 'default', 'm6', '', '', 'user', '', 1793610360000000, false, NULL, NULL, NULL, '[]', false, '{}', 0, '', NULL, 1796047013202679, NULL, NULL, NULL);
INSERT INTO public.messages VALUES (3, 1, 'default', 't1-query', 'ann', '', 'user', 'Question 1? 问题', 1793613600000000, false, NULL, NULL, 't1', '[]', false, '{}', 6, '0lOjWrI1E2f0jhLwiiXpEA', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.messages VALUES (3, 2, 'default', 't1-answer', 'guide', '', 'assistant', 'Answer 1 回答', 1793613600000000, false, 't1-query', NULL, 't1', '[]', false, '{}', 7, 'XbffJzBqdslNJuqd5ojJBw', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.messages VALUES (3, 3, 'default', 't2-query', 'ann', '', 'user', 'Question 2? 问题', 1793617200000000, false, NULL, NULL, 't2', '[]', false, '{}', 6, '0A+hr0TPoCjKfQQMslttpg', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.messages VALUES (3, 4, 'default', 't2-answer', 'guide', '', 'assistant', 'Answer 2 回答', 1793617200000000, false, 't2-query', NULL, 't2', '[]', false, '{}', 7, '6rzCHBa7yYDi1swxU6TLCQ', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.messages VALUES (3, 5, 'default', 't3-query', 'ann', '', 'user', 'Question 3? 问题', 1793620800000000, false, NULL, NULL, 't3', '[]', false, '{}', 6, 'AkRzI+SIWklEWGjQnqketw', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.messages VALUES (3, 6, 'default', 't3-answer', 'guide', '', 'assistant', 'Answer 3 回答', 1793620800000000, false, 't3-query', NULL, 't3', '[]', false, '{}', 7, '8GvD9Gxi/CB+OiYByPl7Wg', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.messages VALUES (3, 7, 'default', 't4-query', 'ann', '', 'user', 'Question 4? 问题', 1793624400000000, false, NULL, NULL, 't4', '[]', false, '{}', 6, '9/zhbLYWk7diF3ePmNAXLQ', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.messages VALUES (3, 8, 'default', 't4-answer', 'guide', '', 'assistant', 'Answer 4 回答', 1793624400000000, false, 't4-query', NULL, 't4', '[]', false, '{}', 7, 'zfwg54+3w2D2nLHjoPDmkg', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.messages VALUES (4, 1, 'acme', 'm1', 'zed', 'Zed', 'user', 'another tenant 别的租户', 1793610060000000, false, NULL, NULL, NULL, '[]', false, '{}', 8, 'ixxzUKvbKTLhm5DjckEDCA', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.participants VALUES (1, 'ann', 'default', 'Ann', 1, 9, 3, 1793610060000000, 1793610540000000, false);
INSERT INTO public.participants VALUES (1, 'bo', 'default', 'Bo', 2, 10, 3, 1793610120000000, 1793610600000000, false);
INSERT INTO public.participants VALUES (1, 'bot', 'default', 'Bot', 8, 8, 1, NULL, NULL, true);
INSERT INTO public.participants VALUES (2, 'ann', 'default', 'Ann', 1, 1, 1, 1793610060000000, 1793610060000000, false);
INSERT INTO public.participants VALUES (2, 'dee', 'default', 'Dee', 2, 2, 1, 1793610120000000, 1793610120000000, false);
INSERT INTO public.participants VALUES (1, 'cy', 'default', 'Cy', 3, 7, 2, 1793610180000000, 1793610420000000, false);
INSERT INTO public.participants VALUES (3, 'ann', 'default', '', 1, 7, 4, 1793613600000000, 1793624400000000, false);
INSERT INTO public.participants VALUES (3, 'guide', 'default', '', 2, 8, 4, NULL, NULL, true);
INSERT INTO public.participants VALUES (4, 'zed', 'acme', 'Zed', 1, 1, 1, 1793610060000000, 1793610060000000, false);
INSERT INTO public.room_members VALUES (1, 'ann', 1, 'default', 1796047013133341, 1793610000000000, NULL);
INSERT INTO public.room_members VALUES (1, 'bo', 1, 'default', 1796047013133341, 1793610000000000, NULL);
INSERT INTO public.room_members VALUES (1, 'cy', 1, 'default', 1796047013133341, NULL, NULL);
INSERT INTO public.room_members VALUES (1, 'eve', 1, 'default', 1796047013133341, 1793610000000000, 1793610300000000);
INSERT INTO public.rooms VALUES (4, 'acme', 'tea', 2, 1, 1, 1796047013395629, 1793610060000000, '{}', 9, 2, 'f743af7c4380cfe8', '', 0, '', '', false, '', '', 1);
INSERT INTO public.rooms VALUES (2, 'default', 'board', 3, 3, 2, 1796047013137769, 1793610120000000, '{}', 16, 2, 'f743af7c4380cfe8', '', 0, '[1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]', 'private', false, '', 'Board 董事会', 1);
INSERT INTO public.rooms VALUES (3, 'default', 'chat', 9, 4, 8, 1796047013356232, 1793624400000000, '{}', 48, 5, 'f743af7c4380cfe8', '', 0, '[4, 4, 0, 0, 0, 0, 37, 851, 4, 4, 5, 7, 10, 11, 15, 10, 10, 10, 10, 10, 10, 7, 7, 8, 10, 12, 19]', '', false, '', '', 1);
INSERT INTO public.rooms VALUES (1, 'default', 'tea', 11, 6, 9, 1796047013125387, 1793610600000000, '{"max_context_messages":12}', 98, 4, 'f743af7c4380cfe8', '', 0, '[3, 3, 2430, 5333, 9163, 13083, 16391, 18873, 114319, 105144, 97588, 91827, 88022, 86318, 86838, 88022, 88022, 88022, 88022, 88022, 88022, 200745, 159221, 120990, 88022, 62316, 44929]', '', true, '', '', NULL);
INSERT INTO public.rooms_due VALUES ('extraction', 'default', 'tea', 1, 1796047013179891, NULL);
INSERT INTO public.rooms_due VALUES ('extraction', 'default', 'chat', 4, 1796047013360082, NULL);
INSERT INTO public.sessions VALUES (3, 'default', 'ann', NULL, NULL, 'guide', 0, '{"global_state":{"language":"zh"}}', 1, 6, 1, NULL, 0, 0, 1796047013356232, 1796047013387067);
INSERT INTO public.tenant_limits VALUES ('default', '{"messages_a_day":1000}', 1796047013390915);
INSERT INTO public.vector_collections VALUES ('messages', 'sql', 'hash', 64, '01a22cbe86187912a9f62a23d83aa110', 1);
INSERT INTO public.vector_collections VALUES ('group_memories', 'sql', 'hash', 64, '01a22cbe861d7916ac7d78c45c94ca7f', 1);
INSERT INTO public.vector_scopes VALUES (1, 'messages', 1, 'acme', 'tea', 1);
INSERT INTO public.vector_scopes VALUES (2, 'messages', 1, 'default', 'board', 2);
INSERT INTO public.vector_scopes VALUES (3, 'messages', 1, 'default', 'chat', 8);
INSERT INTO public.vector_scopes VALUES (4, 'messages', 1, 'default', 'tea', 9);
INSERT INTO public.vector_scopes VALUES (5, 'group_memories', 1, 'default', 'group:tea', 1);
INSERT INTO public.vector_scopes VALUES (6, 'group_memories', 1, 'default', 'user:ann', 2);
INSERT INTO public.vectors VALUES (68719476737, 1, 1, 'acme', '\x00000000000000000000000000000000000000b800000000000000000000000000000000000000380000000000000000000000000000000000000000000000000000000000b800000000000000000000000000000000000000000000000000000000000000000000000000000000003800000000000000000000000000000000');
INSERT INTO public.vectors VALUES (137438953473, 2, 1, 'default', '\x28b7000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000283700000000000000000000000000000000000000000000000000000000000028372837000000000000000000000000000028b70000000000000000');
INSERT INTO public.vectors VALUES (137438953474, 2, 2, 'default', '\x000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000b8000000000000000000380000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000b8000000000000000000000000000000380000000000000000');
INSERT INTO public.vectors VALUES (206158430209, 3, 1, 'default', '\x000000000000000000000000000000000000000000000000000000009e380000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000009e380000000000009e3800000000000000000000000000000000');
INSERT INTO public.vectors VALUES (206158430210, 3, 2, 'default', '\x00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000b8000000000000000000000000000000000000000000000000003800000000000000000000000000000000000000000000000000b80000000000000000003800000000000000000000000000000000');
INSERT INTO public.vectors VALUES (206158430211, 3, 3, 'default', '\x00000000000000000000000000000000000000000000000000009eb89e380000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000009e38000000000000000000000000000000000000000000000000');
INSERT INTO public.vectors VALUES (206158430212, 3, 4, 'default', '\x000000000000000000000000000000000000000000000000000000b8000000000000000000000000000000000000000000b8000000000000000000000000000000000000000000000000003800000000000000000000000000000000000000000000000000b80000000000000000000000000000000000000000000000000000');
INSERT INTO public.vectors VALUES (206158430213, 3, 5, 'default', '\x000000000000000000000000000000000000000000000000000000009e380000000000000000000000000000000000000000000000009eb8000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000009e38000000000000000000000000000000000000000000000000');
INSERT INTO public.vectors VALUES (206158430214, 3, 6, 'default', '\x00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000b80000000000b8000000000000000000000000000000000000003800000000000000000000000000000000000000000000000000b80000000000000000000000000000000000000000000000000000');
INSERT INTO public.vectors VALUES (206158430215, 3, 7, 'default', '\x000000000000000000000000000000000000000000000000000000009e380000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000009e3800000000000000009e380000000000000000000000000000');
INSERT INTO public.vectors VALUES (206158430216, 3, 8, 'default', '\x00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000b8000000000000000000000000000000000000000000000000003800000000000000000000000000000000000000000000000000b80000000000000000000000380000000000000000000000000000');
INSERT INTO public.vectors VALUES (274877906945, 4, 1, 'default', '\x000000000000000000000000000000000000883600000000000000000000000088360000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000088b600008836000000000000000088b60000883600000000000000000000');
INSERT INTO public.vectors VALUES (274877906946, 4, 2, 'default', '\x0000000000000000000000000000000000000000000000000000000000000000883600000000883688b600000000000000000000000088b60000000000000000000000000000000000000000000000000000000000000000000000000000000088b6000000000000000000000000000000000000000000000000000088b60000');
INSERT INTO public.vectors VALUES (274877906947, 4, 3, 'default', '\x00000000000000b800000000003800000000000000000000000000000000000000000000000000000000000000000000000000000000003800000000000000b800000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO public.vectors VALUES (274877906948, 4, 4, 'default', '\x00000000000000000000000000000000000000000000000000000000000000000000000000005535000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000005535000000000000000055b955b500005535000000000000000055350000000000000000000000000000');
INSERT INTO public.vectors VALUES (274877906949, 4, 5, 'default', '\x28b700000000000000000000000000000000000000000000000000000000000000000000000028370000000000000000000000000000000000000000000000000000000000000000000028b700000000000000000000000000000000000000000000000000000000000028370000000000000000283700000000000000000000');
INSERT INTO public.vectors VALUES (274877906950, 4, 7, 'default', '\x00000000000028b70000000028370000283700000000000000000000000028370000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000028b7000000000000000000000000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO public.vectors VALUES (274877906951, 4, 8, 'default', '\x0000000000000000000000b80000000000000000000000000000000000000000000000b8000000000000000000000000000000000000000000000000000000000000000000000000000000b800000000000000000000003800000000000000000000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO public.vectors VALUES (274877906952, 4, 9, 'default', '\x000000000000000000000c360000000000000c360000000000000000000000000000000000000000000000000000000000000cb600000cb6000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000c360c3600000cb6000000000000000000000000000000000000');
INSERT INTO public.vectors VALUES (274877906953, 4, 10, 'default', '\x0000000000000000000000000000000000000000000000000000000000000000000000000000a8390000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000a839000000000000000000000000000000000000000000000000000000000000');
INSERT INTO public.vectors VALUES (343597383681, 5, 4, 'default', '\x00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000009eb8000000000000000000000000000000000000000000000000000000000000000000009eb80000000000000000000000009e380000000000000000000000000000000000000000');
INSERT INTO public.vectors VALUES (412316860417, 6, 1, 'default', '\x0000000000000000000000000000000000000000000000000000000000000000000000b80000000000000000000000000000000000000000000000000000000000000038000000000000000000000000000000000000000000000000000000000000000000380038000000000000000000000000000000000000000000000000');
INSERT INTO public.vectors VALUES (412316860418, 6, 2, 'default', '\x000000380000000000000000000000000000000000000000000000380000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000b800000000003800000000000000000000000000000000000000000000');
INSERT INTO public.watermarks VALUES ('default', 'tea', 'extraction:bot', 0, 1796047013178882);
INSERT INTO public.watermarks VALUES ('default', 'tea', 'read:cy', 5, 1796047013242415);
INSERT INTO public.watermarks VALUES ('default', 'tea', 'evolution', 10, 1796047013339415);
INSERT INTO public.watermarks VALUES ('default', 'chat', 'extraction:guide', 0, 1796047013359843);
SELECT pg_catalog.setval('public.memories_memory_key_seq', 7, true);
SELECT pg_catalog.setval('public.memory_scopes_scope_key_seq', 2, true);
SELECT pg_catalog.setval('public.rooms_room_key_seq', 4, true);
SELECT pg_catalog.setval('public.vector_scopes_scope_key_seq', 6, true);
ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT pk_api_keys PRIMARY KEY (key_id);
ALTER TABLE ONLY public.archives
    ADD CONSTRAINT pk_archives PRIMARY KEY (tenant, archive_id);
ALTER TABLE ONLY public.checkpoints
    ADD CONSTRAINT pk_checkpoints PRIMARY KEY (room_key, number);
ALTER TABLE ONLY public.context_usage_records
    ADD CONSTRAINT pk_context_usage_records PRIMARY KEY (tenant, context_id);
ALTER TABLE ONLY public.evolutions
    ADD CONSTRAINT pk_evolutions PRIMARY KEY (tenant, evolution_id);
ALTER TABLE ONLY public.import_positions
    ADD CONSTRAINT pk_import_positions PRIMARY KEY (tenant, source);
ALTER TABLE ONLY public.index_outbox
    ADD CONSTRAINT pk_index_outbox PRIMARY KEY (room_key, arrival);
ALTER TABLE ONLY public.index_states
    ADD CONSTRAINT pk_index_states PRIMARY KEY (name);
ALTER TABLE ONLY public.keyword_counts
    ADD CONSTRAINT pk_keyword_counts PRIMARY KEY (room_key, keyword);
ALTER TABLE ONLY public.leases
    ADD CONSTRAINT pk_leases PRIMARY KEY (tenant, name);
ALTER TABLE ONLY public.link_corrections
    ADD CONSTRAINT pk_link_corrections PRIMARY KEY (room_key, arrival, number);
ALTER TABLE ONLY public.memories
    ADD CONSTRAINT pk_memories PRIMARY KEY (memory_key);
ALTER TABLE ONLY public.memory_changes
    ADD CONSTRAINT pk_memory_changes PRIMARY KEY (scope_key, number);
ALTER TABLE ONLY public.memory_outbox
    ADD CONSTRAINT pk_memory_outbox PRIMARY KEY (scope_key, memory_key);
ALTER TABLE ONLY public.memory_scopes
    ADD CONSTRAINT pk_memory_scopes PRIMARY KEY (scope_key);
ALTER TABLE ONLY public.memory_snapshots
    ADD CONSTRAINT pk_memory_snapshots PRIMARY KEY (scope_key, number);
ALTER TABLE ONLY public.memory_sources
    ADD CONSTRAINT pk_memory_sources PRIMARY KEY (tenant, room_id, message_id, memory_key);
ALTER TABLE ONLY public.message_features
    ADD CONSTRAINT pk_message_features PRIMARY KEY (room_key, arrival);
ALTER TABLE ONLY public.message_words
    ADD CONSTRAINT pk_message_words PRIMARY KEY (room_key, arrival);
ALTER TABLE ONLY public.messages
    ADD CONSTRAINT pk_messages PRIMARY KEY (room_key, arrival);
ALTER TABLE ONLY public.participants
    ADD CONSTRAINT pk_participants PRIMARY KEY (room_key, sender_id);
ALTER TABLE ONLY public.room_members
    ADD CONSTRAINT pk_room_members PRIMARY KEY (room_key, person_id, number);
ALTER TABLE ONLY public.rooms
    ADD CONSTRAINT pk_rooms PRIMARY KEY (room_key);
ALTER TABLE ONLY public.rooms_due
    ADD CONSTRAINT pk_rooms_due PRIMARY KEY (work, tenant, room_id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT pk_sessions PRIMARY KEY (room_key);
ALTER TABLE ONLY public.signing_keys
    ADD CONSTRAINT pk_signing_keys PRIMARY KEY (name);
ALTER TABLE ONLY public.tenant_counts
    ADD CONSTRAINT pk_tenant_counts PRIMARY KEY (tenant, name);
ALTER TABLE ONLY public.tenant_limits
    ADD CONSTRAINT pk_tenant_limits PRIMARY KEY (tenant);
ALTER TABLE ONLY public.thread_titles
    ADD CONSTRAINT pk_thread_titles PRIMARY KEY (room_key, thread);
ALTER TABLE ONLY public.vector_collections
    ADD CONSTRAINT pk_vector_collections PRIMARY KEY (collection);
ALTER TABLE ONLY public.vector_scopes
    ADD CONSTRAINT pk_vector_scopes PRIMARY KEY (scope_key);
ALTER TABLE ONLY public.vectors
    ADD CONSTRAINT pk_vectors PRIMARY KEY (vector_key);
ALTER TABLE ONLY public.watermarks
    ADD CONSTRAINT pk_watermarks PRIMARY KEY (tenant, room_id, name);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT uq_api_keys_secret_hash UNIQUE (secret_hash);
ALTER TABLE ONLY public.checkpoints
    ADD CONSTRAINT uq_checkpoints_room_key_checkpoint_id UNIQUE (room_key, checkpoint_id);
ALTER TABLE ONLY public.memories
    ADD CONSTRAINT uq_memories_tenant_lineage_id_version UNIQUE (tenant, lineage_id, version);
ALTER TABLE ONLY public.memories
    ADD CONSTRAINT uq_memories_tenant_memory_id UNIQUE (tenant, memory_id);
ALTER TABLE ONLY public.memory_scopes
    ADD CONSTRAINT uq_memory_scopes_tenant_scope UNIQUE (tenant, scope);
ALTER TABLE ONLY public.messages
    ADD CONSTRAINT uq_messages_room_key_message_id UNIQUE (room_key, message_id);
ALTER TABLE ONLY public.rooms
    ADD CONSTRAINT uq_rooms_tenant_room_id UNIQUE (tenant, room_id);
ALTER TABLE ONLY public.vector_scopes
    ADD CONSTRAINT uq_vector_scopes_collection_epoch_tenant_scope UNIQUE (collection, epoch, tenant, scope);
ALTER TABLE ONLY public.vectors
    ADD CONSTRAINT uq_vectors_scope_key_number UNIQUE (scope_key, number);
CREATE INDEX ix_archives_room ON public.archives USING btree (tenant, room_id, first_arrival);
CREATE INDEX ix_context_usage_records_room ON public.context_usage_records USING btree (tenant, room_id, context_id);
CREATE INDEX ix_evolutions_scope ON public.evolutions USING btree (tenant, scope, evolution_id);
CREATE INDEX ix_index_outbox_queued ON public.index_outbox USING btree (queued, room_key, arrival);
CREATE UNIQUE INDEX ix_link_corrections_number ON public.link_corrections USING btree (room_key, number);
CREATE INDEX ix_memories_fallback ON public.memories USING btree (tenant, memory_id) WHERE (fallback AND (status = 'active'::text));
CREATE INDEX ix_memories_scope ON public.memories USING btree (scope_key, head, kind, status, updated_at, memory_id, valid_until);
CREATE INDEX ix_memory_changes_at ON public.memory_changes USING btree (scope_key, at);
CREATE INDEX ix_memory_changes_evolution ON public.memory_changes USING btree (tenant, evolution_id) WHERE (evolution_id IS NOT NULL);
CREATE INDEX ix_memory_changes_memory ON public.memory_changes USING btree (tenant, memory_id);
CREATE INDEX ix_memory_outbox_queued ON public.memory_outbox USING btree (queued, scope_key, memory_key);
CREATE INDEX ix_memory_snapshots_reached_from ON public.memory_snapshots USING btree (scope_key, reached_from, number);
CREATE INDEX ix_message_features_parent ON public.message_features USING btree (room_key, parent);
CREATE INDEX ix_message_features_thread ON public.message_features USING btree (room_key, thread, arrival);
CREATE INDEX ix_message_words_changed ON public.message_words USING btree (room_key, changed);
CREATE INDEX ix_message_words_words ON public.message_words USING gin (words) WITH (fastupdate=off);
CREATE INDEX ix_messages_reply_to ON public.messages USING btree (room_key, reply_to, arrival) WHERE (reply_to IS NOT NULL);
CREATE INDEX ix_messages_root_id ON public.messages USING btree (room_key, root_id, arrival) WHERE (root_id IS NOT NULL);
CREATE INDEX ix_messages_sent_at ON public.messages USING btree (room_key, sent_at, arrival);
CREATE INDEX ix_messages_topic_id ON public.messages USING btree (room_key, topic_id, arrival) WHERE (topic_id IS NOT NULL);
CREATE INDEX ix_messages_turn_id ON public.messages USING btree (room_key, turn_id, arrival) WHERE (turn_id IS NOT NULL);
CREATE INDEX ix_participants_last_spoke_at ON public.participants USING btree (tenant, last_spoke_at);
CREATE INDEX ix_participants_sender ON public.participants USING btree (tenant, sender_id);
CREATE INDEX ix_room_members_person ON public.room_members USING btree (tenant, person_id);
CREATE INDEX ix_rooms_due_noted_at ON public.rooms_due USING btree (work, noted_at);
CREATE INDEX ix_rooms_linked_by ON public.rooms USING btree (linked_by);
CREATE INDEX ix_sessions_due_at ON public.sessions USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX ix_thread_titles_stale ON public.thread_titles USING btree (room_key) WHERE (messages = 0);
CREATE UNIQUE INDEX uq_memories_head ON public.memories USING btree (tenant, lineage_id) WHERE head;
ALTER TABLE ONLY public.checkpoints
    ADD CONSTRAINT fk_checkpoints_rooms FOREIGN KEY (room_key) REFERENCES public.rooms(room_key);
ALTER TABLE ONLY public.index_outbox
    ADD CONSTRAINT fk_index_outbox_messages FOREIGN KEY (room_key, arrival) REFERENCES public.messages(room_key, arrival);
ALTER TABLE ONLY public.keyword_counts
    ADD CONSTRAINT fk_keyword_counts_rooms FOREIGN KEY (room_key) REFERENCES public.rooms(room_key);
ALTER TABLE ONLY public.link_corrections
    ADD CONSTRAINT fk_link_corrections_messages FOREIGN KEY (room_key, arrival) REFERENCES public.messages(room_key, arrival);
ALTER TABLE ONLY public.memories
    ADD CONSTRAINT fk_memories_memory_scopes FOREIGN KEY (scope_key) REFERENCES public.memory_scopes(scope_key);
ALTER TABLE ONLY public.memory_changes
    ADD CONSTRAINT fk_memory_changes_memory_scopes FOREIGN KEY (scope_key) REFERENCES public.memory_scopes(scope_key);
ALTER TABLE ONLY public.memory_snapshots
    ADD CONSTRAINT fk_memory_snapshots_memory_scopes FOREIGN KEY (scope_key) REFERENCES public.memory_scopes(scope_key);
ALTER TABLE ONLY public.message_features
    ADD CONSTRAINT fk_message_features_messages FOREIGN KEY (room_key, arrival) REFERENCES public.messages(room_key, arrival);
ALTER TABLE ONLY public.message_words
    ADD CONSTRAINT fk_message_words_messages FOREIGN KEY (room_key, arrival) REFERENCES public.messages(room_key, arrival);
ALTER TABLE ONLY public.messages
    ADD CONSTRAINT fk_messages_rooms FOREIGN KEY (room_key) REFERENCES public.rooms(room_key);
ALTER TABLE ONLY public.participants
    ADD CONSTRAINT fk_participants_rooms FOREIGN KEY (room_key) REFERENCES public.rooms(room_key);
ALTER TABLE ONLY public.room_members
    ADD CONSTRAINT fk_room_members_rooms FOREIGN KEY (room_key) REFERENCES public.rooms(room_key);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT fk_sessions_rooms FOREIGN KEY (room_key) REFERENCES public.rooms(room_key);
ALTER TABLE ONLY public.thread_titles
    ADD CONSTRAINT fk_thread_titles_rooms FOREIGN KEY (room_key) REFERENCES public.rooms(room_key);
