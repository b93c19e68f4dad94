// A frame of the code predictor for many rows: all its passes, and the draws between them, in one
// launch, as predictor_frame.cu does it for a few.
//
// The differences follow from the number of rows. Each program reads the inputs of all rows in each
// phase, and these are more bytes than its weights. So results are plain numbers instead of words,
// each of which has the number of its round, and programs count together how many have finished a
// phase. Programs wait for all others between two phases, so data that a phase reads may be
// overwritten in the next. The norm's scale of a row is computed beside the product and multiplies
// its results. The first two positions are passes of their own.
#include <attend_row.cuh>
#include <frame.cuh>
#include <tiles.cuh>

constexpr int HIDDEN_PARTS = chunks(HIDDEN) * SPAN, QUERY_PARTS = chunks(QUERIES) * SPAN;
constexpr int WIDE_PARTS = chunks(WIDE) * SPAN, MOST_PARTS = larger(QUERY_PARTS, WIDE_PARTS);
constexpr int COLUMNS = RESIDUAL_GROUPS * TALL;  // of a residual, that each program has
static_assert(HIDDEN_PARTS / SPAN * TOGETHER <= RING, "what is multiplied together is there together");

struct alignas(16) Memory {
    Found found[larger(TOGETHER, RESIDUAL_GROUPS)];
    float squares[SHARE_ROWS][WARPS];
    float residual[RESIDUAL_ROWS][COLUMNS];
    Drawing drawing;
    New made[WARPS];
};

constexpr int LINE = 32;  // words of a line of the cache, in which programs count stages
constexpr int RING_AT = (sizeof(Memory) + 127) / 128 * 128;
// Constants that the launcher reads.
CONSTANT(threads, ALL_THREADS)
CONSTANT(shared_bytes, RING_AT + RING_BYTES)
CONSTANT(words, (LINE + ROWS * ROW_WORDS) / 2)

// What all phases of a thread share.
struct Here {
    const Arguments& given;
    Memory& memory;
    Ring ring;
    Stages stages;
    u32* rows;    // [ROWS, ROW_WORDS]
    Share share, residual_share;
    int slot = 0, taken = 0;  // from where on how many units were taken and not refilled
};

// Loads the units that come after those that were taken. Not before a stage is finished: what a
// program has written is not known to be there before its loads are.
DEVICE void refill(Here& here) {
    if (!ASKER && here.taken) refill_own(here.ring, here.slot, here.taken, here.given.heads);
    here.slot = here.ring.slot, here.taken = 0;
}

DEVICE u32* row_of(const Here& here, int row) {
    return here.rows + static_cast<i64>(row) * ROW_WORDS;
}

// A norm and a product: where its inputs come from and its results go.
struct Route {
    const u16* norm;
    Rows inputs;
    int to;       // place in a row
    int tiles;    // sixteens of rows of weights
    bool pairs;   // of gate and up, which SwiGLU joins
};

DEVICE void load_gains(const u16* norm, u32 (&gains)[HIDDEN_PARTS][8]) {
    UNROLL for (int part = 0; part < HIDDEN_PARTS; part++) {
        const u32* place = reinterpret_cast<const u32*>(norm) + part_at(part);
        load_row(reinterpret_cast<const u8*>(place), gains[part]);
    }
}

// Of every product after a norm, a thread sends results of the same row.
constexpr int EIGHTS = SHARE_ROWS / EIGHT;
static_assert(WARPS % EIGHTS == 0, "a warp has the same rows of each tile");
DEVICE int sent_row() {
    return thread_index() / LANES % EIGHTS * EIGHT + thread_index() % EIGHT;
}
DEVICE float scale_of(const Here& here) {
    float square = 0;
    UNROLL for (int warp = 0; warp < WARPS; warp++) square += here.memory.squares[sent_row()][warp];
    return inverse_root(square / HIDDEN + here.given.eps);
}

