/* What Python calls. Each call checks all sizes and numbers by which memory is addressed, and answers with an error
 * rather than touch what is outside the arrays. */
#include "interface.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef _WIN32
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

double roomlore_recent[SIZE];
static const struct form *form = &roomlore_plain;

#ifdef __x86_64__
#include <cpuid.h>

/* Return whether the processor has AVX2 and FMA, and the system keeps their registers. */
static bool has_avx2(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return false;
    const unsigned needed = bit_FMA | bit_OSXSAVE | bit_AVX;
    if ((c & needed) != needed) return false;
    unsigned kept, kept_high;
    __asm__("xgetbv" : "=a"(kept), "=d"(kept_high) : "c"(0));
    if ((kept & 6) != 6) return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & bit_AVX2;
}
#endif

/* Use the form that suits this processor. */
EXPORTED void roomlore_kernel_use_best(void) {
#ifdef __x86_64__
    if (has_avx2()) form = &roomlore_avx2;
#endif
}

__attribute__((constructor)) static void prepare(void) {
    for (int column = 0; column < SIZE; ++column) roomlore_recent[column] = exp(-(SIZE - column) / 20.0);
    roomlore_kernel_use_best();
}

static bool is_between(int64_t number, int64_t lowest, int64_t highest) { return number >= lowest && number <= highest; }

static bool is_whole(const struct window *window, const struct standing *standing, int64_t more) {
    return is_between(window->rows, SIZE + 1, INT32_MAX) && is_between(window->people_known, 1, MAX_PEOPLE - 1) &&
           is_between(standing->end, SIZE, window->rows - more) && is_between(standing->alive, 0, SIZE) &&
           is_between(standing->within, 0, standing->end) && is_between(standing->pushed, 0, INT64_MAX / 2);
}

static bool are_people(const struct window *window, const int64_t *people, int64_t count, int64_t lowest) {
    for (int64_t place = 0; place < count; ++place)
        if (!is_between(people[place], lowest, window->people_known - 1) || people[place] == -1) return false;
    return true;
}

static bool is_sound(const struct window *window, const struct message *message) {
    return is_between(message->named_count, 0, MAX_NAMED) && is_between(message->addressed, 0, message->named_count) &&
           are_people(window, &message->me, 1, -2) && are_people(window, message->named, message->named_count, -2) &&
           is_between(message->words, 0, MAX_WORDS) && is_between(message->known_words, 0, message->words) &&
           message->temperature > 0.0 && message->own > 0.0 && message->own_aside > 0.0;
}

/* Return the names of counts, traits and features, by which Python sees whether the kernel is of its version. */
EXPORTED const char *roomlore_kernel_layout(void) {
#define LISTED(name) "," #name
    static char text[4096];
    const char *parts[] = {COUNT_NAMES(LISTED), TRAIT_NAMES(LISTED), PAIR_NAMES(LISTED), SELF_NAMES(LISTED)};
    size_t end = 0;
    for (size_t part = 0; part < sizeof parts / sizeof *parts; ++part)
        for (const char *letter = parts[part] + !part; *letter; ++letter)
            text[end++] = letter == parts[part] ? ';' : *letter;
    text[end] = '\0';
    return text;
}

/* Return the name of the form in use. */
EXPORTED const char *roomlore_kernel_form(void) { return form->name; }

/* Use the form that suits every processor, for tests. */
EXPORTED void roomlore_kernel_use_plain(void) { form = &roomlore_plain; }

/* Write the sizes of the structures, so that Python sees when it packs others. */
EXPORTED void roomlore_kernel_sizes(int64_t sizes[6]) {
    sizes[0] = sizeof(struct window);
    sizes[1] = sizeof(struct model);
    sizes[2] = sizeof(struct message);
    sizes[3] = sizeof(struct entry);
    sizes[4] = sizeof(struct guess);
    sizes[5] = sizeof(struct features);
}

/* Link a message. The answer is written where the message says. */
EXPORTED int roomlore_kernel_link(const struct message *message) {
    const int64_t among = message->has_among ? SIZE : 0;
    const float *traits = (const float *)(message + 1);
    const uint8_t *uses = (const uint8_t *)(traits + TRAITS);
    if (!is_whole(message->arrays, &message->window, 0)) return BAD_WINDOW;
    if (!is_between(message->model->hidden, 1, MAX_HIDDEN) || !is_between(message->model->inner, 1, MAX_INNER))
        return BAD_MODEL;
    if (!is_sound(message->arrays, message)) return BAD_MESSAGE;
    const int64_t used = message->known_words * (SIZE / 8);
    if (message->size != (uses - (const uint8_t *)message) + used + among) return BAD_MESSAGE;
    return form->link(message, traits, uses, among ? uses + used : NULL);
}

/* Write a message and its link into row `end`. */
EXPORTED int roomlore_kernel_write(const struct entry *entry) {
    const float *traits = (const float *)(entry + 1);
    const uint8_t *candidates = (const uint8_t *)(traits + TRAITS);
    const int64_t size = entry->size - (candidates - (const uint8_t *)entry);
    if (!is_whole(entry->arrays, &entry->window, 1)) return BAD_WINDOW;
    if (!is_between(entry->named_count, 0, MAX_NAMED) || !are_people(entry->arrays, &entry->me, 1, 0) ||
        !are_people(entry->arrays, entry->named, entry->named_count, 0))
        return BAD_MESSAGE;
    if (!is_between(size, 0, INT32_MAX)) return BAD_CANDIDATES;
    return roomlore_write(entry, traits, candidates, size);
}
