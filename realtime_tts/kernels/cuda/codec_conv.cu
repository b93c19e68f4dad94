// A causal convolution of the codec with 160 new steps a row or a multiple, followed by SnakeBeta.
//
// A program makes PART outputs of STRIP_COLUMNS steps. Outputs are the rows of a product and steps
// its columns, so that nothing is padded. Three groups of threads compute, 64 outputs each; a
// fourth loads DEPTH inputs at a time, with the steps before, and their weights of all taps. Each
// tap uses the same matrix, beginning at another step.
constexpr int COPIERS = 96;  // threads that load steps

#include <codec_tiles.cuh>

struct Arguments {
    const u16* x;          // [rows, steps, INPUTS]
    const u16* weights;    // [OUTPUTS / PART, INPUTS / DEPTH, TAPS, DEPTH / 8, PART, 8]
    const float* numbers;  // [3, OUTPUTS]: bias, and SnakeBeta's rate and gain
    u16* activated;        // [rows, steps, OUTPUTS]
    State state;           // (TAPS - 1) * dilation steps
    int rows;
    int steps;
    int dilation;
};

constexpr int DEPTH = 64;
constexpr int GROUPS = 3;                    // that compute
constexpr int PART = GROUPS * TILE_ROWS;     // outputs of a program
constexpr int PARTS = OUTPUTS / PART;
constexpr int STEPS = STRIP_COLUMNS;
constexpr int MOST_PAST = TAPS == 7 ? 6 * 9 : TAPS - 1;
constexpr int PITCH = (STEPS + MOST_PAST) / 2 * 2 + 1;  // odd: chunks lie in different banks
constexpr int CHUNKS = DEPTH / 8;
constexpr int ROUNDS = INPUTS / DEPTH;
constexpr int BUFFERS = 2;
static_assert(OUTPUTS % PART == 0 && INPUTS % DEPTH == 0, "whole parts");

constexpr int COMPUTING = GROUPS * GROUP_THREADS;
constexpr int ALL = COMPUTING + GROUP_THREADS;
constexpr int COLUMN = PART * 2 + 16;        // bytes of a step in the staging memory

struct Loading {
    u16 weights[RING][CHUNKS][PART][8];
    u16 tiles[BUFFERS][CHUNKS][PITCH][8];
};
struct alignas(128) Memory {
    union {
        Loading loading;
        u8 activated[STEPS][COLUMN];
    };
    Barriers<RING> weights_barriers;
    Barriers<BUFFERS> tiles_barriers;
};

CONSTANT(threads, ALL)
CONSTANT(shared_bytes, sizeof(Memory))
CONSTANT(tile_steps, STEPS)

struct Work {
    int row, first, part;  // first: step
};

DEVICE Work work_of(const Arguments& given, int number) {
    int tiles = given.steps / STEPS, tile = number / PARTS;
    return {tile / tiles, tile % tiles * STEPS, number % PARTS};
}

constexpr int PIECES = ROUNDS * TAPS;

DEVICE void bring_tiles(const Arguments& given, Memory& memory, Work work, int copier) {
    Steps<INPUTS> steps(given.x, given.state, work.row, given.steps, (TAPS - 1) * given.dilation);
    Place<BUFFERS> place;
    for (int depth = 0; depth < INPUTS; depth += DEPTH, place.next()) {
        wait_for(&memory.tiles_barriers.used[place.at], place.round ^ 1);
        steps.copy<STEPS>(memory.loading.tiles[place.at], work.first, depth, copier,
                          work.part == 0);
        pieces_there();
        arrive(&memory.tiles_barriers.there[place.at]);
    }
}

