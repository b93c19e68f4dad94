// Inputs of a product: words that other programs send, and the norm in front of it.
//
// A word is two bf16 and the number of a round. It has arrived when it has the number that is
// waited for; there is no other barrier between programs. Each warp has its own part of every
// chunk of the inputs.
#pragma once

#include <weights.cuh>

constexpr int STAGE = 64 + 32;  // of a row, so that two lie in different banks

using Squares = float[EIGHT][WARPS];

enum { ALL = 1 };  // number of the barrier of all threads that compute

DEVICE u64 word_of(u32 pair, u32 round) { return static_cast<u64>(round) << 32 | pair; }
DEVICE bool is_of(u64 word, u32 round) { return static_cast<u32>(word >> 32) == round; }

DEVICE u64* row_at(u64* words, int row) { return words + static_cast<i64>(row) * ROW_WORDS; }

// Waits for a word of this round, and returns it.
DEVICE u32 receive(const u64* place, u32 round) {
    u64 word = look(place);
    while (!is_of(word, round)) {
        others_turn();
        word = look(place);
    }
    return static_cast<u32>(word);
}

// Also where nothing will be read: a variable without a value costs registers.
template <int PARTS> DEVICE void clear(u32 (&inputs)[PARTS][HELD]) {
    UNROLL for (int part = 0; part < PARTS; part++) UNROLL for (int i = 0; i < HELD; i++)
        inputs[part][i] = 0;
}

// Where a warp's inputs of a part begin, in pairs.
DEVICE int part_at(int part) {
    return part / SPAN * (CHUNK / 2) + thread_index() / LANES * (OWN / 2) + part % SPAN * 32;
}

// The pair of a part that is a thread's i-th of its row.
DEVICE int held_at(int i) {
    int lane = thread_index() % LANES;
    return FEW ? lane : i / 2 * 8 + lane % 4 * 2 + i % 2;
}

// This thread's inputs of a tile's first `live` rows and of the first `parts` parts. It reads all
// of them again until all have arrived.
template <int PARTS>
DEVICE void receive_inputs(const u64* row, u32 round, int live, int parts,
                           u32 (&inputs)[PARTS][HELD]) {
    int lane = thread_index() % LANES;
    clear(inputs);
    bool missing = false;
    if (FEW) {
        row += lane;
        do {
            missing = false;
            UNROLL for (int i = 0; i < HELD; i++) {
                if (i >= live) break;
                UNROLL for (int part = 0; part < PARTS; part++) if (part < parts) {
                    u64 word = look(row + i * ROW_WORDS + part_at(part));
                    missing |= !is_of(word, round);
                    inputs[part][i] = static_cast<u32>(word);
                }
            }
            if (missing) others_turn();
        } while (missing);
    } else if (lane / 4 < live) {
        row += lane / 4 * ROW_WORDS;
        do {
            missing = false;
            UNROLL for (int part = 0; part < PARTS; part++) if (part < parts)
                UNROLL for (int i = 0; i < HELD; i += 2) {
                    u64 first, second;
                    look_twice(row + part_at(part) + held_at(i), first, second);
                    missing |= !is_of(first, round) || !is_of(second, round);
                    inputs[part][i] = static_cast<u32>(first);
                    inputs[part][i + 1] = static_cast<u32>(second);
                }
            if (missing) others_turn();
        } while (missing);
    }
    warp_barrier();
}

// Inputs of the tile's rows from `first` on; waits for them. Where there are many, each warp first
// waits for one of them: then the others have arrived, or nearly so, and the memory is not loaded
// with repeated reads of all of them.
template <int PARTS>
DEVICE void inputs_of(u64* words, int from, u32 round, int first, int live, int parts,
                      u32 (&inputs)[PARTS][HELD]) {
    const u64* row = row_at(words, first) + from;
    if (live > WATCHED) {
        if (thread_index() % LANES == 0) receive(row + part_at(0), round);
        warp_barrier();
    }
    receive_inputs(row, round, live, parts, inputs);
}

