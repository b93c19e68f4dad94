// A position of the talker for up to eight rows: all layers and the last norm, in one launch.
//
// Programs stay resident and pass from phase to phase, as in predictor_frame.cu, and exchange
// results in the same way: by words that carry the number of their round. A layer has five phases:
// input norm and the product of queries, keys and values; attention; its product; output norm, gate
// and up, SwiGLU; the last product. The differences: a layer's weights are 100 MB, so the launch
// takes as long as reading them, and products use them as they arrive (stream.cuh); and a row
// attends to all pages of its slot (attend_pages.cuh).
#include <attend_pages.cuh>
#include <stream.cuh>

struct Arguments {
    const Layer* layers;   // [LAYERS]
    const u16* norm;       // [HIDDEN]: after the last layer
    const float* cos;      // [positions, DIM]
    const float* sin;
    const u16* x;          // [rows, HIDDEN]
    u16* out;              // [rows, HIDDEN]
    u16* pages;            // [LAYERS, pages, 2, KEYS, LENGTH, DIM]
    const int* tables;     // [slots + 1, table_stride]
    const i64* slots;      // [rows]
    const i64* positions;  // [rows]
    u64* words;            // [ROWS, ROW_WORDS]
    u64* partials;         // [PROGRAMS, PARTIAL_WORDS]
    u32* rounds;           // number of rounds so far
    u16* queries;          // [LAYERS, ROWS, HEADS, DIM]: of layers that are watched
    u64 watched;           // a bit each
    i64 layer_stride;      // of pages
    int table_stride;
    int rows;
    float eps;
};

constexpr int COLUMNS = groups(HIDDEN) * TALL;  // of a row, that each program has
constexpr int HIDDEN_PARTS = chunks(HIDDEN) * SPAN;  // of what a thread has
constexpr int BLOCK = FEW && HIDDEN_PARTS % 4 == 0 ? 4 : 2;  // parts that it loads at once
static_assert(HIDDEN_PARTS % BLOCK == 0 && BLOCK % SPAN == 0, "whole blocks");
constexpr int MOST_TILES = larger(groups(FUSED), 2 * groups(WIDE));

struct alignas(16) Memory {
    union {  // warps meet between the one and the other
        float sums[WARPS][MOST_TILES * TILE];
        WarpSums attended;
    };
    float plain_sums[WARPS][groups(HIDDEN) * TILE];
    New made;
    Item item;
    Layer layers[LAYERS];
    Squares squares;
    float residual[MOST_ROWS][COLUMNS];
    alignas(16) u16 staged[WARPS][MOST_FEW][STAGE];
};

constexpr int RING_AT = (sizeof(Memory) + 127) / 128 * 128;
// Constants that the launcher reads.
CONSTANT(threads, ALL_THREADS)
CONSTANT(shared_bytes, RING_AT + RING_BYTES)
CONSTANT(row_words, ROW_WORDS)
CONSTANT(partial_words, PARTIAL_WORDS)
static_assert(ROWS == EIGHT, "one tile of rows");

// What all phases of a thread share.
struct Here {
    const Arguments& given;
    Memory& memory;
    Ring ring;
    u32 round;  // of this layer
};

DEVICE void from_words(const Here& here, int from, int part, u32 round, u32 (&inputs)[BLOCK][HELD]) {
    int first = from + part / SPAN * (CHUNK / 2);
    inputs_of(here.given.words, first, round, 0, here.given.rows, BLOCK, inputs);
}

// All rows' inputs, some parts at a time.
template <int PARTS>
DEVICE void receive_all(const Here& here, int from, u32 round, u32 (&inputs)[PARTS][HELD]) {
    UNROLL for (int part = 0; part < PARTS; part += BLOCK) {
        u32 found[BLOCK][HELD];
        from_words(here, from, part, round, found);
        UNROLL for (int i = 0; i < BLOCK; i++) UNROLL for (int j = 0; j < HELD; j++)
            inputs[part + i][j] = found[i][j];
    }
}

// All rows' inputs of a layer's beginning or end, after a norm. Those of the first layer are given.
template <int PARTS>
DEVICE void normed_inputs(Here& here, const u16* norm, int from, u32 round, bool begins,
                          u32 (&inputs)[PARTS][HELD]) {
    u32 gains[PARTS][HELD];
    load_gains(norm, gains);
    if (begins)
        load_inputs(here.given.x, here.given.rows, inputs);
    else
        receive_all(here, from, round, inputs);
    normalise(inputs, gains, here.given.rows, here.memory.squares, here.given.eps);
}

// A norm and a product; of gate and up, where `pairs` says so, which SwiGLU joins.
DEVICE void normed_phase(Here& here, const u16* norm, int from, int to, u32 round, bool begins,
                         int tiles, bool pairs) {
    constexpr int PARTS = HIDDEN_PARTS;
    u32 columns[PARTS][8];
    Memory& memory = here.memory;
    int thread = thread_index(), warp = thread / LANES;
    {
        u32 inputs[PARTS][HELD];
        normed_inputs(here, norm, from, round, begins, inputs);
        columns_of(inputs, here.given.rows, memory.staged[warp], columns);
    }
    stream_product(here.ring, columns, tiles, memory.sums[warp]);
    int count = pairs ? tiles / 2 : tiles;
    u64* target = row_at(here.given.words, thread % MOST_ROWS) + to;
    target += program_index() * count * (TALL / 2);
    barrier(ALL, THREADS);
    NO_UNROLL for (int i = thread; i < count * TILE; i += THREADS) {
        int at = pairs ? i + i / TILE * TILE : i;
        float result = added(memory.sums, at);
        if (pairs) result *= sigmoid(result) * added(memory.sums, at + TILE);
        send_pair<MOST_ROWS>(target, i, result, here.round, thread % MOST_ROWS < here.given.rows);
    }
}

