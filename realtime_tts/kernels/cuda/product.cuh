// A product of few rows of inputs with weights that are in registers already.
//
// The weights are the wide side of the tensor core's product, sixteen of its rows, and the inputs
// its narrow side: eight rows at a time, so that one row and eight cost the same. Each warp has
// its 64 inputs of every chunk; the warps' results are added up in shared memory.
#pragma once

#include <results.cuh>

static_assert(TALL == EIGHT, "results of eight rows of weights and eight of inputs");

// A thread's parts: chunks, times the parts of a chunk that a warp has.
constexpr int HIDDEN_PARTS = chunks(HIDDEN) * SPAN, HIDDEN_EIGHTS = groups(HIDDEN);
constexpr int MOST_EIGHTS = larger(larger(groups(FUSED), 2 * groups(WIDE)), groups(VOCAB));
static_assert(larger(larger(groups(FUSED), groups(WIDE)), groups(VOCAB)) * EIGHT * EIGHT <= THREADS,
              "a thread for each result");
constexpr int MOST_PARTS = larger(chunks(QUERIES), chunks(WIDE)) * SPAN;
constexpr int AREA = EIGHT * EIGHT;  // results of eight rows of weights and eight of inputs

struct alignas(16) Scratch {
    float sums[WARPS][MOST_EIGHTS * AREA];
    float plain_sums[2][WARPS][HIDDEN_EIGHTS * AREA];
    Squares squares;
    float residual[ROWS][HIDDEN_EIGHTS * EIGHT];
    alignas(16) u16 staged[WARPS][MOST_FEW][STAGE];
};

// This thread's weights of the unit in `slot`, of row lane / 4.
template <int PARTS>
DEVICE void take(const Ring& ring, int slot, int part, u32 (&weights)[PARTS][8]) {
    int lane = thread_index() % LANES, warp = thread_index() / LANES;
    const u8* place = ring.units + slot * UNIT + lane / 4 * PITCH + warp * OWN * 2;
    UNROLL for (int own = 0; own < SPAN; own++)
        load_row(place + own * 128, weights[part * SPAN + own]);
}

// The weights of `count` times `parts` units, at most COUNT times PARTS; zeros for the others.
template <int COUNT, int PARTS>
DEVICE void take_all(Ring& ring, const u16* const* heads, int count, int parts,
                     u32 (&weights)[COUNT][PARTS * SPAN][8]) {
    static_assert(COUNT * PARTS <= RING, "more at once than the ring holds");
    int lane = thread_index() % LANES, first = ring.slot, own = first + lane;  // a lane's slot
    bool wrapped = own >= RING;
    if (wrapped) own -= RING;
    if (lane < count * parts) wait_for(ring.filled + own, wrapped ? ring.turn ^ 1 : ring.turn);
    warp_barrier();
    UNROLL for (int eight = 0; eight < COUNT; eight++)
        UNROLL for (int part = 0; part < PARTS; part++) {
            if (eight < count && part < parts) {
                take(ring, ring.slot, part, weights[eight]);
                ring.next();
            } else {
                UNROLL for (int i = 0; i < 8 * SPAN; i++)
                    weights[eight][part * SPAN + i / 8][i % 8] = 0;
            }
        }
    warp_barrier();
    if (lane < count * parts) arrive(ring.emptied + own);
    if (!ASKER) refill_own(ring, first, count * parts, heads);
}

// [COUNT * EIGHT, EIGHT] of this warp's inputs, into `sums`: results by rows of weights. Columns
// of rows that are not live are undefined.
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
            bool both = 2 * tile < LAST;  // the last of an odd number is alone
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
