// Head norm, rotation, the new key and value into their page, and attention to all pages of a slot.
//
// The query heads of one key head are the work of one program, or of several where few rows leave
// programs free and there are many pages. Each warp reads whole pages; the warps' results are
// combined in shared memory, those of several programs by the first of them.
#pragma once

#include <heads.cuh>

constexpr int PARTIAL_WORDS = GROUP * DIM + 2 * GROUP;
constexpr float NOTHING = -3e38f;  // the score of a missing position

// The new position of a program's row and key head.
struct alignas(16) New {
    u16 queries[GROUP][DIM];
    u16 key[DIM];
    u16 value[DIM];
};

// The warps' partial outputs: sums of weighted values, with weights relative to the peak.
struct WarpSums {
    float weighted[WARPS][GROUP][DIM];
    float peaks[WARPS][GROUP];
    float totals[WARPS][GROUP];
};

// The work of a program: a row's key head, or a share of its pages.
struct Item {
    int row, head;      // of keys
    int position;       // the new one
    int count;          // pages
    int share, shares;  // no shares: nothing to do
    const int* table;   // numbers of the slot's pages
    int first[WARPS];   // number of each warp's first page
    int last;           // number of the page with the new position
};

// Called once, by all threads.
DEVICE void find_item(const int* tables, int stride, const i64* slots, const i64* positions,
                      int rows, Item& item) {
    int most = PROGRAMS / (rows * KEYS), program = program_index(), thread = thread_index();
    int row = program / (most * KEYS), share = program % most;
    if (row >= rows) {
        if (thread == 0) item.shares = 0;
        return;
    }
    int position = positions[row], count = position / LENGTH + 1;
    int shares = (count + WARPS - 1) / WARPS;
    if (shares > most) shares = most;
    const int* table = tables + slots[row] * stride;
    int index = share * WARPS + thread;
    if (thread < WARPS) item.first[thread] = index < count ? table[index] : 0;
    if (thread > 0) return;
    item.row = row, item.head = program / most % KEYS, item.position = position;
    item.count = count, item.share = share, item.shares = share < shares ? shares : 0;
    item.table = table, item.last = table[count - 1];
}

// A lane's part of a page: of the keys, rows lane / 4 and lane / 4 + 8, four times eight adjacent
// numbers; of the values, four numbers of every position.
struct Page {
    Quad keys[2][4];
    Pair values[LENGTH];
};

DEVICE Quad quad_at(const u16* place) { return *reinterpret_cast<const Quad*>(place); }
DEVICE Pair pair_at(const u16* place) { return *reinterpret_cast<const Pair*>(place); }

// Where a page's keys of a head are; its values are TO_VALUES further.
DEVICE i64 page_at(int number, int head) {
    return (static_cast<i64>(number) * 2 * KEYS + head) * LENGTH * DIM;
}

constexpr int TO_VALUES = KEYS * LENGTH * DIM;

// Loads a page's first `before` positions; the others are zeros.
DEVICE void load_page(const u16* keys, int before, Page& page) {
    int lane = thread_index() % LANES;
    const u16* values = keys + TO_VALUES + lane * 4;
    UNROLL for (int half = 0; half < 2; half++) UNROLL for (int i = 0; i < 4; i++) {
        int row = half * EIGHT + lane / 4;
        page.keys[half][i] = {};
        if (row < before) page.keys[half][i] = quad_at(keys + row * DIM + lane % 4 * 8 + 32 * i);
    }
    UNROLL for (int p = 0; p < LENGTH; p++) {
        page.values[p] = {};
        if (p < before) page.values[p] = pair_at(values + p * DIM);
    }
}

// The new position, which is in the last page.
DEVICE void add_new(const New& own, int place, Page& page) {
    int lane = thread_index() % LANES;
    UNROLL for (int half = 0; half < 2; half++) UNROLL for (int i = 0; i < 4; i++)
        if (half * EIGHT + lane / 4 == place)
            page.keys[half][i] = quad_at(own.key + lane % 4 * 8 + 32 * i);
    UNROLL for (int p = 0; p < LENGTH; p++)
        if (p == place) page.values[p] = pair_at(own.value + lane * 4);
}

