/* The features of the message itself. A part of link.c. */
#ifndef ROOMLORE_OWN_H
#define ROOMLORE_OWN_H

#include "view.h"

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

#endif
