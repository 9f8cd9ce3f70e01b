/* The contents of the candidates' threads. A part of link.c. */
#ifndef ROOMLORE_THREADS_H
#define ROOMLORE_THREADS_H

#include "view.h"

/* Sum up, for each candidate, P(same thread) with these rows: for the newest ones in the lines of the rows, where they lie
 * side by side, for the others in their own lines. */
static void sum_over(const struct view *view, const struct columns *rows, float sums[CANDIDATES]) {
    enum { PARTS_OF_NEWEST = NEWEST / LANES, AT_ONCE = 4 };
    lanes newest[PARTS_OF_NEWEST] = {{0}};
    for (int place = 0; place < rows->count; ++place) {
        const float *line = line_of(view, rows->at[place]) + FIRST_NEWEST;
        for (int part = 0; part < PARTS_OF_NEWEST; ++part) newest[part] += load(line + part * LANES);
    }
    for (int part = 0; part < PARTS_OF_NEWEST; ++part) store(sums + CHOSEN + part * LANES, newest[part]);
    for (int candidate = 0; candidate < CHOSEN; candidate += AT_ONCE) {
        const float *lines[AT_ONCE];
        float added[AT_ONCE] = {0};
        for (int one = 0; one < AT_ONCE; ++one) lines[one] = line_of(view, view->near[candidate + one]);
        for (int place = 0; place < rows->count; ++place)
            for (int one = 0; one < AT_ONCE; ++one) added[one] += lines[one][rows->at[place]];
        memcpy(sums + candidate, added, sizeof added);
    }
}

struct weights {
    float share[MAX_WORDS], square[MAX_WORDS]; /* both 0 for words that are not among the rarest */
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
        const float rarity = rarer < TELLING ? (float)view->rarity[word] : 0.0f;
        weights->share[word] = rarity / (float)(view->words_whole + 1.0);
        weights->square[word] = rarity * rarity;
        squares += rarity * rarity;
    }
    for (int word = 0; word < words; ++word) weights->square[word] /= squares + 30.0f;
}

/* Fill in the rarity of the words that each candidate's thread shares, and how much of the message's words it covers, all
 * and the `rare` ones. */
static void hold_words(struct view *view, float rare[WIDTH]) {
    struct weights weights;
    float sums[WIDTH] = {0};
    weigh_words(view, &weights);
    for (int word = 0; word < view->message->known_words; ++word) {
        sum_over(view, &view->uses[word], sums);
        for (int place = 0; place < WIDTH; place += LANES) {
            const lanes sum = load(sums + place), covered = smaller(sum, all(1.0f));
            float *words = view->pairs[PAIR_kin_words] + place, *covers = view->covers + place;
            store(words, load(words) + sum * (float)view->rarity[word]);
            store(covers, load(covers) + covered * weights.share[word]);
            store(rare + place, load(rare + place) + covered * weights.square[word]);
        }
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
    float rare[WIDTH] = {0};
    memset(view->covers, 0, sizeof view->covers);
    hold_words(view, rare);
    sum_over(view, &view->mine, view->pairs[PAIR_kin_mine]);
    sum_over(view, &view->named, view->pairs[PAIR_kin_named]);
    sum_over(view, &view->calling, view->pairs[PAIR_kin_calls_me]);
    if (view->any_foreign)
        weigh_lines(view, true);
    else
        weigh_lines(view, false);
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
