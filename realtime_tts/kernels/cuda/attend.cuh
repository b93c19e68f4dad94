// Head norm, rotation, keys and values into the pages, and attention to at most LENGTH positions.
//
// The work of a slot and a key head is done by four warps of a program. First two make the query
// heads, one the key, one the value; then each has four positions' scores, and then 32 dimensions.
#pragma once

#include <heads.cuh>

struct alignas(16) Attending {
    float queries[2][GROUP][DIM];  // of a first pass: two positions
    u16 keys[2][DIM];
    u16 values[2][DIM];
    float scores[2][GROUP][LENGTH];
};

constexpr int ATTENDERS = 4;  // warps
enum { SOME = 2 };            // number of the barrier of the warps that attend

struct Heads {
    Turning turning;
    u16* pages;  // [slots, 2, KEYS, LENGTH, DIM] of this layer
    int slots, position, count;
};

// Writes a position's query, key and value, each by its warp, to `own` and the page.
DEVICE void make_heads(const Heads& heads, const u64* row, int head, int index, u32 round,
                       u16* keys, u16* values, Attending& own) {
    int warp = thread_index() / LANES, lane = thread_index() % LANES;
    int at = heads.position + index;
    if (warp < GROUP) {
        Turned query = receive_turned(row, head * GROUP + warp, heads.turning, at, round);
        float* place = own.queries[index][warp] + 2 * lane;
        place[0] = wide_low(query.low), place[1] = wide_high(query.low);
        place[DIM / 2] = wide_low(query.high), place[DIM / 2 + 1] = wide_high(query.high);
    } else if (warp == GROUP) {
        Turned key = receive_turned(row, HEADS + head, heads.turning, at, round);
        keep(own.keys[index], key);
        keep(keys + at * DIM, key);
    } else {
        Turned value = receive_head(row, HEADS + KEYS + head, round);
        keep(own.values[index], value);
        keep(values + at * DIM, value);
    }
}

// This thread's part of a key [DIM]: sixteen numbers, of position 4 * warp + lane / 8.
DEVICE void load_key(const u16* key, Quad (&quads)[2]) {
    const Quad* source = reinterpret_cast<const Quad*>(key) + thread_index() % 8 * 2;
    quads[0] = source[0], quads[1] = source[1];
}

DEVICE float score(const float* query, const Quad (&key)[2]) {
    float parts[2] = {};
    query += thread_index() % 8 * 16;
    UNROLL for (int i = 0; i < 2; i++) {
        u32 pairs[4] = {key[i].x, key[i].y, key[i].z, key[i].w};
        UNROLL for (int j = 0; j < 4; j++) {
            parts[0] += query[8 * i + 2 * j] * wide_low(pairs[j]);
            parts[1] += query[8 * i + 2 * j + 1] * wide_high(pairs[j]);
        }
    }
    float sum = parts[0] + parts[1];
    sum += across(sum, 1);
    sum += across(sum, 2);
    sum += across(sum, 4);
    return sum * 0.08838834764831845f;  // 1 / sqrt(DIM)
}

// Two dimensions of query head lane / 16's output: 32 * warp + 2 * (lane % 16) and the next.
// Values of missing positions are zeros.
DEVICE u32 attended(float score, const u32 (&values)[LENGTH]) {
    int lane = thread_index() % LANES;
    float best = score;
    UNROLL for (int mask = 1; mask < LENGTH; mask *= 2) {
        float other = across(best, mask);
        best = best > other ? best : other;
    }
    float weight = exponential(score - best), total = weight;
    UNROLL for (int mask = 1; mask < LENGTH; mask *= 2) total += across(total, mask);
    weight /= total;
    float low = 0, high = 0;
    UNROLL for (int p = 0; p < LENGTH; p++) {
        float share = from_lane(weight, lane / LENGTH * LENGTH + p);
        low += share * wide_low(values[p]), high += share * wide_high(values[p]);
    }
    return narrow(low, high);
}

// Attention of all new positions of a slot and a key head.
DEVICE void attend(const Heads& heads, int slot, int head, u64* words, u32 round, Attending& own) {
    int warp = thread_index() / LANES, lane = thread_index() % LANES;
    constexpr int PAGE = LENGTH * DIM;
    u16* keys = heads.pages + (static_cast<i64>(slot) * 2 * KEYS + head) * PAGE;
    u16* values = keys + KEYS * PAGE;
    int position = 4 * warp + lane / 8, pair = 16 * warp + lane % LENGTH;
    Quad key[2] = {};
    u32 value[LENGTH] = {};
    if (position < heads.position) load_key(keys + position * DIM, key);
    UNROLL for (int p = 0; p < LENGTH; p++)
        if (p < heads.position) value[p] = reinterpret_cast<const u32*>(values + p * DIM)[pair];
    NO_UNROLL for (int index = 0; index < heads.count; index++)
        make_heads(heads, row_at(words, index * heads.slots + slot) + AT_FUSED, head, index, round,
                   keys, values, own);
    barrier(SOME, ATTENDERS * LANES);
    NO_UNROLL for (int index = 0; index < heads.count; index++) {
        int at = heads.position + index;
        if (position == at) load_key(own.keys[index], key);
        UNROLL for (int member = 0; member < GROUP; member++) {
            float found = score(own.queries[index][member], key);
            if (lane % 8 == 0)
                own.scores[index][member][position] = position <= at ? found : -3e38f;
        }
        UNROLL for (int p = 0; p < LENGTH; p++)
            if (p == at) value[p] = reinterpret_cast<const u32*>(own.values[index])[pair];
        barrier(SOME, ATTENDERS * LANES);
        u32 result = attended(own.scores[index][lane / LENGTH][lane % LENGTH], value);
        u64* target = row_at(words, index * heads.slots + slot) + AT_ATTENDED;
        target += (head * GROUP + lane / LENGTH) * (DIM / 2) + pair;
        send(target, word_of(result, round));
    }
    // The next user of `own` writes to it at once; only this program reads the pages again.
    barrier(SOME, ATTENDERS * LANES);
}