// Results of sixteen rows of weights, four of a row by each thread.
DEVICE void send_normed(Here& here, const Route& route, int tile, float scale, const Found& found) {
    int row = sent_row(), quarter = thread_index() % LANES / EIGHT, width = route.pairs ? 4 : 8;
    float sums[4];
    added(found, row, quarter * 4, sums);
    UNROLL for (int i = 0; i < 4; i++) sums[i] *= scale;
    u32* target = row_of(here, here.share.first + row) + route.to +
                  (here.share.group * route.tiles + tile) * width;
    Pair rounded = narrowed(sums);
    if (route.pairs) {
        widen(rounded, sums);
        target[quarter] = narrow(sums[0] * sigmoid(sums[0]) * sums[1],
                                 sums[2] * sigmoid(sums[2]) * sums[3]);
    } else {
        reinterpret_cast<Pair*>(target)[quarter] = rounded;
    }
}

// Results of `count` tiles from `first` on.
DEVICE void send_all_normed(Here& here, const Route& route, int first, int count, float scale) {
    if (sent_row() >= here.share.live) return;
    NO_UNROLL for (int own = thread_index() / LANES / EIGHTS; own < count; own += WARPS / EIGHTS)
        send_normed(here, route, first + own, scale, here.memory.found[own]);
}

// Multiplies `count` tiles of weights by all inputs, at most TOGETHER of them: between two barriers,
// more tiles take little longer than one.
DEVICE void multiply_tiles(Here& here, const u32 (&inputs)[HIDDEN_PARTS][TILES][8], int count,
                           float (&found)[TOGETHER][TILES][4]) {
    UNROLL for (int own = 0; own < TOGETHER; own++) {
        UNROLL for (int tile = 0; tile < TILES; tile++) UNROLL for (int i = 0; i < 4; i++)
            found[own][tile][i] = 0;
        if (own >= count) break;
        UNROLL for (int part = 0; part < HIDDEN_PARTS; part++) {
            if (part % SPAN == 0) wait_for(here.ring.filled + here.ring.slot, here.ring.turn);
            multiply_part(weights_at(here.ring, part % SPAN), inputs[part], found[own]);
            if (part % SPAN == SPAN - 1) leave_unit(here.ring);
        }
    }
}

DEVICE void normed_phase(Here& here, const Route& route) {
    u32 gains[HIDDEN_PARTS][8], inputs[HIDDEN_PARTS][TILES][8];
    load_gains(route.norm, gains);
    wait_for_all(here.stages);
    Rows rows = route.inputs;
    rows.first += static_cast<i64>(here.share.first) * rows.stride;
    load_parts(rows, here.share.live, 0, inputs);
    add_squares(inputs, here.memory.squares);
    refill(here);
    UNROLL for (int part = 0; part < HIDDEN_PARTS; part++)
        UNROLL for (int tile = 0; tile < TILES; tile++) UNROLL for (int k = 0; k < 8; k++)
            inputs[part][tile][k] = multiply_pairs(inputs[part][tile][k], gains[part][k]);
    float scale = 0;
    NO_UNROLL for (int tile = 0; tile < route.tiles; tile += TOGETHER) {
        float found[TOGETHER][TILES][4];
        if (tile > 0) refill(here);
        int count = route.tiles - tile < TOGETHER ? route.tiles - tile : TOGETHER;
        here.taken = HIDDEN_PARTS / SPAN * count;
        multiply_tiles(here, inputs, count, found);
        if (tile > 0) barrier(ALL, THREADS);  // all have read what was there
        UNROLL for (int own = 0; own < TOGETHER; own++)
            if (own < count) lay_down(found[own], here.memory.found[own]);
        barrier(ALL, THREADS);
        if (tile == 0) scale = scale_of(here);
        send_all_normed(here, route, tile, count, scale);
    }
    finish_stage(here.stages);
}

// The inputs of a pass are also this program's residual, in the columns that it has.
DEVICE void begin_residual(Here& here, const Rows& rows) {
    const Share& share = here.residual_share;
    NO_UNROLL for (int i = thread_index(); i < share.live * (COLUMNS / 2); i += THREADS) {
        int row = i / (COLUMNS / 2), own = i % (COLUMNS / 2);
        const u32* place = rows.first + static_cast<i64>(share.first + row) * rows.stride;
        u32 pair = look_pair(place + share.group * (COLUMNS / 2) + own);
        here.memory.residual[row][2 * own] = wide_low(pair);
        here.memory.residual[row][2 * own + 1] = wide_high(pair);
    }
}

