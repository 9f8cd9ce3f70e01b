CREATE TABLE rooms (
  room_key {serial} NOT NULL,
  tenant {name} NOT NULL,
  room_id {name} NOT NULL,
  next_arrival BIGINT NOT NULL,
  revision BIGINT NOT NULL,
  messages BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  last_sent_at BIGINT,
  settings TEXT NOT NULL,
  words BIGINT DEFAULT '0' NOT NULL,
  index_version BIGINT DEFAULT '0' NOT NULL,
  linked_by {name} DEFAULT '' NOT NULL,
  link_walk {name} DEFAULT '' NOT NULL,
  link_walked BIGINT DEFAULT '0' NOT NULL,
  calibration TEXT DEFAULT '' NOT NULL,
  kind {name} DEFAULT '' NOT NULL,
  members_told BOOLEAN DEFAULT {false} NOT NULL,
  past_kinds TEXT DEFAULT '' NOT NULL,
  room_name TEXT DEFAULT '' NOT NULL,
  CONSTRAINT pk_rooms PRIMARY KEY (room_key),
  CONSTRAINT uq_rooms_tenant_room_id UNIQUE (tenant, room_id)
);

CREATE INDEX ix_rooms_linked_by ON rooms (linked_by);

CREATE TABLE messages (
  room_key {key} NOT NULL,
  arrival BIGINT NOT NULL,
  tenant {name} NOT NULL,
  message_id {name} NOT NULL,
  sender_id {name} NOT NULL,
  sender_name TEXT NOT NULL,
  role TEXT NOT NULL,
  text TEXT NOT NULL,
  sent_at BIGINT NOT NULL,
  sent_at_estimated BOOLEAN NOT NULL,
  reply_to {name},
  root_id {name},
  turn_id {name},
  mentions TEXT NOT NULL,
  has_tool_calls BOOLEAN NOT NULL,
  metadata TEXT NOT NULL,
  tokens BIGINT NOT NULL,
  content_hash TEXT NOT NULL,
  edited_at BIGINT,
  deleted_at BIGINT,
  CONSTRAINT pk_messages PRIMARY KEY (room_key, arrival),
  CONSTRAINT fk_messages_rooms FOREIGN KEY(room_key) REFERENCES rooms (room_key),
  CONSTRAINT uq_messages_room_key_message_id UNIQUE (room_key, message_id)
);

CREATE INDEX ix_messages_reply_to ON messages (room_key, reply_to, arrival) WHERE reply_to IS NOT NULL;

CREATE INDEX ix_messages_root_id ON messages (room_key, root_id, arrival) WHERE root_id IS NOT NULL;

CREATE INDEX ix_messages_sent_at ON messages (room_key, sent_at, arrival);

CREATE INDEX ix_messages_turn_id ON messages (room_key, turn_id, arrival) WHERE turn_id IS NOT NULL;

CREATE TABLE message_features (
  room_key {key} NOT NULL,
  arrival BIGINT NOT NULL,
  tenant {name} NOT NULL,
  message_type TEXT NOT NULL,
  mentions TEXT NOT NULL,
  addressed TEXT NOT NULL,
  mentions_all BOOLEAN NOT NULL,
  keywords TEXT NOT NULL,
  reply TEXT,
  partners TEXT NOT NULL,
  link_kind TEXT NOT NULL,
  thread BIGINT NOT NULL,
  parent BIGINT,
  parent_probability {double} NOT NULL,
  new_probability {double} NOT NULL,
  thread_candidates {bytes} NOT NULL,
  CONSTRAINT pk_message_features PRIMARY KEY (room_key, arrival),
  CONSTRAINT fk_message_features_messages FOREIGN KEY(room_key, arrival) REFERENCES messages (room_key, arrival)
);

CREATE INDEX ix_message_features_parent ON message_features (room_key, parent);

CREATE INDEX ix_message_features_thread ON message_features (room_key, thread, arrival);

CREATE TABLE participants (
  room_key {key} NOT NULL,
  sender_id {name} NOT NULL,
  tenant {name} NOT NULL,
  name TEXT NOT NULL,
  first_arrival BIGINT NOT NULL,
  last_arrival BIGINT NOT NULL,
  messages BIGINT NOT NULL,
  first_spoke_at BIGINT,
  last_spoke_at BIGINT,
  answers BOOLEAN DEFAULT {false} NOT NULL,
  CONSTRAINT pk_participants PRIMARY KEY (room_key, sender_id),
  CONSTRAINT fk_participants_rooms FOREIGN KEY(room_key) REFERENCES rooms (room_key)
){rowless};

