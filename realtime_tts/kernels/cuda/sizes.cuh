// The sizes a kernel is built for; macros given to the compiler name them.
#pragma once

#include <device.cuh>

constexpr int LANES = 32;
constexpr int THREADS = WARPS * LANES;  // that compute
constexpr int ALL_THREADS = THREADS + (ASKER ? LANES : 0);
constexpr int DIM = 128;                // of a head
constexpr int LENGTH = 16;              // positions of a page
constexpr int GROUP = HEADS / KEYS;
constexpr int FUSED = (HEADS + 2 * KEYS) * DIM;
constexpr int QUERIES = HEADS * DIM;

// With few rows, lanes have two inputs each, in the order of memory. With many, a lane has those of
// the tensor core's layout. With an ASKER, a warp of its own loads weights.
constexpr int MOST_FEW = 4;
constexpr int WATCHED = FEW ? 1 : 0;  // rows from which on a warp waits for the first of its words
constexpr int HELD = FEW ? MOST_FEW : 8;  // pairs of inputs of a thread and chunk

// In a BATCH, programs share the columns of a product between them, and each has some of the rows:
// SHARES of them after a norm, RESIDUAL_SHARES where the residual is added. Gate and up are one
// product, whose rows of weights take turns. After a norm, TOGETHER tiles of weights are multiplied
// between two barriers.

constexpr int OWN = 64 * SPAN;        // inputs that a warp takes at a time
constexpr int CHUNK = WARPS * OWN;    // inputs that all take at a time
constexpr int EIGHT = 8;            // inputs of a tile
constexpr int PITCH = CHUNK * 2 + (FEW ? 64 : 32);  // bytes of a row, so that banks differ
constexpr int UNIT = TALL * PITCH;     // TALL rows of weights belong together

// Groups of TALL rows that each program has of a product with `columns` results.
DEVICE constexpr int groups(int columns, int shares = 1) {
    return columns * shares / (TALL * PROGRAMS);
}
DEVICE constexpr bool whole(int columns, int shares) {
    return columns * shares % (TALL * PROGRAMS) == 0;
}
DEVICE constexpr int chunks(int inputs) { return inputs / CHUNK; }
DEVICE constexpr int larger(int a, int b) { return a > b ? a : b; }

static_assert(HIDDEN % CHUNK == 0 && QUERIES % CHUNK == 0 && WIDE % CHUNK == 0, "whole chunks");
static_assert(whole(FUSED, SHARES) && whole(HIDDEN, RESIDUAL_SHARES), "whole groups");
static_assert(whole((BATCH ? 2 : 1) * WIDE, SHARES) && whole(VOCAB, SHARES), "whole groups");
static_assert(GROUP == 2 && WARPS >= 4, "four warps make heads: two queries, the key and the value");
static_assert(WARPS % 4 == 0 && PACE < RING && RING <= LANES, "what a ring takes for granted");
static_assert(ASKER || RING <= WARPS, "each warp fills a slot of the ring, or none");

// The data that programs exchange, by row: words of two bf16 and the number of their round.
constexpr int AT_BEGIN = 0;                          // what a pass reads
constexpr int AT_FUSED = AT_BEGIN + HIDDEN / 2;      // queries, keys, values
constexpr int AT_ATTENDED = AT_FUSED + FUSED / 2;
constexpr int AT_MIDDLE = AT_ATTENDED + QUERIES / 2;  // after attention
constexpr int AT_WIDE = AT_MIDDLE + HIDDEN / 2;
constexpr int AT_END = AT_WIDE + WIDE / 2;            // of a layer
constexpr int AT_LOGITS = AT_END + HIDDEN / 2;
constexpr int ROW_WORDS = AT_LOGITS + VOCAB / 2;
