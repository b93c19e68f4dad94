// A residual unit of the codec, y = x + point(snake(wide(active))), whose hidden values never leave
// the registers; or, without a POINT, a convolution, y = wide(active). `wide` is a causal
// convolution. The results are y and snake(y).
//
// Programs stay resident and process tiles of STEPS steps of a row. Two groups of threads compute,
// half a tile each; a third group loads the next tile, with the steps before it that its first ones
// need, and the weights. Each tap uses the same matrix, beginning at another row, so a step is read
// once for all taps. Weights are loaded in pieces through a ring; where the ring holds all of them,
// they are loaded once.
//
// Results of a thread are scattered over the columns of a product. The weights' columns are
// ordered so that these are eight adjacent channels (see `unit_weights`).
constexpr int COPIERS = 96;  // threads that load steps

#include <codec_tiles.cuh>

struct Arguments {
    const u16* x;          // [rows, steps, OUTPUTS], with a POINT
    const u16* active;     // [rows, steps, INPUTS]
    const u16* weights;    // [PIECES, DEPTH / 8, OUTPUTS, 8]
    const float* numbers;  // [KINDS, OUTPUTS]: bias, rate and gain of each product
    u16* raw;              // [rows, steps, OUTPUTS], or none
    u16* activated;        // [rows, steps, OUTPUTS]
    State state;           // (TAPS - 1) * dilation steps
    int rows;
    int steps;
    int dilation;
};

constexpr int GROUPS = 2;                        // that compute
constexpr int STEPS = GROUPS * TILE_ROWS;        // of a tile
constexpr int MOST_PAST = TAPS == 7 ? 6 * 9 : TAPS - 1;
constexpr int PITCH = (STEPS + MOST_PAST) / 2 * 2 + 1;  // odd: chunks lie in different banks
constexpr int CHUNKS = INPUTS / 8;
constexpr int BLOCKS = OUTPUTS / TILE_COLUMNS;   // of columns
constexpr int PARTS = INPUTS / DEPTH;            // of the inputs of a tap
constexpr int PIECES = (TAPS + POINT) * PARTS;   // the last ones are the point's
constexpr int KINDS = POINT ? 6 : 3;             // of numbers: bias, rate and gain of each product
constexpr bool STAY = RING >= PIECES;            // weights are read once
constexpr int BUFFERS = 2;
static_assert(OUTPUTS % TILE_COLUMNS == 0 && INPUTS % DEPTH == 0, "whole tiles");
static_assert(!POINT || INPUTS == OUTPUTS, "x is added");
static_assert(DEPTH % TILE_DEPTH == 0, "whole products");
static_assert(RING >= PARTS, "the point's weights are there at once");

constexpr int COMPUTING = GROUPS * GROUP_THREADS;
constexpr int ALL = COMPUTING + 32 + COPIERS;

struct alignas(128) Memory {
    u16 weights[RING][DEPTH / 8][OUTPUTS][8];
    u16 tiles[BUFFERS][CHUNKS][PITCH][8];
    alignas(16) float numbers[KINDS][OUTPUTS];
    Barriers<RING> weights_barriers;
    Barriers<BUFFERS> tiles_barriers;
};

CONSTANT(threads, ALL)
CONSTANT(shared_bytes, sizeof(Memory))
CONSTANT(tile_steps, STEPS)

struct Tile {
    int row, first;  // step
};

DEVICE Tile tile_of(const Arguments& given, int number) {
    int tiles = given.steps / STEPS;
    return {number / tiles, number % tiles * STEPS};
}

DEVICE void bring_tiles(const Arguments& given, Memory& memory, int all, int copier) {
    Place<BUFFERS> place;
    for (int number = program_index(); number < all; number += program_count(), place.next()) {
        Tile tile = tile_of(given, number);
        Steps<INPUTS> steps(given.active, given.state, tile.row, given.steps,
                              (TAPS - 1) * given.dilation);
        wait_for(&memory.tiles_barriers.used[place.at], place.round ^ 1);
        steps.copy<STEPS>(memory.tiles[place.at], tile.first, 0, copier, true);
        pieces_there();
        arrive(&memory.tiles_barriers.there[place.at]);
    }
}

DEVICE u64 weights_at(const Memory& memory, int slot) {
    return matrix(memory.weights[slot], OUTPUTS);
}

// Multiplies one piece of a tap: sums += the tile's rows from `rows` on, over DEPTH inputs.
DEVICE void multiply_piece(float (&sums)[BLOCKS][TILE_HELD], u64 rows, u64 weights) {
    UNROLL for (int depth = 0; depth < DEPTH / TILE_DEPTH; depth++)
        UNROLL for (int block = 0; block < BLOCKS; block++)
            multiply_tile(sums[block], from_row(rows, depth * 2 * PITCH),
                          from_row(weights, depth * 2 * OUTPUTS + block * TILE_COLUMNS));
}

