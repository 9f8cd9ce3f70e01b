/* The features of the candidates. A part of link.c. */
#ifndef ROOMLORE_PAIRS_H
#define ROOMLORE_PAIRS_H

#include "threads.h"
#include "view.h"

static void read_facts(struct view *view) {
    for (int line = 0; line < COUNTS + TRAITS; ++line)
        gather(view, view->pairs[PAIR_COUNTS + line], view->window->facts + line * view->window->rows + view->first);
    gather(view, view->pairs[PAIR_speakers_between], view->window->speakers + view->first);
}

static void read_distances(struct view *view) {
    int since = view->mine.count, passed = 0;
    for (int place = 0; place < CANDIDATES; ++place) {
        for (; passed < view->mine.count && view->mine.at[passed] <= view->near[place]; ++passed) --since;
        const float away = (float)(SIZE - 1 - view->near[place]);
        view->pairs[PAIR_away][place] = away;
        view->pairs[PAIR_others_between][place] = away - (float)since;
        view->pairs[PAIR_mine_since][place] = (float)since;
    }
}

/* Return the mean log of the minutes between the newest messages. */
static double beat_of(const struct window *window, const struct standing *standing) {
    const int64_t count = least(least(BEAT, standing->alive), standing->end - standing->within);
    float sum = 0.0f;
    for (int64_t row = standing->end - count; row < standing->end; ++row) sum += window->gaps[row];
    return count ? (double)sum / (double)count : 0.0;
}

/* Fill in the minutes since each candidate, and since its likely thread was last active, and their logs. */
static void read_times(struct view *view) {
    const struct window *window = view->window;
    const struct standing *standing = &view->message->window;
    const struct clock *clock = &view->clock;
    set_clock(&view->clock, window, standing, view->message->at);
    for (int place = 0; place < CANDIDATES; ++place) {
        const int64_t row = view->first + view->near[place];
        view->pairs[PAIR_minutes][place] = (float)minutes_since(clock, window->at[row]);
        view->pairs[PAIR_quiet_minutes][place] = (float)minutes_since(clock, window->latest[row]);
    }
    for (int pace = 0; pace < PACE_COUNT; ++pace) {
        const int back = PACES[pace];
        view->paces[pace] =
            standing->alive < back ? 0.0 : log(minutes_since(clock, window->at[standing->end - back]) / back + 0.02);
    }
    view->beat = beat_of(window, standing);
    view->pause = minutes_since(clock, window->at[standing->end - 1]);
    if (view->my_last >= 0) {
        view->silent = minutes_since(clock, window->at[view->first + view->my_last]);
        view->quiet = minutes_since(clock, window->latest[view->first + view->my_last]);
    }
    const float against[] = {(float)view->paces[0], (float)view->paces[1], (float)view->paces[2], (float)view->beat};
    for (int place = 0; place < WIDTH; place += LANES) {
        const lanes since = log_of(load(view->pairs[PAIR_minutes] + place) + (float)MOMENT);
        const lanes quiet = log_of(load(view->pairs[PAIR_quiet_minutes] + place) + (float)MOMENT);
        for (int pace = 0; pace <= PACE_COUNT; ++pace)
            store(view->pairs[PAIR_minutes_to_pace5 + pace] + place, since - against[pace]);
        store(view->pairs[PAIR_quiet_minutes] + place, quiet);
        store(view->pairs[PAIR_quiet_minutes_to_beat] + place, quiet - against[PACE_COUNT]);
    }
}

static void unpack(struct columns *columns, const uint8_t *packed) {
    uint64_t bits[(SIZE + 63) / 64] = {0};
    memcpy(bits, packed, SIZE / 8);
    columns->count = 0;
    for (int part = 0; part < (SIZE + 63) / 64; ++part)
        for (; bits[part]; bits[part] &= bits[part] - 1)
            columns->at[columns->count++] = (uint16_t)(64 * part + __builtin_ctzll(bits[part]));
}

/* Count shared words, weighted by rarity. */
static void read_words(struct view *view, const uint8_t *uses) {
    const struct message *message = view->message;
    double all_words = (double)(message->words - message->known_words) * log((SIZE + 1) / 0.5);
    for (int word = 0; word < message->known_words; ++word) {
        unpack(&view->uses[word], uses + word * (SIZE / 8));
        view->rarity[word] = log((SIZE + 1) / (view->uses[word].count + 0.5));
        all_words += view->rarity[word];
    }
    view->words_whole = all_words;
    view->words_best = 0.0f;
    if (!message->known_words) return;
    memset(view->words, 0, sizeof view->words);
    memset(view->words_count, 0, sizeof view->words_count);
    memset(view->squares, 0, sizeof view->squares);
    for (int word = 0; word < message->known_words; ++word) {
        const float rarity = (float)view->rarity[word];
        for (int place = 0; place < view->uses[word].count; ++place) {
            const int column = view->uses[word].at[place];
            view->words[column] += rarity;
            view->words_count[column] += 1.0f;
            view->squares[column] += rarity * rarity;
        }
    }
    gather(view, view->pairs[PAIR_words], view->words);
    gather(view, view->pairs[PAIR_words_count], view->words_count);
    gather(view, view->pairs[PAIR_rarest], view->squares);
    view->words_best = best_of(view->pairs[PAIR_words]);
    for (int place = 0; place < CANDIDATES; ++place) {
        const float words = view->pairs[PAIR_words][place];
        view->pairs[PAIR_words_of_mine][place] = words / (float)(all_words + 1.0);
        view->pairs[PAIR_words_of_best][place] = words / (view->words_best + 1.0f);
        view->pairs[PAIR_rarest][place] = sqrtf(view->pairs[PAIR_rarest][place] / (words > 1.0f ? words : 1.0f));
    }
}

