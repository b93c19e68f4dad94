// A frame of the code predictor: all its passes, and the draws between them, in one launch.
//
// Programs stay resident and pass from phase to phase. A layer has five phases:
//
//     fused     input norm, and the product of queries, keys and values
//     attend    head norm, rotation, keys and values into the pages, attention
//     output    attention's product, plus the residual
//     wide      output norm, gate and up, SwiGLU
//     down      the last product, plus the residual
//
// and after the last layer come the head, the draw and the inputs of the next pass. Results go to
// the other programs as words that carry the number of their round (inputs.cuh), so readers wait
// for the words themselves. A place is written again only by a program that has read something that
// every reader of the place sent later, so no write comes too early. Rounds are counted on from
// launch to launch. Their 32 bits wrap around after about fifty million frames, and a word would
// have to be exactly that old to be mistaken.
#include <attend.cuh>
#include <frame.cuh>
#include <product.cuh>

struct Memory {
    Scratch scratch;
    Drawing drawing;
    Attending attending;
};

constexpr int RING_AT = (sizeof(Memory) + 127) / 128 * 128;
// Constants that the launcher reads.
CONSTANT(threads, ALL_THREADS)
CONSTANT(shared_bytes, RING_AT + RING_BYTES)
CONSTANT(words, ROWS * ROW_WORDS)

// What all phases of a thread share.
struct Here {
    const Arguments& given;
    Memory& memory;
    Ring ring;
    u64* words;
    u32 round;  // of this layer
    int rows;   // of this pass
};

// A product: where its inputs come from and its results go.
struct Route {
    const u16* norm;
    int from, to;       // places in a row's words
    u32 round;          // of the inputs
    int begin;          // first row; results are numbered from there
    int count;          // eights of a program
    bool pairs;         // gate and up, which SwiGLU joins
    bool begins;        // a pass: the residual, too, begins with its inputs
    bool given_inputs;  // x in place of words
};

// The inputs of a pass are also this program's residual, in the columns that it has.
DEVICE void begin_residual(const u64* words, const u16* x, u32 round, int rows, Scratch& scratch) {
    constexpr int COLUMNS = HIDDEN_EIGHTS * EIGHT;
    NO_UNROLL for (int i = thread_index(); i < rows * COLUMNS; i += THREADS) {
        int row = i / COLUMNS, own = i % COLUMNS, column = program_index() * COLUMNS + own;
        u32 bits;
        if (x) {
            bits = x[static_cast<i64>(row) * HIDDEN + column];
        } else {
            u32 pair = receive(words + static_cast<i64>(row) * ROW_WORDS + column / 2, round);
            bits = column % 2 ? pair >> 16 : pair & 0xffffu;
        }
        scratch.residual[row][own] = wide_low(bits);
    }
}

// A norm and a product.
DEVICE void normed_phase(Here& here, const Route& route) {
    u32 weights[MOST_EIGHTS][HIDDEN_PARTS][8];
    u32 inputs[HIDDEN_PARTS][HELD], gains[HIDDEN_PARTS][HELD];
    take_all<MOST_EIGHTS, chunks(HIDDEN)>(here.ring, here.given.heads, route.count, chunks(HIDDEN),
                                          weights);
    load_gains(route.norm, gains);
    Scratch& scratch = here.memory.scratch;
    int thread = thread_index(), warp = thread / LANES;
    int count = route.pairs ? route.count / 2 : route.count;  // eights of results
    int at = route.pairs ? thread + thread / AREA * AREA : thread;
    u64* target = row_at(here.words, thread % EIGHT) + route.to;
    target += program_index() * count * (EIGHT / 2);
    NO_UNROLL for (int first = route.begin; first < here.rows; first += EIGHT) {
        int live = here.rows - first < EIGHT ? here.rows - first : EIGHT;
        if (route.given_inputs)
            load_inputs(here.given.x + static_cast<i64>(first) * HIDDEN, live, inputs);
        else
            inputs_of(here.words, route.from, route.round, first, live, HIDDEN_PARTS, inputs);
        normalise(inputs, gains, live, scratch.squares, here.given.eps);
        multiply_all(weights, inputs, live, HIDDEN_PARTS, scratch.staged[warp], scratch.sums[warp]);
        barrier(ALL, THREADS);
        if (thread < count * AREA) {
            float result = added(scratch.sums, at);
            if (route.pairs) {
                float up = added(scratch.sums, at + AREA);
                result *= sigmoid(result) * up;
            }
            send_pair(target, thread, result, here.round, thread % EIGHT < live);
        }
        target += EIGHT * ROW_WORDS;
    }
    if (route.begins)
        begin_residual(here.words + AT_BEGIN, route.given_inputs ? here.given.x : nullptr,
                       here.round, here.rows, scratch);
}