CREATE INDEX ix_participants_sender ON participants (tenant, sender_id);

CREATE INDEX ix_participants_last_spoke_at ON participants (tenant, last_spoke_at);

CREATE TABLE keyword_counts (
  room_key {key} NOT NULL,
  keyword {name} NOT NULL,
  tenant {name} NOT NULL,
  messages BIGINT NOT NULL,
  CONSTRAINT pk_keyword_counts PRIMARY KEY (room_key, keyword),
  CONSTRAINT fk_keyword_counts_rooms FOREIGN KEY(room_key) REFERENCES rooms (room_key)
){rowless};

CREATE TABLE context_usage_records (
  tenant {name} NOT NULL,
  context_id {name} NOT NULL,
  room_id {name} NOT NULL,
  user_id {name} NOT NULL,
  trigger_message_id {name} NOT NULL,
  strategy TEXT NOT NULL,
  context_message_ids TEXT NOT NULL,
  relevance_scores TEXT NOT NULL,
  tokens BIGINT NOT NULL,
  window_tokens BIGINT NOT NULL,
  build_ms {double} NOT NULL,
  created_at BIGINT NOT NULL,
  degraded TEXT,
  arm TEXT,
  llm_response TEXT,
  user_feedback TEXT,
  success_indicator {double},
  mean_score {double},
  CONSTRAINT pk_context_usage_records PRIMARY KEY (tenant, context_id)
);

CREATE INDEX ix_context_usage_records_room ON context_usage_records (tenant, room_id, context_id);

CREATE TABLE api_keys (
  key_id {name} NOT NULL,
  tenant {name} NOT NULL,
  name TEXT NOT NULL,
  scopes TEXT NOT NULL,
  secret_hash {name} NOT NULL,
  created_at BIGINT NOT NULL,
  revoked_at BIGINT,
  CONSTRAINT pk_api_keys PRIMARY KEY (key_id),
  CONSTRAINT uq_api_keys_secret_hash UNIQUE (secret_hash)
);

CREATE TABLE import_positions (
  tenant {name} NOT NULL,
  source {name} NOT NULL,
  position TEXT NOT NULL,
  saved_at BIGINT NOT NULL,
  CONSTRAINT pk_import_positions PRIMARY KEY (tenant, source)
);

CREATE TABLE message_words (
  room_key {key} NOT NULL,
  arrival BIGINT NOT NULL,
  tenant {name} NOT NULL,
  length BIGINT NOT NULL,
  changed BIGINT NOT NULL,
  words {words} NOT NULL,
  CONSTRAINT pk_message_words PRIMARY KEY (room_key, arrival),
  CONSTRAINT fk_message_words_messages FOREIGN KEY(room_key, arrival) REFERENCES messages (room_key, arrival)
){rowless};

CREATE INDEX ix_message_words_changed ON message_words (room_key, changed);

CREATE TABLE index_outbox (
  room_key {key} NOT NULL,
  arrival BIGINT NOT NULL,
  tenant {name} NOT NULL,
  version BIGINT NOT NULL,
  queued BIGINT NOT NULL,
  leased_until BIGINT,
  lease BIGINT,
  CONSTRAINT pk_index_outbox PRIMARY KEY (room_key, arrival),
  CONSTRAINT fk_index_outbox_messages FOREIGN KEY(room_key, arrival) REFERENCES messages (room_key, arrival)
){rowless};

CREATE INDEX ix_index_outbox_queued ON index_outbox (queued, room_key, arrival);

CREATE TABLE index_states (
  name {name} NOT NULL,
  model TEXT NOT NULL,
  dimensions BIGINT NOT NULL,
  generation TEXT NOT NULL,
  cursor TEXT,
  updated_at BIGINT NOT NULL,
  CONSTRAINT pk_index_states PRIMARY KEY (name)
);

CREATE TABLE vector_collections (
  collection {name} NOT NULL,
  kind TEXT NOT NULL,
  model TEXT NOT NULL,
  dimensions BIGINT NOT NULL,
  generation TEXT NOT NULL,
  epoch BIGINT NOT NULL,
  CONSTRAINT pk_vector_collections PRIMARY KEY (collection)
);

