// Programs that pass from stage to stage together. With many rows, results are sent as plain
// numbers, and programs wait for each other between two stages.
#pragma once

#include <inputs.cuh>

struct Stages {
    u32* finished;  // by programs, all together
    u32 count;      // by this one
};

// Makes all writes of this program visible to programs that wait for this stage.
DEVICE void finish_stage(Stages& stages) {
    stages.count++;
    barrier(ALL, THREADS);
    if (thread_index() == 0) tell(stages.finished);
}

// Waits until all programs have finished as many stages as this one.
DEVICE void wait_for_all(const Stages& stages) {
    if (thread_index() == 0)
        while (static_cast<int>(told(stages.finished) - stages.count * PROGRAMS) < 0)
            others_turn();
    barrier(ALL, THREADS);
}
