/* Links one message: what `view`, `answers` and `_guess` of roomlore.core.linking do with numpy. Compiled once for each
 * kind of processor, with the name of the form in FORM.
 *
 * A column is a row of the window less `first`: column SIZE - 1 is the newest message. Where numpy multiplies matrices
 * with many zeros, lines are added up here: `kin` is symmetric, so the line of a row holds what each candidate has in the
 * column of that row. */
#include "clock.h"
#include "lanes.h"

#include <stdbool.h>

enum { WIDTH = (CANDIDATES + LANES - 1) / LANES * LANES };
enum { NOBODY = SIZE };        /* where ties with nobody in the window are counted */
enum { BLOCK = 8 * LANES };    /* columns whose sums fit into registers */
enum { FIRST_CHOSEN = SIZE - REACH, FIRST_NEWEST = SIZE - NEWEST };
enum { FIRST_HELD = SIZE - (REACH + BLOCK - 1) / BLOCK * BLOCK }; /* the column of the first block with candidates */
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
    float held[5][SIZE];       /* sums over kin: see `hold` */
    float covers[CANDIDATES];
    float pairs[PAIRS][WIDTH] __attribute__((aligned(64)));
    float own[SELFS];
};

static const float *line_of(const struct view *view, int column) {
    return view->window->kin + (view->first + column) * view->window->rows + view->first;
}

static float log1p_of(double number) { return (float)log1p(number); }

/* ---- people ---- */

/* Read who sent, answered and called what. Return false if that is nobody whom the window can know. */
static bool read_people(struct view *view) {
    const struct window *window = view->window;
    bool known = true;
    for (int line = 0; line < PEOPLE; ++line) {
        const int64_t *from = window->people + line * window->rows + view->first;
        for (int column = 0; column < SIZE; ++column) {
            known &= from[column] >= -1 && from[column] < window->people_known;
            view->people[line][column] = (int32_t)from[column];
        }
    }
    return known;
}

static void mark_senders(struct view *view, int set, const int64_t *people, int64_t count) {
    for (int64_t place = 0; place < count; ++place)
        for (int column = 0; column < SIZE; ++column)
            view->sets[set][column] |= view->people[SENDER][column] == people[place];
}

static int last_of(const uint8_t *set) {
    int column = SIZE - 1;
    while (column >= 0 && !set[column]) --column;
    return column;
}

static void list(struct columns *columns, const uint8_t *set) {
    columns->count = 0;
    for (int column = 0; column < SIZE; ++column) {
        columns->at[columns->count] = (uint16_t)column;
        columns->count += set[column];
    }
}

/* Mark what the sender said, who calls, addresses and answers whom: those of `people` alone. */
static void mark_people(struct view *view) {
    const struct message *message = view->message;
    const int32_t me = (int32_t)message->me, target = message->addressed ? (int32_t)message->named[0] : -2;
    const float *addresses = view->window->facts + (COUNTS + TRAIT_addresses) * view->window->rows + view->first;
    uint8_t(*sets)[SIZE] = view->sets;
    memset(sets, 0, sizeof view->sets);
    for (int column = SIZE - (int)message->window.alive; column < SIZE; ++column) sets[ALIVE][column] = 1;
    for (int line = CALLED; line < PEOPLE; ++line)
        for (int column = 0; column < SIZE; ++column) sets[CALLS_ME][column] |= view->people[line][column] == me;
    for (int column = 0; column < SIZE; ++column) {
        const int32_t addressee = addresses[column] > 0.0f ? view->people[CALLED][column] : -1;
        const int32_t partner = view->people[PARTNER][column];
        sets[MINE][column] = view->people[SENDER][column] == me;
        sets[TO_ME][column] = addressee == me;
        sets[ADDRESSES_OTHER][column] = addressee != -1 && addressee != me;
        sets[SAME_TARGET][column] = addressee == target;
        sets[ANSWERS_ME][column] = partner == me;
        sets[ANSWERS_OTHER][column] = partner != -1 && partner != me;
    }
    mark_senders(view, I_ADDRESS, message->named, message->addressed);
    mark_senders(view, I_NAME, message->named, message->named_count);
    view->my_last = last_of(sets[MINE]);
    view->last_answer_to_me = last_of(sets[ANSWERS_ME]);
    view->addressee = last_of(sets[I_ADDRESS]);
}