// A product whose results are added to the residual, which stays in the program that has its
// columns.
template <int PARTS> DEVICE void residual_phase(Here& here, int from, int to) {
    u32 columns[PARTS][8];
    Memory& memory = here.memory;
    int thread = thread_index(), warp = thread / LANES, rows = here.given.rows;
    UNROLL for (int part = 0; part < PARTS; part += BLOCK) {
        u32 inputs[BLOCK][HELD];
        from_words(here, from, part, here.round, inputs);
        columns_of(inputs, rows, memory.staged[warp], columns + part);
    }
    stream_product(here.ring, columns, groups(HIDDEN), memory.plain_sums[warp]);
    u64* target = row_at(here.given.words, thread % MOST_ROWS) + to + program_index() * (COLUMNS / 2);
    barrier(ALL, THREADS);
    NO_UNROLL for (int i = thread; i < groups(HIDDEN) * TILE; i += THREADS) {
        float& residual = memory.residual[i % MOST_ROWS][i / MOST_ROWS];
        residual = wide_low(narrow(residual + added(memory.plain_sums, i), 0));
        send_pair<MOST_ROWS>(target, i, residual, here.round, thread % MOST_ROWS < rows);
    }
}

// Prepares the memory that a program's threads share, before the first layer. The launch's inputs
// are this program's residual, in the columns that it has.
DEVICE void begin(Here& here) {
    const Arguments& given = here.given;
    find_item(given.tables, given.table_stride, given.slots, given.positions, given.rows,
              here.memory.item);
    if (thread_index() < LAYERS) here.memory.layers[thread_index()] = given.layers[thread_index()];
    NO_UNROLL for (int i = thread_index(); i < MOST_ROWS * COLUMNS; i += THREADS) {
        int row = i / COLUMNS, own = i % COLUMNS;
        i64 at = static_cast<i64>(row) * HIDDEN + program_index() * COLUMNS + own;
        here.memory.residual[row][own] = row < here.given.rows ? wide_low(here.given.x[at]) : 0;
    }
}

// Attention of one row's key head, or of a share of its pages.
DEVICE void attend_phase(Here& here, int index, Page& page) {
    const Arguments& given = here.given;
    const Item& item = here.memory.item;
    if (item.shares == 0) return;
    u64* words = row_at(given.words, item.row);
    bool watched = given.watched >> index & 1 && item.share == 0;
    u16* queries = given.queries + (static_cast<i64>(index) * ROWS + item.row) * QUERIES;
    attend_pages(given.pages + index * given.layer_stride, item,
                 {here.memory.layers[index].head_norm, given.cos, given.sin, given.eps},
                 watched ? queries : nullptr,
                 words + AT_FUSED, given.partials + program_index() * PARTIAL_WORDS,
                 words + AT_ATTENDED, here.round, page, here.memory.made, here.memory.attended);
}

DEVICE void make_layer(Here& here, int index) {
    const Layer& layer = here.memory.layers[index];
    bool begins = index == 0;
    u32 before = here.round++;
    Page page;
    load_first(here.given.pages + index * here.given.layer_stride, here.memory.item, page);
    normed_phase(here, layer.input_norm, AT_END, AT_FUSED, before, begins, groups(FUSED), false);
    attend_phase(here, index, page);
    residual_phase<chunks(QUERIES) * SPAN>(here, AT_ATTENDED, AT_MIDDLE);
    normed_phase(here, layer.output_norm, AT_MIDDLE, AT_WIDE, here.round, false, 2 * groups(WIDE),
                 true);
    residual_phase<chunks(WIDE) * SPAN>(here, AT_WIDE, AT_END);
}

// The last norm. Each row is written by a program of its own.
DEVICE void finish(Here& here) {
    constexpr int PARTS = HIDDEN_PARTS;
    if (program_index() >= here.given.rows) return;
    u32 inputs[PARTS][HELD];
    normed_inputs(here, here.given.norm, AT_END, here.round, false, inputs);
    u32* out = reinterpret_cast<u32*>(here.given.out) + program_index() * (HIDDEN / 2);
    UNROLL for (int i = 0; i < HELD; i++) UNROLL for (int part = 0; part < PARTS; part++) {
        int row = FEW ? i : thread_index() % LANES / 4;
        if (row == program_index()) out[part_at(part) + held_at(i)] = inputs[part][i];
    }
}

KERNEL(ALL_THREADS) talker_step(const Arguments given) {
    u8* bytes = shared_memory();
    Memory& memory = *reinterpret_cast<Memory*>(bytes);
    Here here = {given, memory, ring_at(bytes + RING_AT), *given.rounds};
    prepare(here.ring, given.layers);
    if (!ASKER) begin_own(here.ring, nullptr);
    if (thread_index() >= THREADS) {
        bring_all(here.ring, nullptr);
        return;
    }
    begin(here);
    barrier(ALL, THREADS);
    NO_UNROLL for (int index = 0; index < LAYERS; index++) make_layer(here, index);
    finish(here);
    if (program_index() == 0 && thread_index() == 0) *given.rounds = here.round;
}
