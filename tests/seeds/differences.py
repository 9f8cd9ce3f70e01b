"""Where roomlore does otherwise than a design document says, by decision, and the test that shows what it does.

The design documents (seeds, with their sections) and the specification, whose sections `SPEC` counts, belong to the
project and are not in the repository: each entry is complete without them.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """`seed`: the document's number. `section`: of that document. `reason`: with the section of the specification.
    `test`: the function in this folder that shows it."""

    seed: str
    section: str
    says: str
    does: str
    reason: str
    test: str


SEED_000: list[Difference] = [
    Difference(
        "000",
        "3.3.3",
        "When no provider answers, the cut text is saved like any other summary.",
        "It is flagged as a fallback and says that no model made it.",
        "SPEC 4: stored flagged as a fallback.",
        "test_a_cut_text_is_flagged_as_a_fallback",
    ),
    Difference(
        "000",
        "3.3.3",
        "A cut text stays as it is.",
        "It is summarised again, as a new version, when a provider is back.",
        "SPEC 4: summarised again when a provider is back.",
        "test_a_cut_text_is_summarised_again_when_a_provider_is_back",
    ),
    Difference(
        "000",
        "3.3.2",
        "The last five messages are summarised.",
        "Everything said in the conversations of the agent since the last extraction is.",
        "SPEC 4: no message of a person to the agent is left unread.",
        "test_everything_since_the_last_extraction_is_read",
    ),
    Difference(
        "000",
        "3.3.2",
        "Replies are counted in the process and across rooms.",
        "The count comes from the stored messages, for each agent in each room.",
        "SPEC 4: a restart neither loses nor repeats an extraction.",
        "test_the_count_of_replies_survives_a_restart",
    ),
    Difference(
        "000",
        "3.1",
        "The model has two providers.",
        "Five more follow, which are asked only with a token of their own.",
        "SPEC 4: the providers of an entry are tried in order, each that has a key.",
        "test_further_providers_ship_after_the_two_and_are_asked_only_with_a_token",
    ),
    Difference(
        "000",
        "3.3.3",
        "A hundred code points are kept.",
        "A hundred characters as people count them are; none is cut.",
        "SPEC 0: characters are counted as graphemes, and truncation never cuts inside one.",
        "test_a_hundred_characters_are_counted_as_people_see_them",
    ),
    Difference(
        "000",
        "7",
        "The time-out of 15 s and the frequency of 5 are hard-coded.",
        "They are the defaults of settings.",
        "SPEC 11: one settings object.",
        "test_what_the_document_hard_codes_is_a_setting",
    ),
    Difference(
        "000",
        "3.3.1",
        "The model reads names and texts; the prompt is Chinese.",
        "Each line also has its time, and there is a prompt in Chinese and one in English.",
        "SPEC 4: each line shown to the model has its time; SPEC 0: Chinese and English are equals.",
        "test_each_line_has_its_time_and_an_english_talk_an_english_prompt",
    ),
]

SEED_001: list[Difference] = [
    Difference(
        "001",
        "中间件动态注入",
        "before_model returns the messages with the block among them.",
        "before_model chooses the facts; the block is added to the call of the model and is in no state.",
        "SPEC 5: one message that is replaced rather than repeated; decision 0015 says why it is in no state.",
        "test_the_block_is_in_no_state",
    ),
    Difference(
        "001",
        "中间件动态注入",
        "The block is the first message.",
        "It comes after the system prompt, or just before the last question where that is asked for.",
        "SPEC 5: placement system or trailing.",
        "test_the_block_comes_after_the_system_prompt",
    ),
    Difference(
        "001",
        "中间件动态注入",
        "Facts are chosen anew for each call of the model.",
        "They are chosen once for each message of the user, so that the calls of a turn have one prefix.",
        "SPEC 5: the block stays byte-identical while relevance has not clearly changed.",
        "test_the_block_is_the_same_for_all_calls_of_a_turn",
    ),
    Difference(
        "001",
        "1",
        "The score takes the cosine as it is.",
        "It takes the similarity scaled to what fits the block; similarity_scale literal takes the cosine.",
        "SPEC 5: score = 0.6 x similarity + 0.4 x confidence, similarity by settings.",
        "test_similarity_counts_scaled_to_what_fits_the_block_unless_set_literal",
    ),
    Difference(
        "001",
        "依赖变更",
        "tiktoken and scikit-learn are needed.",
        "Neither is; the encodings ship, and the words are weighed here.",
        "SPEC 5: nothing is downloaded at run time.",
        "test_neither_tiktoken_nor_scikit_learn_is_needed",
    ),
    Difference(
        "001",
        "配置选项",
        "The file is config.yaml.",
        "It is roomlore.yaml, unless another one is named; the section and the keys are those of the document.",
        "SPEC 11: roomlore.yaml, section memory as in the seed.",
        "test_the_file_is_roomlore_yaml_unless_another_is_named",
    ),
]

SEED_002: list[Difference] = [
    Difference(
        "002",
        "数据结构设计",
        "Qdrant holds the memories, PostgreSQL their log.",
        "SQL holds both; vectors follow from it, and search goes by words while Qdrant is down.",
        "SPEC 6: SQL is the truth, the vector index is derived.",
        "test_with_the_vector_store_down_memories_are_written_and_found_by_words",
    ),
    Difference(
        "002",
        "Collection配置",
        "Vectors are of text-embedding-3-small; nothing is found without them.",
        "Vectors are of the embedder that is configured; without one search goes by words.",
        "SPEC 6: search with embeddings and by words alone.",
        "test_search_answers_with_query_and_scored_results",
    ),
    Difference(
        "002",
        "Point Payload Schema",
        "Each memory carries its group_id.",
        "A memory carries its scope, such as group:tea; the answer names the group_id once.",
        "SPEC 0: a memory is of a scope.",
        "test_list_shows_every_field_of_a_memory",
    ),
    Difference(
        "002",
        "memory_change_log",
        "An action is keep, update, create or delete.",
        "keep is never logged; merge, restore, revert, strength, share and redact are.",
        "SPEC 0: keep is never logged.",
        "test_the_log_has_update_create_and_delete_and_never_keep",
    ),
    Difference(
        "002",
        "演进算法伪代码",
        "Each evolution reads the messages of the last `days` days.",
        "It reads those since the last evolution; `days` bounds the first one.",
        "SPEC 6: new messages since the last evolution.",
        "test_days_is_one_by_default_and_bounds_the_first_evolution",
    ),
    Difference(
        "002",
        "Langfuse Prompt设计",
        "The model sees the ids of memories and names them in old_id.",
        "It sees handles such as m1, and an id is refused.",
        "SPEC 6: the model sees short handles, never ids.",
        "test_an_id_in_place_of_a_handle_is_refused",
    ),
    Difference(
        "002",
        "Langfuse Prompt设计",
        "The input is one JSON object of existing_memories and new_discussions.",
        "The prompt has a line for each memory and each message, in blocks of their own.",
        "SPEC 6: chat text is data; it is delimited.",
        "test_existing_memories_and_new_messages_go_to_the_model_in_one_call",
    ),
    Difference(
        "002",
        "输出格式",
        "A change needs a statement and a reason.",
        "It also cites messages; a delete may cite none after two weeks of silence.",
        "SPEC 6: only what cites nothing is refused.",
        "test_scenario_3_a_memory_of_this_week_is_not_deleted_for_silence",
    ),
    Difference(
        "002",
        "JSON解析容错处理",
        "A line that cannot be parsed is skipped for good.",
        "It is reported, and put to the model once more with the reason.",
        "SPEC 6: a refused line is put to the model once more.",
        "test_a_broken_line_is_skipped_and_the_others_count",
    ),
    Difference(
        "002",
        "API接口设计",
        "evolve answers when it is done.",
        "It waits 30 seconds, then answers 202 with the job to ask for.",
        "SPEC 6: it enqueues, waits up to 30 s, or answers 202.",
        "test_an_evolution_that_takes_long_is_a_202_with_the_address_of_its_result",
    ),
    Difference(
        "002",
        "并发控制",
        "A lock in Redis keeps evolutions of a group apart.",
        "A lease in the database does, with compare and swap; no Redis is needed.",
        "SPEC 6: an expiring lease, with compare and swap as the guard.",
        "test_two_evolutions_of_one_group_at_once_are_done_one_after_the_other",
    ),
    Difference(
        "002",
        "LLM成本控制",
        "At most 200 messages are read; which ones, and what becomes of the others, is open.",
        "The oldest 200 are read, and the answer says how many remain.",
        "SPEC 6: the oldest 200, and the answer says how many remain.",
        "test_an_evolution_reads_at_most_two_hundred_messages_and_says_how_many_remain",
    ),
]

SEED_003: list[Difference] = [
    Difference(
        "003",
        "架构设计",
        "The session lies in Redis and is lost with its key.",
        "The database is the truth; Redis is a cache that is rebuilt.",
        "SPEC 3: the database is the truth.",
        "test_a_deleted_key_is_rebuilt_from_the_database",
    ),
    Difference(
        "003",
        "CheckpointShortMemory",
        "A checkpoint covers all messages of the database.",
        "It covers what it was told, or what the first context that asked for it showed.",
        "SPEC 3: what the summary covers is told, or assumed.",
        "test_a_checkpoint_of_three_arguments_covers_the_context_that_asked_for_it",
    ),
    Difference(
        "003",
        "CheckpointShortMemory",
        "Of the turns since the summary began only the last N are shown.",
        "Turns written while the summary was made stay verbatim.",
        "SPEC 3: nothing falls in the gap.",
        "test_turns_written_while_a_summary_was_made_stay_verbatim",
    ),
    Difference(
        "003",
        "MemoryContext",
        "Tokens are estimated from the history.",
        "They are counted exactly, and the query counts.",
        "SPEC 3: tokens are counted exactly and include the query.",
        "test_the_query_counts_towards_the_tokens",
    ),
    Difference(
        "003",
        "错误处理",
        "A caller sets the mode back to FULL_HISTORY if a checkpoint fails.",
        "The mode follows from the checkpoints and cannot be set; a failed one leaves it.",
        "SPEC 3: if it cannot, the session stays in the mode it was in.",
        "test_the_mode_follows_from_the_checkpoints_and_cannot_be_set",
    ),
    Difference(
        "003",
        "兼容性处理",
        "A caller sets the mode of an old session without a checkpoint id.",
        "Such a session loads as FULL_HISTORY.",
        "SPEC 3: old sessions load as FULL_HISTORY.",
        "test_an_old_session_without_a_checkpoint_id_is_full_history",
    ),
    Difference(
        "003",
        "并发控制",
        "A mutex of the caller keeps two writers apart.",
        "No lock is needed: two writers lose no turn.",
        "SPEC 3: two writers to one conversation never lose a turn.",
        "test_two_writers_of_one_conversation_lose_no_turn",
    ),
    Difference(
        "003",
        "Q1",
        "Each call reads the current segment from the database.",
        "Each call reads one row there; the messages come from Redis where it has them.",
        "SPEC 3: Redis is a cache.",
        "test_q1_a_session_that_lies_in_redis_is_read_from_there",
    ),
    Difference(
        "003",
        "Q6",
        "A summary by hand needs only the text and the number of turns.",
        "It also tells what it covers where no context asked for a checkpoint.",
        "SPEC 3: if no context asked for one, it is refused.",
        "test_a_summary_that_no_context_asked_for_is_refused_if_what_it_covers_is_unknown",
    ),
    Difference(
        "003",
        "Q7",
        "Deleting the key, or creating the session again, resets a conversation.",
        "Neither does; reset does, and deletes nothing.",
        "SPEC 3: reset writes a boundary and deletes nothing.",
        "test_q7_neither_a_deleted_key_nor_a_second_create_resets",
    ),
]

SEED_004: list[Difference] = [
    Difference(
        "004",
        "3.2",
        "The weights are used as they are, and the sum is cut at 1.",
        "They are normalised: they count in proportion to their sum.",
        "SPEC 2: non-negative and normalised.",
        "test_weights_count_in_proportion_to_their_sum",
    ),
    Difference(
        "004",
        "3.2",
        "A score is a number.",
        "Its five signals and the reason come with it.",
        "SPEC 2: each returned beside the total so that a person can see why.",
        "test_every_message_says_why_it_was_taken",
    ),
    Difference(
        "004",
        "3.3",
        "The weighted sum chooses.",
        "The strategy threaded does; weighted, the one of the document, is chosen by name.",
        "SPEC 2: strategies are chosen by name, threaded is the default.",
        "test_threaded_chooses_unless_another_strategy_is_set",
    ),
    Difference(
        "004",
        "4.1",
        "MessageFeatures repeats the id, the sender, the group, the content and the time.",
        "Features stand beside the message, which has these as id, sender_id, room_id, text and sent_at.",
        "SPEC 0: one word per idea; SPEC 1: the features are stored beside the message.",
        "test_features_stand_beside_the_message_and_do_not_repeat_it",
    ),
    Difference(
        "004",
        "4.1",
        "ReplyInfo is reply_to_message_id, reply_to_user_id and reply_type: quote, mention or thread.",
        "It is message_id, sender_id and kind, which is also reply: a reply of the platform.",
        "SPEC 2: reply info is of a platform reply, a quote or an @.",
        "test_a_reply_of_the_platform_has_a_kind_of_its_own",
    ),
    Difference(
        "004",
        "4.1",
        "ConversationContext has trigger_message, context_messages and group_id.",
        "Context has message_id, messages with their scores, and room_id.",
        "SPEC 0: group_id and the like all name a room.",
        "test_a_context_names_its_message_its_group_and_its_messages",
    ),
    Difference(
        "004",
        "4.2",
        "The table context_usage_records has group_id, and created_at as a time.",
        "The view context_usage_record has; the table has room_id and microseconds.",
        "SPEC 1: views show what people look for with SQL.",
        "test_the_view_of_records_has_the_group_and_readable_times",
    ),
    Difference(
        "004",
        "4.2",
        "message_features_cache holds the features as JSON, by message id.",
        "message_features holds them in columns, in the order in which messages arrived.",
        "SPEC 1: message_features, written when a message is added.",
        "test_the_features_of_every_message_are_stored",
    ),
    Difference(
        "004",
        "6.2",
        "The model is gpt-4o-mini and the temperature 0.7 where the call does not say.",
        "The model is reply_model or the only one there is; the temperature is the provider's.",
        "SPEC 7: model_id and temperature pass through.",
        "test_model_and_temperature_have_no_default_of_roomlores_own",
    ),
    Difference(
        "004",
        "6.2",
        "An error is streamed as a text of the agent.",
        "It is an event of its own, a problem, and no message.",
        "SPEC 7: errors end the stream with an error event and lose nothing.",
        "test_an_error_is_no_text_of_the_agent",
    ),
    Difference(
        "004",
        "6.2",
        "The closing chunks are two fixed sentences of one agent.",
        "Other sentences ship, in the language of the room; those of the document are settings.",
        "SPEC 7: a polite closing chunk with a configurable text.",
        "test_the_polite_chunk_that_ships",
    ),
    Difference(
        "004",
        "6.2",
        "Tools come from a manager of the service.",
        "The caller gives them with the request and may run them too.",
        "SPEC 7: tools pass through.",
        "test_finish_reason_tool_calls_waits_for_the_results_of_the_caller",
    ),
    Difference(
        "004",
        "8.1",
        "Every metric is a number from the start.",
        "What was not measured yet is NaN over HTTP and None in Python.",
        "SPEC 10: metrics are those of Prometheus.",
        "test_what_was_not_measured_yet_is_no_number",
    ),
    Difference(
        "004",
        "10.1",
        "A bad setting gives way to its default.",
        "It stops the start with a sentence that names the setting, the value and the range.",
        "SPEC 11: a bad value stops the start.",
        "test_a_bad_setting_stops_the_start_and_is_named",
    ),
]

DIFFERENCES: list[Difference] = [*SEED_000, *SEED_001, *SEED_002, *SEED_003, *SEED_004]
