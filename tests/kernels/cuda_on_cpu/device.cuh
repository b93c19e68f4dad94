// What kernels/cuda/device.cuh asks of a GPU, on one CPU thread: every thread of every program is
// a context of its own, and they take turns wherever one would wait. The order of turns is the
// same in every run; where nobody can go on, the run ends with an error. For x86-64. Mathematical
// functions are the compiler's own: to read <cmath> was a tenth of every build.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define DEVICE inline
#define KERNEL(threads) static void
#define CONSTANT(name, value) extern "C" { int name = value; }
#define UNROLL
#define NO_UNROLL

struct alignas(8) Pair {
    u32 x, y;
};
struct alignas(16) Quad {
    u32 x, y, z, w;
};

// Keeps the registers that a call must keep and the place on the stack, and goes on elsewhere.
extern "C" void switch_stack(void** kept, void* place);
asm(R"(
.text
.globl switch_stack
switch_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");

namespace emulated {

struct Meeting {  // of the threads of a warp, or at a barrier of a program
    int arrived = 0;
    u64 round = 0;
};

// Sixteen numbers of a row of the left factor, or of a column of the right one.
typedef float Four __attribute__((vector_size(16)));
struct Line {
    Four fours[4];
};

// What threads give each other lies in two places by turns: whoever reads in one of them meets the
// others again before anybody writes there.
struct Warp {
    Meeting meeting;
    u64 words[2][32];
    Line left[2][16], right[2][8];
};

struct Program {
    std::vector<u8> shared;
    std::vector<Warp> warps;
    Meeting barriers[16];
};

struct Thread {
    void* place = nullptr;  // on its stack, where it goes on
    Program* program;
    int index, number;
    bool done = false;
    const Meeting* meeting = nullptr;  // what it waits for the end of, and since which round
    u64 round = 0;
    bool waits() const { return meeting != nullptr && meeting->round == round; }
};

inline std::vector<Program> programs;
inline std::vector<Thread> threads;
inline Thread* now = nullptr;
inline void* scheduler = nullptr;
inline u64 progress = 0;  // whatever somebody may wait for

inline void yield() { switch_stack(&now->place, scheduler); }

inline void meet(Meeting& meeting, int expected) {
    u64 round = meeting.round;
    if (++meeting.arrived == expected) {
        meeting.arrived = 0;
        meeting.round++;
        progress++;
        return;
    }
    now->meeting = &meeting, now->round = round;
    yield();  // and has no turn until this round is over
    now->meeting = nullptr;
}

inline Warp& warp() { return now->program->warps[now->index / 32]; }
inline int lane() { return now->index % 32; }

inline const void* body = nullptr;
template <class Kernel> void enter() {
    (*static_cast<const Kernel*>(body))();
    now->done = true;
    progress++;
    yield();
}

// Gives each thread of the warp that begins at `first` a turn, and again while they met: what lies
// on their stacks is near then. False if all of them are done.
inline bool run_warp(Thread* first) {
    constexpr int MOST_TURNS = 16;  // some look for what others do, and meet, again and again
    const Meeting& meeting = first->program->warps[first->index / 32].meeting;
    bool all = true;
    for (int turn = 0; turn < MOST_TURNS; turn++) {
        u64 round = meeting.round;
        for (Thread* thread = first; thread < first + 32; thread++) {
            if (thread->done) continue;
            all = false;
            if (thread->waits()) continue;
            now = thread;
            switch_stack(&scheduler, thread->place);
        }
        if (meeting.round == round) break;
    }
    return !all;
}

// Runs `count` programs of `size` threads each; false if they wait for each other for ever.
template <class Kernel> bool run(int count, int size, int shared, const Kernel& kernel) {
    constexpr size_t STACK = 32 * 1024;
    body = &kernel;
    programs = std::vector<Program>(count);
    threads = std::vector<Thread>(count * size);
    std::unique_ptr<u8[]> stacks(new u8[threads.size() * STACK]);
    for (int p = 0; p < count; p++) {
        programs[p].shared.resize(shared + 128);
        programs[p].warps.resize(size / 32);
        for (int t = 0; t < size; t++) {
            Thread& thread = threads[p * size + t];
            thread.program = &programs[p];
            thread.number = p, thread.index = t;
            auto top = reinterpret_cast<uintptr_t>(&stacks[(p * size + t + 1) * STACK]) / 64 * 64;
            // Six registers, where to go on, and eight bytes: what a call would have left.
            void** frame = reinterpret_cast<void**>(top) - 8;
            frame[6] = reinterpret_cast<void*>(enter<Kernel>);
            thread.place = frame;
        }
    }
    for (int idle = 0; idle < 3;) {
        u64 before = progress;
        bool all = true;
        for (size_t first = 0; first < threads.size(); first += 32)
            if (run_warp(&threads[first])) all = false;
        if (all) return true;
        idle = progress == before ? idle + 1 : 0;
    }
    return false;
}

inline float bf16(u32 bits) {
    u32 wide = bits << 16;
    float x;
    memcpy(&x, &wide, 4);
    return x;
}

inline u32 rounded(float x) {
    u32 bits;
    memcpy(&bits, &x, 4);
    if (x != x) return 0x7fff;
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

template <class T> T exchange(T x, int source) {
    static_assert(sizeof(T) <= 8, "one word");
    Warp& own = warp();
    u64* words = own.words[own.meeting.round % 2];
    memcpy(&words[lane()], &x, sizeof(T));
    meet(own.meeting, 32);
    if (source >= 0 && source < 32) memcpy(&x, &words[source], sizeof(T));
    return x;
}

template <class T, class Join> T joined(T x, Join join) {
    for (int mask = 1; mask < 32; mask *= 2) x = join(x, exchange(x, lane() ^ mask));
    return x;
}

inline float product(const Line& left, const Line& right) {
    Four sum = {};
    for (int i = 0; i < 4; i++) sum += left.fours[i] * right.fours[i];
    return sum[0] + sum[1] + sum[2] + sum[3];
}

}  // namespace emulated

DEVICE u8* shared_memory() {
    auto address = reinterpret_cast<uintptr_t>(emulated::now->program->shared.data());
    return reinterpret_cast<u8*>((address + 127) / 128 * 128);
}

DEVICE int thread_index() { return emulated::now->index; }
DEVICE int program_index() { return emulated::now->number; }

DEVICE float number(u32 bits) {
    float x;
    memcpy(&x, &bits, 4);
    return x;
}
DEVICE u32 bits_of(float x) {
    u32 bits;
    memcpy(&bits, &x, 4);
    return bits;
}
DEVICE float wide_low(u32 pair) { return emulated::bf16(pair & 0xffffu); }
DEVICE float wide_high(u32 pair) { return emulated::bf16(pair >> 16); }
DEVICE u32 narrow(float low, float high) {
    return emulated::rounded(high) << 16 | emulated::rounded(low);
}
DEVICE u32 multiply_pairs(u32 a, u32 b) {
    return narrow(wide_low(a) * wide_low(b), wide_high(a) * wide_high(b));
}
DEVICE float inverse_root(float x) { return 1.0f / __builtin_sqrtf(x); }
DEVICE float exponential(float x) { return __builtin_expf(x); }
DEVICE float sigmoid(float x) { return 1.0f / (1.0f + __builtin_expf(-x)); }
DEVICE float quotient(float a, float b) { return a / b; }

DEVICE void warp_barrier() { emulated::meet(emulated::warp().meeting, 32); }
template <class T> T from_lane(T x, int lane) { return emulated::exchange(x, lane); }
template <class T> T across(T x, int mask) {
    return emulated::exchange(x, emulated::lane() ^ mask);
}
template <class T> T from_below(T x, int by) {
    return emulated::exchange(x, emulated::lane() - by);
}
template <class T> T from_above(T x, int by) {
    return emulated::exchange(x, emulated::lane() + by);
}
DEVICE int warp_sum(int x) {
    return emulated::joined(x, [](int a, int b) { return a + b; });
}
DEVICE int warp_least(int x) {
    return emulated::joined(x, [](int a, int b) { return a < b ? a : b; });
}
DEVICE int warp_most(int x) {
    return emulated::joined(x, [](int a, int b) { return a > b ? a : b; });
}
DEVICE void barrier(int number, int threads) {
    emulated::meet(emulated::now->program->barriers[number], threads);
}

namespace emulated {

// The layout of mma.m16n8k16's factors, from its description in the PTX manual: a lane has two
// numbers next to each other of a line, and two that come eight later.
inline void give(Line& line, u32 low, u32 high) {
    int four = lane() % 4 / 2, first = lane() % 2 * 2;
    line.fours[four][first] = wide_low(low), line.fours[four][first + 1] = wide_high(low);
    line.fours[four + 2][first] = wide_low(high), line.fours[four + 2][first + 1] = wide_high(high);
}
inline Line* give_left(u32 a0, u32 a1, u32 a2, u32 a3) {
    Line* left = warp().left[warp().meeting.round % 2];
    give(left[lane() / 4], a0, a2);
    give(left[lane() / 4 + 8], a1, a3);
    return left;
}

}  // namespace emulated

DEVICE void multiply(float (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
    emulated::Warp& own = emulated::warp();
    const emulated::Line* left = emulated::give_left(a0, a1, a2, a3);
    emulated::Line* right = own.right[own.meeting.round % 2];
    int group = emulated::lane() / 4, place = emulated::lane() % 4 * 2;
    emulated::give(right[group], b0, b1);
    emulated::meet(own.meeting, 32);
    for (int r = 0; r < 4; r++)
        d[r] += emulated::product(left[group + r / 2 * 8], right[place + r % 2]);
}

DEVICE void send(u64* place, u64 word) {
    *place = word;
    emulated::progress++;
}
DEVICE u64 look(const u64* place) { return *place; }
DEVICE void look_twice(const u64* place, u64& first, u64& second) {
    first = place[0], second = place[1];
}
DEVICE void others_turn() { emulated::yield(); }

DEVICE u32 look_pair(const u32* place) { return *place; }
DEVICE Quad look_quad(const u32* place) { return *reinterpret_cast<const Quad*>(place); }
DEVICE void tell(u32* count) {
    ++*count;
    emulated::progress++;
}
DEVICE u32 told(const u32* count) { return *count; }

// A barrier in shared memory: its phase, what it still waits for, what each phase waits for, and how
// many bytes are expected that have not come.
struct Arrivals {
    u8 phase, pending, expected, unused;
    int bytes;
};

inline void end_phase(Arrivals& at) {
    if (at.pending > 0 || at.bytes != 0) return;
    at.pending = at.expected, at.phase++;
    emulated::progress++;
}
DEVICE void arrive_expecting(u64* at, int bytes) {
    Arrivals& own = *reinterpret_cast<Arrivals*>(at);
    if (own.pending == 0) {
        fprintf(stderr, "an arrival too many\n");
        abort();
    }
    own.pending--, own.bytes += bytes;
    emulated::progress++;
    end_phase(own);
}
DEVICE void arrive(u64* at) { arrive_expecting(at, 0); }
DEVICE void prepare_barrier(u64* at, int arrivals) {
    *reinterpret_cast<Arrivals*>(at) = {0, u8(arrivals), u8(arrivals), 0, 0};
}
DEVICE void barriers_prepared() {}
DEVICE void wait_for(u64* at, u32 parity) {
    while ((reinterpret_cast<Arrivals*>(at)->phase & 1) == parity) emulated::yield();
}
DEVICE u64 streaming_policy() { return 0; }
// Copies are over at once.
DEVICE void copy_in(void* target, const void* source, int bytes, u64* at, u64) {
    memcpy(target, source, bytes);
    Arrivals& own = *reinterpret_cast<Arrivals*>(at);
    own.bytes -= bytes;
    end_phase(own);
}
