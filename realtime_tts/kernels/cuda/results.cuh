// Results of a product: added up over the warps of a program, and sent to all programs.
#pragma once

#include <inputs.cuh>

// One result, for a row of weights and one of inputs, over all warps: rounded to bf16, as float32.
template <int SIZE> DEVICE float added(const float (&sums)[WARPS][SIZE], int place) {
    float parts[4] = {};
    UNROLL for (int warp = 0; warp < WARPS; warp++) parts[warp % 4] += sums[warp][place];
    return wide_low(narrow((parts[0] + parts[1]) + (parts[2] + parts[3]), 0));
}

// Sends two adjacent results: this thread's and that of the thread COLUMNS further.
template <int COLUMNS = EIGHT>
DEVICE void send_pair(u64* row, int place, float result, u32 round, bool live) {
    u32 pair = narrow(result, from_above(result, COLUMNS));
    if (live && place / COLUMNS % 2 == 0) send(row + place / COLUMNS / 2, word_of(pair, round));
}
