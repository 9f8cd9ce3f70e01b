/* Links one message: what `view`, `answers` and `_guess` of roomlore.core.linking do with numpy. Compiled once for each
 * kind of processor, with the name of the form in FORM.
 *
 * A column is a row of the window less `first`: column SIZE - 1 is the newest message. Where numpy multiplies matrices
 * with many zeros, lines are added up here: `kin` is symmetric, so the line of a row holds what each candidate has in the
 * column of that row. */
#include "net.h"
#include "own.h"
#include "pairs.h"
#include "people.h"
#include "view.h"

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
    for (int column = 0; column < SIZE; column += 10 * LANES) {
        lanes sums[10] = {{0}};
        for (int place = 0; place < CANDIDATES; ++place) {
            const float chance = (float)chances->of[place];
            if (chance < HARDLY) continue;
            const float *line = line_of(view, view->near[place]) + column;
            for (int part = 0; part < 10; ++part) sums[part] += load(line + part * LANES) * chance;
        }
        for (int part = 0; part < 10; ++part) store(shares + column + part * LANES, sums[part]);
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

static enum answer link_message(const struct message *message, const float *traits, const uint8_t *uses,
                                const uint8_t *among) {
    const struct window *window = message->arrays;
    struct guess *guess = message->guess;
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
    if (!any_open(&view) && !message->features) return NOTHING_OPEN;
    read_pairs(&view, uses);
    read_own(&view, traits);
    const float begun = score(message->model, &view, scores);
    weigh_candidates(&view, scores, begun, &chances);
    if (message->features) show(&view, &chances, message->features);
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
