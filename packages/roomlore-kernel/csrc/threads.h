/* The contents of the candidates' threads. A part of link.c. */
#ifndef ROOMLORE_THREADS_H
#define ROOMLORE_THREADS_H

#include "view.h"

/* Add up the lines of these rows, over BLOCK columns from `column` on. */
INLINE void add_lines(const struct view *view, const struct columns *rows, int column, lanes sums[8]) {
    for (int part = 0; part < 8; ++part) sums[part] = all(0.0f);
    for (int place = 0; place < rows->count; ++place) {
        const float *line = line_of(view, rows->at[place]) + column;
        for (int part = 0; part < 8; ++part) sums[part] += load(line + part * LANES);
    }
}

/* The lines of `held`: sums over the rows that I sent, that I name, that call me; the rarity of shared words; the share of
 * my words that the thread covers (first), and of the rare ones (in `rare`). */
enum { HELD_MINE, HELD_NAMED, HELD_CALLS_ME, HELD_WORDS, HELD_COVERS };

struct weights {
    float share[MAX_WORDS], square[MAX_WORDS]; /* both 0 for words that are not among the rarest */
    bool telling[MAX_WORDS];
};

/* Return the share of the message that each of its rarest words makes up, and of the square of their rarities. */
static void weigh_words(const struct view *view, struct weights *weights) {
    const int words = (int)view->message->known_words;
    float squares = 0.0f;
    for (int word = 0; word < words; ++word) {
        int rarer = 0;
        for (int other = 0; words > TELLING && other < words; ++other)
            rarer += view->rarity[other] > view->rarity[word] ||
                     (view->rarity[other] == view->rarity[word] && other < word);
        weights->telling[word] = rarer < TELLING;
        const float rarity = (float)view->rarity[word];
        weights->share[word] = rarity / (float)(view->words_whole + 1.0);
        weights->square[word] = rarity * rarity;
        if (weights->telling[word]) squares += rarity * rarity;
    }
    for (int word = 0; word < words; ++word) weights->square[word] /= squares + 30.0f;
}

static void store_block(float *to, const lanes sums[8]) {
    for (int part = 0; part < 8; ++part) store(to + part * LANES, sums[part]);
}

static void hold_words(struct view *view, const struct weights *weights, int column, float *rare_held) {
    lanes words[8], covers[8], rare[8], sums[8];
    for (int part = 0; part < 8; ++part) words[part] = covers[part] = rare[part] = all(0.0f);
    for (int word = 0; word < view->message->known_words; ++word) {
        add_lines(view, &view->uses[word], column, sums);
        for (int part = 0; part < 8; ++part) words[part] += sums[part] * (float)view->rarity[word];
        for (int part = 0; weights->telling[word] && part < 8; ++part) {
            const lanes covered = smaller(sums[part], all(1.0f));
            covers[part] += covered * weights->share[word];
            rare[part] += covered * weights->square[word];
        }
    }
    store_block(view->held[HELD_WORDS] + column, words);
    store_block(view->held[HELD_COVERS] + column, covers);
    store_block(rare_held + column, rare);
}

/* Sum up, for each column where candidates are, P(same thread) with the rows of each kind. */
static void hold(struct view *view, float *rare_held) {
    const struct columns *kinds[] = {&view->mine, &view->named, &view->calling};
    struct weights weights;
    weigh_words(view, &weights);
    int column = FIRST_HELD;
    while (column + BLOCK <= view->near[0]) column += BLOCK;
    for (; column < SIZE; column += BLOCK) {
        lanes sums[8];
        for (int kind = 0; kind < 3; ++kind) {
            add_lines(view, kinds[kind], column, sums);
            store_block(view->held[kind] + column, sums);
        }
        hold_words(view, &weights, column, rare_held);
    }
}

/* Multiply the lines of candidates with how much each column counts, how recent it is, and, if any is, how foreign. */
INLINE void weigh_lines(struct view *view, const bool foreign) {
    for (int place = 0; place < CANDIDATES; place += 2) {
        const float *one = line_of(view, view->near[place]), *other = line_of(view, view->near[place + 1]);
        lanes size[2] = {{0}}, recent[2] = {{0}}, strange[2] = {{0}};
        for (int column = 0; column < SIZE; column += LANES) {
            const lanes lines[2] = {load(one + column), load(other + column)};
            for (int side = 0; side < 2; ++side) {
                size[side] += lines[side] * load(view->counted + column);
                recent[side] += lines[side] * load(view->recent + column);
                if (foreign) strange[side] += lines[side] * load(view->foreign + column);
            }
        }
        for (int side = 0; side < 2; ++side) {
            const float whole = sum_of(size[side]), apart = foreign ? sum_of(strange[side]) : 0.0f;
            view->pairs[PAIR_kin_size][place + side] = whole;
            view->pairs[PAIR_kin_recent][place + side] = sum_of(recent[side]);
            view->pairs[PAIR_kin_foreign][place + side] = apart;
            view->pairs[PAIR_kin_foreign_share][place + side] = apart / (whole > 1.0f ? whole : 1.0f);
        }
    }
}

/* Fill in the contents of each candidate's thread, and how much of the message's words it covers. */
static void read_threads(struct view *view) {
    float rare_held[SIZE], rare[CANDIDATES];
    hold(view, rare_held);
    if (view->any_foreign)
        weigh_lines(view, true);
    else
        weigh_lines(view, false);
    gather(view, view->pairs[PAIR_kin_words], view->held[HELD_WORDS]);
    gather(view, view->pairs[PAIR_kin_mine], view->held[HELD_MINE]);
    gather(view, view->pairs[PAIR_kin_named], view->held[HELD_NAMED]);
    gather(view, view->pairs[PAIR_kin_calls_me], view->held[HELD_CALLS_ME]);
    gather(view, view->covers, view->held[HELD_COVERS]);
    gather(view, rare, rare_held);
    if (view->my_last >= 0) gather(view, view->pairs[PAIR_kin_my_last], line_of(view, view->my_last));
    gather(view, view->pairs[PAIR_kin_newest], line_of(view, SIZE - 1));
    view->covers_best = best_of(view->covers);
    const float rare_best = best_of(rare);
    for (int place = 0; place < CANDIDATES; ++place) {
        view->pairs[PAIR_kin_covers][place] = view->covers[place];
        view->pairs[PAIR_kin_covers_of_best][place] = view->covers[place] / (view->covers_best + 0.05f);
        view->pairs[PAIR_kin_covers_rare][place] = rare[place];
        view->pairs[PAIR_kin_covers_rare_of_best][place] = rare[place] / (rare_best + 0.02f);
    }
}

#endif
