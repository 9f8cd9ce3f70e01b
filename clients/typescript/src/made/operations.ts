/** Made by `make client` from the OpenAPI document. */

import { Caller, type CallOptions } from "../caller.ts";
import type { Answer, Given, Item } from "../types.ts";

export abstract class Operations extends Caller {
  /** Add one message, or `{"messages": [...]}`, in one transaction. Return the ids that were added, duplicates and
   * conflicts. Adding the same message again changes nothing.
   *
   * A message is stored in the room whose id it gives, even if that is the name of another room: then `hint` says so. */
  addMessages(given: Given<"add_messages">, options?: CallOptions): Promise<Answer<"add_messages">> {
    return this.call(given, options, "POST", "/messages", ["on_conflict"]);
  }

  /** Return a room's messages in order of arrival: those that the viewer may see. */
  listMessages(given: Given<"list_messages">, options?: CallOptions): Promise<Answer<"list_messages">> {
    return this.call(given, options, "GET", "/messages");
  }

  /** Find the messages that answer a question. They are of one room, or of all rooms that a viewer may see. */
  searchMessages(given: Given<"search_messages">, options?: CallOptions): Promise<Answer<"search_messages">> {
    return this.call(given, options, "GET", "/messages/search");
  }

  /** Return a message with its features and its place in the room's threads. For a viewer who may see a part of the
   * room, these follow from that part. */
  getMessage(given: Given<"get_message">, options?: CallOptions): Promise<Answer<"get_message">> {
    return this.call(given, options, "GET", "/messages/{room_id}/{message_id}");
  }

  /** Change a message's text, metadata or mentions; it keeps its place. */
  editMessage(given: Given<"edit_message">, options?: CallOptions): Promise<Answer<"edit_message">> {
    return this.call(given, options, "PATCH", "/messages/{room_id}/{message_id}", ["viewer"]);
  }

  /** Empty and hide a message; its id stays taken. Deleting it again changes nothing. */
  deleteMessage(given: Given<"delete_message">, options?: CallOptions): Promise<Answer<"delete_message">> {
    return this.call(given, options, "DELETE", "/messages/{room_id}/{message_id}");
  }

  /** Say which earlier message a message answers, or that it answers nothing. Threads and contexts follow at once; of
   * a very long thread `left` messages move to another one in the background, as a job of the kind `threads`. */
  correctLink(given: Given<"correct_link">, options?: CallOptions): Promise<Answer<"correct_link">> {
    return this.call(given, options, "PUT", "/messages/{room_id}/{message_id}/link", ["viewer"]);
  }

  /** Take the correction of a link back. Without one nothing changes. */
  undoLink(given: Given<"undo_link">, options?: CallOptions): Promise<Answer<"undo_link">> {
    return this.call(given, options, "DELETE", "/messages/{room_id}/{message_id}/link");
  }

  /** Show the messages that matter for a message, each with its reason. */
  buildContext(given: Given<"build_context">, options?: CallOptions): Promise<Answer<"build_context">> {
    return this.call(given, options, "POST", "/context", ["viewer"]);
  }

  /** Return the chosen messages of a context, the model's answer with it, and its feedback. */
  getContext(given: Given<"get_context">, options?: CallOptions): Promise<Answer<"get_context">> {
    return this.call(given, options, "GET", "/context/{context_id}");
  }

  /** Record the model's answer. */
  respondToContext(given: Given<"respond_to_context">, options?: CallOptions): Promise<Answer<"respond_to_context">> {
    return this.call(given, options, "POST", "/context/{context_id}/response", ["viewer"]);
  }

  /** Record feedback: a text, a score from 0 to 1, or both. */
  judgeContext(given: Given<"judge_context">, options?: CallOptions): Promise<Answer<"judge_context">> {
    return this.call(given, options, "POST", "/context/{context_id}/feedback", ["viewer"]);
  }

  /** List the contexts that were used, the oldest first, with the model's answers and the feedback. */
  listUsage(given: Given<"list_usage"> = {}, options?: CallOptions): Promise<Answer<"list_usage">> {
    return this.call(given, options, "GET", "/usage");
  }

  /** Compare the arms of an experiment: contexts, tokens, scores, feedback and degradation. */
  reportUsage(given: Given<"report_usage"> = {}, options?: CallOptions): Promise<Answer<"report_usage">> {
    return this.call(given, options, "GET", "/usage/report");
  }

