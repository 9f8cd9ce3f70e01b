/* What Python hands to the kernel and gets back. Every field has eight bytes, so that `struct` packs them alike on every
 * platform. */
#ifndef ROOMLORE_INTERFACE_H
#define ROOMLORE_INTERFACE_H

#include "layout.h"

/* The arrays of a RoomWindow. A row of the window is a column of the arrays with several lines. */
struct window {
    int64_t rows;     /* length of a line */
    int64_t people_known; /* length of `counts`, less one */
    float *facts;     /* a line for each count and trait */
    float *kin;       /* P(same thread) of two rows; symmetric */
    int64_t *arrival, *thread, *place;
    double *at, *latest;
    float *gaps, *began, *lean, *across;
    int64_t *people;
    float *speakers;
    float *counts;
};

/* The weights of a LinkModel. */
struct model {
    int64_t hidden, inner;
    const float *pair, *own, *first, *inner_weights, *second, *out, *new_own, *new_first, *new_out, *new_bias;
};

/* Where a window stands. */
struct standing {
    int64_t end, alive, within, pushed;
};

/* The message to link. Numbers of people are -2 for those who are unknown. After it come, without a gap, its traits, then
 * SIZE / 8 bytes for each known word, the columns that use it as bits; and, if `has_among`, SIZE bytes that are 1 for the
 * columns that may be answered. */
struct message {
    const struct window *arrays;
    const struct model *model;
    struct guess *guess;       /* where the answer goes */
    struct features *features; /* NULL but in tests */
    int64_t size;              /* in bytes, with what comes after */
    struct standing window;
    int64_t me, named_count, addressed;
    int64_t named[MAX_NAMED];
    int64_t words;        /* distinct words, */
    int64_t known_words;  /* of which so many are used in the window */
    int64_t calls_agent, agent_spoke;
    int64_t never_new;    /* 1 in a platform thread, where it certainly answers something */
    int64_t has_among;
    double at, lean;
    double temperature, distance, own, own_aside; /* the Habits of the room */
};

/* What it most likely answers. */
struct guess {
    int64_t arrival, thread;
    double chance, new_chance;
    int64_t size;
    uint8_t packed[9 + MAX_BITS + 1 + (8 + 2) * MAX_THREAD_CANDIDATES]; /* the first `size` bytes are the candidates */
};

/* What the features were, for tests. */
struct features {
    float pairs[PAIRS][CANDIDATES];
    float own[SELFS];
    double chances[CANDIDATES + 1]; /* the last one: of something new */
    int64_t open[CANDIDATES], row[CANDIDATES];
};

/* The message to write into the window, in row `end`, with its link. After it come its traits, and its thread candidates
 * in their stored form. */
struct entry {
    const struct window *arrays;
    int64_t *partner; /* where the number of whom it answers goes, or -1 */
    int64_t size;     /* in bytes, with what comes after */
    struct standing window;
    int64_t me, named_count;
    int64_t named[MAX_NAMED];
    int64_t calls_agent;
    int64_t arrival, thread, parent; /* parent: -1 if it answers nothing */
    double at, lean, parent_probability, new_probability;
};

enum answer { NOTHING_OPEN = 0, LINKED = 1, BAD_WINDOW = -1, BAD_MESSAGE = -2, BAD_MODEL = -3, BAD_CANDIDATES = -4 };

/* One form of the kernel, for one kind of processor. The arguments are checked already, but for the numbers of people in
 * the window and for packed candidates. */
struct form {
    const char *name;
    enum answer (*link)(const struct message *, const float *traits, const uint8_t *uses, const uint8_t *among);
};

extern const struct form roomlore_plain, roomlore_avx2;

/* How much a message counts, by its column: the older, the less. */
extern double roomlore_recent[SIZE];

/* Write the entry into its row, and what follows from it into the rows before. */
enum answer roomlore_write(const struct entry *, const float *traits, const uint8_t *candidates, int64_t candidates_size);

#endif