/* Mark what follows from these sets: the last of each sender, the partners of my last message, and who is concerned. */
static void mark_further(struct view *view) {
    const struct message *message = view->message;
    uint8_t(*sets)[SIZE] = view->sets;
    memset(view->newest_of, -1, (size_t)view->window->people_known * sizeof *view->newest_of);
    for (int column = 0; column < SIZE; ++column)
        if (view->people[SENDER][column] >= 0) view->newest_of[view->people[SENDER][column]] = (int16_t)column;
    for (int column = 0; column < SIZE; ++column) {
        const int32_t sender = view->people[SENDER][column];
        sets[LAST][column] = sender >= 0 && view->newest_of[sender] == column;
        sets[LAST_OF_THEIRS_I_ADDRESS][column] = sets[LAST][column] & sets[I_ADDRESS][column];
        sets[CALLS_ME_LAST][column] = sets[LAST][column] & sets[CALLS_ME][column];
        sets[I_ADDRESS_OTHER][column] = message->addressed && sets[ALIVE][column] && !sets[I_ADDRESS][column];
        const uint8_t *third = message->calls_agent ? sets[ANSWERS_ME] : sets[I_NAME];
        sets[CONCERNED][column] = sets[MINE][column] | sets[CALLS_ME][column] | third[column];
    }
    if (view->my_last >= 0) {
        int64_t called[MAX_NAMED];
        const int64_t answered = view->people[PARTNER][view->my_last];
        int count = 0;
        for (int line = CALLED; line < PEOPLE; ++line)
            if (view->people[line][view->my_last] >= 0) called[count++] = view->people[line][view->my_last];
        mark_senders(view, MY_LAST_NAMED, called, count);
        mark_senders(view, MY_LAST_ANSWERED, &answered, answered >= 0);
        sets[MY_LAST][view->my_last] = 1;
    }
    list(&view->mine, sets[MINE]);
    list(&view->named, sets[I_NAME]);
    list(&view->calling, sets[CALLS_ME]);
}

/* ---- candidates ---- */

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

/* ---- features of the candidates ---- */

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

/* ---- the contents of the candidates' threads ---- */

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

/* ---- features of the message itself ---- */

static float sum_of_rows(const float *line, int64_t from, int64_t end) {
    float sum = 0.0f;
    for (int64_t row = from; row < end; ++row) sum += line[row];
    return sum;
}

static int count_from(const uint8_t *set, int column) {
    int count = 0;
    for (; column < SIZE; ++column) count += set[column];
    return count;
}

/* Of the sender's own messages: how many, how long ago the last was, what it was, who called since. */
static void read_own_messages(struct view *view) {
    const struct window *window = view->window;
    const int last = view->my_last;
    float *own = view->own;
    if (last < 0) {
        own[SELF_spoken] = own[SELF_last_asked] = own[SELF_last_run] = own[SELF_called_since] = 0.0f;
        own[SELF_silent_messages] = (float)log(SIZE);
        own[SELF_silent_minutes] = UNKNOWN;
        return;
    }
    const int64_t row = view->first + last;
    own[SELF_spoken] = log1p_of(view->mine.count);
    own[SELF_silent_messages] = (float)log(SIZE - last);
    own[SELF_silent_minutes] = log1p_of(view->silent);
    own[SELF_last_asked] = window->facts[(COUNTS + TRAIT_asked) * window->rows + row];
    own[SELF_last_run] = row >= view->message->window.within ? window->facts[COUNT_run * window->rows + row] : 0.0f;
    own[SELF_called_since] = log1p_of(count_from(view->sets[CALLS_ME], last + 1));
}

/* How often the newest messages began something new, how often those after a pause did, how many joined each; and how
 * often they answer another script. */