DEVICE void convolve(const Arguments& given, Memory& memory, float (&sums)[STRIP_HELD]) {
    int own = thread_index() / GROUP_THREADS * TILE_ROWS;
    UNROLL for (int i = 0; i < STRIP_HELD; i++) sums[i] = 0.0f;
    int before = -1;
    Place<RING> place;
    Place<BUFFERS> buffer;
    NO_UNROLL for (int round = 0; round < ROUNDS; round++, buffer.next()) {
        wait_for(&memory.tiles_barriers.there[buffer.at], buffer.round);
        u64 tile = matrix(memory.loading.tiles[buffer.at], PITCH);
        NO_UNROLL for (int tap = 0; tap < TAPS; tap++, place.next()) {
            wait_for(&memory.weights_barriers.there[place.at], place.round);
            products_begin();
            u64 left = from_row(matrix(memory.loading.weights[place.at], PART), own);
            u64 right = from_row(tile, tap * given.dilation);
            UNROLL for (int depth = 0; depth < DEPTH / TILE_DEPTH; depth++)
                multiply_strip(sums, from_row(left, depth * 2 * PART),
                               from_row(right, depth * 2 * PITCH));
            products_asked();
            products_done<1>();
            if (before >= 0) release(&memory.weights_barriers.used[before]);
            before = place.at;
        }
        products_done<0>();
        release(&memory.tiles_barriers.used[buffer.at]);
    }
    release(&memory.weights_barriers.used[before]);
}

// Writes results with bias and activation to the staging memory.
DEVICE void finish(const Arguments& given, Memory& memory, float (&sums)[STRIP_HELD], int part) {
    int warp = thread_index() / 32, lane = thread_index() % 32;
    float bias[2], rate[2], gain[2];
    UNROLL for (int half = 0; half < 2; half++) {
        const float* own = given.numbers + part * PART + warp * 16 + half * 8 + lane / 4;
        bias[half] = own[0], rate[half] = own[OUTPUTS], gain[half] = own[2 * OUTPUTS];
    }
    UNROLL for (int step = 0; step < STEPS; step += 16) {
        u32 pairs[4];
        UNROLL for (int i = 0; i < 4; i++) {
            int half = i % 2;
            const float* sum = &sums[step / 2 + 2 * i];
            pairs[i] = narrow(snake(sum[0] + bias[half], rate[half], gain[half]),
                              snake(sum[1] + bias[half], rate[half], gain[half]));
        }
        store_columns(&memory.activated[step][warp * 32], COLUMN, pairs);
    }
}

constexpr int PIECES_OF_A_STEP = PART / 8;

DEVICE void write(const Arguments& given, const Memory& memory, Work work) {
    u16* target = given.activated +
                  (i64(work.row) * given.steps + work.first) * OUTPUTS + work.part * PART;
    for (int i = thread_index(); i < STEPS * PIECES_OF_A_STEP; i += COMPUTING) {
        int step = i / PIECES_OF_A_STEP, piece = i % PIECES_OF_A_STEP;
        *reinterpret_cast<Quad*>(target + i64(step) * OUTPUTS + piece * 8) =
            *reinterpret_cast<const Quad*>(&memory.activated[step][piece * 16]);
    }
}

constexpr int STAGED = 1;  // a barrier

DEVICE void compute(const Arguments& given, Memory& memory, Work work) {
    float sums[STRIP_HELD];
    convolve(given, memory, sums);
    barrier(STAGED, COMPUTING);  // the loaded data have been read by all
    finish(given, memory, sums, work.part);
    barrier(STAGED, COMPUTING);
    write(given, memory, work);
}

KERNEL(ALL) codec_conv(const Arguments given) {
    Memory& memory = *reinterpret_cast<Memory*>(shared_memory());
    Work work = work_of(given, program_index());
    int thread = thread_index(), copier = thread - COMPUTING;
    if (thread == 0) {
        memory.weights_barriers.prepare(1, GROUPS * 4);
        memory.tiles_barriers.prepare(COPIERS, GROUPS * 4);
        barriers_prepared();
    }
    barrier(0, ALL);
    if (copier < 0)
        compute(given, memory, work);
    else if (copier >= 32)
        bring_tiles(given, memory, work, copier - 32);
    else if (copier == 0)
        bring_weights(memory.loading.weights, memory.weights_barriers,
                      given.weights + i64(work.part) * PIECES * DEPTH * PART, PIECES, 1);
}
