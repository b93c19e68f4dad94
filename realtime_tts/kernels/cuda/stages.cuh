// Programs that go from stage to stage together. Where there are many rows, results travel as plain
// numbers, and each program tells the others how many stages it has finished.
#pragma once

#include <inputs.cuh>

struct Stages {
    u32* finished;  // [PROGRAMS]
    u32 count;      // that this program has finished
};

static_assert(PROGRAMS % 4 == 0 && PROGRAMS <= 4 * LANES, "a lane asks four programs");

// What any thread of this program has written is there for whoever waits for this stage.
DEVICE void finish_stage(Stages& stages) {
    stages.count++;
    barrier(ALL, THREADS);
    if (thread_index() == 0) tell(stages.finished + program_index(), stages.count);
}

// Until all programs have finished as many stages as this one.
DEVICE void wait_for_all(const Stages& stages) {
    int lane = thread_index();
    if (lane < PROGRAMS / 4) {
        bool missing;
        do {
            Quad others = told(stages.finished + 4 * lane);
            u32 counts[4] = {others.x, others.y, others.z, others.w};
            missing = false;
            UNROLL for (int i = 0; i < 4; i++)
                missing |= static_cast<int>(counts[i] - stages.count) < 0;
            if (missing) others_turn();
        } while (missing);
    }
    barrier(ALL, THREADS);
}
