/* Eight floats at once, in the vector extensions that GCC and Clang share. */
#ifndef ROOMLORE_LANES_H
#define ROOMLORE_LANES_H

#include <stdint.h>
#include <string.h>

enum { LANES = 8 };
typedef float lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t whole_lanes __attribute__((vector_size(4 * LANES)));
typedef uint32_t bit_lanes __attribute__((vector_size(4 * LANES)));

#define INLINE static inline __attribute__((always_inline))

INLINE lanes load(const float *from) {
    lanes loaded;
    memcpy(&loaded, from, sizeof loaded);
    return loaded;
}

INLINE void store(float *to, lanes stored) { memcpy(to, &stored, sizeof stored); }

INLINE lanes all(float number) { return number - (lanes){0}; }

INLINE lanes chosen(whole_lanes where, lanes yes, lanes no) {
    return (lanes)(((whole_lanes)yes & where) | ((whole_lanes)no & ~where));
}

INLINE lanes greater(lanes one, lanes other) { return chosen(one > other, one, other); }
INLINE lanes smaller(lanes one, lanes other) { return chosen(one < other, one, other); }

INLINE float sum_of(lanes added) {
    return ((added[0] + added[4]) + (added[1] + added[5])) + ((added[2] + added[6]) + (added[3] + added[7]));
}

/* Return the natural logarithms of positive normal numbers, to about the last bit: the exponent's, and that of a mantissa
 * in [sqrt(1/2), sqrt(2)) by the series of log((1 + s) / (1 - s)). */
INLINE lanes log_of(lanes numbers) {
    const uint32_t root_half = 0x3f3504f3;
    const bit_lanes bits = (bit_lanes)numbers;
    const whole_lanes exponent = (whole_lanes)(bits - root_half) >> 23;
    const lanes mantissa = (lanes)(bits - (bit_lanes)exponent * (1u << 23));
    const lanes s = (mantissa - 1.0f) / (mantissa + 1.0f), square = s * s;
    const lanes series = 2.0f + square * (2.0f / 3 + square * (2.0f / 5 + square * (2.0f / 7 + square * (2.0f / 9))));
    return __builtin_convertvector(exponent, lanes) * 0.693147181f + s * series;
}

#endif