// Adds results to the residual, which stays with the program that has its columns.
DEVICE void send_residual(Here& here, int to, int tile, int row, const Found& found) {
    const Share& share = here.residual_share;
    int quarter = thread_index() % LANES / EIGHT, place = tile * TALL + quarter * 4;
    float sums[4], *residual = here.memory.residual[row] + place;
    added(found, row, quarter * 4, sums);
    widen(narrowed(sums), sums);
    UNROLL for (int i = 0; i < 4; i++) sums[i] += residual[i];
    Pair rounded = narrowed(sums);
    widen(rounded, sums);
    UNROLL for (int i = 0; i < 4; i++) residual[i] = sums[i];
    u32* target = row_of(here, share.first + row) + to + (share.group * COLUMNS + place) / 2;
    *reinterpret_cast<Pair*>(target) = rounded;
}
DEVICE void send_all_residual(Here& here, int to) {
    constexpr int OF_A_TILE = RESIDUAL_ROWS / EIGHT;
    int warp = thread_index() / LANES;
    NO_UNROLL for (int eight = warp; eight < RESIDUAL_GROUPS * OF_A_TILE; eight += WARPS) {
        int tile = eight / OF_A_TILE;
        int row = eight % OF_A_TILE * EIGHT + thread_index() % EIGHT;
        if (row < here.residual_share.live)
            send_residual(here, to, tile, row, here.memory.found[tile]);
    }
}

// A product of `parts` parts. Some of them are loaded while those before are multiplied.
DEVICE void residual_phase(Here& here, int parts, int from, int to) {
    constexpr int COUNT = RESIDUAL_GROUPS, TWO = 2 * SPAN;  // registers are few
    constexpr int BLOCK = QUERY_PARTS % TWO || WIDE_PARTS % TWO || COUNT > 2 ? SPAN : TWO;
    constexpr bool ONCE = MOST_PARTS / SPAN * COUNT <= RING;  // then all warps have taken all units
    const Share& share = here.residual_share;
    wait_for_all(here.stages);
    Rows rows = {row_of(here, share.first) + from, ROW_WORDS};
    u32 inputs[2][BLOCK][RESIDUAL_TILES][8];
    float found[COUNT][RESIDUAL_TILES][4] = {};
    load_parts(rows, share.live, 0, inputs[0]);
    refill(here);
    UNROLL for (int part = 0; part < MOST_PARTS; part += BLOCK) {
        if (part >= parts) break;
        if (part + BLOCK < parts)
            load_parts(rows, share.live, part + BLOCK, inputs[part / BLOCK % 2 ^ 1]);
        UNROLL for (int chunk = 0; chunk < BLOCK; chunk += SPAN)
            UNROLL for (int tile = 0; tile < COUNT; tile++) {
                wait_for(here.ring.filled + here.ring.slot, here.ring.turn);
                UNROLL for (int i = 0; i < SPAN; i++)
                    multiply_part(weights_at(here.ring, i), inputs[part / BLOCK % 2][chunk + i],
                                  found[tile]);
                leave_unit(here.ring);
            }
        here.taken += BLOCK / SPAN * COUNT;
        if (!ONCE && part + BLOCK < parts) refill(here);
    }
    UNROLL for (int tile = 0; tile < COUNT; tile++) lay_down(found[tile], here.memory.found[tile]);
    barrier(ALL, THREADS);
    send_all_residual(here, to);
    finish_stage(here.stages);
}

// Attention of each slot's key heads by a warp.
DEVICE void attend_phase(Here& here, int layer, int position) {
    const Arguments& given = here.given;
    Turning turning = {given.layers[layer].head_norm, given.cos, given.sin, given.eps};
    u16* pages = given.pages + layer * given.layer_stride;
    int item = program_index() + thread_index() / LANES * PROGRAMS, count = given.slots * KEYS;
    New& made = here.memory.made[thread_index() / LANES];
    Page page;
    if (item < count) load_page(keys_of(pages, item), position, page);
    wait_for_all(here.stages);
    refill(here);
    NO_UNROLL while (item < count) {
        u32* row = row_of(here, item / KEYS);
        attend_row(turning, position, item % KEYS, keys_of(pages, item), row + AT_FUSED,
                   row + AT_ATTENDED, page, made);
        item += PROGRAMS * WARPS;
        if (item < count) load_page(keys_of(pages, item), position, page);
    }
    finish_stage(here.stages);
}

