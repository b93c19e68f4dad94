// Weights on their way from memory to registers, through a ring in shared memory.
//
// They are loaded in the order of their use, as far ahead as the ring goes, whatever the other
// programs do. The unit is TALL rows of a product's weights, CHUNK inputs each. The units of a pass
// are listed once, in the order of their use.
#pragma once

#include <sizes.cuh>

// Where a unit's first row is, of a head counted from the head's beginning, and the bytes from row
// to row: an address has 48 bits, and a sixteenth of the distance the next. The last bit says that
// every second row is one of the other side, of gate and up.
typedef u64 Unit;

constexpr Unit PAIRED = 1ull << 63;

DEVICE Unit unit_made(const u16* weights, i64 first, int inputs) {
    return reinterpret_cast<u64>(weights + first) | static_cast<u64>(inputs / 8) << 48;
}
DEVICE u64 row_of(Unit unit, int row) {
    u64 first = unit & 0xffffffffffffull, distance = (unit >> 48 & 0x7fff) * 16;
    if (!BATCH || !(unit & PAIRED)) return first + row * distance;
    return first + row / 2 * distance + row % 2 * WIDE * distance;
}

struct Ring {
    u8* units;      // [RING, TALL, PITCH]
    u64* filled;    // [RING]
    u64* emptied;   // [RING]
    Unit* list;     // [UNITS] of a pass
    int slot = 0;   // of the next unit
    u32 turn = 0;   // parity of the rounds through the ring

    // The next unit to load, of the slots that a warp fills.
    int ahead;      // unit of the pass
    int pass = BATCH ? -1 : 0;  // a batch has a pass without a head before the others
    u32 refills = 0;
    int taken = 0;

    DEVICE void next() {
        if (++slot == RING) slot = 0, turn ^= 1;
    }
};

constexpr int RESIDUAL_GROUPS = groups(HIDDEN, RESIDUAL_SHARES);
constexpr int FUSED_UNITS = groups(FUSED, SHARES) * chunks(HIDDEN);
constexpr int OUTPUT_UNITS = RESIDUAL_GROUPS * chunks(QUERIES);
constexpr int WIDE_UNITS = groups(2 * WIDE, SHARES) * chunks(HIDDEN);
constexpr int DOWN_UNITS = RESIDUAL_GROUPS * chunks(WIDE);
constexpr int LAYER_UNITS = FUSED_UNITS + OUTPUT_UNITS + WIDE_UNITS + DOWN_UNITS;
constexpr int HEAD_UNITS = groups(VOCAB, SHARES) * chunks(HIDDEN);
constexpr int UNITS = LAYERS * LAYER_UNITS + HEAD_UNITS;
constexpr int ALL_UNITS = PASSES * UNITS + (BATCH ? LAYERS * LAYER_UNITS : 0);
constexpr int RING_BYTES = RING * (UNIT + 16) + UNITS * 8;

struct Layer {
    const u16 *input_norm, *fused, *head_norm, *output, *output_norm, *wide, *down;
};

DEVICE Ring ring_at(u8* memory) {
    Ring ring;
    ring.units = memory;
    ring.filled = reinterpret_cast<u64*>(memory + RING * UNIT);
    ring.emptied = ring.filled + RING;
    ring.list = reinterpret_cast<Unit*>(ring.emptied + RING);
    return ring;
}

// Unit number `index` of a product with so many inputs, of which this program has `count` groups
// together with others: a group's inputs after another's.
DEVICE Unit unit_of(const u16* weights, int inputs, int count, int index, int shares = SHARES,
                    int tall = TALL) {
    int parts = inputs / CHUNK, group = program_index() / shares * count + index / parts;
    i64 first = static_cast<i64>(group) * tall * inputs + index % parts * CHUNK;
    return unit_made(weights, first, inputs);
}

// The same of a product whose results are added to the residual: all groups' inputs chunk by chunk.
DEVICE Unit residual_unit(const u16* weights, int inputs, int index) {
    constexpr int COUNT = RESIDUAL_GROUPS;
    int own = index % COUNT * (inputs / CHUNK) + index / COUNT;
    return unit_of(weights, inputs, COUNT, own, RESIDUAL_SHARES);
}

// A group of the gate's rows, then one of the other side's; in a batch, the rows take turns.
DEVICE Unit wide_unit(const u16* weights, int index) {
    if (BATCH) {
        constexpr int COUNT = groups(2 * WIDE, SHARES);
        return unit_of(weights, HIDDEN, COUNT, index, SHARES, TALL / 2) | PAIRED;
    }
    constexpr int PARTS = chunks(HIDDEN);
    int side = index / PARTS % 2, own = index / (2 * PARTS) * PARTS + index % PARTS;
    return unit_of(weights + side * static_cast<i64>(WIDE) * HIDDEN, HIDDEN, groups(WIDE), own);
}

