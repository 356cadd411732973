// The same loops on a stream of the CUDA runtime, for a judge that runs them under schedules: `row`, `hoisted` or `block`.
#include <cuda_runtime.h>

#include <cstdio>
#include <string>

#include "block_loop.hpp"
#include "row_loop.hpp"

namespace {

class CudaQueue {
public:
    CudaQueue() { cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking); }
    ~CudaQueue() { cudaStreamDestroy(stream_); }
    void copy_async(void* target, const void* source, std::size_t bytes) {
        cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault, stream_);
    }
    void synchronize() { cudaStreamSynchronize(stream_); }

private:
    cudaStream_t stream_ = nullptr;
};

}  // namespace

int main(int count, char** words) {
    const std::string which = count > 1 ? words[1] : "row";
    constexpr std::int64_t kWidth = 8, kBlocks = 6, kBlockSize = 4, kRows = 10;
    constexpr std::size_t kBytes = kBlocks * kBlockSize * kWidth * 2;
    const Sequence sequence{{4, 0, 5}, kBlocks, kBlockSize, kRows};
    void *pages = nullptr, *stage = nullptr;
    cudaMalloc(&pages, kBytes);
    cudaMallocHost(&stage, kBlockSize * kWidth * 2);
    std::vector<char> contents(kBytes);
    for (std::size_t k = 0; k < kBytes; ++k) contents[k] = static_cast<char>(k * 5 + 1);
    cudaMemcpy(pages, contents.data(), kBytes, cudaMemcpyHostToDevice);
    cudaDeviceSynchronize();  // from pageable memory the call may return before the device's part is done
    const Cache cache{static_cast<char*>(pages), kWidth, Dtype::kBf16};
    std::vector<float> out(kRows * kWidth), wanted(out.size());
    for (std::int64_t token = 0; token < kRows; ++token)
        to_f32(contents.data() + row_offset(sequence, cache, token), wanted.data() + token * kWidth, kWidth, cache.dtype);
    {
        CudaQueue queue;
        auto* const row = static_cast<char*>(stage);
        if (which == "row") load_rows(queue, sequence, cache, row, out.data());
        else if (which == "hoisted") load_rows_hoisted(queue, sequence, cache, row, out.data());
        else if (which == "block") load_blocks(queue, sequence, cache, row, out.data());
        else return 2;
    }
    const bool right = std::memcmp(out.data(), wanted.data(), out.size() * sizeof(float)) == 0;
    std::printf("%s: %s\n", which.c_str(), right ? "right" : "wrong");
    cudaFreeHost(stage);
    cudaFree(pages);
    return right ? 0 : 1;
}
