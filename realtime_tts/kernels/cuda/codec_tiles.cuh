// What the codec's convolutions share: loading of weights and steps, and SnakeBeta.
//
// A convolution sees STEPS new steps of a row and those before them, which are the row's state at
// its beginning. Each tap uses the same matrix, beginning at another step, so that a step is read
// once for all taps. Weights are loaded in pieces through a ring.
#pragma once

#include <warpgroup.cuh>

// A layer's state, like `Past` in codec_past.py.
struct State {
    u16* taps;         // [slots + 1, 2, past, channels], if there are more taps than one
    const i64* side;   // [slots + 1]
    const i64* slots;  // [rows]
    i64 slot_stride;
    i64 side_stride;
};

// Two barriers for each place of a ring: when it has been filled, and when it has been read.
template <int COUNT> struct Barriers {
    u64 there[COUNT], used[COUNT];

    DEVICE void prepare(int fillers, int warps) {
        for (int i = 0; i < COUNT; i++) {
            prepare_barrier(&there[i], fillers);
            prepare_barrier(&used[i], warps);
        }
    }
};

// A position in a ring of COUNT places.
template <int COUNT> struct Place {
    int at = 0;
    u32 round = 0;
    DEVICE void next() {
        if (++at == COUNT) at = 0, round ^= 1;
    }
};

// Called by a warp that has read a place.
DEVICE void release(u64* used) {
    if (thread_index() % 32 == 0) arrive(used);
}

// Loads adjacent pieces of weights, `times` times; called by one thread.
template <int COUNT, class Piece>
DEVICE void bring_weights(Piece (&ring)[COUNT], Barriers<COUNT>& barriers, const u16* from,
                          int pieces, int times) {
    u64 policy = keeping_policy();
    Place<COUNT> place;
    for (int time = 0; time < times; time++)
        for (int i = 0; i < pieces; i++, place.next()) {
            wait_for(&barriers.used[place.at], place.round ^ 1);
            arrive_expecting(&barriers.there[place.at], sizeof(Piece));
            copy_in(ring[place.at], from + i64(i) * (sizeof(Piece) / 2), sizeof(Piece),
                    &barriers.there[place.at], policy);
        }
}

// The steps of one row, WIDTH channels each: the new ones, those before them, and where the steps
// go that come before those of the next call.
template <int WIDTH> struct Steps {
    const u16 *fresh, *old;
    u16* next;
    int count, past;

    DEVICE Steps(const u16* x, const State& state, int row, int count, int past)
        : fresh(x + i64(row) * count * WIDTH), old(fresh), next(nullptr), count(count),
          past(past) {
        if (past == 0) return;
        i64 slot = state.slots[row], now = state.side[slot];
        u16* own = state.taps + slot * state.slot_stride;
        old = own + now * state.side_stride;
        next = own + (1 - now) * state.side_stride;
    }

    // Loads chunks of eight channels from `channel` on, for LENGTH steps from `first` on and those
    // before them, by COPIERS threads (a constant of the kernel). With `keep`, the row's last steps
    // go to its state.
    template <int LENGTH, int CHUNK_COUNT, int ROWS>
    DEVICE void copy(u16 (&target)[CHUNK_COUNT][ROWS][8], int first, int channel, int copier,
                     bool keep) const {
        bool last = keep && past > 0 && first + LENGTH == count;
        for (int i = copier; i < (LENGTH + past) * CHUNK_COUNT; i += COPIERS) {
            int at = i / CHUNK_COUNT, chunk = i % CHUNK_COUNT, step = first + at - past;
            int offset = channel + chunk * 8;
            const u16* source = step < 0 ? old + (step + past) * WIDTH : fresh + step * WIDTH;
            copy_piece(target[chunk][at], source + offset);
            if (last && at >= LENGTH)
                *reinterpret_cast<Quad*>(next + (at - LENGTH) * WIDTH + offset) =
                    *reinterpret_cast<const Quad*>(source + offset);
        }
    }
};

DEVICE float snake(float x, float rate, float gain) {
    float wave = sine(x * rate);
    return x + gain * wave * wave;
}