// Makes the queries, each by its warp, and in the program of the last page the new key and value.
// Queries are also written to `queries` [HEADS, DIM] unless that is null.
DEVICE void make_new(u16* pages, const Item& item, const Turning& turning, u16* queries,
                     const u64* row, u32 round, bool keeps, New& own) {
    int warp = thread_index() / LANES;
    u16* key = pages + page_at(item.last, item.head) + item.position % LENGTH * DIM;
    if (warp < GROUP) {
        int head = item.head * GROUP + warp;
        Turned made = receive_turned(row, head, turning, item.position, round);
        keep(own.queries[warp], made);
        if (queries) keep(queries + head * DIM, made);
    } else if (keeps && warp == GROUP) {
        Turned made = receive_turned(row, HEADS + item.head, turning, item.position, round);
        keep(own.key, made), keep(key, made);
    } else if (keeps && warp == GROUP + 1) {
        Turned made = receive_head(row, HEADS + KEYS + item.head, round);
        keep(own.value, made), keep(key + TO_VALUES, made);
    }
}

// A warp's partial output: the running softmax of query head lane / LENGTH, and four dimensions of
// every query head's sum.
struct Attended {
    float peak = NOTHING, total = 0;
    float sums[GROUP][4] = {};
};

// This lane's score: of query head lane / LENGTH and position lane % LENGTH of a page.
DEVICE float score(const Page& page, const u32 (&queries)[16]) {
    int lane = thread_index() % LANES;
    float even[4] = {}, odd[4] = {};
    UNROLL for (int i = 0; i < 4; i++) {
        const Quad &upper = page.keys[0][i], &lower = page.keys[1][i];
        const u32* query = queries + 4 * i;
        multiply(even, upper.x, lower.x, upper.y, lower.y, query[0], query[1]);
        multiply(odd, upper.z, lower.z, upper.w, lower.w, query[2], query[3]);
    }
    float found = 0;
    UNROLL for (int i = 0; i < 4; i++) {  // of head i % 2, positions 8 * (i / 2) and following
        float other = from_lane(even[i] + odd[i], lane % EIGHT * 4);
        if (lane / LENGTH == i % 2 && lane % LENGTH / EIGHT == i / 2) found = other;
    }
    return found * 0.08838834764831845f;  // 1 / sqrt(DIM)
}

DEVICE void take_in(const Page& page, float score, Attended& attended) {
    float best = score;
    UNROLL for (int mask = 1; mask < LENGTH; mask *= 2) {
        float other = across(best, mask);
        best = best > other ? best : other;
    }
    best = best > attended.peak ? best : attended.peak;
    float weight = exponential(score - best), fading = exponential(attended.peak - best);
    float total = weight;
    UNROLL for (int mask = 1; mask < LENGTH; mask *= 2) total += across(total, mask);
    attended.peak = best, attended.total = attended.total * fading + total;
    UNROLL for (int member = 0; member < GROUP; member++) {
        float fades = from_lane(fading, member * LENGTH);
        UNROLL for (int i = 0; i < 4; i++) attended.sums[member][i] *= fades;
    }
    UNROLL for (int p = 0; p < LENGTH; p++) {
        Pair pair = page.values[p];
        float values[4] = {wide_low(pair.x), wide_high(pair.x), wide_low(pair.y), wide_high(pair.y)};
        UNROLL for (int member = 0; member < GROUP; member++) {
            float share = from_lane(weight, member * LENGTH + p);
            UNROLL for (int i = 0; i < 4; i++) attended.sums[member][i] += share * values[i];
        }
    }
}

// Loads a warp's first page, which may begin long before the queries are ready.
DEVICE void load_first(const u16* pages, const Item& item, Page& page) {
    int warp = thread_index() / LANES, index = item.share * WARPS + warp;
    if (item.shares == 0 || index >= item.count) return;
    const u16* keys = pages + page_at(item.first[warp], item.head);
    load_page(keys, item.position - index * LENGTH, page);
}

// The query heads, as a side of the tensor core's product.
DEVICE void load_queries(const New& own, u32 (&queries)[16]) {
    int lane = thread_index() % LANES;
    UNROLL for (int i = 0; i < 4; i++) {
        Quad quad = quad_at(own.queries[lane / 4 % GROUP] + lane % 4 * 8 + 32 * i);
        queries[4 * i] = quad.x, queries[4 * i + 1] = quad.y;
        queries[4 * i + 2] = quad.z, queries[4 * i + 3] = quad.w;
    }
}

// Attention to all pages of this warp; the first one is loaded already.
DEVICE void attend_warp(u16* pages, const Item& item, const Turning& turning, u16* asked,
                        const u64* row, u32 round, Page& page, New& own, Attended& attended) {
    int lane = thread_index() % LANES, warp = thread_index() / LANES;
    int step = item.shares * WARPS, index = item.share * WARPS + warp;
    bool keeps = (item.count - 1) % step / WARPS == item.share;
    int head = item.head, before = item.position - index * LENGTH;
    make_new(pages, item, turning, asked, row, round, keeps, own);
    barrier(ALL, THREADS);
    u32 queries[16];
    load_queries(own, queries);
    NO_UNROLL while (index < item.count) {
        if (index == item.count - 1) add_new(own, item.position % LENGTH, page);
        float found = score(page, queries);
        if (lane % LENGTH > before) found = NOTHING;
        take_in(page, found, attended);
        index += step, before -= step * LENGTH;
        if (index < item.count) load_page(pages + page_at(item.table[index], head), before, page);
    }
}

