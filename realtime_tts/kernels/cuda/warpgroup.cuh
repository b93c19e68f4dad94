// Products of four warps together (wgmma), and the loading of their matrices into shared memory.
// Tests replace this file, too, as they do device.cuh.
//
// A matrix is laid out by chunks of eight columns: all rows of a chunk one after the other, 16
// bytes each, then the next chunk. So a product can begin at any row, without another copy.
#pragma once

#include <device.cuh>

constexpr int GROUP_THREADS = 128;
constexpr int TILE_ROWS = 64;      // of a result
constexpr int TILE_COLUMNS = 96;
constexpr int TILE_DEPTH = 16;     // inputs that one product sums
constexpr int TILE_HELD = TILE_COLUMNS / 2;  // results of a thread
constexpr int STRIP_COLUMNS = 160;
constexpr int STRIP_HELD = STRIP_COLUMNS / 2;

// The tensor core's descriptor of a matrix whose chunks are `pitch` rows apart.
DEVICE u64 matrix(const void* start, int pitch) {
    constexpr u64 EIGHT_ROWS = 8;
    u64 place = (shared_address(start) & 0x3ffff) >> 4;
    return place | u64(pitch) << 16 | EIGHT_ROWS << 32;
}
// The descriptor of the same matrix from another row on.
DEVICE u64 from_row(u64 matrix, int row) { return matrix + row; }

#define TILE_RESULTS                                                                     \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "            \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "   \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47}, "
#define FOUR(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define TILE_OPERANDS                                                                    \
    FOUR(0), FOUR(4), FOUR(8), FOUR(12), FOUR(16), FOUR(20), FOUR(24), FOUR(28), FOUR(32), \
        FOUR(36), FOUR(40), FOUR(44)

// d += a b^T: a [64, 16] and b [96, 16] in shared memory, bf16. A thread has two rows of its warp's
// sixteen, lane / 4 and 8 more, and of each eight columns two, from lane % 4 * 2 on.
DEVICE void multiply_tile(float (&d)[TILE_HELD], u64 a, u64 b) {
    asm volatile(
        "{\n.reg .pred add;\nsetp.eq.u32 add, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n96k16.f32.bf16.bf16 " TILE_RESULTS
        "%48, %49, add, 1, 1, 0, 0;\n}\n"
        : TILE_OPERANDS
        : "l"(a), "l"(b));
}
// The same with a in registers: pairs of the columns from lane % 4 * 2 on, rows lane / 4 and 8
// more, and then the same of the eight columns after those.
DEVICE void multiply_tile(float (&d)[TILE_HELD], u32 a0, u32 a1, u32 a2, u32 a3, u64 b) {
    asm volatile(
        "{\n.reg .pred add;\nsetp.eq.u32 add, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n96k16.f32.bf16.bf16 " TILE_RESULTS
        "{%48, %49, %50, %51}, %52, add, 1, 1, 0;\n}\n"
        : TILE_OPERANDS
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b));
}
#define STRIP_RESULTS \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79}, "
// The same, a [64, 16] and b [160, 16]: d += a b^T.
DEVICE void multiply_strip(float (&d)[STRIP_HELD], u64 a, u64 b) {
    asm volatile(
        "{\n.reg .pred add;\nsetp.eq.u32 add, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n160k16.f32.bf16.bf16 " STRIP_RESULTS
        "%80, %81, add, 1, 1, 0, 0;\n}\n"
        : TILE_OPERANDS, FOUR(48), FOUR(52), FOUR(56), FOUR(60), FOUR(64), FOUR(68), FOUR(72),
          FOUR(76)
        : "l"(a), "l"(b));
}
DEVICE void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void products_asked() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until all groups of products except the last LEFT are done.
template <int LEFT> DEVICE void products_done() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

// A load of data that is read repeatedly: it leaves the L2 cache after anything else.
DEVICE u64 keeping_policy() {
    u64 policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

// Copies by single threads, 16 bytes each.
DEVICE void copy_piece(void* target, const void* source) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(target)),
                 "l"(__cvta_generic_to_global(source))
                 : "memory");
}
// Waits for this thread's copies, so that products may read them.
DEVICE void pieces_there() {
    asm volatile("cp.async.wait_all;\nfence.proxy.async.shared::cta;" ::: "memory");
}

// Sixteen rows and columns of results, in pairs as `multiply_strip` leaves them (eight rows, the
// other eight; then of the next eight columns), to a matrix of their columns: a column is `pitch`
// bytes behind the one before.
DEVICE u32 column_address(const u8* first, int pitch) {
    int lane = threadIdx.x % 32;
    return shared_address(first) + (lane / 16 * 8 + lane % 8) * pitch + lane / 8 % 2 * 16;
}
DEVICE void store_columns(u8* first, int pitch, const u32 (&pairs)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                     column_address(first, pitch)),
                 "r"(pairs[0]), "r"(pairs[1]), "r"(pairs[2]), "r"(pairs[3])
                 : "memory");
}

DEVICE int program_count() { return gridDim.x; }

// Moves registers between groups of 128 threads, all of which call this.
template <int COUNT> DEVICE void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}
template <int COUNT> DEVICE void give_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}

DEVICE float sine(float x) { return __sinf(x); }