DEVICE void convolve(const Arguments& given, Memory& memory, u64 tile, Place<RING>& place,
                     float (&sums)[BLOCKS][TILE_HELD]) {
    UNROLL for (int block = 0; block < BLOCKS; block++)
        UNROLL for (int i = 0; i < TILE_HELD; i++) sums[block][i] = 0.0f;
    int before = -1;
    NO_UNROLL for (int tap = 0; tap < TAPS; tap++)
        UNROLL for (int part = 0; part < PARTS; part++) {
            wait_for(&memory.weights_barriers.there[place.at], place.round);
            products_begin();
            u64 rows = from_row(tile, tap * given.dilation + part * (DEPTH / 8) * PITCH);
            multiply_piece(sums, rows, weights_at(memory, place.at));
            products_asked();
            if (!STAY) {
                products_done<1>();
                if (before >= 0) release(&memory.weights_barriers.used[before]);
                before = place.at;
            }
            place.next();
        }
    products_done<0>();
    if (!STAY) release(&memory.weights_barriers.used[before]);
}

// Eight channels from `first` on, of one kind of the numbers.
struct Eight {
    float of[8];
};
DEVICE Eight eight(const Memory& memory, int kind, int first) {
    const float* from = &memory.numbers[kind][first];
    Eight found;
    UNROLL for (int i = 0; i < 8; i++) found.of[i] = from[i];
    return found;
}

// The sums of a thread, activated, in the layout of the point's left matrix.
DEVICE void activate(const Memory& memory, float (&sums)[BLOCKS][TILE_HELD],
                     u32 (&hidden)[BLOCKS][TILE_HELD / 2]) {
    int own = thread_index() % 4 * 8;
    UNROLL for (int block = 0; block < BLOCKS; block++)
        UNROLL for (int third = 0; third < 3; third++) {
            int first = block * TILE_COLUMNS + third * 32 + own;
            Eight bias = eight(memory, 0, first), rate = eight(memory, 1, first),
                  gain = eight(memory, 2, first);
            UNROLL for (int i = 0; i < 16; i += 2) {  // pairs: of one row, of the other
                int channel = i / 4 * 2, at = third * 16 + i;
                float low = sums[block][at] + bias.of[channel];
                float high = sums[block][at + 1] + bias.of[channel + 1];
                hidden[block][at / 2] =
                    narrow(snake(low, rate.of[channel], gain.of[channel]),
                           snake(high, rate.of[channel + 1], gain.of[channel + 1]));
            }
        }
}

// The values of x at a thread's results: loaded long before they are added, since memory is slow.
struct Residual {
    Quad of[3][2];
};
DEVICE Residual residual_of(const Arguments& given, i64 offset, int block) {
    Residual found;
    UNROLL for (int third = 0; third < 3; third++)
        UNROLL for (int half = 0; half < 2; half++)
            found.of[third][half] = *reinterpret_cast<const Quad*>(
                given.x + offset + half * 8 * OUTPUTS + block * TILE_COLUMNS + third * 32 +
                thread_index() % 4 * 8);
    return found;
}

// Adds bias and x to one block of the point's columns, and writes it.
DEVICE void write(const Arguments& given, const Memory& memory, float (&sums)[TILE_HELD],
                  const Residual& residual, i64 offset, int block) {
    int own = thread_index() % 4 * 8;
    UNROLL for (int third = 0; third < 3; third++) {
        int first = block * TILE_COLUMNS + third * 32 + own;
        Eight bias = eight(memory, KINDS - 3, first), rate = eight(memory, KINDS - 2, first),
              gain = eight(memory, KINDS - 1, first);
        UNROLL for (int half = 0; half < 2; half++) {
            Quad x = {0, 0, 0, 0};
            if (POINT) x = residual.of[third][half];
            u32 added[4] = {x.x, x.y, x.z, x.w}, raw[4], active[4];
            UNROLL for (int pair = 0; pair < 4; pair++) {
                const float* sum = &sums[third * 16 + pair * 4 + half * 2];
                float low = sum[0] + bias.of[2 * pair] + wide_low(added[pair]);
                float high = sum[1] + bias.of[2 * pair + 1] + wide_high(added[pair]);
                raw[pair] = narrow(low, high);
                active[pair] = narrow(snake(low, rate.of[2 * pair], gain.of[2 * pair]),
                                      snake(high, rate.of[2 * pair + 1], gain.of[2 * pair + 1]));
            }
            i64 at = offset + half * 8 * OUTPUTS + first;
            if (given.raw)
                *reinterpret_cast<Quad*>(given.raw + at) = {raw[0], raw[1], raw[2], raw[3]};
            *reinterpret_cast<Quad*>(given.activated + at) = {active[0], active[1], active[2],
                                                               active[3]};
        }
    }
}

