// The arguments of a frame of the code predictor, and the use of a code that was drawn.
#pragma once

#include <draw.cuh>
#include <weights.cuh>

struct Arguments {
    const Layer* layers;        // [LAYERS]
    const u16* const* heads;    // [PASSES], each [VOCAB, HIDDEN]
    const u16* const* inputs;   // [PASSES - 1], each [VOCAB, HIDDEN]: what the next pass reads
    const u16* norm;            // [HIDDEN]
    const float* cos;           // [LENGTH, DIM]
    const float* sin;
    const u16* x;               // [2 * slots, HIDDEN]: positions 0, then positions 1
    u16* pages;                 // [LAYERS, page_slots, 2, KEYS, LENGTH, DIM]
    const float* temperature;   // [slots]
    const int* top_k;           // [slots]
    const u8* greedy;           // [slots]
    const float* uniform;       // [slots, PASSES], rows uniform_stride apart
    i64* codes;                 // [slots, PASSES]
    u8* failed;                 // [slots]
    u16* logits;                // [PASSES, slots, VOCAB], or null
    u64* words;                 // [`words`]: data that programs exchange
    u32* rounds;                // number of rounds so far
    i64 layer_stride;           // of pages
    i64 uniform_stride;
    int slots;
    float eps;
};

DEVICE Settings settings_of(const Arguments& given, int pass, int slot) {
    return {given.temperature[slot], given.top_k[slot], given.greedy[slot] != 0,
            given.uniform[slot * given.uniform_stride + pass]};
}

// Where a slot's logits of a pass are kept, as pairs; null if they are not.
DEVICE u32* logits_at(const Arguments& given, int pass, int slot) {
    if (!given.logits) return nullptr;
    i64 at = (static_cast<i64>(pass) * given.slots + slot) * VOCAB;
    return reinterpret_cast<u32*>(given.logits + at);
}

// Draws a slot's code of a pass. Returns what the next pass reads, as pairs [HIDDEN / 2]; null
// after the last one.
DEVICE const u32* draw_code(const Arguments& given, int pass, int slot, const u32 (&bits)[CODES],
                            Drawing& drawing) {
    bool bad;
    int code = draw(bits, settings_of(given, pass, slot), drawing, bad);
    if (thread_index() == 0) {
        given.codes[static_cast<i64>(slot) * PASSES + pass] = code;
        if (bad || pass == 0) given.failed[slot] = bad;
    }
    if (pass + 1 == PASSES) return nullptr;
    return reinterpret_cast<const u32*>(given.inputs[pass] + static_cast<i64>(code) * HIDDEN);
}
