/* What is known while a message is linked, and its candidates. A part of link.c. */
#ifndef ROOMLORE_VIEW_H
#define ROOMLORE_VIEW_H

#include "clock.h"
#include "lanes.h"

#include <stdbool.h>

enum { WIDTH = (CANDIDATES + LANES - 1) / LANES * LANES };
enum { NOBODY = SIZE };        /* where ties with nobody in the window are counted */
enum { FIRST_CHOSEN = SIZE - REACH, FIRST_NEWEST = SIZE - NEWEST };
static const int PACES[] = {5, 20, 60};
enum { PACE_COUNT = 3 };
#define HARDLY 1e-12f

/* Sets of columns. */
enum {
    ALIVE, MINE, LAST, MY_LAST, LAST_OF_THEIRS_I_ADDRESS, I_ADDRESS, I_NAME, TO_ME, CALLS_ME, CALLS_ME_LAST,
    I_ADDRESS_OTHER, ADDRESSES_OTHER, SAME_TARGET, ANSWERS_ME, ANSWERS_OTHER, MY_LAST_NAMED, MY_LAST_ANSWERED,
    CONCERNED, SETS
};

struct columns {
    int count;
    uint16_t at[SIZE];
};

struct view {
    const struct window *window;
    const struct message *message;
    int64_t first;
    int near[CANDIDATES]; /* the columns of the candidates, ascending */
    bool open[CANDIDATES];
    int open_count;
    int my_last, last_answer_to_me, addressee; /* columns, or -1 */
    int32_t people[PEOPLE][SIZE];
    int16_t newest_of[MAX_PEOPLE]; /* the newest column of each person, -1 for none */
    uint8_t sets[SETS][SIZE];
    struct columns mine, named, calling;
    struct clock clock;
    double pause, silent, quiet, paces[PACE_COUNT], beat;
    double calls;              /* of the sender, the newer ones more */
    double words_whole;        /* the rarity of all words of the message */
    float words_best, covers_best;
    float words[SIZE], words_count[SIZE], squares[SIZE];
    double rarity[MAX_WORDS];
    struct columns uses[MAX_WORDS];
    float recent[SIZE], counted[SIZE], foreign[SIZE];
    bool any_foreign;
    float covers[WIDTH];
    float pairs[PAIRS][WIDTH] __attribute__((aligned(64)));
    float own[SELFS];
};

static const float *line_of(const struct view *view, int column) {
    return view->window->kin + (view->first + column) * view->window->rows + view->first;
}

static float log1p_of(double number) { return (float)log1p(number); }

/* Choose the newest messages, and of the older ones first those by or to the people concerned. */
static void choose_candidates(struct view *view) {
    const uint8_t *concerned = view->sets[CONCERNED];
    int free = CHOSEN, left = CHOSEN;
    for (int column = FIRST_CHOSEN; column < FIRST_NEWEST; ++column) free -= concerned[column];
    for (int column = FIRST_NEWEST - 1; column >= FIRST_CHOSEN && left; --column)
        if (concerned[column] || free-- > 0) view->near[--left] = column;
    for (int place = CHOSEN; place < CANDIDATES; ++place) view->near[place] = SIZE - CANDIDATES + place;
}

/* Find out which candidates may be answered. `among`: the columns that may be, all if it is NULL. */
static void open_candidates(struct view *view, const uint8_t *among) {
    view->open_count = 0;
    for (int place = 0; place < CANDIDATES; ++place) {
        const int64_t row = view->first + view->near[place];
        view->open[place] = view->window->at[row] <= view->message->at && row >= view->message->window.within;
        view->open_count += view->open[place];
    }
    for (int place = 0; among && place < CANDIDATES; ++place) view->open[place] &= among[view->near[place]] != 0;
}

static bool any_open(const struct view *view) {
    bool any = false;
    for (int place = 0; place < CANDIDATES; ++place) any |= view->open[place];
    return any;
}

static void gather(const struct view *view, float *line, const float *columns) {
    for (int place = 0; place < CANDIDATES; ++place) line[place] = columns[view->near[place]];
}

static void gather_set(struct view *view, int pair, int set) {
    for (int place = 0; place < CANDIDATES; ++place) view->pairs[pair][place] = view->sets[set][view->near[place]];
}

static float best_of(const float *line) {
    float best = line[0];
    for (int place = 1; place < CANDIDATES; ++place) best = line[place] > best ? line[place] : best;
    return best;
}

#endif
