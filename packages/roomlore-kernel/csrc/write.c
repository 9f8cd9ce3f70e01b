/* Writes one message into the arrays of the window: the part of RoomWindow.push that numpy does. */
#include "clock.h"

#include <stdbool.h>
#include <string.h>

struct writing {
    const struct window *window;
    const struct entry *entry;
    int64_t row;
    int64_t mine_before; /* the row of the sender's message before, or -1 */
};

static float *fact(const struct window *window, int line, int64_t row) {
    return window->facts + line * window->rows + row;
}

static int64_t last_by(const struct window *window, int64_t sender, int64_t row, int64_t first) {
    for (--row; row >= first; --row)
        if (window->people[SENDER * window->rows + row] == sender) return row;
    return -1;
}

/* Return the number of messages just before this one, without a break, by the same sender. */
static int run_of(const struct writing *writing, int64_t oldest) {
    const struct window *window = writing->window;
    for (int run = 0; run < LONGEST_RUN - 1; ++run) {
        const int64_t row = writing->row - run - 1;
        if (window->people[SENDER * window->rows + row] != writing->entry->me || window->place[row] < oldest) return run;
    }
    return LONGEST_RUN - 1;
}

/* Fill in the part of the row that earlier messages decide, at most BEHIND entries back. */
static void look_back(const struct writing *writing, const float *traits) {
    const struct window *window = writing->window;
    const struct entry *entry = writing->entry;
    const int64_t row = writing->row, oldest = entry->window.pushed - BEHIND;
    const bool recent = window->place[row - 1] >= oldest;
    for (int line = 0; line < COUNTS; ++line) *fact(window, line, row) = 0.0f;
    for (int line = 0; line < TRAITS; ++line) *fact(window, COUNTS + line, row) = traits[line];
    *fact(window, COUNT_fresh, row) = writing->mine_before < 0 || window->place[writing->mine_before] < oldest;
    *fact(window, COUNT_run, row) = (float)run_of(writing, oldest);
    *fact(window, COUNT_calls_agent, row) = entry->calls_agent != 0;
    *fact(window, COUNT_pause, row) = window->gaps[row] = (float)LONG_PAUSE;
    if (recent) {
        const double pause = on_clock(entry->at - window->at[row - 1], pace_of(window, &entry->window)) / 60.0;
        *fact(window, COUNT_pause, row) = (float)log1p(pause);
        window->gaps[row] = (float)log(pause + MOMENT);
    }
}

/* Update the rows before the message; one who spoke before is no new speaker before that. */
static void note_later(const struct writing *writing) {
    const struct window *window = writing->window;
    const struct entry *entry = writing->entry;
    const int64_t first = writing->row - REACH;
    const int64_t *senders = window->people + SENDER * window->rows;
    float *spoken = fact(window, COUNT_spoke_since, 0), *called = fact(window, COUNT_called_since, 0);
    for (int64_t row = first; row < writing->row; ++row) spoken[row] += senders[row] == entry->me;
    for (int64_t place = 0; place < entry->named_count; ++place)
        for (int64_t row = first; row < writing->row; ++row) called[row] += senders[row] == entry->named[place];
    for (int64_t row = most(writing->mine_before, first); row < writing->row; ++row) window->speakers[row] += 1.0f;
    window->speakers[writing->row] = 0.0f;
}

/* Return the first row from `from` on whose arrival is not before this one, `end` if there is none. */
static int64_t row_of(const struct window *window, int64_t arrival, int64_t from, int64_t end) {
    while (from < end) {
        const int64_t middle = from + (end - from) / 2;
        if (window->arrival[middle] < arrival)
            from = middle + 1;
        else
            end = middle;
    }
    return from;
}

static uint64_t taken(const uint8_t *from, int bytes) {
    uint64_t number = 0;
    for (int byte = 0; byte < bytes; ++byte) number |= (uint64_t)from[byte] << 8 * byte;
    return number;
}

/* The stored form of ThreadCandidates, read one after another. */
struct packed {
    const uint8_t *distances, *shares;
    uint64_t first;
    int64_t bytes; /* of the distances */
    int width;     /* of a distance, 0 if they are bits */
    int64_t count, at;
};

