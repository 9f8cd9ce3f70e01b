/* The net: a layer over all candidates, and the scores. A part of link.c. */
#ifndef ROOMLORE_NET_H
#define ROOMLORE_NET_H

#include "view.h"

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

#endif
