// A product of many rows of inputs with weights that are streamed, sixteen rows at a time.
//
// Each warp has its 64 inputs of every chunk, for all rows of the program, in the layout of the
// tensor core. The warps' results are added up in shared memory.
#pragma once

#include <stages.cuh>

static_assert(TALL == 16, "rows of weights that the tensor core takes at once");

constexpr int SHARE_ROWS = ROWS / SHARES, RESIDUAL_ROWS = ROWS / RESIDUAL_SHARES;
constexpr int TILES = SHARE_ROWS / EIGHT, RESIDUAL_TILES = RESIDUAL_ROWS / EIGHT;
static_assert(TILES >= RESIDUAL_TILES && RESIDUAL_TILES > 0, "where the residual is, fewer rows");
static_assert(SHARE_ROWS % EIGHT == 0 && RESIDUAL_ROWS % EIGHT == 0, "whole tiles");

DEVICE void widen(Pair pair, float (&x)[4]) {
    x[0] = wide_low(pair.x), x[1] = wide_high(pair.x);
    x[2] = wide_low(pair.y), x[3] = wide_high(pair.y);
}
DEVICE Pair narrowed(const float (&x)[4]) { return {narrow(x[0], x[1]), narrow(x[2], x[3])}; }

// The results of each warp, by rows, so that banks differ.
constexpr int SLICE = TALL + 4;
using Found = float[WARPS][SHARE_ROWS][SLICE];

// The rows of a program, and the number of its group of programs, which share columns.
struct Share {
    int first, live, group;
};

// A program's share of all rows, as even as whole tiles allow.
DEVICE Share share_of(int rows, int shares) {
    int each = ((rows + EIGHT - 1) / EIGHT + shares - 1) / shares * EIGHT;
    int first = program_index() % shares * each, group = program_index() / shares;
    if (first >= rows) return {0, 0, group};
    return {first, rows - first < each ? rows - first : each, group};
}

// Rows of inputs, as pairs.
struct Rows {
    const u32* first;
    int stride;
};

// This thread's inputs of some parts. Rows that are not live are read as the last one that is.
template <int PARTS, int COUNT>
DEVICE void load_parts(const Rows& rows, int live, int first, u32 (&inputs)[PARTS][COUNT][8]) {
    int lane = thread_index() % LANES, last = live > 0 ? live - 1 : 0;
    const u32* place = rows.first + part_at(first) + lane % 4 * 4;
    UNROLL for (int tile = 0; tile < COUNT; tile++) {
        int row = tile * EIGHT + lane / 4;
        const u32* own = place + (row < last ? row : last) * rows.stride;
        UNROLL for (int part = 0; part < PARTS; part++) {
            const u32* quads = own + part / SPAN * (CHUNK / 2) + part % SPAN * 32;
            Quad low = look_quad(quads), high = look_quad(quads + 16);
            u32(&found)[8] = inputs[part][tile];
            found[0] = low.x, found[1] = low.y, found[2] = low.z, found[3] = low.w;
            found[4] = high.x, found[5] = high.y, found[6] = high.z, found[7] = high.w;
        }
    }
}

// Multiplies a part of sixteen rows of weights, two of which are adjacent, by all rows of inputs.
template <int COUNT>
DEVICE void multiply_part(const u8* weights, const u32 (&inputs)[COUNT][8],
                          float (&found)[COUNT][4]) {
    u32 even[8], odd[8];
    load_row(weights, even), load_row(weights + PITCH, odd);
    UNROLL for (int k = 0; k < 8; k += 2) UNROLL for (int tile = 0; tile < COUNT; tile++)
        multiply(found[tile], even[k], odd[k], even[k + 1], odd[k + 1], inputs[tile][k],
                 inputs[tile][k + 1]);
}

// Multiplies this warp's part of the next unit, and advances to the one after it.
DEVICE const u8* weights_at(const Ring& ring, int part) {
    int lane = thread_index() % LANES, warp = thread_index() / LANES;
    return ring.units + ring.slot * UNIT + lane / 4 * 2 * PITCH + warp * OWN * 2 + part * 128;
}
DEVICE void leave_unit(Ring& ring) {
    warp_barrier();
    if (thread_index() % LANES == 0) arrive(ring.emptied + ring.slot);
    ring.next();
}

template <int COUNT> DEVICE void lay_down(const float (&found)[COUNT][4], Found& all) {
    int lane = thread_index() % LANES;
    float* place = all[thread_index() / LANES][lane % 4 * 2] + lane / 4 * 2;
    UNROLL for (int tile = 0; tile < COUNT; tile++) {
        place[0] = found[tile][0], place[1] = found[tile][2];
        place[SLICE] = found[tile][1], place[SLICE + 1] = found[tile][3];
        place += EIGHT * SLICE;
    }
}

// Four results of a row over all warps.
DEVICE void added(const Found& all, int row, int place, float (&sums)[4]) {
    float parts[2][4] = {};
    UNROLL for (int warp = 0; warp < WARPS; warp++) {
        const Quad* quad = reinterpret_cast<const Quad*>(all[warp][row] + place);
        Quad own = *quad;
        parts[warp % 2][0] += number(own.x), parts[warp % 2][1] += number(own.y);
        parts[warp % 2][2] += number(own.z), parts[warp % 2][3] += number(own.w);
    }
    UNROLL for (int i = 0; i < 4; i++) sums[i] = parts[0][i] + parts[1][i];
}

// Sums of squares of this warp's inputs, by row: the diagonal of their product with themselves.
template <int PARTS>
DEVICE void add_squares(const u32 (&inputs)[PARTS][TILES][8], float (&squares)[SHARE_ROWS][WARPS]) {
    int lane = thread_index() % LANES, row = lane / 4;
    UNROLL for (int tile = 0; tile < TILES; tile++) {
        float found[4] = {};
        UNROLL for (int part = 0; part < PARTS; part++) UNROLL for (int k = 0; k < 8; k += 2) {
            const u32* own = inputs[part][tile] + k;
            multiply(found, own[0], 0, own[1], 0, own[0], own[1]);
        }
        if (lane % 4 == row / 2)
            squares[tile * EIGHT + row][thread_index() / LANES] = row % 2 ? found[1] : found[0];
    }
}