static bool open_packed(struct packed *packed, const uint8_t *bytes, int64_t size) {
    enum { HEAD = 9 };
    memset(packed, 0, sizeof *packed);
    if (!size) return true;
    if (size < HEAD + 1) return false;
    packed->first = taken(bytes, 8);
    packed->width = bytes[8];
    if (packed->width == 0) {
        packed->bytes = bytes[HEAD];
        packed->distances = bytes + HEAD + 1;
        for (int64_t byte = 0; byte < packed->bytes && HEAD + 1 + byte < size; ++byte)
            packed->count += __builtin_popcount(packed->distances[byte]);
        packed->shares = packed->distances + packed->bytes;
        return size == HEAD + 1 + packed->bytes + 2 * packed->count;
    }
    if (packed->width != 1 && packed->width != 2 && packed->width != 4 && packed->width != 8) return false;
    packed->count = (size - HEAD) / (packed->width + 2);
    packed->distances = bytes + HEAD;
    packed->shares = packed->distances + packed->width * packed->count;
    return size == HEAD + packed->count * (packed->width + 2);
}

/* Return the next arrival; there must be one left. */
static int64_t next_arrival(struct packed *packed) {
    if (packed->width) {
        const uint8_t *distance = packed->distances + packed->width * packed->at++;
        return (int64_t)(packed->first + taken(distance, packed->width));
    }
    while (!(packed->distances[packed->at / 8] >> packed->at % 8 & 1)) ++packed->at;
    return (int64_t)(packed->first + (uint64_t)packed->at++);
}

/* Write P(same thread) with each thread candidate that is still in the window. Where one is named twice, the last counts. */
static void note_candidates(const struct writing *writing, struct packed *packed) {
    const struct window *window = writing->window;
    const int64_t row = writing->row, rows = window->rows;
    int64_t at = row - SIZE, noted = -1;
    float *joined = fact(window, COUNT_joined, 0);
    for (int64_t place = 0; place < packed->count; ++place) {
        const int64_t arrival = next_arrival(packed);
        const float share = (float)((double)taken(packed->shares + 2 * place, 2) / 65535.0);
        at = row_of(window, arrival, most(at, row - SIZE), row);
        if (at == row) break;
        if (window->arrival[at] != arrival) continue;
        if (at == noted) joined[at] -= window->kin[row * rows + at];
        noted = at;
        window->kin[row * rows + at] = window->kin[at * rows + row] = share;
        joined[at] += share;
        if (share >= SAME_THREAD && window->latest[at] < writing->entry->at) window->latest[at] = writing->entry->at;
    }
}

/* Return whom the message answers, -1 if that is nobody or too far back. */
static int64_t note_parent(const struct writing *writing) {
    const struct window *window = writing->window;
    const struct entry *entry = writing->entry;
    const int64_t row = writing->row;
    if (entry->parent < 0) return -1;
    const int64_t at = row_of(window, entry->parent, row - REACH, row);
    if (at == row || window->arrival[at] != entry->parent || window->place[at] < entry->window.pushed - BEHIND) return -1;
    const double apart = -(double)(window->lean[row] * window->lean[at]);
    window->across[row] = (float)(entry->parent_probability * fmax(0.0, apart));
    const int64_t sender = window->people[SENDER * window->rows + at];
    *fact(window, sender == entry->me ? COUNT_continued : COUNT_answered, at) += (float)entry->parent_probability;
    window->people[PARTNER * window->rows + row] = sender;
    return sender;
}

enum answer roomlore_write(const struct entry *entry, const float *traits, const uint8_t *candidates,
                           int64_t candidates_size) {
    const struct window *window = entry->arrays;
    struct packed packed;
    if (!open_packed(&packed, candidates, candidates_size)) return BAD_CANDIDATES;
    const int64_t row = entry->window.end;
    const struct writing writing = {window, entry, row, last_by(window, entry->me, row, row - entry->window.alive)};
    window->arrival[row] = entry->arrival;
    window->thread[row] = entry->thread;
    window->place[row] = entry->window.pushed;
    window->at[row] = window->latest[row] = entry->at;
    window->lean[row] = (float)entry->lean;
    window->across[row] = 0.0f;
    window->began[row] = (float)entry->new_probability;
    look_back(&writing, traits);
    note_later(&writing);
    for (int line = 0; line < PEOPLE; ++line) window->people[line * window->rows + row] = -1;
    window->people[SENDER * window->rows + row] = entry->me;
    for (int64_t place = 0; place < entry->named_count; ++place)
        window->people[(CALLED + place) * window->rows + row] = entry->named[place];
    window->kin[row * window->rows + row] = 1.0f;
    note_candidates(&writing, &packed);
    *entry->partner = note_parent(&writing);
    return LINKED;
}