CREATE TABLE vector_scopes (
  scope_key {serial} NOT NULL {never_reused},
  collection {name} NOT NULL,
  epoch BIGINT NOT NULL,
  tenant {name} NOT NULL,
  scope {name} NOT NULL,
  stamp BIGINT NOT NULL,
  CONSTRAINT uq_vector_scopes_collection_epoch_tenant_scope UNIQUE (collection, epoch, tenant, scope)
);

CREATE TABLE vectors (
  vector_key {key} NOT NULL,
  scope_key {key} NOT NULL,
  number BIGINT NOT NULL,
  tenant {name} NOT NULL,
  vector {bytes},
  CONSTRAINT pk_vectors PRIMARY KEY (vector_key),
  CONSTRAINT uq_vectors_scope_key_number UNIQUE (scope_key, number)
);

CREATE TABLE sessions (
  room_key {key} NOT NULL,
  tenant {name} NOT NULL,
  user_id {name} NOT NULL,
  enterprise_id {name},
  patient_id {name},
  agent_key {name} NOT NULL,
  boundary BIGINT NOT NULL,
  state TEXT NOT NULL,
  checkpoint BIGINT,
  version BIGINT NOT NULL,
  marks BIGINT NOT NULL,
  due_at BIGINT,
  due_tries BIGINT NOT NULL,
  due_window BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  CONSTRAINT pk_sessions PRIMARY KEY (room_key),
  CONSTRAINT fk_sessions_rooms FOREIGN KEY(room_key) REFERENCES rooms (room_key)
);