// The inputs of rows that existed before the launch.
template <int PARTS>
DEVICE void load_inputs(const u16* row, int live, u32 (&inputs)[PARTS][HELD]) {
    int lane = thread_index() % LANES;
    const u32* pairs = reinterpret_cast<const u32*>(row);
    clear(inputs);
    UNROLL for (int i = 0; i < HELD; i++) UNROLL for (int part = 0; part < PARTS; part++) {
        int row_of = FEW ? i : lane / 4;
        if (row_of < live) inputs[part][i] = pairs[row_of * (HIDDEN / 2) + part_at(part) + held_at(i)];
    }
}

// Weights of a norm for these inputs.
template <int PARTS> DEVICE void load_gains(const u16* norm, u32 (&gains)[PARTS][HELD]) {
    int lane = thread_index() % LANES;
    load_inputs(norm - (FEW ? 0 : lane / 4 * HIDDEN), FEW ? 1 : EIGHT, gains);
}

// RMSNorm over `live` rows, rounded; `gains` are the norm's weights.
template <int PARTS>
DEVICE void normalise(u32 (&inputs)[PARTS][HELD], const u32 (&gains)[PARTS][HELD], int live,
                      Squares& sums_of_squares, float eps) {
    constexpr int QUADS = WARPS / 4;
    int lane = thread_index() % LANES, warp = thread_index() / LANES;
    float squares[HELD] = {};
    UNROLL for (int i = 0; i < HELD; i++) UNROLL for (int part = 0; part < PARTS; part++) {
        float low = wide_low(inputs[part][i]), high = wide_high(inputs[part][i]);
        squares[i] += low * low + high * high;
    }
    if (FEW) {
        UNROLL for (int i = 0; i < HELD; i++) {
            if (i >= live) break;
            float sum = squares[i];
            UNROLL for (int mask = 1; mask < LANES; mask *= 2) sum += across(sum, mask);
            if (lane == 0) sums_of_squares[i][warp] = sum;
        }
    } else {
        float sum = 0;
        UNROLL for (int i = 0; i < HELD; i++) sum += squares[i];
        sum += across(sum, 1);
        sum += across(sum, 2);
        if (lane % 4 == 0) sums_of_squares[lane / 4][warp] = sum;
    }
    barrier(ALL, THREADS);
    // A lane has four warps' sums of row lane / QUADS.
    const float* sums = sums_of_squares[0] + lane % (EIGHT * QUADS) * 4;
    float total = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    UNROLL for (int mask = 1; mask < QUADS; mask *= 2) total += across(total, mask);
    float scale = inverse_root(total / HIDDEN + eps);
    if (!FEW) scale = from_lane(scale, lane / 4 * QUADS);
    UNROLL for (int i = 0; i < HELD; i++) {
        if (FEW && i >= live) break;
        float own = FEW ? from_lane(scale, i * QUADS) : scale;
        UNROLL for (int part = 0; part < PARTS; part++) {
            u32 gain = gains[part][FEW ? 0 : i];
            float low = wide_low(inputs[part][i]) * own * wide_low(gain);
            float high = wide_high(inputs[part][i]) * own * wide_high(gain);
            inputs[part][i] = narrow(low, high);
        }
    }
}

// A part's inputs in the tensor core's layout. Columns of rows that are not live are undefined.
DEVICE void narrow_side(const u32 (&inputs)[HELD], int live, u16 (&staged)[MOST_FEW][STAGE],
                        u32 (&found)[8]) {
    int lane = thread_index() % LANES;
    if (FEW) {
        UNROLL for (int i = 0; i < MOST_FEW; i++)
            if (i < live) reinterpret_cast<u32*>(staged[i])[lane] = inputs[i];
        warp_barrier();
        const Quad* place = reinterpret_cast<const Quad*>(staged[lane / 4 % MOST_FEW]) + lane % 4;
        Quad low = place[0], high = place[4];
        warp_barrier();
        found[0] = low.x, found[1] = low.y, found[2] = low.z, found[3] = low.w;
        found[4] = high.x, found[5] = high.y, found[6] = high.z, found[7] = high.w;
    } else {
        UNROLL for (int i = 0; i < 8; i++) found[i] = inputs[i % HELD];
    }
}
