// Programs that go from stage to stage together. Where there are many rows, results travel as plain
// numbers, and programs wait for each other between two stages.
#pragma once

#include <inputs.cuh>

struct Stages {
    u32* finished;  // by programs, all together
    u32 count;      // by this one
};

// What any thread of this program has written is there for whoever waits for this stage.
DEVICE void finish_stage(Stages& stages) {
    stages.count++;
    barrier(ALL, THREADS);
    if (thread_index() == 0) tell(stages.finished);
}

// Until all programs have finished as many stages as this one.
DEVICE void wait_for_all(const Stages& stages) {
    if (thread_index() == 0)
        while (static_cast<int>(told(stages.finished) - stages.count * PROGRAMS) < 0)
            others_turn();
    barrier(ALL, THREADS);
}