CREATE INDEX ix_sessions_due_at ON sessions (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE checkpoints (
  room_key {key} NOT NULL,
  number BIGINT NOT NULL,
  tenant {name} NOT NULL,
  checkpoint_id {name} NOT NULL,
  kind TEXT NOT NULL,
  summary TEXT NOT NULL,
  covers_arrival BIGINT NOT NULL,
  covers_through {name},
  turns BIGINT NOT NULL,
  tokens BIGINT NOT NULL,
  recent_turns BIGINT NOT NULL,
  language TEXT NOT NULL,
  made_by {name} NOT NULL,
  created_at BIGINT NOT NULL,
  CONSTRAINT pk_checkpoints PRIMARY KEY (room_key, number),
  CONSTRAINT fk_checkpoints_rooms FOREIGN KEY(room_key) REFERENCES rooms (room_key),
  CONSTRAINT uq_checkpoints_room_key_checkpoint_id UNIQUE (room_key, checkpoint_id)
);

CREATE TABLE memory_scopes (
  scope_key {serial} NOT NULL,
  tenant {name} NOT NULL,
  scope {name} NOT NULL,
  changes BIGINT NOT NULL,
  active BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  index_version BIGINT DEFAULT '0' NOT NULL,
  CONSTRAINT pk_memory_scopes PRIMARY KEY (scope_key),
  CONSTRAINT uq_memory_scopes_tenant_scope UNIQUE (tenant, scope)
);

CREATE TABLE memories (
  memory_key {serial} NOT NULL,
  scope_key {key} NOT NULL,
  tenant {name} NOT NULL,
  memory_id {name} NOT NULL,
  lineage_id {name} NOT NULL,
  version BIGINT NOT NULL,
  head BOOLEAN NOT NULL,
  merged_into {name},
  status {name} NOT NULL,
  kind {name} NOT NULL,
  statement TEXT NOT NULL,
  tags TEXT NOT NULL,
  category TEXT NOT NULL,
  strength {double} NOT NULL,
  confidence {double},
  parents TEXT NOT NULL,
  sources TEXT NOT NULL,
  change_summary TEXT NOT NULL,
  evolution_id {name},
  made_by TEXT NOT NULL,
  fallback BOOLEAN NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  supported_at BIGINT NOT NULL,
  evidence TEXT DEFAULT '[]' NOT NULL,
  shared_with TEXT DEFAULT '[]' NOT NULL,
  doubtful TEXT DEFAULT '' NOT NULL,
  owner TEXT DEFAULT '' NOT NULL,
  said_by TEXT DEFAULT '[]' NOT NULL,
  valid_from BIGINT,
  valid_until BIGINT,
  CONSTRAINT pk_memories PRIMARY KEY (memory_key),
  CONSTRAINT fk_memories_memory_scopes FOREIGN KEY(scope_key) REFERENCES memory_scopes (scope_key),
  CONSTRAINT uq_memories_tenant_memory_id UNIQUE (tenant, memory_id),
  CONSTRAINT uq_memories_tenant_lineage_id_version UNIQUE (tenant, lineage_id, version),
  CONSTRAINT ck_memories_active_is_head CHECK (head OR status = 'deprecated')
);

CREATE UNIQUE INDEX uq_memories_head ON memories (tenant, lineage_id) WHERE head{is_true};

CREATE INDEX ix_memories_fallback ON memories (tenant, memory_id) WHERE fallback{is_true} AND status = 'active';

CREATE INDEX ix_memories_scope ON memories (scope_key, head, kind, status, updated_at, memory_id, valid_until);

CREATE TABLE memory_sources (
  tenant {name} NOT NULL,
  room_id {name} NOT NULL,
  message_id {name} NOT NULL,
  memory_key {key} NOT NULL,
  CONSTRAINT pk_memory_sources PRIMARY KEY (tenant, room_id, message_id, memory_key)
){rowless};

CREATE TABLE memory_changes (
  scope_key {key} NOT NULL,
  number BIGINT NOT NULL,
  tenant {name} NOT NULL,
  action TEXT NOT NULL,
  memory_id {name} NOT NULL,
  memory TEXT NOT NULL,
  closes TEXT NOT NULL,
  old_statement TEXT,
  reason TEXT NOT NULL,
  evolution_id {name},
  undoes {name},
  actor TEXT NOT NULL,
  at BIGINT NOT NULL,
  CONSTRAINT pk_memory_changes PRIMARY KEY (scope_key, number),
  CONSTRAINT fk_memory_changes_memory_scopes FOREIGN KEY(scope_key) REFERENCES memory_scopes (scope_key)
);

CREATE INDEX ix_memory_changes_at ON memory_changes (scope_key, at);

CREATE INDEX ix_memory_changes_evolution ON memory_changes (tenant, evolution_id) WHERE evolution_id IS NOT NULL;

CREATE INDEX ix_memory_changes_memory ON memory_changes (tenant, memory_id);

CREATE TABLE evolutions (
  tenant {name} NOT NULL,
  evolution_id {name} NOT NULL,
  scope {name} NOT NULL,
  kind TEXT NOT NULL,
  status TEXT NOT NULL,
  room_id {name} NOT NULL,
  first_arrival BIGINT NOT NULL,
  last_arrival BIGINT NOT NULL,
  messages BIGINT NOT NULL,
  prompt_name TEXT NOT NULL,
  prompt_hash TEXT NOT NULL,
  model TEXT NOT NULL,
  input_tokens BIGINT NOT NULL,
  output_tokens BIGINT NOT NULL,
  raw_answer TEXT NOT NULL,
  quarantined TEXT NOT NULL,
  facts TEXT NOT NULL,
  error TEXT NOT NULL,
  started_at BIGINT NOT NULL,
  finished_at BIGINT NOT NULL,
  CONSTRAINT pk_evolutions PRIMARY KEY (tenant, evolution_id)
);

CREATE INDEX ix_evolutions_scope ON evolutions (tenant, scope, evolution_id);

CREATE TABLE watermarks (
  tenant {name} NOT NULL,
  room_id {name} NOT NULL,
  name {name} NOT NULL,
  arrival BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  CONSTRAINT pk_watermarks PRIMARY KEY (tenant, room_id, name)
){rowless};

CREATE TABLE rooms_due (
  work {name} NOT NULL,
  tenant {name} NOT NULL,
  room_id {name} NOT NULL,
  noted BIGINT NOT NULL,
  noted_at BIGINT NOT NULL,
  leased_until BIGINT,
  CONSTRAINT pk_rooms_due PRIMARY KEY (work, tenant, room_id)
){rowless};

CREATE INDEX ix_rooms_due_noted_at ON rooms_due (work, noted_at);

CREATE TABLE leases (
  tenant {name} NOT NULL,
  name {name} NOT NULL,
  holder {name} NOT NULL,
  until BIGINT NOT NULL,
  CONSTRAINT pk_leases PRIMARY KEY (tenant, name)
){rowless};

CREATE TABLE memory_outbox (
  scope_key {key} NOT NULL,
  memory_key {key} NOT NULL,
  tenant {name} NOT NULL,
  version BIGINT NOT NULL,
  queued BIGINT NOT NULL,
  leased_until BIGINT,
  lease BIGINT,
  CONSTRAINT pk_memory_outbox PRIMARY KEY (scope_key, memory_key)
){rowless};

CREATE INDEX ix_memory_outbox_queued ON memory_outbox (queued, scope_key, memory_key);

CREATE TABLE signing_keys (
  name {name} NOT NULL,
  secret TEXT NOT NULL,
  CONSTRAINT pk_signing_keys PRIMARY KEY (name)
);

CREATE TABLE room_members (
  room_key {key} NOT NULL,
  person_id {name} NOT NULL,
  number BIGINT NOT NULL,
  tenant {name} NOT NULL,
  told_at BIGINT NOT NULL,
  joined_at BIGINT,
  left_at BIGINT,
  CONSTRAINT pk_room_members PRIMARY KEY (room_key, person_id, number),
  CONSTRAINT fk_room_members_rooms FOREIGN KEY(room_key) REFERENCES rooms (room_key)
){rowless};

CREATE INDEX ix_room_members_person ON room_members (tenant, person_id);

CREATE TABLE link_corrections (
  room_key {key} NOT NULL,
  arrival BIGINT NOT NULL,
  number BIGINT NOT NULL,
  tenant {name} NOT NULL,
  kind TEXT NOT NULL,
  answers BIGINT,
  standing BOOLEAN NOT NULL,
  corrected_by TEXT NOT NULL,
  at BIGINT NOT NULL,
  model TEXT NOT NULL,
  errors TEXT NOT NULL,
  CONSTRAINT pk_link_corrections PRIMARY KEY (room_key, arrival, number),
  CONSTRAINT fk_link_corrections_messages FOREIGN KEY(room_key, arrival) REFERENCES messages (room_key, arrival)
){rowless};

CREATE UNIQUE INDEX ix_link_corrections_number ON link_corrections (room_key, number);

CREATE TABLE thread_titles (
  room_key {key} NOT NULL,
  thread BIGINT NOT NULL,
  tenant {name} NOT NULL,
  title TEXT NOT NULL,
  messages BIGINT NOT NULL,
  made_by TEXT NOT NULL,
  at BIGINT NOT NULL,
  CONSTRAINT pk_thread_titles PRIMARY KEY (room_key, thread),
  CONSTRAINT fk_thread_titles_rooms FOREIGN KEY(room_key) REFERENCES rooms (room_key)
){rowless};

CREATE INDEX ix_thread_titles_stale ON thread_titles (room_key) WHERE messages = 0;

CREATE TABLE tenant_limits (
  tenant {name} NOT NULL,
  limits TEXT NOT NULL,
  changed_at BIGINT NOT NULL,
  CONSTRAINT pk_tenant_limits PRIMARY KEY (tenant)
);

CREATE TABLE tenant_counts (
  tenant {name} NOT NULL,
  name {name} NOT NULL,
  period BIGINT NOT NULL,
  amount BIGINT NOT NULL,
  CONSTRAINT pk_tenant_counts PRIMARY KEY (tenant, name)
){rowless};

CREATE TABLE archives (
  tenant {name} NOT NULL,
  archive_id {name} NOT NULL,
  room_id {name} NOT NULL,
  phase TEXT NOT NULL,
  file TEXT NOT NULL,
  first_arrival BIGINT NOT NULL,
  last_arrival BIGINT NOT NULL,
  messages BIGINT NOT NULL,
  bytes BIGINT NOT NULL,
  checksum TEXT NOT NULL,
  archived_at BIGINT NOT NULL,
  CONSTRAINT pk_archives PRIMARY KEY (tenant, archive_id)
){rowless};

CREATE INDEX ix_archives_room ON archives (tenant, room_id, first_arrival);

CREATE TABLE memory_snapshots (
  scope_key {key} NOT NULL,
  number BIGINT NOT NULL,
  tenant {name} NOT NULL,
  at BIGINT NOT NULL,
  reached_from BIGINT NOT NULL,
  in_force TEXT NOT NULL,
  CONSTRAINT pk_memory_snapshots PRIMARY KEY (scope_key, number),
  CONSTRAINT fk_memory_snapshots_memory_scopes FOREIGN KEY(scope_key) REFERENCES memory_scopes (scope_key)
);

CREATE INDEX ix_memory_snapshots_reached_from ON memory_snapshots (scope_key, reached_from, number);

CREATE VIEW ai_message AS
SELECT q.message_id AS message_id, r.room_id AS conversation_id, q.text AS query, a.text AS answer,
       {time:q.sent_at} AS create_time, q.sender_id AS create_by,
       {time:coalesce(a.edited_at, a.sent_at, q.edited_at)} AS update_time,
       coalesce(a.sender_id, CASE WHEN q.edited_at IS NOT NULL THEN q.sender_id END) AS update_by, q.tenant AS tenant
FROM messages q
JOIN rooms r ON r.room_key = q.room_key
LEFT JOIN messages a ON a.room_key = q.room_key AND a.arrival = (
    SELECT s.arrival FROM messages s
    WHERE s.room_key = q.room_key AND s.turn_id = q.turn_id AND s.role = 'assistant' AND s.deleted_at IS NULL
    ORDER BY s.has_tool_calls, s.arrival DESC LIMIT 1)
WHERE q.role = 'user' AND q.deleted_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM messages s
    WHERE s.room_key = q.room_key AND s.turn_id = q.turn_id AND s.role = 'user' AND s.deleted_at IS NULL
      AND s.arrival < q.arrival)
