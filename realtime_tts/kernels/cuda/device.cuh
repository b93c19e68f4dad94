// What the kernels use of a GPU of compute capability 9.0. Tests replace this file with one that
// does the same on a CPU. In all kernels, a *program* is a thread block.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define DEVICE __device__ __forceinline__
#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads, 1)
#define CONSTANT(name, value) extern "C" { __device__ int name = value; }
#define UNROLL _Pragma("unroll")
#define NO_UNROLL _Pragma("unroll 1")

struct alignas(8) Pair {
    u32 x, y;
};
struct alignas(16) Quad {
    u32 x, y, z, w;
};

DEVICE u8* shared_memory() {
    extern __shared__ __align__(128) u8 bytes[];
    return bytes;
}

DEVICE int thread_index() { return threadIdx.x; }
DEVICE int program_index() { return blockIdx.x; }

DEVICE u32 shared_address(const void* place) {
    return static_cast<u32>(__cvta_generic_to_shared(place));
}

// Numbers ---------------------------------------------------------------------------------------

DEVICE float number(u32 bits) { return __uint_as_float(bits); }
DEVICE u32 bits_of(float x) { return __float_as_uint(x); }
DEVICE float wide_low(u32 pair) { return __uint_as_float(pair << 16); }
DEVICE float wide_high(u32 pair) { return __uint_as_float(pair & 0xffff0000u); }

// Two float32 as bf16, rounded to nearest even.
DEVICE u32 narrow(float low, float high) {
    u32 pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

// The products of two pairs of bf16, rounded.
DEVICE u32 multiply_pairs(u32 a, u32 b) {
    u32 pair;
    asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(pair) : "r"(a), "r"(b));
    return pair;
}

DEVICE float inverse_root(float x) { return rsqrtf(x); }
DEVICE float exponential(float x) { return __expf(x); }
DEVICE float sigmoid(float x) { return 1.0f / (1.0f + __expf(-x)); }
// Division as torch does it: a quotient one bit off may break or make a tie.
DEVICE float quotient(float a, float b) { return __fdiv_rn(a, b); }

// Threads of a warp, and of a program ------------------------------------------------------------

DEVICE void warp_barrier() { __syncwarp(); }
template <class T> DEVICE T from_lane(T x, int lane) { return __shfl_sync(0xffffffffu, x, lane); }
template <class T> DEVICE T across(T x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
template <class T> DEVICE T from_below(T x, int by) { return __shfl_up_sync(0xffffffffu, x, by); }
template <class T> DEVICE T from_above(T x, int by) { return __shfl_down_sync(0xffffffffu, x, by); }
DEVICE int warp_sum(int x) { return __reduce_add_sync(0xffffffffu, x); }
DEVICE int warp_least(int x) { return __reduce_min_sync(0xffffffffu, x); }
DEVICE int warp_most(int x) { return __reduce_max_sync(0xffffffffu, x); }

// Waits for the `threads` threads that use this barrier; every barrier has a number of its own.
DEVICE void barrier(int number, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

// d += a b: a [16, 16] of weights, b [16, 8] of inputs, in the layout of mma.m16n8k16.
DEVICE void multiply(float (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// A load of data that is read once: it leaves the L2 cache before anything else.
DEVICE u64 streaming_policy() {
    u64 policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

// Words that other programs write and read. 64 bits are read and written as a unit.

DEVICE void send(u64* place, u64 word) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(place), "l"(word) : "memory");
}
DEVICE u64 look(const u64* place) {
    u64 word;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(place) : "memory");
    return word;
}
DEVICE void look_twice(const u64* place, u64& first, u64& second) {
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(first), "=l"(second)
                 : "l"(place)
                 : "memory");
}
DEVICE void others_turn() {}

// Numbers that other programs write before they increase a count: a thread that sees the count
// sees all that the counting program wrote before its barrier.

DEVICE u32 look_pair(const u32* place) {
    u32 pair;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(pair) : "l"(place) : "memory");
    return pair;
}
DEVICE Quad look_quad(const u32* place) {
    Quad quad;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(quad.x), "=r"(quad.y), "=r"(quad.z), "=r"(quad.w)
                 : "l"(place)
                 : "memory");
    return quad;
}
DEVICE void tell(u32* count) {
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(count) : "memory");
}
DEVICE u32 told(const u32* count) {
    u32 number;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(number) : "l"(count) : "memory");
    return number;
}

// Copies into shared memory that complete at a barrier in shared memory ---------------------------

DEVICE void prepare_barrier(u64* at, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(at)),
                 "r"(arrivals));
}
DEVICE void barriers_prepared() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
DEVICE void arrive(u64* at) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(at)) : "memory");
}
DEVICE void arrive_expecting(u64* at, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(at)),
                 "r"(bytes)
                 : "memory");
}
DEVICE void wait_for(u64* at, u32 parity) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}\n" ::"r"(shared_address(at)),
        "r"(parity)
        : "memory");
}
DEVICE void copy_in(void* target, const void* source, int bytes, u64* at, u64 policy) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
        "[%0], [%1], %2, [%3], %4;" ::"r"(shared_address(target)),
        "l"(__cvta_generic_to_global(source)), "r"(bytes), "r"(shared_address(at)), "l"(policy)
        : "memory");
}
