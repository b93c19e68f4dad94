// Heads of queries, keys and values on their way from the product to attention.
#pragma once

#include <inputs.cuh>

struct Turning {
    const u16* norm;   // [HEADS + KEYS, DIM]
    const float* cos;  // [positions, DIM]
    const float* sin;
    float eps;
};

// Four numbers of a head: two adjacent ones, and the two that they are rotated with.
struct Turned {
    u32 low, high;
};

// A head of a row of words; waits for it.
DEVICE Turned receive_head(const u64* row, int head, u32 round) {
    const u64* words = row + head * (DIM / 2) + thread_index() % LANES;
    return {receive(words, round), receive(words + DIM / 4, round)};
}

// A head after head norm and rotation; `given` waits for it and returns it.
template <class Given>
DEVICE Turned turned(Given given, int head, const Turning& turning, int position) {
    int lane = thread_index() % LANES;
    const u32* gains = reinterpret_cast<const u32*>(turning.norm + head * DIM) + lane;
    u32 first = gains[0], second = gains[DIM / 4];
    // The second half of the signed sine is the sine itself.
    const float *cos = turning.cos + position * DIM, *sin = turning.sin + position * DIM + DIM / 2;
    float cos0 = cos[2 * lane], cos1 = cos[2 * lane + 1];
    float sin0 = sin[2 * lane], sin1 = sin[2 * lane + 1];
    Turned own = given();
    float a = wide_low(own.low), b = wide_high(own.low);
    float c = wide_low(own.high), d = wide_high(own.high);
    float square = a * a + b * b + c * c + d * d;
    UNROLL for (int mask = 1; mask < LANES; mask *= 2) square += across(square, mask);
    float scale = inverse_root(square / DIM + turning.eps);
    a = a * scale * wide_low(first), b = b * scale * wide_high(first);
    c = c * scale * wide_low(second), d = d * scale * wide_high(second);
    return {narrow(a * cos0 - c * sin0, b * cos1 - d * sin1),
            narrow(c * cos0 + a * sin0, d * cos1 + b * sin1)};
}

DEVICE Turned receive_turned(const u64* row, int head, const Turning& turning, int position,
                             u32 round) {
    return turned([&] { return receive_head(row, head, round); }, head, turning, position);
}

DEVICE void keep(u16* place, Turned head) {
    u32* pairs = reinterpret_cast<u32*>(place) + thread_index() % LANES;
    pairs[0] = head.low, pairs[DIM / 4] = head.high;
}