static void read_habits(struct view *view) {
    const struct window *window = view->window;
    const struct standing *standing = &view->message->window;
    float *own = view->own;
    const int64_t count = least(least(CANDIDATES, standing->alive), standing->end - standing->within);
    const int64_t first = standing->end - count;
    float began = 0.0f, after_pause = 0.0f, pauses = 0.0f, other = 0.0f, lean = 0.0f;
    for (int64_t row = first; row < standing->end; ++row) {
        const float pause = fmaxf(window->gaps[row] - (float)view->beat, 0.0f);
        began += window->began[row];
        after_pause += window->began[row] * pause;
        pauses += pause;
        other += fmaxf(window->lean[row], 0.0f);
        lean += window->lean[row];
    }
    const double joined = sum_of_rows(window->facts + COUNT_joined * window->rows, first, standing->end);
    const double latin = (double)other - (double)lean, across = sum_of_rows(window->across, first, standing->end);
    own[SELF_habit_new] = count ? (float)((double)began / (double)count) : 0.0f;
    own[SELF_habit_new_after_pause] = (float)((double)after_pause / ((double)pauses + 1.0));
    own[SELF_habit_joined] = count ? log1p_of(joined / (double)count) : 0.0f;
    own[SELF_habit_foreign] =
        other == 0.0f || latin == 0.0 ? 0.0f
                                      : (float)(across * (double)count / (2 * (double)other * latin + (double)count));
    const double crowd = (double)least(most(1, standing->alive), CANDIDATES);
    const float *traits = window->facts + COUNTS * window->rows;
    const int64_t newest = standing->end - CANDIDATES;
    own[SELF_habit_words] =
        (float)((double)sum_of_rows(traits + TRAIT_words * window->rows, newest, standing->end) / crowd);
    own[SELF_habit_addresses] =
        (float)((double)sum_of_rows(traits + TRAIT_addresses * window->rows, newest, standing->end) / crowd);
}

/* How the last threads of the sender and of the room fit: words covered, and time since. */
static void read_last_threads(struct view *view) {
    static const int FITS[][2] = {
        {SELF_covers_my_last, PAIR_kin_my_last}, {SELF_covers_mine, PAIR_kin_mine}, {SELF_covers_newest, PAIR_kin_newest},
    };
    float *own = view->own;
    for (int fit = 0; fit < 3; ++fit) {
        float fits[CANDIDATES];
        for (int place = 0; place < CANDIDATES; ++place)
            fits[place] = fminf(view->pairs[FITS[fit][1]][place], 1.0f) * view->covers[place];
        own[FITS[fit][0]] = best_of(fits);
    }
    own[SELF_my_quiet_minutes] = view->my_last < 0 ? (float)UNKNOWN : (float)log(view->quiet + 0.02);
    own[SELF_my_last_and_newest] = view->my_last < 0 ? 0.0f : line_of(view, view->my_last)[SIZE - 1];
}

static void read_own(struct view *view, const float *traits) {
    const struct message *message = view->message;
    const bool empty = message->window.alive == 0;
    const double pause = empty ? LONG_PAUSE : view->pause;
    float *own = view->own;
    memcpy(own + SELF_TRAITS, traits, TRAITS * sizeof *own);
    read_own_messages(view);
    own[SELF_previous_mine] = view->my_last == SIZE - 1;
    own[SELF_pause] = empty ? (float)UNKNOWN : log1p_of(pause);
    for (int pace = 0; pace < PACE_COUNT; ++pace) own[SELF_pace5 + pace] = (float)view->paces[pace];
    own[SELF_beat] = (float)view->beat;
    own[SELF_pause_to_beat] = (float)(log(pause + MOMENT) - view->beat);
    own[SELF_speakers] = log1p_of(count_from(view->sets[LAST], SIZE - CANDIDATES));
    own[SELF_crowd] = log1p_of(count_from(view->sets[LAST], SIZE - 20));
    own[SELF_called] = log1p_of(view->calls);
    own[SELF_addressee_known] = view->addressee >= view->near[0];
    own[SELF_addressee_away] = view->addressee >= view->near[0] ? (float)log(SIZE - view->addressee) : 5.0f;
    own[SELF_words_best] = log1p_of(view->words_best);
    own[SELF_words_all] = log1p_of(view->words_whole);
    own[SELF_words_new] = (float)(view->words_best / (1.0 + view->words_whole));
    own[SELF_candidates] = log1p_of(view->open_count);
    read_habits(view);
    own[SELF_calls_agent] = message->calls_agent != 0;
    own[SELF_agent_spoke] = message->agent_spoke != 0;
    own[SELF_covers_best] = view->covers_best;
    read_last_threads(view);
    float foreign = 0.0f;
    for (int column = 0; column < SIZE; ++column) foreign += view->foreign[column] * view->recent[column];
    own[SELF_foreign_room] = (float)((double)foreign / 20.0);
    own[SELF_foreign_newest] = view->foreign[SIZE - 1];
}

