// kernels/cuda/predictor_batch.cu for the CPU: a library with one function.
#include <predictor_batch.cu>

extern "C" int run(const Arguments* given) {
    bool through = emulated::run(PROGRAMS, ALL_THREADS, shared_bytes,
                                 [given] { predictor_batch(*given); });
    return through ? 0 : 1;
}
