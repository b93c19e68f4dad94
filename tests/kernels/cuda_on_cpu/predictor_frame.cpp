// kernels/cuda/predictor_frame.cu for the CPU: a library with one function.
#include <predictor_frame.cu>

extern "C" int run(const Arguments* given) {
    bool through = emulated::run(PROGRAMS, ALL_THREADS, shared_bytes,
                                 [given] { predictor_frame(*given); });
    return through ? 0 : 1;
}
