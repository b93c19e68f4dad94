// kernels/cuda/codec_conv.cu for the CPU: a library with one function.
#include <codec_conv.cu>

extern "C" int run(const Arguments* given, int programs) {
    bool through = emulated::run(programs, ALL, shared_bytes, [given] { codec_conv(*given); });
    return through ? 0 : 1;
}
