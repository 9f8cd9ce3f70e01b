/* Who speaks to whom, as sets of columns. A part of link.c. */
#ifndef ROOMLORE_PEOPLE_H
#define ROOMLORE_PEOPLE_H

#include "view.h"

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

#endif