UNION ALL
SELECT a.message_id, r.room_id, NULL, a.text, {time:a.sent_at}, a.sender_id, {time:a.edited_at},
       CASE WHEN a.edited_at IS NOT NULL THEN a.sender_id END, a.tenant
FROM messages a
JOIN rooms r ON r.room_key = a.room_key
WHERE a.role = 'assistant' AND a.deleted_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM messages s
    WHERE s.room_key = a.room_key AND s.turn_id = a.turn_id AND s.deleted_at IS NULL
      AND (s.role = 'user' OR (s.role = 'assistant' AND (
          s.has_tool_calls < a.has_tool_calls OR (s.has_tool_calls = a.has_tool_calls AND s.arrival > a.arrival)))))
UNION ALL
SELECT c.checkpoint_id, r.room_id, '[MEMORY_CHECKPOINT]',
       CASE c.language WHEN 'zh' THEN '历史摘要: ' ELSE 'Summary: ' END || c.summary, {time:c.created_at}, c.made_by,
       NULL, NULL, c.tenant
FROM checkpoints c
JOIN rooms r ON r.room_key = c.room_key
WHERE c.kind = 'summary';

CREATE VIEW memory_change_log AS
SELECT c.number AS number, c.memory_id AS memory_id, m.lineage_id AS lineage_id, s.scope AS scope,
       CASE WHEN substr(s.scope, 1, 6) = 'group:' THEN substr(s.scope, 7) END AS group_id, c.action AS action,
       c.old_statement AS old_statement,
       CASE WHEN {logged:status} = 'active' THEN m.statement END AS new_statement,
       CASE WHEN c.reason <> '' THEN c.reason ELSE m.change_summary END AS change_summary, m.version AS version,
       m.kind AS kind, CAST({logged:strength} AS DOUBLE PRECISION) AS strength, m.doubtful AS doubtful,
       {json:m.tags} AS tags, {json:m.sources} AS sources, {json:c.closes} AS closes, c.evolution_id AS evolution_id,
       c.undoes AS undoes, c.actor AS actor, {time:c.at} AS created_at, c.tenant AS tenant
FROM memory_changes c
JOIN memory_scopes s ON s.scope_key = c.scope_key
LEFT JOIN memories m ON m.tenant = c.tenant AND m.memory_id = c.memory_id;

CREATE VIEW context_usage_record AS
SELECT u.context_id AS context_id, u.room_id AS group_id, u.user_id AS user_id,
       u.trigger_message_id AS trigger_message_id, u.strategy AS strategy, u.arm AS arm,
       {json:u.context_message_ids} AS context_message_ids, {json:u.relevance_scores} AS relevance_scores,
       u.mean_score AS mean_score, u.tokens AS tokens, u.window_tokens AS window_tokens, u.build_ms AS build_ms,
       u.degraded AS degraded, u.llm_response AS llm_response, u.user_feedback AS user_feedback,
       u.success_indicator AS success_indicator, {time:u.created_at} AS created_at, u.tenant AS tenant
FROM context_usage_records u;
