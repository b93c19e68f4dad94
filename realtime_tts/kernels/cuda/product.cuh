// A product of few rows of inputs with weights that lie in registers already.
//
// The weights are the wide side of the tensor core's product, sixteen of its rows, and the inputs
// its narrow side: eight rows at a time, so that one row and eight cost the same. Each warp has
// its 64 inputs of every chunk; what the warps found is added up in shared memory.
//
// Inputs come from the other programs as words of two bf16 and a number. A word with the number
// that is waited for is there; there is no other barrier between programs.
#pragma once

#include <weights.cuh>

DEVICE constexpr int larger(int a, int b) { return a > b ? a : b; }
// Of what a thread has: chunks, times what a warp has of them.
constexpr int HIDDEN_PARTS = chunks(HIDDEN) * SPAN, HIDDEN_EIGHTS = eights(HIDDEN);
constexpr int MOST_EIGHTS = larger(larger(eights(FUSED), 2 * eights(WIDE)), eights(VOCAB));
static_assert(larger(larger(eights(FUSED), eights(WIDE)), eights(VOCAB)) * EIGHT * EIGHT <= THREADS,
              "a thread for each result");
constexpr int MOST_PARTS = larger(chunks(QUERIES), chunks(WIDE)) * SPAN;
constexpr int AREA = EIGHT * EIGHT;  // results of eight rows of weights and eight of inputs

constexpr int STAGE = 64 + 32;  // of a row, so that two lie in different banks

struct alignas(16) Scratch {
    float sums[WARPS][MOST_EIGHTS * AREA];
    float plain_sums[2][WARPS][HIDDEN_EIGHTS * AREA];
    float squares[EIGHT][WARPS];
    float residual[ROWS][HIDDEN_EIGHTS * EIGHT];
    alignas(16) u16 staged[WARPS][MOST_FEW][STAGE];
};

enum { ALL = 1 };  // number of the barrier of all threads that compute

DEVICE u64 word_of(u32 pair, u32 round) { return static_cast<u64>(round) << 32 | pair; }
DEVICE bool is_of(u64 word, u32 round) { return static_cast<u32>(word >> 32) == round; }

DEVICE u64* row_at(u64* words, int row) { return words + static_cast<i64>(row) * ROW_WORDS; }

// A word of this round, when it is there.
DEVICE u32 receive(const u64* place, u32 round) {
    u64 word = look(place);
    while (!is_of(word, round)) {
        others_turn();
        word = look(place);
    }
    return static_cast<u32>(word);
}

// Also where nothing will be read: what has no value costs registers.
template <int PARTS> DEVICE void clear(u32 (&inputs)[PARTS][HELD]) {
    UNROLL for (int part = 0; part < PARTS; part++) UNROLL for (int i = 0; i < HELD; i++)
        inputs[part][i] = 0;
}

// Where a warp's inputs of a part begin, in pairs.
DEVICE int part_at(int part) {
    return part / SPAN * (CHUNK / 2) + thread_index() / LANES * (OWN / 2) + part % SPAN * 32;
}

// This thread's inputs of a tile's first `live` rows and of the first `parts` parts. It asks for
// all of them until all are there.
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
        row += lane / 4 * ROW_WORDS + lane % 4 * 2;
        do {
            missing = false;
            UNROLL for (int part = 0; part < PARTS; part++) if (part < parts)
                UNROLL for (int i = 0; i < HELD; i += 2) {
                    u64 first, second;
                    look_twice(row + part_at(part) + 4 * i, first, second);
                    missing |= !is_of(first, round) || !is_of(second, round);
                    inputs[part][i] = static_cast<u32>(first);
                    inputs[part][i + 1] = static_cast<u32>(second);
                }
            if (missing) others_turn();
        } while (missing);
    }
    warp_barrier();
}

// The same of rows that were there before the launch.
template <int PARTS>
DEVICE void load_inputs(const u16* row, int live, u32 (&inputs)[PARTS][HELD]) {
    int lane = thread_index() % LANES;
    const u32* pairs = reinterpret_cast<const u32*>(row);
    clear(inputs);
    UNROLL for (int i = 0; i < HELD; i++) UNROLL for (int part = 0; part < PARTS; part++) {
        int own = FEW ? i * (HIDDEN / 2) + lane
                      : lane / 4 * (HIDDEN / 2) + i / 2 * 8 + lane % 4 * 2 + i % 2;
        if ((FEW ? i : lane / 4) < live) inputs[part][i] = pairs[own + part_at(part)];
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
                      Scratch& scratch, float eps) {
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
            if (lane == 0) scratch.squares[i][warp] = sum;
        }
    } else {
        float sum = 0;
        UNROLL for (int i = 0; i < HELD; i++) sum += squares[i];
        sum += across(sum, 1);
        sum += across(sum, 2);
        if (lane % 4 == 0) scratch.squares[lane / 4][warp] = sum;
    }
    barrier(ALL, THREADS);
    // A lane has four warps' sums of row lane / QUADS.
    const float* sums = scratch.squares[0] + lane % (EIGHT * QUADS) * 4;
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

// What the tensor core wants of a part's inputs. Columns of rows that are not live hold anything.
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

// [COUNT * EIGHT, EIGHT] of this warp's inputs, into `sums`: results by rows of weights. Columns
// of rows that are not live hold anything.
template <int COUNT, int PARTS>
DEVICE void multiply_all(const u32 (&weights)[COUNT][PARTS][8], const u32 (&inputs)[PARTS][HELD],
                         int live, int parts, u16 (&staged)[MOST_FEW][STAGE], float* sums) {
    constexpr int TILES = (COUNT + 1) / 2;
    int lane = thread_index() % LANES;
    float found[TILES][4] = {};
    UNROLL for (int part = 0; part < PARTS; part++) if (part < parts) {
        u32 narrow_ones[8];
        narrow_side(inputs[part], live, staged, narrow_ones);
        UNROLL for (int i = 0; i < 8; i += 2) UNROLL for (int tile = 0; tile < TILES; tile++) {
            constexpr int LAST = COUNT - 1;
            bool both = 2 * tile < LAST;  // of an odd number, there is no other
            const u32* upper = weights[2 * tile][part] + i;
            const u32* lower = weights[both ? 2 * tile + 1 : LAST][part] + i;
            multiply(found[tile], upper[0], both ? lower[0] : 0, upper[1], both ? lower[1] : 0,
                     narrow_ones[i], narrow_ones[i + 1]);
        }
    }
    UNROLL for (int tile = 0; tile < TILES; tile++) {
        float* target = sums + 2 * tile * AREA + lane / 4 * EIGHT + lane % 4 * 2;
        target[0] = found[tile][0], target[1] = found[tile][1];
        if (2 * tile < COUNT - 1) target[AREA] = found[tile][2], target[AREA + 1] = found[tile][3];
    }
}

// One result: of a row of weights and one of inputs, over all warps. Rounded to bf16, as float32.
template <int SIZE> DEVICE float added(const float (&sums)[WARPS][SIZE], int place) {
    float parts[4] = {};
    UNROLL for (int warp = 0; warp < WARPS; warp++) parts[warp % 4] += sums[warp][place];
    return wide_low(narrow((parts[0] + parts[1]) + (parts[2] + parts[3]), 0));
}
