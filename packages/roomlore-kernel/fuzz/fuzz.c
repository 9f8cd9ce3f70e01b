/* Calls the kernel with sound and hostile arguments. Every array is a block of its own of just the right size, so that the
 * address sanitizer sees the first byte that is touched beside it. */
#include "../csrc/interface.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int roomlore_kernel_link(const struct message *);
int roomlore_kernel_write(const struct entry *);
void roomlore_kernel_use_plain(void);
void roomlore_kernel_use_best(void);

static uint64_t state;

static uint64_t drawn(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static int64_t below(int64_t end) { return (int64_t)(drawn() % (uint64_t)end); }
static int one_in(int count) { return below(count) == 0; }

static const int64_t ODD_NUMBERS[] = {0, 1, -1, -2, 2, 4, 5, 39, 40, 99, 100, 128, 129, 299, 300, 399, 400, 401, 440, 2399, 2400,
                                      NEVER, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, (int64_t)1 << 32};
static const double ODD_FLOATS[] = {0.0, -0.0, 1.0, -1.0, 0.5, 1e300, -1e300, 1e-300, 1e38, INFINITY, -INFINITY, NAN};

static int64_t odd(void) { return ODD_NUMBERS[below(sizeof ODD_NUMBERS / sizeof *ODD_NUMBERS)]; }
static double odd_float(void) { return ODD_FLOATS[below(sizeof ODD_FLOATS / sizeof *ODD_FLOATS)]; }

static float *floats(int64_t count, int hostile, double scale) {
    float *made = malloc((size_t)count * sizeof *made);
    for (int64_t place = 0; place < count; ++place)
        made[place] = hostile && one_in(50) ? (float)odd_float() : (float)((double)below(1000) / 1000.0 * scale);
    return made;
}

static int64_t *numbers(int64_t count, int hostile, int64_t from, int64_t step) {
    int64_t *made = malloc((size_t)count * sizeof *made);
    for (int64_t place = 0; place < count; ++place) {
        made[place] = hostile && one_in(200) ? odd() : from;
        from += step ? 1 + below(step) : 0;
    }
    return made;
}

static double *times(int64_t count, int hostile) {
    double *made = malloc((size_t)count * sizeof *made), at = 1e9;
    for (int64_t place = 0; place < count; ++place) {
        made[place] = hostile && one_in(100) ? odd_float() : at;
        at += (double)below(400) - (one_in(10) ? 300 : 0);
    }
    return made;
}

static void *blocks[64];
static int block_count;

static void *kept(void *block) { return blocks[block_count++] = block; }

static struct window window_of(int hostile) {
    struct window window = {.rows = SIZE + 1 + below(60), .people_known = 1 + below(MAX_PEOPLE - 1)};
    const int64_t rows = window.rows;
    window.facts = kept(floats((COUNTS + TRAITS) * rows, hostile, 3.0));
    window.kin = kept(floats(rows * rows, hostile, one_in(2) ? 1.0 : 0.01));
    window.arrival = kept(numbers(rows, hostile, below(1000), one_in(2) ? 1 : 3000));
    window.thread = kept(numbers(rows, hostile, 1, 2));
    window.place = kept(numbers(rows, hostile, 0, 1));
    window.at = kept(times(rows, hostile));
    window.latest = kept(times(rows, hostile));
    window.gaps = kept(floats(rows, hostile, 5.0));
    window.began = kept(floats(rows, hostile, 1.0));
    window.lean = kept(floats(rows, hostile, 1.0));
    window.across = kept(floats(rows, hostile, 1.0));
    window.speakers = kept(floats(rows, hostile, 9.0));
    window.counts = kept(floats(window.people_known + 1, hostile, 9.0));
    window.people = kept(malloc((size_t)(PEOPLE * rows) * sizeof *window.people));
    for (int64_t place = 0; place < PEOPLE * rows; ++place)
        window.people[place] = hostile && one_in(3000) ? odd() : below(window.people_known + 1) - 1;
    return window;
}

static struct model model_of(int hostile) {
    struct model model = {.hidden = 1 + below(MAX_HIDDEN), .inner = 1 + below(MAX_INNER)};
    const int64_t sizes[] = {model.hidden * PAIRS, model.hidden * SELFS, model.hidden, model.inner * model.hidden, model.inner,
                             model.inner, model.inner * SELFS, model.inner, model.inner, 1};
    const float **arrays[] = {&model.pair, &model.own, &model.first, &model.inner_weights, &model.second,
                              &model.out, &model.new_own, &model.new_first, &model.new_out, &model.new_bias};
    for (int place = 0; place < 10; ++place) *arrays[place] = kept(floats(sizes[place], hostile, one_in(2) ? 0.1 : 1.0));
    if (hostile && one_in(20)) *(one_in(2) ? &model.hidden : &model.inner) = one_in(2) ? -below(9) : MAX_HIDDEN + 1 + below(9);
    return model;
}

static struct standing standing_of(const struct window *window, int64_t more) {
    struct standing standing = {.alive = below(SIZE + 1), .pushed = below(1000)};
    standing.end = SIZE + below(window->rows - SIZE + 1 - more);
    standing.within = standing.end - below(SIZE + 1);
    return standing;
}

static int64_t person(const struct window *window, int unknown) { return unknown && one_in(4) ? -2 : below(window->people_known); }

/* Replace some numbers of a structure of numbers with odd ones. */
static void spoil(void *structure, size_t count) {
    for (int64_t left = below(3); left; --left) ((int64_t *)structure)[below((int64_t)count)] = odd();
}

/* Return a copy of a structure in a block that also has traits after it, and room for more. */
static void *with(const void *structure, size_t size, int hostile, int64_t after) {
    float *traits = floats(TRAITS, hostile, 1.0);
    uint8_t *whole = kept(malloc(size + TRAITS * sizeof *traits + (size_t)after));
    memcpy(whole, structure, size);
    memcpy(whole + size, traits, TRAITS * sizeof *traits);
    free(traits);
    return whole;
}

/* The numbers of a structure that are neither addresses nor fractions. */
#define FIRST_NUMBER(type) (offsetof(type, window) / 8)
#define LAST_NUMBERS(type) ((offsetof(type, at) - offsetof(type, window)) / 8)

static void link_once(int hostile) {
    const struct window window = window_of(hostile);
    const struct model model = model_of(hostile);
    struct message message = {.window = standing_of(&window, 0), .at = one_in(2) ? 1e9 + (double)below(100000) : 2e9};
    message.named_count = below(MAX_NAMED + 1);
    message.addressed = below(message.named_count + 1);
    message.me = person(&window, 1);
    for (int place = 0; place < MAX_NAMED; ++place) message.named[place] = person(&window, 1);
    message.words = below(MAX_WORDS + 1);
    message.known_words = below(message.words + 1);
    message.calls_agent = below(2), message.agent_spoke = below(2), message.never_new = below(2);
    message.lean = (double)below(3) - 1.0;
    message.temperature = 0.5 + (double)below(5), message.own = 1.0, message.own_aside = 0.5;
    message.has_among = one_in(3);
    if (hostile) spoil((int64_t *)&message + FIRST_NUMBER(struct message), LAST_NUMBERS(struct message));
    if (hostile && one_in(5)) message.at = odd_float();
    const int64_t words = message.known_words >= 0 && message.known_words <= 4096 ? message.known_words : 0;
    const int64_t after = words * (SIZE / 8) + (message.has_among ? SIZE : 0);
    struct guess *guess = kept(malloc(sizeof *guess));
    message.arrays = &window, message.model = &model, message.guess = guess;
    message.features = one_in(3) ? kept(malloc(sizeof *message.features)) : NULL;
    struct message *whole = with(&message, sizeof message, hostile, after);
    uint8_t *bytes = (uint8_t *)(whole + 1) + TRAITS * sizeof(float);
    for (int64_t place = 0; place < after; ++place) bytes[place] = (uint8_t)(drawn() & drawn());
    whole->size = hostile && one_in(20) ? odd() : (int64_t)sizeof message + (int64_t)(TRAITS * sizeof(float)) + after;
    const int answer = roomlore_kernel_link(whole);
    if (answer == LINKED && (guess->size < 0 || guess->size > (int64_t)sizeof guess->packed)) abort();
    if (!hostile && answer < 0) abort();
}

static int64_t candidates_of(const struct window *window, int64_t row, uint8_t *packed, int hostile) {
    if (one_in(10)) return 0;
    const int width = (int[]){0, 1, 2, 4, 8}[below(5)];
    const int64_t first = window->arrival[row - 1 - below(SIZE)];
    int64_t count = 1 + below(70), size = 9;
    memcpy(packed, &first, 8);
    packed[8] = (uint8_t)width;
    if (width) {
        for (int64_t byte = 0; byte < count * width; ++byte) packed[size++] = (uint8_t)(one_in(3) ? drawn() : 0);
    } else {
        packed[size++] = (uint8_t)(1 + below(20));
        count = 0;
        for (int64_t byte = packed[9]; byte; --byte) count += __builtin_popcount(packed[size++] = (uint8_t)(drawn() & drawn()));
    }
    for (int64_t byte = 0; byte < 2 * count; ++byte) packed[size++] = (uint8_t)drawn();
    if (hostile && one_in(3)) packed[below(12)] = (uint8_t)drawn();
    return hostile && one_in(3) ? below(size + 1) : size;
}

static void write_once(int hostile) {
    const struct window window = window_of(hostile);
    struct entry entry = {.window = standing_of(&window, 1), .me = person(&window, 0), .named_count = below(MAX_NAMED + 1)};
    for (int place = 0; place < MAX_NAMED; ++place) entry.named[place] = person(&window, 0);
    entry.arrival = (int64_t)((uint64_t)window.arrival[entry.window.end - 1] + 1);
    entry.thread = 1;
    entry.parent = one_in(4) ? -1 : window.arrival[entry.window.end - 1 - below(SIZE)];
    entry.at = 1e9 + (double)below(200000), entry.lean = 0.5, entry.parent_probability = 0.7;
    uint8_t made[2048];
    const int64_t size = candidates_of(&window, entry.window.end, made, hostile);
    if (hostile) spoil((int64_t *)&entry + FIRST_NUMBER(struct entry), LAST_NUMBERS(struct entry));
    if (hostile && one_in(5)) entry.at = odd_float();
    entry.arrays = &window, entry.partner = kept(malloc(sizeof *entry.partner));
    struct entry *whole = with(&entry, sizeof entry, hostile, size);
    memcpy((uint8_t *)(whole + 1) + TRAITS * sizeof(float), made, (size_t)size);
    whole->size = (int64_t)sizeof entry + (int64_t)(TRAITS * sizeof(float)) + (hostile && one_in(20) ? -1 - below(900) : size);
    const int answer = roomlore_kernel_write(whole);
    if (!hostile && answer != LINKED) abort();
}

int main(int count, char **arguments) {
    const long rounds = count > 1 ? atol(arguments[1]) : 1000;
    state = count > 2 ? strtoull(arguments[2], NULL, 10) * 2654435761u + 1 : 88172645463325252u;
    for (long round = 0; round < rounds; ++round) {
        if (round % 2)
            roomlore_kernel_use_best();
        else
            roomlore_kernel_use_plain();
        if (one_in(2))
            link_once(round % 3 != 0);
        else
            write_once(round % 3 != 0);
        while (block_count) free(blocks[--block_count]);
    }
    printf("%ld calls\n", rounds);
    return 0;
}