// Writes the partial output to shared memory, for the other warps.
DEVICE void lay_down(const Attended& attended, WarpSums& own) {
    int lane = thread_index() % LANES, warp = thread_index() / LANES;
    if (lane % LENGTH == 0) {
        own.peaks[warp][lane / LENGTH] = attended.peak;
        own.totals[warp][lane / LENGTH] = attended.total;
    }
    UNROLL for (int member = 0; member < GROUP; member++) UNROLL for (int i = 0; i < 4; i++)
        own.weighted[warp][member][lane * 4 + i] = attended.sums[member][i];
}

// One dimension of a query head's output over some pages.
struct Part {
    float peak, total, sum;
};

DEVICE void join(Part& part, const Part& other) {
    float best = part.peak > other.peak ? part.peak : other.peak;
    float own = exponential(part.peak - best), others = exponential(other.peak - best);
    part = {best, part.total * own + other.total * others, part.sum * own + other.sum * others};
}

DEVICE void send_part(u64* words, int member, int dimension, const Part& part, u32 round) {
    send(words + member * DIM + dimension, word_of(bits_of(part.sum), round));
    if (dimension) return;
    send(words + GROUP * DIM + 2 * member, word_of(bits_of(part.peak), round));
    send(words + GROUP * DIM + 2 * member + 1, word_of(bits_of(part.total), round));
}

// Adds the partial outputs of the programs that follow this one, a few at a time.
DEVICE void join_others(const u64* words, int shares, int member, int dimension, u32 round,
                        Part& part) {
    constexpr int BLOCK = 4;
    NO_UNROLL for (int first = 1; first < shares; first += BLOCK) {
        Part others[BLOCK];
        bool missing;
        do {
            missing = false;
            UNROLL for (int i = 0; i < BLOCK; i++) if (first + i < shares) {
                const u64* place = words + (first + i) * PARTIAL_WORDS;
                u64 sum = look(place + member * DIM + dimension);
                u64 peak = look(place + GROUP * DIM + 2 * member);
                u64 total = look(place + GROUP * DIM + 2 * member + 1);
                missing |= !is_of(sum, round) || !is_of(peak, round) || !is_of(total, round);
                others[i] = {number(static_cast<u32>(peak)), number(static_cast<u32>(total)),
                             number(static_cast<u32>(sum))};
            }
            if (missing) others_turn();
        } while (missing);
        UNROLL for (int i = 0; i < BLOCK; i++) if (first + i < shares) join(part, others[i]);
    }
}

// Combines the partial outputs of all warps of a program.
DEVICE Part joined(const WarpSums& own, int member, int dimension) {
    Part part = {NOTHING, 0, 0};
    UNROLL for (int warp = 0; warp < WARPS; warp++)
        part.peak = own.peaks[warp][member] > part.peak ? own.peaks[warp][member] : part.peak;
    UNROLL for (int warp = 0; warp < WARPS; warp++) {
        float share = exponential(own.peaks[warp][member] - part.peak);
        part.total += share * own.totals[warp][member];
        part.sum += share * own.weighted[warp][member][dimension];
    }
    return part;
}

// `partials` are this program's words. The output goes to `target`, the words of the row; queries
// go to `asked` unless that is null.
DEVICE void attend_pages(u16* pages, const Item& item, const Turning& turning, u16* asked,
                         const u64* row, u64* partials, u64* target, u32 round, Page& page,
                         New& made, WarpSums& own) {
    Attended attended;
    attend_warp(pages, item, turning, asked, row, round, page, made, attended);
    lay_down(attended, own);
    barrier(ALL, THREADS);
    NO_UNROLL for (int i = thread_index(); i < GROUP * DIM; i += THREADS) {
        int member = i / DIM, dimension = i % DIM;
        Part part = joined(own, member, dimension);
        if (item.share) {
            send_part(partials, member, dimension, part, round);
            continue;
        }
        if (item.shares > 1) join_others(partials, item.shares, member, dimension, round, part);
        float result = part.sum / part.total, next = from_above(result, 1);
        u64* place = target + (item.head * GROUP + member) * (DIM / 2) + dimension / 2;
        if (dimension % 2 == 0) send(place, word_of(narrow(result, next), round));
    }
}