  /** Write contexts as JSON lines for training: the messages with features and scores, the answer, the feedback.
   *
   * Contexts for messages that were deleted, or whose senders were forgotten, are left out. */
  exportUsage(given: Given<"export_usage"> = {}, options?: CallOptions): AsyncGenerator<Item<"export_usage">, void> {
    return this.items(given, options, "GET", "/usage/export");
  }

  /** Return the rooms, by id. */
  listRooms(given: Given<"list_rooms"> = {}, options?: CallOptions): Promise<Answer<"list_rooms">> {
    return this.call(given, options, "GET", "/rooms");
  }

  /** Return a room's counters and its own settings. */
  getRoom(given: Given<"get_room">, options?: CallOptions): Promise<Answer<"get_room">> {
    return this.call(given, options, "GET", "/rooms/{room_id}");
  }

  /** Remove a room with everything that rests on it alone. Without `confirm` nothing is removed, and the answer is a
   * 422 that says what would be.
   *
   * It is a job, which is stored before it begins and goes on after a restart of the server. Nobody sees the room from
   * then on, and adding to it is a 409 until it is gone. If it takes more than 30 seconds, the answer is a 202. */
  deleteRoom(given: Given<"delete_room">, options?: CallOptions): Promise<Answer<"delete_room">> {
    return this.call(given, options, "DELETE", "/rooms/{room_id}");
  }

  /** Name a room; its id stays. Imports name rooms that have no name. */
  renameRoom(given: Given<"rename_room">, options?: CallOptions): Promise<Answer<"rename_room">> {
    return this.call(given, options, "PATCH", "/rooms/{room_id}", ["viewer"]);
  }

  /** Return the room's threads in the order in which they began. */
  listThreads(given: Given<"list_threads">, options?: CallOptions): Promise<Answer<"list_threads">> {
    return this.call(given, options, "GET", "/rooms/{room_id}/threads");
  }

  /** Return the title and the state of the threads of some messages, such as those of a search or a context.
   *
   * A thread is `open` if a question in it has no answer, `answered` if every question has one, else `closed`. */
  getHeadings(given: Given<"get_headings">, options?: CallOptions): Promise<Answer<"get_headings">> {
    return this.call(given, options, "GET", "/rooms/{room_id}/headings");
  }

  /** Return the newest messages of the thread of a message. */
  getThread(given: Given<"get_thread">, options?: CallOptions): Promise<Answer<"get_thread">> {
    return this.call(given, options, "GET", "/rooms/{room_id}/threads/{message_id}");
  }

  /** Return who can see a room: its kind, and its people without agents, with their stays and when each spoke. */
  getAudience(given: Given<"get_audience">, options?: CallOptions): Promise<Answer<"get_audience">> {
    return this.call(given, options, "GET", "/rooms/{room_id}/audience");
  }

  /** Say who can see a room: its kind, all its members, or who joined and left. A room that is not there is made. */
  changeAudience(given: Given<"change_audience">, options?: CallOptions): Promise<Answer<"change_audience">> {
    return this.call(given, options, "PATCH", "/rooms/{room_id}/audience", []);
  }

  /** Return every setting that a room may have, with its value and source. */
  getRoomSettings(given: Given<"get_room_settings">, options?: CallOptions): Promise<Answer<"get_room_settings">> {
    return this.call(given, options, "GET", "/rooms/{room_id}/settings");
  }

  /** Set the room's own settings; null removes one. */
  changeRoomSettings(given: Given<"change_room_settings">, options?: CallOptions): Promise<Answer<"change_room_settings">> {
    return this.call(given, options, "PATCH", "/rooms/{room_id}/settings", ["viewer"]);
  }

  /** Return the log of corrected links of a room, the newest first. */
  listCorrections(given: Given<"list_corrections">, options?: CallOptions): Promise<Answer<"list_corrections">> {
    return this.call(given, options, "GET", "/rooms/{room_id}/corrections");
  }

  /** Mark what was said up to a message as read by a person. A mark never moves back. */
  markRead(given: Given<"mark_read">, options?: CallOptions): Promise<Answer<"mark_read">> {
    return this.call(given, options, "POST", "/rooms/{room_id}/read", ["viewer"]);
  }

  /** Show what happened in a room, thread by thread. First comes what waits for the reader, then decisions, open questions, and the rest. With neither a reader nor a time it tells of the last day on which somebody wrote. */
  getDigest(given: Given<"get_digest">, options?: CallOptions): Promise<Answer<"get_digest">> {
    return this.call(given, options, "GET", "/rooms/{room_id}/digest");
  }

