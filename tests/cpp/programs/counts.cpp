// The prefill of the benchmark: 11 layers x 2 caches x 8192 tokens in blocks of 32 rows, read row by row and then block by block.
#include <cuda_runtime.h>

#include <cassert>
#include <cstdio>

int main(int count, char** arguments) {
    constexpr unsigned long kCaches = 22, kTokens = 8192, kSize = 32, kRow = 16;
    const char* which = count > 1 ? arguments[1] : "both";
    char *pool, *stage;
    cudaMalloc(&pool, kTokens * kRow);
    cudaMallocHost(&stage, kSize * kRow);
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    const auto read = [&](unsigned long rows) {
        const auto before = kvstage_counts();
        for (unsigned long cache = 0; cache < kCaches; ++cache)
            for (unsigned long row = 0; row < kTokens; row += rows) {
                cudaMemcpyAsync(stage, pool + row * kRow, rows * kRow, cudaMemcpyDeviceToHost, stream);
                cudaStreamSynchronize(stream);
            }
        const auto after = kvstage_counts();
        printf("%lu copies, %lu waits, %lu bytes\n", after.copies - before.copies, after.waits - before.waits, after.bytes - before.bytes);
        return after.copies - before.copies == kCaches * kTokens / rows && after.waits - before.waits == after.copies - before.copies;
    };
    bool right = true;
    if (strcmp(which, "blocks")) right = read(1) && right;
    if (strcmp(which, "rows")) right = read(kSize) && right;
    return right ? 0 : 1;
}
