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

// A line of a matrix, from the description of layouts without swizzling in the PTX manual: two
// pieces of eight numbers.
inline Line line_of(u64 matrix, int row) {
    int place = matrix & 0x3fff, chunks = matrix >> 16 & 0x3fff, rows = matrix >> 32 & 0x3fff;
    const u8* core = shared_memory() + 16 * (place + row / 8 * rows + row % 8);
    Line line;
    for (int k = 0; k < TILE_DEPTH; k++) {
        const u16* piece = reinterpret_cast<const u16*>(core + 16 * (k / 8 * chunks));
        line.fours[k / 4][k % 4] = bf16(piece[k % 8]);
    }
    return line;
}

template <int HELD>
void multiply(float (&d)[HELD], const Line& upper, const Line& lower, u64 b) {
    for (int i = 0; i < HELD; i += 4)
        for (int odd = 0; odd < 2; odd++) {
            Line right = line_of(b, i / 4 * 8 + lane() % 4 * 2 + odd);
            d[i + odd] += product(upper, right);
            d[i + odd + 2] += product(lower, right);
        }
}
template <int HELD> void multiply(float (&d)[HELD], u64 a, u64 b) {
    int row = thread_index() / 32 % 4 * 16 + lane() / 4;
    multiply(d, line_of(a, row), line_of(a, row + 8), b);
}

}  // namespace emulated

DEVICE void multiply_tile(float (&d)[TILE_HELD], u64 a, u64 b) { emulated::multiply(d, a, b); }
DEVICE void multiply_tile(float (&d)[TILE_HELD], u32 a0, u32 a1, u32 a2, u32 a3, u64 b) {
    const emulated::Line* left = emulated::give_left(a0, a1, a2, a3);
    warp_barrier();
    int row = emulated::lane() / 4;
    emulated::multiply(d, left[row], left[row + 8], b);
}
DEVICE void multiply_strip(float (&d)[STRIP_HELD], u64 a, u64 b) { emulated::multiply(d, a, b); }
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
DEVICE float sine(float x) { return __builtin_sinf(x); }
