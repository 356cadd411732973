// Reads a sequence's rows out of a paged pool through one pinned buffer, and says so to a trace: by block, or by row; with its wait or without.
#include <cuda_runtime.h>

#include <algorithm>
#include <vector>

int main(int, char** arguments) {
    const bool by_row = !strcmp(arguments[1], "per_row"), waits = !strcmp(arguments[2], "right");
    constexpr int kBlocks = 4, kSize = 3, kRow = 5, kStop = 8;
    constexpr int kTable[] = {2, 0, 3};
    constexpr size_t kBlock = size_t(kSize) * kRow;
    char *pool, *stage;
    std::vector<char> out(size_t(kStop) * kRow), host(kBlocks * kBlock);
    for (size_t i = 0; i < host.size(); ++i) host[i] = char(i / kRow);
    cudaMalloc(&pool, host.size());
    cudaMallocHost(&stage, kBlock);
    cudaMemcpy(pool, host.data(), host.size(), cudaMemcpyHostToDevice);
    cudaDeviceSynchronize();
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);

    kvstage_name_stream(stream, "copy");
    kvstage_name_buffer(pool, "blocks", kBlocks, kSize, kRow);
    kvstage_name_buffer(stage, "bounce", 1, by_row ? 1 : kSize, kRow);
    kvstage_name_buffer(out.data(), "latents", 1, kStop, kRow);
    kvstage_begin_call(R"({"rows": {"table": [2, 0, 3], "num_blocks": 4, "block_size": 3, "start": 0, "stop": 8}})");
    for (int row = 0; row < kStop;) {
        const int count = by_row ? 1 : std::min(kSize - row % kSize, kStop - row);
        const size_t bytes = size_t(count) * kRow;
        const char* from = pool + size_t(kTable[row / kSize]) * kBlock + size_t(row % kSize) * kRow;
        cudaMemcpyAsync(stage, from, bytes, cudaMemcpyDeviceToHost, stream);
        if (waits) cudaStreamSynchronize(stream);
        kvstage_host_copy(&out[size_t(row) * kRow], stage, bytes);
        row += count;
    }
    kvstage_end_call();
    cudaStreamSynchronize(stream);
    int wrong = 0;
    for (int row = 0; row < kStop; ++row)
        for (int i = 0; i < kRow; ++i) wrong += out[size_t(row) * kRow + size_t(i)] != char(kTable[row / kSize] * kSize + row % kSize);
    return wrong != 0;
}
