// Head norm, rotation, a new key and value into their page, and attention to at most LENGTH
// positions: of a slot and a key head by one warp, whose lanes have four numbers of a head each.
#pragma once

#include <heads.cuh>

static_assert(GROUP == 2 && DIM == 4 * LANES && LENGTH == LANES / 2, "a lane for each score");

struct Past {
    Pair keys[LENGTH], values[LENGTH];
};

// Where keys [LENGTH, DIM] of a slot's head are, and this lane's of them; values are further on.
DEVICE u16* keys_of(u16* pages, int slot, int head) {
    i64 page = static_cast<i64>(slot) * 2 * KEYS + head;
    return pages + page * LENGTH * DIM + thread_index() % LANES * 4;
}
constexpr int TO_VALUES = KEYS * LENGTH * DIM;

// Keys and values of the positions before. Each lane reads what it has written itself.
DEVICE void load_past(const u16* keys, int before, Past& past) {
    UNROLL for (int p = 0; p < LENGTH; p++) {
        past.keys[p] = past.values[p] = {};
        if (p < before) {
            past.keys[p] = *reinterpret_cast<const Pair*>(keys + p * DIM);
            past.values[p] = *reinterpret_cast<const Pair*>(keys + TO_VALUES + p * DIM);
        }
    }
}

DEVICE void widen(Pair pair, float (&x)[4]) {
    x[0] = wide_low(pair.x), x[1] = wide_high(pair.x);
    x[2] = wide_low(pair.y), x[3] = wide_high(pair.y);
}
DEVICE Pair narrowed(const float (&x)[4]) { return {narrow(x[0], x[1]), narrow(x[2], x[3])}; }

// This lane's numbers of a head that others have written.
DEVICE Pair look_head(const u32* row, int head) {
    const u32* place = row + head * (DIM / 2) + thread_index() % LANES * 2;
    u64 found = look(reinterpret_cast<const u64*>(place));
    return {static_cast<u32>(found), static_cast<u32>(found >> 32)};
}

// A head after its norm and rotation. Numbers turn with those half a head further.
DEVICE Pair turned(Pair given, int head, const Turning& turning, int position) {
    int lane = thread_index() % LANES;
    float x[4], gains[4];
    widen(given, x);
    widen(*reinterpret_cast<const Pair*>(turning.norm + head * DIM + 4 * lane), gains);
    const float *cos = turning.cos + position * DIM + 4 * lane;
    const float *sin = turning.sin + position * DIM + 4 * lane;
    float square = (x[0] * x[0] + x[1] * x[1]) + (x[2] * x[2] + x[3] * x[3]);
    UNROLL for (int mask = 1; mask < LANES; mask *= 2) square += across(square, mask);
    float scale = inverse_root(square / DIM + turning.eps);
    UNROLL for (int i = 0; i < 4; i++) {
        x[i] = x[i] * scale * gains[i];
        float other = across(x[i], LANES / 2);
        x[i] = x[i] * cos[i] + other * sin[i];
    }
    return narrowed(x);
}

// Adds up 2 * HALF numbers over all lanes that differ by less: of number i, the sum is with lane i.
// Every lane gives half of its numbers away and adds those it is given to the others.
template <int HALF> DEVICE void fold(float* sums) {
    bool upper = thread_index() % LANES & HALF;
    UNROLL for (int i = 0; i < HALF; i++) {
        float own = upper ? sums[i + HALF] : sums[i], given = upper ? sums[i] : sums[i + HALF];
        sums[i] = own + across(given, HALF);
    }
    if constexpr (HALF > 1) fold<HALF / 2>(sums);
}

// The scores of query head lane / LENGTH and position lane % LENGTH.
DEVICE float score(const float (&queries)[GROUP][4], const Past& past) {
    int lane = thread_index() % LANES;
    float sums[LANES];
    UNROLL for (int p = 0; p < LENGTH; p++) {
        float key[4];
        widen(past.keys[p], key);
        UNROLL for (int member = 0; member < GROUP; member++) {
            const float(&query)[4] = queries[member];
            sums[member * LENGTH + p] = (query[0] * key[0] + query[1] * key[1]) +
                                        (query[2] * key[2] + query[3] * key[3]);
        }
    }
    fold<LANES / 2>(sums);
    return sums[0] * 0.08838834764831845f;  // 1 / sqrt(DIM)
}

// The softmax over the positions of a head.
DEVICE float weight_of(float score) {
    float best = score;
    UNROLL for (int mask = 1; mask < LENGTH; mask *= 2) {
        float other = across(best, mask);
        best = best > other ? best : other;
    }
    float weight = exponential(score - best), total = weight;
    UNROLL for (int mask = 1; mask < LENGTH; mask *= 2) total += across(total, mask);
    return weight / total;
}

// A slot's new position: from a row of the product, to what its query heads attend to.
DEVICE void attend_row(const Turning& turning, int position, int head, u16* keys, const u32* row,
                       u32* attended, Past& past) {
    int lane = thread_index() % LANES;
    float queries[GROUP][4];
    Pair given[GROUP];
    UNROLL for (int member = 0; member < GROUP; member++)
        given[member] = look_head(row, head * GROUP + member);
    Pair key = look_head(row, HEADS + head), value = look_head(row, HEADS + KEYS + head);
    UNROLL for (int member = 0; member < GROUP; member++)
        widen(turned(given[member], head * GROUP + member, turning, position), queries[member]);
    key = turned(key, HEADS + head, turning, position);
    *reinterpret_cast<Pair*>(keys + position * DIM) = key;
    *reinterpret_cast<Pair*>(keys + TO_VALUES + position * DIM) = value;
    UNROLL for (int p = 0; p < LENGTH; p++)
        if (p == position) past.keys[p] = key, past.values[p] = value;
    float found = score(queries, past);
    float weight = weight_of(lane % LENGTH <= position ? found : -3e38f);
    float sums[GROUP][4] = {};
    UNROLL for (int p = 0; p < LENGTH; p++) {
        if (p > position) break;
        float values[4];
        widen(past.values[p], values);
        UNROLL for (int member = 0; member < GROUP; member++) {
            float share = from_lane(weight, member * LENGTH + p);
            UNROLL for (int i = 0; i < 4; i++) sums[member][i] += share * values[i];
        }
    }
    UNROLL for (int member = 0; member < GROUP; member++) {
        u32* target = attended + (head * GROUP + member) * (DIM / 2) + 2 * lane;
        *reinterpret_cast<Pair*>(target) = narrowed(sums[member]);
    }
}
