// The emitted ring, both ways, over the CUDA runtime API: rows go to the pool and come back. It exits with 1 if they differ.
#include <vector>

#include "cuda_backend.hpp"
#include "ring.hpp"

using namespace kvstage;

int main() {
    constexpr Index kRow = 16, kBlocks = 6, kSize = 4, kSlots = 3;
    const std::int32_t table[] = {4, 0, 5, 2, 1, 3};
    const PagedRows rows{table, kBlocks, kBlocks, kSize, 1, 21};
    const Index length = rows.stop - rows.start;
    void *pool = nullptr, *stage = nullptr;
    cudaMalloc(&pool, kBlocks * kSize * kRow);
    cudaMallocHost(&stage, kSlots * kSize * kRow);
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    std::vector<char> given(static_cast<std::size_t>(length * kRow)), back(given.size());
    for (std::size_t k = 0; k < given.size(); ++k) given[k] = static_cast<char>(k * 3 + 1);
    bool right = false;
    {
        CudaBackend backend;
        const auto sent = backend.fresh_events(kSlots), filled = backend.fresh_events(kSlots);
        const Buffer p(pool, kBlocks, kSize, kRow), s(stage, kSlots, kSize, kRow);
        ring_write(backend, rows, kSlots, stream, p, s, Buffer(given.data(), 1, length, kRow), sent.all());
        ring_read(backend, rows, kSlots, stream, p, s, Buffer(back.data(), 1, length, kRow), filled.all());
        right = back == given && backend.query_event(sent[0]);
    }
    cudaStreamDestroy(stream);
    cudaFreeHost(stage);
    cudaFree(pool);
    return right ? 0 : 1;
}