  /** Create a session, and its room if there is none. An existing one stays as it is; missing ids are filled in. */
  createSession(given: Given<"create_session">, options?: CallOptions): Promise<Answer<"create_session">> {
    return this.call(given, options, "POST", "/sessions", ["viewer"]);
  }

  /** List the sessions, by conversation id. */
  listSessions(given: Given<"list_sessions"> = {}, options?: CallOptions): Promise<Answer<"list_sessions">> {
    return this.call(given, options, "GET", "/sessions");
  }

  /** Show a session: the user, its state, the last turns, and the data that agents store with it. */
  getSession(given: Given<"get_session">, options?: CallOptions): Promise<Answer<"get_session">> {
    return this.call(given, options, "GET", "/sessions/{conversation_id}");
  }

  /** Show the context for a model: the summary, the turns after it, and how full its window is. */
  querySessionContext(given: Given<"query_session_context">, options?: CallOptions): Promise<Answer<"query_session_context">> {
    return this.call(given, options, "POST", "/sessions/{conversation_id}/context", ["viewer"]);
  }

  /** Store a turn in one transaction: the user's query, the agent's answer, or both. Creates the session if there is none; storing the same turn again changes nothing. */
  writeTurn(given: Given<"write_turn">, options?: CallOptions): Promise<Answer<"write_turn">> {
    return this.call(given, options, "POST", "/sessions/{conversation_id}/turns", []);
  }

  /** Replace a part of the history by a summary. Without one roomlore makes it; null if there is nothing new. */
  makeCheckpoint(given: Given<"make_checkpoint">, options?: CallOptions): Promise<Answer<"make_checkpoint">> {
    return this.call(given, options, "POST", "/sessions/{conversation_id}/checkpoint", ["viewer"]);
  }

  /** Reset the conversation: earlier messages are no longer shown. Nothing is deleted. */
  resetSession(given: Given<"reset_session">, options?: CallOptions): Promise<Answer<"reset_session">> {
    return this.call(given, options, "POST", "/sessions/{conversation_id}/reset");
  }

  /** List a conversation's checkpoints and resets, newest first. */
  listCheckpoints(given: Given<"list_checkpoints">, options?: CallOptions): Promise<Answer<"list_checkpoints">> {
    return this.call(given, options, "GET", "/sessions/{conversation_id}/checkpoints");
  }

  /** Merge a patch (RFC 7396) into the session's data: its state, the user's snapshot, the current agent, and fields
   * of your own. Values derived from the messages cannot be set. */
  patchSessionState(given: Given<"patch_session_state">, options?: CallOptions): Promise<Answer<"patch_session_state">> {
    return this.call(given, options, "PATCH", "/sessions/{conversation_id}/state", ["viewer"], "patch");
  }

  /** Add one fact, or `{"facts": [...]}`, in one transaction. A fact that exists, by its id or in the same words, is
   * not added again. A viewer may cite the messages that it may see; without one, a fact
   * that a room adds was said there now, and one that a person or an administrator adds is for all. */
  addFacts(given: Given<"add_facts">, options?: CallOptions): Promise<Answer<"add_facts">> {
    return this.call(given, options, "POST", "/facts", ["viewer"]);
  }

  /** List the facts about a person, an agent or a group, the last changed first. */
  listFacts(given: Given<"list_facts">, options?: CallOptions): Promise<Answer<"list_facts">> {
    return this.call(given, options, "GET", "/facts");
  }

  /** Return the version in force, for the id of any version; the last one of a deleted fact. */
  getFact(given: Given<"get_fact">, options?: CallOptions): Promise<Answer<"get_fact">> {
    return this.call(given, options, "GET", "/facts/{memory_id}");
  }

  /** Change a fact. It gets a new version with a new id; the version before stays in its history. */
  changeFact(given: Given<"change_fact">, options?: CallOptions): Promise<Answer<"change_fact">> {
    return this.call(given, options, "PATCH", "/facts/{memory_id}", ["viewer"]);
  }

  /** Delete a fact. It stays in its history and is no longer recalled; deleting it again changes nothing. */
  deleteFact(given: Given<"delete_fact">, options?: CallOptions): Promise<Answer<"delete_fact">> {
    return this.call(given, options, "DELETE", "/facts/{memory_id}");
  }