/* Where ties with a person are counted: only those with the senders of candidates are asked for. */
static int tied(const struct view *view, int32_t person) {
    return person < 0 ? NOBODY : view->newest_of[person];
}

/* Fill in the recent contacts of each candidate's sender with this one. */
static void read_ties(struct view *view) {
    double ties[PAIR_ties_i_answer - PAIR_ties_calls_me + 1][SIZE + 1] = {{0}};
    static const int CALLERS[] = {CALLS_ME, ANSWERS_ME, CALLS_ME_LAST};
    view->calls = 0.0;
    for (int column = 0; column < SIZE; ++column) {
        const int to = tied(view, view->people[SENDER][column]);
        for (int tie = 0; tie < 3; ++tie)
            if (view->sets[CALLERS[tie]][column]) ties[tie][to] += roomlore_recent[column];
        if (view->sets[CALLS_ME][column]) view->calls += roomlore_recent[column];
    }
    for (int place = 0; place < view->mine.count; ++place) {
        const int column = view->mine.at[place];
        for (int line = PARTNER; line < PEOPLE; ++line) {
            const int to = tied(view, view->people[line][column]);
            if (to >= 0) ties[line == PARTNER ? 4 : 3][to] += roomlore_recent[column];
        }
    }
    for (int place = 0; place < CANDIDATES; ++place) {
        const int32_t sender = view->people[SENDER][view->near[place]];
        view->pairs[PAIR_ties_said][place] = view->window->counts[sender + 1];
        for (int tie = 0; tie < 5; ++tie)
            view->pairs[PAIR_ties_calls_me + tie][place] = (float)ties[tie][tied(view, sender)];
    }
}

/* Fill in how far the script of each row differs from the message's, or from its sender's usual one. */
static void read_scripts(struct view *view) {
    const float *lean = view->window->lean + view->first;
    float usual = 0.0f, recent = 0.0f;
    for (int place = 0; place < view->mine.count; ++place) {
        usual += view->recent[view->mine.at[place]] * lean[view->mine.at[place]];
        recent += view->recent[view->mine.at[place]];
    }
    const double mine = (double)usual / ((double)recent + 0.2);
    const float other = (float)-(view->message->lean != 0.0 ? view->message->lean : mine), to_me = (float)-mine;
    view->any_foreign = false;
    for (int column = 0; column < SIZE; ++column) {
        const float foreign = lean[column] * other;
        view->foreign[column] = foreign > 0.0f ? foreign : 0.0f;
        view->any_foreign |= foreign > 0.0f;
    }
    gather(view, view->pairs[PAIR_foreign], view->foreign);
    for (int place = 0; place < CANDIDATES; ++place) {
        const float foreign = lean[view->near[place]] * to_me;
        view->pairs[PAIR_foreign_to_me][place] = foreign > 0.0f ? foreign : 0.0f;
    }
}

static void take_logs(float *line) {
    for (int place = 0; place < WIDTH; place += LANES) store(line + place, log_of(load(line + place) + 1.0f));
}

/* Take the logs of all counts: of one more, as what is counted may be nothing. */
static void take_all_logs(struct view *view) {
    for (int pair = PAIR_away; pair <= PAIR_minutes; ++pair) take_logs(view->pairs[pair]);
    take_logs(view->pairs[PAIR_mine_since]);
    take_logs(view->pairs[PAIR_words]);
    take_logs(view->pairs[PAIR_words_count]);
    for (int pair = PAIR_ties_said; pair <= PAIR_ties_i_answer; ++pair) take_logs(view->pairs[pair]);
    for (int pair = PAIR_kin_size; pair < PAIR_TRAITS; ++pair) take_logs(view->pairs[pair]);
}

/* Fill in who speaks to whom. */
static void read_flags(struct view *view) {
    static const int SET_OF[][2] = {
        {PAIR_mine, MINE}, {PAIR_my_last, MY_LAST}, {PAIR_their_last, LAST}, {PAIR_i_address, I_ADDRESS},
        {PAIR_i_name, I_NAME}, {PAIR_i_address_last, LAST_OF_THEIRS_I_ADDRESS}, {PAIR_addresses_me, TO_ME},
        {PAIR_names_me, CALLS_ME}, {PAIR_i_address_other, I_ADDRESS_OTHER}, {PAIR_addresses_other, ADDRESSES_OTHER},
        {PAIR_same_target, SAME_TARGET}, {PAIR_answers_me, ANSWERS_ME}, {PAIR_answers_other, ANSWERS_OTHER},
        {PAIR_my_last_named, MY_LAST_NAMED}, {PAIR_my_last_answered, MY_LAST_ANSWERED},
    };
    for (size_t line = 0; line < sizeof SET_OF / sizeof *SET_OF; ++line)
        gather_set(view, SET_OF[line][0], SET_OF[line][1]);
    for (int place = 0; place < CANDIDATES; ++place)
        view->pairs[PAIR_last_answer_to_me][place] = view->near[place] == view->last_answer_to_me;
}

static void read_pairs(struct view *view, const uint8_t *uses) {
    memset(view->pairs, 0, sizeof view->pairs);
    for (int column = 0; column < SIZE; ++column) {
        view->counted[column] = view->sets[ALIVE][column];
        view->recent[column] = view->sets[ALIVE][column] ? (float)roomlore_recent[column] : 0.0f;
    }
    read_facts(view);
    read_distances(view);
    read_times(view);
    read_words(view, uses);
    read_ties(view);
    read_scripts(view);
    read_threads(view);
    take_all_logs(view);
    read_flags(view);
}

#endif