/* ---- the net ---- */

INLINE float dot(const float *one, const float *other, int count) {
    lanes sums = {0};
    int place = 0;
    for (; place + LANES <= count; place += LANES) sums += load(one + place) * load(other + place);
    float sum = sum_of(sums);
    for (; place < count; ++place) sum += one[place] * other[place];
    return sum;
}

enum { UNITS = 5, PARTS = 2, MAX_INPUTS = MAX_HIDDEN };
_Static_assert((int)PAIRS <= (int)MAX_INPUTS, "the first layer has an input for each feature");

/* The outputs of up to UNITS units for up to PARTS * LANES candidates. `used`: the inputs that are not all 0. */
INLINE void units(const float *weights, int inputs, const float *bias, const float (*in)[WIDTH], float (*out)[WIDTH],
                  int column, const uint8_t *used, int used_count, const int count, const int parts) {
    lanes sums[UNITS][PARTS];
    for (int unit = 0; unit < count; ++unit)
        for (int part = 0; part < parts; ++part) sums[unit][part] = all(bias[unit]);
    for (int place = 0; place < used_count; ++place) {
        const int input = used[place];
        lanes numbers[PARTS];
        for (int part = 0; part < parts; ++part) numbers[part] = load(in[input] + column + part * LANES);
        for (int unit = 0; unit < count; ++unit)
            for (int part = 0; part < parts; ++part) sums[unit][part] += numbers[part] * weights[unit * inputs + input];
    }
    for (int unit = 0; unit < count; ++unit)
        for (int part = 0; part < parts; ++part)
            store(out[unit] + column + part * LANES, greater(sums[unit][part], all(0.0f)));
}

/* A part of a layer, for PARTS * LANES candidates or, at the end, for LANES. Inputs that are 0 for all of them cost
 * nothing. */
INLINE void columns_of_layer(const float *weights, int inputs, int outputs, const float *bias, const float (*in)[WIDTH],
                             float (*out)[WIDTH], int column, const int parts) {
    uint8_t used[MAX_INPUTS];
    int used_count = 0;
    for (int input = 0; input < inputs; ++input) {
        uint32_t bits = 0;
        for (int place = 0; place < parts * LANES; ++place) bits |= in[input][column + place] != 0.0f;
        used[used_count] = (uint8_t)input;
        used_count += bits != 0;
    }
    int unit = 0;
    for (; unit + UNITS <= outputs; unit += UNITS)
        units(weights + unit * inputs, inputs, bias + unit, in, out + unit, column, used, used_count, UNITS, parts);
    for (; unit < outputs; ++unit)
        units(weights + unit * inputs, inputs, bias + unit, in, out + unit, column, used, used_count, 1, parts);
}

/* Multiply, add the bias, and cut at 0. */
static void layer(const float *weights, int inputs, int outputs, const float *bias, const float (*in)[WIDTH],
                  float (*out)[WIDTH]) {
    int column = 0;
    for (; column + PARTS * LANES <= WIDTH; column += PARTS * LANES)
        columns_of_layer(weights, inputs, outputs, bias, in, out, column, PARTS);
    for (; column < WIDTH; column += LANES) columns_of_layer(weights, inputs, outputs, bias, in, out, column, 1);
}

/* Score each candidate, and something new. */
static float score(const struct model *model, const struct view *view, float scores[WIDTH]) {
    float first[MAX_HIDDEN], hidden[MAX_HIDDEN][WIDTH], inner[MAX_INNER][WIDTH];
    const int hidden_count = (int)model->hidden, inner_count = (int)model->inner;
    for (int unit = 0; unit < hidden_count; ++unit)
        first[unit] = dot(model->own + unit * SELFS, view->own, SELFS) + model->first[unit];
    layer(model->pair, PAIRS, hidden_count, first, view->pairs, hidden);
    layer(model->inner_weights, hidden_count, inner_count, model->second, (const float(*)[WIDTH])hidden, inner);
    for (int column = 0; column < WIDTH; column += LANES) {
        lanes sums = {0};
        for (int unit = 0; unit < inner_count; ++unit) sums += load(inner[unit] + column) * model->out[unit];
        store(scores + column, sums);
    }
    float begun = model->new_bias[0];
    for (int unit = 0; unit < inner_count; ++unit) {
        const float sum = dot(model->new_own + unit * SELFS, view->own, SELFS) + model->new_first[unit];
        if (sum > 0.0f) begun += model->new_out[unit] * sum;
    }
    return begun;
}

