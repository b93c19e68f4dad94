// Head norm, rotation, storing a new key and value in their page, and attention to the at most
// LENGTH positions of that page: for a slot and a key head, by one warp.
#pragma once

#include <attend_pages.cuh>

// Keys [LENGTH, DIM] of a slot and a key head, where a slot has one page.
DEVICE u16* keys_of(u16* pages, int item) { return pages + page_at(item / KEYS, item % KEYS); }

// A head of a row that others have written.
DEVICE Turned look_head(const u32* row, int head) {
    const u32* pairs = row + head * (DIM / 2) + thread_index() % LANES;
    return {look_pair(pairs), look_pair(pairs + DIM / 4)};
}

// A slot's new position: from a row of the product to the output of its query heads. `page` has
// the positions before.
DEVICE void attend_row(const Turning& turning, int position, int head, u16* keys, const u32* row,
                       u32* attended, Page& page, New& own) {
    int lane = thread_index() % LANES;
    Turned value = look_head(row, HEADS + KEYS + head), found[GROUP + 1];
    UNROLL for (int i = 0; i <= GROUP; i++)
        found[i] = look_head(row, i < GROUP ? head * GROUP + i : HEADS + head);
    NO_UNROLL for (int i = 0; i <= GROUP; i++) {
        int number = i < GROUP ? head * GROUP + i : HEADS + head;
        Turned given = i == 0 ? found[0] : i == 1 ? found[1] : found[2];
        Turned made = turned([&] { return given; }, number, turning, position);
        keep(i < GROUP ? own.queries[i] : own.key, made);
        if (i == GROUP) keep(keys + position * DIM, made);
    }
    keep(own.value, value), keep(keys + TO_VALUES + position * DIM, value);
    warp_barrier();
    u32 queries[16];
    load_queries(own, queries);
    add_new(own, position, page);
    float height = score(page, queries);
    Attended result;
    take_in(page, lane % LENGTH > position ? NOTHING : height, result);
    UNROLL for (int member = 0; member < GROUP; member++) {
        float total = from_lane(result.total, member * LENGTH), (&sums)[4] = result.sums[member];
        u32* target = attended + (head * GROUP + member) * (DIM / 2) + 2 * lane;
        *reinterpret_cast<Pair*>(target) = {narrow(sums[0] / total, sums[1] / total),
                                            narrow(sums[2] / total, sums[3] / total)};
    }
    warp_barrier();  // `own` is written again
}