// A product of `parts` parts whose results are added to the residual, which stays in the program
// that has its columns.
DEVICE void residual_phase(Here& here, int parts, int from, int to) {
    u32 weights[HIDDEN_EIGHTS][MOST_PARTS][8], inputs[MOST_PARTS][HELD];
    take_all<HIDDEN_EIGHTS, MOST_PARTS / SPAN>(here.ring, here.given.heads, HIDDEN_EIGHTS,
                                                parts / SPAN, weights);
    Scratch& scratch = here.memory.scratch;
    int thread = thread_index(), warp = thread / LANES, turn = 0;
    u64* target = row_at(here.words, thread % EIGHT) + to;
    target += program_index() * HIDDEN_EIGHTS * (EIGHT / 2);
    NO_UNROLL for (int first = 0; first < here.rows; first += EIGHT, turn ^= 1) {
        int live = here.rows - first < EIGHT ? here.rows - first : EIGHT;
        inputs_of(here.words, from, here.round, first, live, parts, inputs);
        multiply_all(weights, inputs, live, parts, scratch.staged[warp],
                     scratch.plain_sums[turn][warp]);
        float* residual = scratch.residual[first + thread % EIGHT] + thread / EIGHT;
        barrier(ALL, THREADS);
        if (thread < HIDDEN_EIGHTS * AREA) {
            float result = *residual + added(scratch.plain_sums[turn], thread);
            result = wide_low(narrow(result, 0));
            *residual = result;
            send_pair(target, thread, result, here.round, thread % EIGHT < live);
        }
        target += EIGHT * ROW_WORDS;
    }
}

// Draws a slot's code when its logits have arrived, and sends the inputs of the next pass.
DEVICE void draw_phase(Here& here, int pass, int slot) {
    u32 bits[CODES], *kept = logits_at(here.given, pass, slot);
    int first = thread_index() * (CODES / 2);
    const u64* words = row_at(here.words, slot) + AT_LOGITS + first;
    UNROLL for (int i = 0; i < CODES / 2; i++) {
        u32 pair = receive(words + i, here.round);
        bits[2 * i] = pair & 0xffffu, bits[2 * i + 1] = pair >> 16;
        if (kept) kept[first + i] = pair;
    }
    const u32* row = draw_code(here.given, pass, slot, bits, here.memory.drawing);
    if (!row) return;
    u64* target = row_at(here.words, slot) + AT_BEGIN;
    for (int i = thread_index(); i < HIDDEN / 2; i += DRAWERS * LANES)
        send(target + i, word_of(row[i], here.round + 1));
}

// A pass: two halves for each layer, and then the head, through the same code; otherwise programs
// would mostly wait for instructions.
DEVICE void make_pass(Here& here, int pass) {
    const Arguments& given = here.given;
    int count = pass ? 1 : 2, position = pass ? pass + 1 : 0;
    here.rows = count * given.slots;
    NO_UNROLL for (int half = 0; half <= 2 * LAYERS; half++) {
        const Layer& layer = given.layers[half < 2 * LAYERS ? half / 2 : 0];
        bool begins = half == 0, attends = half % 2 == 0, last = half == 2 * LAYERS;
        Route route = {layer.output_norm, AT_MIDDLE, AT_WIDE, here.round, 0, 2 * groups(WIDE),
                       true, false, false};
        if (last)
            route = {given.norm, AT_END, AT_LOGITS, here.round, here.rows - given.slots,
                     groups(VOCAB), false, false, false};
        else if (attends)
            route = {layer.input_norm, begins ? AT_BEGIN : AT_END, AT_FUSED,
                     begins ? here.round + 1 : here.round, 0, groups(FUSED), false, begins,
                     begins && pass == 0};
        if (attends && !last) here.round++;
        normed_phase(here, route);
        if (last) break;
        if (attends) {
            Heads heads = {{layer.head_norm, given.cos, given.sin, given.eps},
                           given.pages + half / 2 * given.layer_stride, given.slots, position,
                           count};
            if (thread_index() < ATTENDERS * LANES)
                for (int item = program_index(); item < given.slots * KEYS; item += PROGRAMS)
                    attend(heads, item / KEYS, item % KEYS, here.words, here.round,
                           here.memory.attending);
        }
        residual_phase(here, SPAN * (attends ? chunks(QUERIES) : chunks(WIDE)),
                       attends ? AT_ATTENDED : AT_WIDE, attends ? AT_MIDDLE : AT_END);
    }
    if (thread_index() < DRAWERS * LANES)
        for (int slot = program_index(); slot < given.slots; slot += PROGRAMS)
            draw_phase(here, pass, slot);
}

KERNEL(ALL_THREADS) predictor_frame(const Arguments given) {
    u8* bytes = shared_memory();
    Memory& memory = *reinterpret_cast<Memory*>(bytes);
    Here here = {given, memory, ring_at(bytes + RING_AT), given.words, *given.rounds, 0};
    prepare(here.ring, given.layers);
    if (!ASKER) begin_own(here.ring, given.heads);
    if (thread_index() >= THREADS) {
        bring_all(here.ring, given.heads);
        return;
    }
    NO_UNROLL for (int pass = 0; pass < PASSES; pass++) make_pass(here, pass);
    if (program_index() == 0 && thread_index() == 0) *given.rounds = here.round;
}
