/* The clock of a room, as in roomlore.core.linking.clock. */
#ifndef ROOMLORE_CLOCK_H
#define ROOMLORE_CLOCK_H

#include "interface.h"

#include <math.h>

static inline int64_t least(int64_t one, int64_t other) { return one < other ? one : other; }
static inline int64_t most(int64_t one, int64_t other) { return one > other ? one : other; }

/* Sort times, nearly all of which are in order already. */
static inline void sort_times(double *times, int count) {
    for (int place = 1; place < count; ++place) {
        const double time = times[place];
        int gap = place;
        for (; gap > 0 && times[gap - 1] > time; --gap) times[gap] = times[gap - 1];
        times[gap] = time;
    }
}

/* Return how fast the clock goes after the newest messages, in (0, 1]. */
static inline double pace_of(const struct window *window, const struct standing *standing) {
    double times[MAX_GAPS + 1];
    int count = 0;
    const int64_t first = most(standing->end - standing->alive, standing->end - MAX_GAPS - 1);
    for (int64_t row = first; row < standing->end; ++row)
        if (window->place[row] >= standing->pushed - BEHIND) times[count++] = window->at[row];
    if (count <= DOUBT + 1) return 1.0;
    sort_times(times, count);
    const int gaps = count - 1;
    for (int gap = 0; gap < gaps; ++gap) times[gap] = times[gap + 1] - times[gap];
    sort_times(times, gaps);
    return BUSY_SECONDS / fmax(BUSY_SECONDS, times[(gaps - DOUBT) / 2]);
}

/* Return how many seconds the clock counts for a gap in seconds, 0 for a negative one. */
static inline double on_clock(double gap, double pace) {
    gap = fmax(0.0, gap * pace);
    return gap <= SILENCE_SECONDS ? gap : SILENCE_SECONDS * (1.0 + log(gap / SILENCE_SECONDS));
}

struct clock {
    int count; /* 0 if there is no message at most REACH entries back; then nothing can be told of it */
    double times[SIZE], counted[SIZE], now;
};

static inline void set_clock(struct clock *clock, const struct window *window, const struct standing *standing,
                             double now) {
    const int64_t first = most(standing->within, standing->end - standing->alive);
    clock->count = (int)(standing->end - first);
    if (!clock->count) return;
    for (int place = 0; place < clock->count; ++place) clock->times[place] = window->at[first + place];
    sort_times(clock->times, clock->count);
    const double pace = pace_of(window, standing);
    clock->counted[0] = 0.0;
    int last = 0;
    for (int place = 1; place < clock->count; ++place) {
        clock->counted[place] =
            clock->counted[place - 1] + on_clock(clock->times[place] - clock->times[place - 1], pace);
        if (clock->times[place] <= now) last = place;
    }
    clock->now = clock->counted[last] + on_clock(now - clock->times[last], pace);
}

/* Return the minutes on the clock since the time of a message. What lies before the first one counts as it does. */
static inline double minutes_since(const struct clock *clock, double at) {
    if (!clock->count) return DAY_MINUTES;
    const double *place = clock->times; /* the last time that is not after `at` */
    for (int left = clock->count; left > 1;) {
        const int half = left / 2;
        place = place[half] <= at ? place + half : place;
        left -= half;
    }
    return fmax(clock->now - clock->counted[place - clock->times], 0.0) / 60.0;
}

#endif
