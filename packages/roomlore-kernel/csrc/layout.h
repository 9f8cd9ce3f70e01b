/* The numbers and names that the kernel shares with roomlore.core.linking. `roomlore_kernel_layout` gives them as text,
 * which Python compares with its own before it uses the kernel. */
#ifndef ROOMLORE_LAYOUT_H
#define ROOMLORE_LAYOUT_H

#include <stdint.h>

enum {
    SIZE = 400,        /* entries of a window, and the columns that a message sees */
    CANDIDATES = 100,  /* messages that one may answer */
    NEWEST = 64,       /* of these, always the newest */
    CHOSEN = CANDIDATES - NEWEST,
    REACH = 300,       /* how many entries back a candidate may be */
    BEHIND = 100,      /* how many entries back a message counts for those after it */
    MAX_NAMED = 4,
    MAX_WORDS = 128,
    TELLING = 24,      /* the rarest words, whose threads are looked at */
    MAX_GAPS = 30,     /* gaps that tell the pace of a room */
    DOUBT = 8,         /* short gaps added to these */
    BEAT = 30,
    LONGEST_RUN = 4,
    MAX_THREAD_CANDIDATES = 64,
    MAX_BITS = 255,    /* bytes, where arrivals are packed as bits */
    /* The most people that a window can know, and the most units of a layer. */
    MAX_PEOPLE = SIZE * (2 + MAX_NAMED),
    MAX_HIDDEN = 128,
    MAX_INNER = 64,
};

#define NEVER (-1000000000)
#define SAME_THREAD 0.5f
#define MIN_SHARE 0.01f
#define LONG_PAUSE 8.0
#define UNKNOWN 8.0
#define MOMENT 0.02
#define BUSY_SECONDS 60.0
#define SILENCE_SECONDS 420.0
#define DAY_MINUTES 1440.0

/* What later messages, and the one itself, add to a row of the window. */
#define COUNT_NAMES(X) \
    X(fresh) X(run) X(pause) X(calls_agent) X(answered) X(continued) X(spoke_since) X(called_since) X(joined)

/* Of a message by itself. */
#define TRAIT_NAMES(X) \
    X(words) X(characters) X(asked) X(url) X(code) X(trails) X(smiles) \
    X(asks) X(begins_asking) X(greets) X(thanks) X(agrees) X(continues) X(points) X(you) X(i) X(calls) X(laughs) \
    X(addresses) X(mentions) X(mentions_all) X(assistant)

/* Of a candidate, before its counts and traits. */
#define PAIR_NAMES(X) \
    X(away) X(others_between) X(speakers_between) \
    X(minutes) X(minutes_to_pace5) X(minutes_to_pace20) X(minutes_to_pace60) X(minutes_to_beat) \
    X(quiet_minutes) X(quiet_minutes_to_beat) \
    X(mine) X(mine_since) X(my_last) X(their_last) X(i_address) X(i_name) X(i_address_last) \
    X(addresses_me) X(names_me) X(i_address_other) X(addresses_other) X(same_target) \
    X(answers_me) X(answers_other) X(last_answer_to_me) \
    X(words) X(words_count) X(words_of_mine) X(words_of_best) X(rarest) \
    X(ties_said) X(ties_calls_me) X(ties_answers_me) X(ties_called_me_last) X(ties_i_call) X(ties_i_answer) \
    X(my_last_named) X(my_last_answered) \
    X(kin_size) X(kin_words) X(kin_mine) X(kin_named) X(kin_calls_me) X(kin_my_last) X(kin_newest) X(kin_recent) \
    X(kin_foreign) X(kin_covers) X(kin_covers_of_best) X(kin_covers_rare) X(kin_covers_rare_of_best) \
    X(foreign) X(foreign_to_me) X(kin_foreign_share)

/* Of the message itself, after its traits. */
#define SELF_NAMES(X) \
    X(spoken) X(silent_messages) X(silent_minutes) X(last_asked) X(last_run) X(called_since) X(previous_mine) \
    X(pause) X(pace5) X(pace20) X(pace60) X(beat) X(pause_to_beat) X(speakers) X(crowd) X(called) \
    X(addressee_known) X(addressee_away) X(words_best) X(words_all) X(words_new) X(candidates) \
    X(habit_addresses) X(habit_words) X(habit_new) X(habit_new_after_pause) X(habit_joined) \
    X(calls_agent) X(agent_spoke) X(covers_best) X(covers_my_last) X(covers_mine) X(covers_newest) \
    X(my_quiet_minutes) X(my_last_and_newest) X(foreign_room) X(foreign_newest) X(habit_foreign)

#define AS_COUNT(name) COUNT_##name,
#define AS_TRAIT(name) TRAIT_##name,
#define AS_PAIR(name) PAIR_##name,
#define AS_SELF(name) SELF_##name,

enum { COUNT_NAMES(AS_COUNT) COUNTS };
enum { TRAIT_NAMES(AS_TRAIT) TRAITS };
enum { PAIR_NAMES(AS_PAIR) PAIR_COUNTS, PAIR_TRAITS = PAIR_COUNTS + COUNTS, PAIRS = PAIR_TRAITS + TRAITS };
enum { SELF_TRAITS = 0, SELF_BEFORE = TRAITS - 1, SELF_NAMES(AS_SELF) SELFS };

/* Lines of `people`. */
enum { SENDER, PARTNER, CALLED, PEOPLE = CALLED + MAX_NAMED };

#endif
