// A product of up to eight rows of inputs with weights that are loaded meanwhile.
//
// A thread keeps its inputs in the tensor core's layout; the weights are streamed, sixteen rows
// at a time. Each warp has its 64 inputs of every chunk.
#pragma once

#include <results.cuh>

static_assert(TALL == 16, "rows of weights that the tensor core takes at once");

constexpr int MOST_ROWS = FEW ? MOST_FEW : EIGHT;
constexpr int TILE = TALL * MOST_ROWS;  // results of a unit's rows of weights and all rows of inputs

// The inputs of all parts as columns of the product.
template <int PARTS>
DEVICE void columns_of(const u32 (&inputs)[PARTS][HELD], int live, u16 (&staged)[MOST_FEW][STAGE],
                       u32 (*columns)[8]) {
    UNROLL for (int part = 0; part < PARTS; part++)
        narrow_side(inputs[part], live, staged, columns[part]);
}

// This warp's results for `tiles` times sixteen rows of weights, to `sums` [tiles, 16, MOST_ROWS].
// Columns of rows that are not live are undefined.
template <int PARTS>
DEVICE void stream_product(Ring& ring, const u32 (&columns)[PARTS][8], int tiles, float* sums) {
    int lane = thread_index() % LANES, warp = thread_index() / LANES;
    int own = lane / 4 * PITCH + warp * OWN * 2;
    NO_UNROLL for (int tile = 0; tile < tiles; tile++) {
        float even[4] = {}, odd[4] = {};
        UNROLL for (int part = 0; part < PARTS; part++) {
            if (part % SPAN == 0) wait_for(ring.filled + ring.slot, ring.turn);
            const u8* place = ring.units + ring.slot * UNIT + own + part % SPAN * 128;
            u32 upper[8], lower[8];
            load_row(place, upper), load_row(place + EIGHT * PITCH, lower);
            UNROLL for (int k = 0; k < 8; k += 2)
                multiply(k % 4 ? odd : even, upper[k], lower[k], upper[k + 1], lower[k + 1],
                         columns[part][k], columns[part][k + 1]);
            if (part % SPAN < SPAN - 1) continue;
            warp_barrier();
            if (lane == 0) arrive(ring.emptied + ring.slot);
            if (!ASKER) refill_last(ring);
            ring.next();
        }
        if (lane % 4 * 2 >= MOST_ROWS) continue;
        float* target = sums + tile * TILE + lane / 4 * MOST_ROWS + lane % 4 * 2;
        float* lower = target + TILE / 2;
        target[0] = even[0] + odd[0], target[1] = even[1] + odd[1];
        lower[0] = even[2] + odd[2], lower[1] = even[3] + odd[3];
    }
}