  /** Return every version of a fact, the first one first. */
  factHistory(given: Given<"fact_history">, options?: CallOptions): Promise<Answer<"fact_history">> {
    return this.call(given, options, "GET", "/facts/{memory_id}/history");
  }

  /** Read the group's messages since the last evolution and update its memories. */
  evolve(given: Given<"evolve">, options?: CallOptions): Promise<Answer<"evolve">> {
    return this.call(given, options, "POST", "/memory/evolve/{group_id}");
  }

  /** Return the result of an evolution. Answers 404 if it is not done or had nothing to read. */
  getEvolution(given: Given<"get_evolution">, options?: CallOptions): Promise<Answer<"get_evolution">> {
    return this.call(given, options, "GET", "/memory/evolution/{evolution_id}");
  }

  /** Return the changes of a group's memories in the last seven days, or `days`, in order; with `newest_first` the
   * last change first. */
  memoryChanges(given: Given<"memory_changes">, options?: CallOptions): Promise<Answer<"memory_changes">> {
    return this.call(given, options, "GET", "/memory/changes/{group_id}");
  }

  /** List the memories of a group, a person or an agent, the last changed first. */
  listMemories(given: Given<"list_memories">, options?: CallOptions): Promise<Answer<"list_memories">> {
    return this.call(given, options, "GET", "/memory/list/{group_id}");
  }

  /** Find the memories of a group, a person or an agent that answer a question, best first. */
  searchMemories(given: Given<"search_memories">, options?: CallOptions): Promise<Answer<"search_memories">> {
    return this.call(given, options, "GET", "/memory/search/{group_id}");
  }

  /** Show every version of a memory, the first one first. */
  memoryHistory(given: Given<"memory_history">, options?: CallOptions): Promise<Answer<"memory_history">> {
    return this.call(given, options, "GET", "/memory/history/{memory_id}");
  }

  /** List the memories of a group, a person or an agent as of a time. */
  memoriesAsOf(given: Given<"memories_as_of">, options?: CallOptions): Promise<Answer<"memories_as_of">> {
    return this.call(given, options, "GET", "/memory/as-of/{group_id}");
  }

  /** Show what changed in the memories of a group, a person or an agent between two times, word by word. */
  diffMemories(given: Given<"diff_memories">, options?: CallOptions): Promise<Answer<"diff_memories">> {
    return this.call(given, options, "GET", "/memory/diff/{group_id}");
  }

  /** Show the messages and evolutions that made a memory, the newest version first. */
  blameMemory(given: Given<"blame_memory">, options?: CallOptions): Promise<Answer<"blame_memory">> {
    return this.call(given, options, "GET", "/memory/blame/{memory_id}");
  }

  /** Delete a memory. It stays in its history and can be restored; deleting it again changes nothing. */
  deleteMemory(given: Given<"delete_memory">, options?: CallOptions): Promise<Answer<"delete_memory">> {
    return this.call(given, options, "DELETE", "/memory/{memory_id}");
  }

  /** Bring a version of a memory back into force, in place of the one in force. */
  restoreMemory(given: Given<"restore_memory">, options?: CallOptions): Promise<Answer<"restore_memory">> {
    return this.call(given, options, "PUT", "/memory/{memory_id}/restore", ["viewer"]);
  }

  /** Set the strength of a memory. */
  setStrength(given: Given<"set_strength">, options?: CallOptions): Promise<Answer<"set_strength">> {
    return this.call(given, options, "PUT", "/memory/{memory_id}/strength", ["viewer"]);
  }

  /** Undo an evolution by new changes: memories it made are removed, memories it replaced are in force again. */
  revertEvolution(given: Given<"revert_evolution">, options?: CallOptions): Promise<Answer<"revert_evolution">> {
    return this.call(given, options, "POST", "/memory/revert/{evolution_id}", []);
  }

  /** Show which memories may be shown in a room, and why. */
  listVisible(given: Given<"list_visible">, options?: CallOptions): Promise<Answer<"list_visible">> {
    return this.call(given, options, "GET", "/rooms/{room_id}/visible");
  }

  /** Return in which rooms this version of a memory may be shown now. */
  getWhoMaySee(given: Given<"get_who_may_see">, options?: CallOptions): Promise<Answer<"get_who_may_see">> {
    return this.call(given, options, "GET", "/memory/{memory_id}/visible");
  }

