// kernels/cuda/codec_unit.cu for the CPU: a library with one function.
#include <codec_unit.cu>

extern "C" int run(const Arguments* given, int programs) {
    bool through = emulated::run(programs, ALL, shared_bytes, [given] { codec_unit(*given); });
    return through ? 0 : 1;
}