/* ---- the answer ---- */

struct chances {
    double of[CANDIDATES], new_chance;
    int best; /* the candidate that is stated as answered */
};

/* Tell how likely each candidate is answered, tempered by the room's habits, and which is the likeliest by its ways. */
static void weigh_candidates(const struct view *view, const float *scores, double begun, struct chances *chances) {
    const struct message *message = view->message;
    const double own = log(message->own), own_aside = log(message->own_aside);
    double highest = -INFINITY, total = 0.0, tempered = 0.0, likeliest = -INFINITY;
    for (int place = 0; place < CANDIDATES; ++place)
        if (view->open[place]) highest = fmax(highest, scores[place]);
    const double top = message->never_new ? highest : fmax(highest, begun);
    const double inverse = 1.0 / message->temperature;
    chances->best = 0;
    for (int place = 0; place < CANDIDATES; ++place) {
        chances->of[place] = 0.0;
        if (!view->open[place]) continue;
        const double below = (double)scores[place] - highest;
        total += exp((double)scores[place] - top);
        tempered += chances->of[place] = exp(below * inverse);
        double weight = below * inverse + message->distance * view->pairs[PAIR_away][place];
        if (view->pairs[PAIR_mine][place] != 0.0f)
            weight += view->pairs[PAIR_others_between][place] > 0.0f ? own_aside : own;
        if (weight > likeliest) {
            likeliest = weight;
            chances->best = place;
        }
    }
    const double new_share = message->never_new ? 0.0 : exp(begun - top);
    chances->new_chance = new_share / (total + new_share);
    for (int place = 0; place < CANDIDATES; ++place)
        chances->of[place] *= total / (total + new_share) / tempered;
}

/* P(same thread) for each column: through whichever candidate is answered. */
static void spread(const struct view *view, const struct chances *chances, float shares[SIZE]) {
    for (int column = 0; column < SIZE; column += 5 * LANES) {
        lanes sums[5] = {{0}};
        for (int place = 0; place < CANDIDATES; ++place) {
            const float chance = (float)chances->of[place];
            if (chance < HARDLY) continue;
            const float *line = line_of(view, view->near[place]) + column;
            for (int part = 0; part < 5; ++part) sums[part] += load(line + part * LANES) * chance;
        }
        for (int part = 0; part < 5; ++part) store(shares + column + part * LANES, sums[part]);
    }
}

/* Return the least of the `kept` greatest of these numbers, which all differ. */
static uint64_t least_kept(uint64_t *numbers, int count, int kept) {
    int from = 0, to = count - 1, wanted = count - kept;
    while (from < to) {
        const uint64_t middle = numbers[from + (to - from) / 2];
        int low = from, high = to;
        while (low <= high) {
            while (numbers[low] < middle) ++low;
            while (numbers[high] > middle) --high;
            if (low > high) break;
            const uint64_t moved = numbers[low];
            numbers[low++] = numbers[high];
            numbers[high--] = moved;
        }
        if (wanted <= high)
            to = high;
        else if (wanted >= low)
            from = low;
        else
            break;
    }
    return numbers[wanted];
}

/* List the columns that are kept as thread candidates, ascending: the likeliest ones, of equals the newest. */
static int choose_thread_candidates(const struct view *view, const float *shares, int *kept) {
    uint64_t ranks[SIZE], ranked[SIZE];
    int columns[SIZE], count = 0, kept_count = 0;
    for (int column = 0; column < SIZE; ++column) {
        if (!(shares[column] >= MIN_SHARE && view->window->at[view->first + column] <= view->message->at)) continue;
        uint32_t bits; /* of positive floats, in the same order as these */
        memcpy(&bits, &shares[column], sizeof bits);
        ranks[count] = ranked[count] = (uint64_t)bits << 16 | (uint64_t)column;
        columns[count++] = column;
    }
    const uint64_t least_rank =
        count > MAX_THREAD_CANDIDATES ? least_kept(ranked, count, MAX_THREAD_CANDIDATES) : 0;
    for (int place = 0; place < count; ++place)
        if (ranks[place] >= least_rank) kept[kept_count++] = columns[place];
    return kept_count;
}