  /** Share a memory with a room or with everyone, beside those who heard it. A key without the scope admin names the
   * person it is about as viewer. */
  shareMemory(given: Given<"share_memory">, options?: CallOptions): Promise<Answer<"share_memory">> {
    return this.call(given, options, "PUT", "/memory/{memory_id}/share", ["viewer"]);
  }

  /** End a share, as the person that the memory is about or as an administrator. */
  endShare(given: Given<"end_share">, options?: CallOptions): Promise<Answer<"end_share">> {
    return this.call(given, options, "DELETE", "/memory/{memory_id}/share");
  }

  /** Remove what a person said and what was derived from it. Without `confirm` nothing is removed:
   * the answer is a 422 that says what would be, or a 404 if nothing of the id is here. With `dry_run` or `confirm`
   * `found` is false then.
   *
   * It is a job, which is stored before it begins and goes on after a restart of the server: `GET /jobs?kind=forgetting`
   * lists it. If it takes more than 30 seconds, the answer is a 202. The same request waits for it, or returns its
   * result of the last two minutes. */
  forget(given: Given<"forget">, options?: CallOptions): Promise<Answer<"forget">> {
    return this.call(given, options, "POST", "/privacy/forget", []);
  }

  /** Check the integrity of memories and messages, of a whole tenant or of one group. Changes nothing.
   *
   * Work of more than 30 seconds continues and is answered with 202. The same request waits for it, or returns its
   * result of the last two minutes. At most three checks of a tenant run at a time. */
  verify(given: Given<"verify"> = {}, options?: CallOptions): Promise<Answer<"verify">> {
    return this.call(given, options, "GET", "/privacy/verify");
  }

  /** Return the facts and group memories that matter for a conversation, ranked, and the block of text that holds them within a token budget. Options that are left out have the values of the settings. */
  recallFacts(given: Given<"recall_facts">, options?: CallOptions): Promise<Answer<"recall_facts">> {
    return this.call(given, options, "POST", "/recall", ["viewer"]);
  }

  /** Store the message and stream the reply to it: `start`, `text` as it is written, `tool_calls`, then `done`, or
   * `error` with a problem. If the client disconnects the reply ends, and the text so far is stored. */
  streamReply(given: Given<"stream_reply">, options?: CallOptions): AsyncGenerator<Item<"stream_reply">, void> {
    return this.events(given, options, "POST", "/chat/sse", []);
  }

  /** Return the models with their providers in order, and if each of these can be called: it has a key, or needs none.
   * Keys are never returned. */
  listModels(given: Given<"list_models"> = {}, options?: CallOptions): Promise<Answer<"list_models">> {
    return this.call(given, options, "GET", "/models");
  }

  /** List the work done behind the calls, the newest first. */
  listJobs(given: Given<"list_jobs"> = {}, options?: CallOptions): Promise<Answer<"list_jobs">> {
    return this.call(given, options, "GET", "/jobs");
  }

  /** Show a job. */
  getJob(given: Given<"get_job">, options?: CallOptions): Promise<Answer<"get_job">> {
    return this.call(given, options, "GET", "/jobs/{job_id}");
  }

  /** Run a failed or cancelled job again, in any process that works. Its finished steps are not repeated. */
  retryJob(given: Given<"retry_job">, options?: CallOptions): Promise<Answer<"retry_job">> {
    return this.call(given, options, "POST", "/jobs/{job_id}/retry");
  }

  /** Return 200 if the process answers. Needs no key. */
  live(given: Given<"live"> = {}, options?: CallOptions): Promise<Answer<"live">> {
    return this.call(given, options, "GET", "/health/live");
  }

  /** Return 200 if the database answers and accepts writes. Needs no key. Without vectors search continues by words:
   * see /index. */
  ready(given: Given<"ready"> = {}, options?: CallOptions): Promise<Answer<"ready">> {
    return this.call(given, options, "GET", "/health/ready");
  }

  /** Return the state of the search indexes, over all tenants: complete, behind, being rebuilt, or unreachable, and
   * what to do. */
  index(given: Given<"index"> = {}, options?: CallOptions): Promise<Answer<"index">> {
    return this.call(given, options, "GET", "/index");
  }

  /** Return the metrics over all tenants, in Prometheus' text format: of this process, or of all processes of
   * `roomlore serve --workers N`, each with the label `process`. */
  metrics(given: Given<"metrics"> = {}, options?: CallOptions): Promise<Answer<"metrics">> {
    return this.call(given, options, "GET", "/metrics");
  }
}
