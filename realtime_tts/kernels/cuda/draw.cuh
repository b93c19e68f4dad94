// A draw of one code, as in kernels/sampling.py, by several warps of a program together.
#pragma once

#include <sizes.cuh>

constexpr int DRAWERS = WARPS < 8 ? WARPS : 8;     // warps that draw
constexpr int CODES = VOCAB / (DRAWERS * LANES);  // of a thread, next to each other
static_assert(DRAWERS <= WARPS && CODES % 2 == 0 && CODES * DRAWERS * LANES == VOCAB, "all codes");

enum { DRAWING = 3 };  // number of the barrier of the warps that draw

struct Drawing {
    int counts[2][DRAWERS];
    float sums[DRAWERS];
    int candidates[DRAWERS];
    int lasts[DRAWERS];
    int bad[DRAWERS];
};

struct Settings {
    float temperature;
    int top_k;
    bool greedy;
    float uniform;
};

// 16 bits in the order of the bf16 number; both zeros are one.
DEVICE u32 ordered(u32 bits) {
    if (bits == 0x8000u) bits = 0;
    return bits & 0x8000u ? 0xffffu - bits : bits | 0x8000u;
}

// The least key of the `wanted` largest, or a lower one that keeps no more: two bits at a time.
DEVICE u32 threshold(const u32 (&keys)[CODES], int wanted, Drawing& drawing) {
    int lane = thread_index() % LANES, warp = thread_index() / LANES, turn = 0;
    u32 found = 0;
    static_assert(CODES * LANES < 1024, "three numbers of a warp in one");
    NO_UNROLL for (int shift = 14; shift >= 0; shift -= 2, turn ^= 1) {
        int count = 0;
        UNROLL for (int i = 0; i < CODES; i++) UNROLL for (u32 step = 1; step < 4; step++)
            count += keys[i] >= (found | step << shift) ? 1 << (10 * (step - 1)) : 0;
        count = warp_sum(count);
        if (lane == 0) drawing.counts[turn][warp] = count;
        barrier(DRAWING, DRAWERS * LANES);
        count = lane < DRAWERS ? drawing.counts[turn][lane] : 0;
        int kept = 0;
        u32 chosen = 0;
        UNROLL for (u32 step = 1; step < 4; step++) {
            int above = warp_sum(count >> (10 * (step - 1)) & 1023);
            if (above >= wanted) chosen = step, kept = above;
        }
        found |= chosen << shift;
        if (kept == wanted) break;
    }
    return found;
}

// The code of logits whose bits are given, 16 in an int, in every thread. `bad`: NaN or Inf.
DEVICE int draw(const u32 (&bits)[CODES], const Settings& settings, Drawing& drawing, bool& bad) {
    int lane = thread_index() % LANES, warp = thread_index() / LANES;
    int first = thread_index() * CODES, most = 0, here_bad = 0;
    u32 keys[CODES];
    UNROLL for (int i = 0; i < CODES; i++) {
        keys[i] = ordered(bits[i]);
        most = static_cast<int>(keys[i]) > most ? static_cast<int>(keys[i]) : most;
        here_bad |= (bits[i] & 0x7f80u) == 0x7f80u;
    }
    most = warp_most(most), here_bad = warp_most(here_bad);
    if (lane == 0) drawing.candidates[warp] = most, drawing.bad[warp] = here_bad;
    barrier(DRAWING, DRAWERS * LANES);
    here_bad = 0;
    UNROLL for (int other = 0; other < DRAWERS; other++) {
        most = drawing.candidates[other] > most ? drawing.candidates[other] : most;
        here_bad |= drawing.bad[other];
    }
    bad = here_bad;
    int wanted = settings.top_k > 0 && settings.top_k < VOCAB ? settings.top_k : VOCAB;
    u32 least = settings.greedy ? most : wanted < VOCAB ? threshold(keys, wanted, drawing) : 0;
    u32 top = most & 0x8000 ? most ^ 0x8000 : 0xffff - most;  // the bits of the best
    float best = quotient(wide_low(top), settings.temperature);
    float heights[CODES], own = 0;
    UNROLL for (int i = 0; i < CODES; i++) {
        float scaled = quotient(wide_low(bits[i]), settings.temperature);
        own += keys[i] >= least ? exponential(scaled - best) : 0;
        heights[i] = own;
    }
    float before = own;
    UNROLL for (int by = 1; by < LANES; by *= 2) {
        float other = from_below(before, by);
        if (lane >= by) before += other;
    }
    if (lane == LANES - 1) drawing.sums[warp] = before;
    barrier(DRAWING, DRAWERS * LANES);
    float total = 0, lower = 0;
    UNROLL for (int other = 0; other < DRAWERS; other++) {
        if (other == warp) lower = total;
        total += drawing.sums[other];
    }
    lower += before - own;
    // The first entry above the height drawn; entries of weight 0 are excluded.
    float height = settings.uniform * total;
    int found = VOCAB, last = 0;
    UNROLL for (int i = CODES - 1; i >= 0; i--) {
        float below = i ? heights[i - 1] : 0;
        if (heights[i] > below) {
            if (settings.greedy || lower + heights[i] > height) found = first + i;
            if (last == 0) last = first + i;
        }
    }
    found = warp_least(found), last = warp_most(last);
    if (lane == 0) drawing.candidates[warp] = found, drawing.lasts[warp] = last;
    barrier(DRAWING, DRAWERS * LANES);
    UNROLL for (int other = 0; other < DRAWERS; other++) {
        found = drawing.candidates[other] < found ? drawing.candidates[other] : found;
        last = drawing.lasts[other] > last ? drawing.lasts[other] : last;
    }
    return found < VOCAB ? found : last;
}