// The point's product and the unit's results, one block of columns at a time: all of them would
// not fit into registers. `residual` is that of the first block.
DEVICE void finish(const Arguments& given, Memory& memory,
                   const u32 (&hidden)[BLOCKS][TILE_HELD / 2], Residual residual,
                   Place<RING>& place, i64 offset) {
    int pieces[PARTS];
    UNROLL for (int part = 0; part < PARTS; part++, place.next()) {
        wait_for(&memory.weights_barriers.there[place.at], place.round);
        pieces[part] = place.at;
    }
    UNROLL for (int block = 0; block < BLOCKS; block++) {
        float sums[TILE_HELD];
        UNROLL for (int i = 0; i < TILE_HELD; i++) sums[i] = 0.0f;
        products_begin();
        UNROLL for (int chunk = 0; chunk < INPUTS / TILE_DEPTH; chunk++) {
            const u32* left = &hidden[chunk / 6][chunk % 6 * 4];
            u64 weights = weights_at(memory, pieces[chunk * TILE_DEPTH / DEPTH]);
            multiply_tile(sums, left[0], left[1], left[2], left[3],
                          from_row(weights, chunk * TILE_DEPTH % DEPTH / 8 * OUTPUTS +
                                                block * TILE_COLUMNS));
        }
        products_asked();
        Residual next = residual;
        if (block + 1 < BLOCKS) next = residual_of(given, offset, block + 1);
        products_done<0>();
        if (!STAY && block + 1 == BLOCKS) {
            UNROLL for (int part = 0; part < PARTS; part++)
                release(&memory.weights_barriers.used[pieces[part]]);
        }
        write(given, memory, sums, residual, offset, block);
        residual = next;
    }
}

DEVICE void compute(const Arguments& given, Memory& memory, int all) {
    int group = thread_index() / GROUP_THREADS, thread = thread_index() % GROUP_THREADS;
    int own = group * TILE_ROWS + thread / 32 * 16 + thread % 32 / 4;  // step of a tile
    Place<RING> place;
    Place<BUFFERS> buffer;
    for (int number = program_index(); number < all; number += program_count(), buffer.next()) {
        Tile tile = tile_of(given, number);
        if (STAY) place = Place<RING>();
        wait_for(&memory.tiles_barriers.there[buffer.at], buffer.round);
        i64 offset = (i64(tile.row) * given.steps + tile.first + own) * OUTPUTS;
        Residual residual;
        if (POINT) residual = residual_of(given, offset, 0);
        float sums[BLOCKS][TILE_HELD];
        u64 rows = from_row(matrix(memory.tiles[buffer.at], PITCH), group * TILE_ROWS);
        convolve(given, memory, rows, place, sums);
        release(&memory.tiles_barriers.used[buffer.at]);
        if (POINT) {
            u32 hidden[BLOCKS][TILE_HELD / 2];
            activate(memory, sums, hidden);
            finish(given, memory, hidden, residual, place, offset);
        } else {
            UNROLL for (int block = 0; block < BLOCKS; block++)
                write(given, memory, sums[block], residual, offset, block);
        }
    }
}

KERNEL(ALL) codec_unit(const Arguments given) {
    Memory& memory = *reinterpret_cast<Memory*>(shared_memory());
    int thread = thread_index(), all = given.rows * (given.steps / STEPS);
    int own = all > program_index() ? (all - 1 - program_index()) / program_count() + 1 : 0;
    float* numbers = &memory.numbers[0][0];
    for (int i = thread; i < KINDS * OUTPUTS; i += ALL) numbers[i] = given.numbers[i];
    if (thread == 0) {
        memory.weights_barriers.prepare(1, GROUPS * 4);
        memory.tiles_barriers.prepare(COPIERS, GROUPS * 4);
        barriers_prepared();
    }
    barrier(0, ALL);
    int copier = thread - COMPUTING;
    if (copier >= 0) {
        give_registers<56>();
        if (copier >= 32)
            bring_tiles(given, memory, all, copier - 32);
        else if (copier == 0)
            bring_weights(memory.weights, memory.weights_barriers, given.weights, PIECES,
                          STAY ? 1 : own);
    } else {
        take_registers<224>();
        compute(given, memory, all);
    }
}