/* Write a number in little-endian order. */
static uint8_t *put(uint8_t *to, uint64_t number, int bytes) {
    for (int byte = 0; byte < bytes; ++byte) *to++ = (uint8_t)(number >> 8 * byte);
    return to;
}

/* Write the stored form of ThreadCandidates. Return its size. */
static int64_t pack(const struct view *view, const float *shares, const int *columns, int count, uint8_t *packed) {
    if (!count) return 0;
    const int64_t *arrivals = view->window->arrival + view->first;
    const uint64_t first = (uint64_t)arrivals[columns[0]], last = (uint64_t)arrivals[columns[count - 1]] - first;
    const int width = last <= UINT8_MAX ? 1 : last <= UINT16_MAX ? 2 : last <= UINT32_MAX ? 4 : 8;
    const uint64_t size = last / 8 + 1;
    uint8_t *to = put(packed, first, 8);
    if (size <= (uint64_t)least(MAX_BITS, width * count - 2)) {
        to = put(put(to, 0, 1), size, 1);
        memset(to, 0, size);
        for (int place = 0; place < count; ++place) {
            const uint64_t distance = (uint64_t)arrivals[columns[place]] - first;
            if (distance <= last) to[distance / 8] |= (uint8_t)(1 << distance % 8);
        }
        to += size;
    } else {
        to = put(to, (uint64_t)width, 1);
        for (int place = 0; place < count; ++place) to = put(to, (uint64_t)arrivals[columns[place]] - first, width);
    }
    for (int place = 0; place < count; ++place)
        to = put(to, (uint64_t)fmin(rint((double)shares[columns[place]] * 65535.0), 65535.0), 2);
    return to - packed;
}

static void show(const struct view *view, const struct chances *chances, struct features *features) {
    for (int pair = 0; pair < PAIRS; ++pair)
        memcpy(features->pairs[pair], view->pairs[pair], sizeof features->pairs[pair]);
    memcpy(features->own, view->own, sizeof features->own);
    memcpy(features->chances, chances->of, sizeof chances->of);
    features->chances[CANDIDATES] = chances->new_chance;
    for (int place = 0; place < CANDIDATES; ++place) {
        features->open[place] = view->open[place];
        features->row[place] = view->first + view->near[place];
    }
}

static enum answer link_message(const struct window *window, const struct model *model, const struct message *message,
                                const float *traits, const uint8_t *uses, const uint8_t *among, struct guess *guess,
                                struct features *features) {
    struct view view;
    struct chances chances;
    float scores[WIDTH], shares[SIZE];
    int columns[SIZE];
    view.window = window;
    view.message = message;
    view.first = message->window.end - SIZE;
    if (!read_people(&view)) return BAD_WINDOW;
    mark_people(&view);
    mark_further(&view);
    choose_candidates(&view);
    open_candidates(&view, among);
    if (!any_open(&view) && !features) return NOTHING_OPEN;
    read_pairs(&view, uses);
    read_own(&view, traits);
    const float begun = score(model, &view, scores);
    weigh_candidates(&view, scores, begun, &chances);
    if (features) show(&view, &chances, features);
    if (!any_open(&view)) return NOTHING_OPEN;
    spread(&view, &chances, shares);
    const int kept = choose_thread_candidates(&view, shares, columns);
    const int64_t row = view.first + view.near[chances.best];
    guess->arrival = window->arrival[row];
    guess->thread = window->thread[row];
    guess->chance = chances.of[chances.best];
    guess->new_chance = chances.new_chance;
    guess->size = pack(&view, shares, columns, kept, guess->packed);
    return LINKED;
}

#define JOINED_NAME(one, other) one##other
#define NAME_OF(form) JOINED_NAME(roomlore_, form)
#define TEXT(name) #name
#define TEXT_OF(name) TEXT(name)

const struct form NAME_OF(FORM) = {TEXT_OF(FORM), link_message};