// Draws a slot's code from its logits, and writes the inputs of the next pass.
DEVICE void draw_row(Here& here, int pass, int slot) {
    u32 bits[CODES], *row = row_of(here, slot), *kept = logits_at(here.given, pass, slot);
    int first = thread_index() * (CODES / 2);
    UNROLL for (int i = 0; i < CODES / 2; i++) {
        u32 pair = look_pair(row + AT_LOGITS + first + i);
        bits[2 * i] = pair & 0xffffu, bits[2 * i + 1] = pair >> 16;
        if (kept) kept[first + i] = pair;
    }
    const u32* next = draw_code(here.given, pass, slot, bits, here.memory.drawing);
    if (next)
        for (int i = thread_index(); i < HIDDEN / 2; i += DRAWERS * LANES) row[AT_BEGIN + i] = next[i];
    barrier(DRAWING, DRAWERS * LANES);  // the next draw writes to `drawing` at once
}

DEVICE void draw_phase(Here& here, int pass) {
    wait_for_all(here.stages);
    refill(here);
    if (thread_index() < DRAWERS * LANES)
        for (int slot = program_index(); slot < here.given.slots; slot += PROGRAMS)
            draw_row(here, pass, slot);
    if (pass + 1 < PASSES) finish_stage(here.stages);
}

// The product after a norm, in half a layer or in the head.
DEVICE Route route_of(const Here& here, int position, int half) {
    const Arguments& given = here.given;
    const Layer& layer = given.layers[half < 2 * LAYERS ? half / 2 : 0];
    Rows begin = {here.rows + AT_BEGIN, ROW_WORDS}, end = {here.rows + AT_END, ROW_WORDS};
    Rows middle = {here.rows + AT_MIDDLE, ROW_WORDS};
    if (position < 2) {
        i64 first = static_cast<i64>(position) * given.slots * (HIDDEN / 2);
        begin = {reinterpret_cast<const u32*>(given.x) + first, HIDDEN / 2};
    }
    if (half == 2 * LAYERS) return {given.norm, end, AT_LOGITS, groups(VOCAB, SHARES), false};
    if (half % 2) return {layer.output_norm, middle, AT_WIDE, groups(2 * WIDE, SHARES), true};
    return {layer.input_norm, half ? end : begin, AT_FUSED, groups(FUSED, SHARES), false};
}

// One position: two halves for each layer, and then the head, through the same code; otherwise
// programs would mostly wait for instructions. The first position has no head.
DEVICE void make_pass(Here& here, int position) {
    NO_UNROLL for (int half = 0; half < 2 * LAYERS + (position > 0); half++) {
        Route route = route_of(here, position, half);
        normed_phase(here, route);
        if (half == 2 * LAYERS) break;
        if (half == 0) begin_residual(here, route.inputs);
        bool attends = half % 2 == 0;
        if (attends) attend_phase(here, half / 2, position);
        residual_phase(here, attends ? QUERY_PARTS : WIDE_PARTS, attends ? AT_ATTENDED : AT_WIDE,
                       attends ? AT_MIDDLE : AT_END);
    }
    if (position > 0) draw_phase(here, position - 1);
}

KERNEL(ALL_THREADS) predictor_batch(const Arguments given) {
    u8* bytes = shared_memory();
    Memory& memory = *reinterpret_cast<Memory*>(bytes);
    u32* meeting = reinterpret_cast<u32*>(given.words);
    Here here = {given, memory, ring_at(bytes + RING_AT), {meeting, *given.rounds},
                 meeting + LINE, share_of(given.slots, SHARES),
                 share_of(given.slots, RESIDUAL_SHARES)};
    prepare(here.ring, given.layers);
    if (!ASKER) begin_own(here.ring, given.heads);
    if (thread_index() >= THREADS) {
        bring_all(here.ring, given.heads);
        return;
    }
    NO_UNROLL for (int position = 0; position <= PASSES; position++) make_pass(here, position);
    if (program_index() == 0 && thread_index() == 0) *given.rounds = here.stages.count;
}