DEVICE Unit unit_at(const Layer* layers, int index) {
    if (index >= LAYERS * LAYER_UNITS)
        return unit_of(nullptr, HIDDEN, groups(VOCAB, SHARES), index - LAYERS * LAYER_UNITS);
    const Layer& layer = layers[index / LAYER_UNITS];
    index %= LAYER_UNITS;
    if (index < FUSED_UNITS) return unit_of(layer.fused, HIDDEN, groups(FUSED, SHARES), index);
    index -= FUSED_UNITS;
    if (index < OUTPUT_UNITS) return residual_unit(layer.output, QUERIES, index);
    index -= OUTPUT_UNITS;
    if (index < WIDE_UNITS) return wide_unit(layer.wide, index);
    return residual_unit(layer.down, WIDE, index - WIDE_UNITS);
}

// By all threads, once.
DEVICE void prepare(Ring& ring, const Layer* layers) {
    if (thread_index() == 0) {
        for (int slot = 0; slot < RING; slot++) {
            prepare_barrier(ring.filled + slot, 1);
            prepare_barrier(ring.emptied + slot, WARPS);
        }
        barriers_prepared();
    }
    for (int index = thread_index(); index < UNITS; index += ALL_THREADS)
        ring.list[index] = unit_at(layers, index);
    barrier(0, ALL_THREADS);
}

// Asks for the unit `ahead` to come into a slot that is empty, and goes on by `steps` units.
DEVICE void bring(Ring& ring, int slot, int steps, const u16* const* heads, u64 policy) {
    int lane = thread_index() % LANES;
    if (lane == 0) arrive_expecting(ring.filled + slot, TALL * CHUNK * 2);
    warp_barrier();
    if (lane < TALL) {
        u64 source = row_of(ring.list[ring.ahead], lane);
        if (ring.ahead >= LAYERS * LAYER_UNITS) source += reinterpret_cast<u64>(heads[ring.pass]);
        copy_in(ring.units + slot * UNIT + lane * PITCH, reinterpret_cast<const void*>(source),
                CHUNK * 2, ring.filled + slot, policy);
    }
    ring.ahead += steps;
    int end = BATCH && ring.pass < 0 ? LAYERS * LAYER_UNITS : UNITS;
    if (ring.ahead >= end) ring.ahead -= end, ring.pass++;
}

// All weights of a frame, by a warp of its own, but only a few units at a time: more would not come
// sooner, and what the programs tell each other would wait behind it.
DEVICE void bring_all(Ring ring, const u16* const* heads) {
    Ring before = ring;  // PACE units behind
    u64 policy = streaming_policy();
    ring.ahead = 0;
    for (int number = 0; number < ALL_UNITS; number++) {
        if (number >= PACE) {
            wait_for(ring.filled + before.slot, before.turn);
            before.next();
        }
        wait_for(ring.emptied + ring.slot, ring.turn ^ 1);
        bring(ring, ring.slot, 1, heads, policy);
        ring.next();
    }
}

// Or by the warps that compute, each of which has a slot: what it holds first, and then, when
// `count` units were taken from the slot `own` before it on, what comes after them.
DEVICE void begin_own(Ring& ring, const u16* const* heads) {
    int warp = thread_index() / LANES;
    ring.ahead = warp;
    if (warp < RING) bring(ring, warp, RING, heads, streaming_policy());
}
DEVICE void refill_own(Ring& ring, int first, int count, const u16* const* heads) {
    int warp = thread_index() / LANES, own = warp < first ? warp + RING - first : warp - first;
    if (warp >= RING || own >= count || ring.pass >= PASSES) return;
    wait_for(ring.emptied + warp, ring.refills++ & 1);
    bring(ring, warp, RING, heads, streaming_policy());
}

// Or by the warps that compute, each of which has a slot: of a stream, what comes RING units after
// the unit that was taken before this one. Everybody else is likely to have taken that, too.
DEVICE void refill_last(Ring& ring) {
    int warp = thread_index() / LANES, slot = ring.slot ? ring.slot - 1 : RING - 1;
    bool due = warp == slot && ring.taken > 0 && ring.taken + RING - 1 < UNITS;
    ring.taken++;
    if (!due) return;
    wait_for(ring.emptied + slot, ring.slot ? ring.turn : ring.turn ^ 1);
    bring(ring, slot, RING, nullptr, streaming_policy());
}

// This lane's part of sixty-four inputs of a row: two times eight that follow each other, or four
// times four.
DEVICE void load_row(const u8* place, u32 (&found)[8]) {
    int lane = thread_index() % LANES;
    if (FEW || BATCH) {
        Quad low = *reinterpret_cast<const Quad*>(place + lane % 4 * 16);
        Quad high = *reinterpret_cast<const Quad*>(place + lane % 4 * 16 + 64);
        found[0] = low.x, found[1] = low.y, found[2] = low.z, found[3] = low.w;
        found[4] = high.x, found[5] = high.y, found[6] = high.z, found[7] = high.w;
    } else {
        UNROLL for (int piece = 0; piece < 4; piece++) {
            Pair pair = *reinterpret_cast<const Pair*>(place + lane % 4 * 8 + 32 * piece);
            found[2 * piece] = pair.x, found[2 * piece + 1] = pair.y;
        }
    }
}
