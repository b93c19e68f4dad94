// What kernels/cuda/warpgroup.cuh asks of a GPU, on one CPU thread (see device.cuh beside this).
#pragma once

#include <device.cuh>

constexpr int GROUP_THREADS = 128;
constexpr int TILE_ROWS = 64;
constexpr int TILE_COLUMNS = 96;
constexpr int TILE_DEPTH = 16;
constexpr int TILE_HELD = TILE_COLUMNS / 2;
constexpr int STRIP_COLUMNS = 160;
constexpr int STRIP_HELD = STRIP_COLUMNS / 2;

// As the GPU's, with addresses from the beginning of shared memory on.
DEVICE u64 matrix(const void* start, int pitch) {
    u64 place = (reinterpret_cast<const u8*>(start) - shared_memory()) >> 4;
    return place | u64(pitch) << 16 | u64(8) << 32;
}
DEVICE u64 from_row(u64 matrix, int row) { return matrix + row; }

namespace emulated {

// An element of a matrix, from the description of layouts without swizzling in the PTX manual.
inline float element(u64 matrix, int row, int column) {
    int place = matrix & 0x3fff, chunks = matrix >> 16 & 0x3fff, rows = matrix >> 32 & 0x3fff;
    const u8* core = shared_memory() + 16 * (place + column / 8 * chunks + row / 8 * rows);
    return bf16(reinterpret_cast<const u16*>(core)[row % 8 * 8 + column % 8]);
}

template <int HELD, class Left> void multiply(float (&d)[HELD], Left left, u64 b) {
    for (int i = 0; i < HELD; i++) {
        int row = lane() / 4 + i % 4 / 2 * 8, column = i / 4 * 8 + lane() % 4 * 2 + i % 2;
        for (int k = 0; k < TILE_DEPTH; k++) d[i] += left(row, k) * element(b, column, k);
    }
}

}  // namespace emulated

DEVICE void multiply_tile(float (&d)[TILE_HELD], u64 a, u64 b) {
    int first = thread_index() / 32 % 4 * 16;
    auto left = [=](int row, int k) { return emulated::element(a, first + row, k); };
    emulated::multiply(d, left, b);
}
DEVICE void multiply_tile(float (&d)[TILE_HELD], u32 a0, u32 a1, u32 a2, u32 a3, u64 b) {
    emulated::Warp& own = emulated::warp();
    u32 given[4] = {a0, a1, a2, a3};
    for (int i = 0; i < 4; i++) own.more[emulated::lane()][i] = given[i];
    emulated::meet(own.meeting, 32);
    auto left = [&](int row, int k) {
        u64 pair = own.more[row % 8 * 4 + k % 8 / 2][(row >= 8) + 2 * (k >= 8)];
        return k % 2 ? wide_high(u32(pair)) : wide_low(u32(pair));
    };
    emulated::multiply(d, left, b);
    emulated::meet(own.meeting, 32);
}
DEVICE void multiply_strip(float (&d)[STRIP_HELD], u64 a, u64 b) {
    int first = thread_index() / 32 % 4 * 16;
    auto left = [=](int row, int k) { return emulated::element(a, first + row, k); };
    emulated::multiply(d, left, b);
}
DEVICE void products_begin() {}
DEVICE void products_asked() {}
// A warp is as far as its last lane.
template <int LEFT> DEVICE void products_done() { warp_barrier(); }

DEVICE u64 keeping_policy() { return 0; }
DEVICE void copy_piece(void* target, const void* source) { memcpy(target, source, 16); }
DEVICE void pieces_there() {}

// Where a pair's value lies: of the block's rows and columns.
DEVICE u16* column_place(const u8* first, int pitch, int pair, int odd) {
    int row = emulated::lane() / 4 + pair % 2 * 8;
    int column = pair / 2 * 8 + emulated::lane() % 4 * 2 + odd;
    return reinterpret_cast<u16*>(const_cast<u8*>(first) + column * pitch) + row;
}
DEVICE void store_columns(u8* first, int pitch, const u32 (&pairs)[4]) {
    for (int i = 0; i < 8; i++)
        *column_place(first, pitch, i / 2, i % 2) = pairs[i / 2] >> (i % 2 * 16);
}

DEVICE int program_count() { return emulated::programs.size(); }
template <int COUNT> DEVICE void take_registers() {}
template <int COUNT> DEVICE void give_registers() {}
DEVICE float sine(float x) { return std::sin(x); }
