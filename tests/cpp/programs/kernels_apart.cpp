// Kernels and host functions on streams without an order, each with variables of its own: no race. With a variable in common: one.
// And more streams, one after the other, than ThreadSanitizer has room for at a time.
#include <cuda_runtime.h>

static void fill(int* cells, int value) {  // behind a pointer, so that the accesses are instrumented
    for (int i = 0; i < 64; ++i) cells[i] = value + i;
}
static int sum(const int* cells) {
    int total = 0;
    for (int i = 0; i < 64; ++i) total += cells[i];
    return total;
}
static int in_common[64];

int main(int, char** arguments) {
    const bool apart = strcmp(arguments[1], "together"), many = !strcmp(arguments[1], "many");
    cudaStream_t streams[3];
    int results[3] = {};
    for (int s = 0; s < 3; ++s) cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking);
    for (int turn = 0; turn < 8; ++turn)
        for (int s = 0; s < 3; ++s) {
            kvstage::on_stream(streams[s], [s, apart, result = &results[s]] {
                int own[64];
                int* cells = apart ? own : in_common;
                fill(cells, s);
                *result += sum(cells);
            });
            cudaLaunchHostFunc(streams[s], [](void* result) {
                int own[64];
                fill(own, 1);
                *static_cast<int*>(result) -= sum(own);
            }, &results[s]);
            int mine[64];
            fill(mine, s);
            if (sum(mine) != 64 * s + 2016) return 1;
        }
    for (auto* stream : streams) cudaStreamSynchronize(stream);
    char* cell;
    cudaMalloc(&cell, 1);
    for (int i = 0; many && i < 9'000; ++i) {
        cudaStream_t one;
        cudaStreamCreate(&one);
        cudaMemsetAsync(cell, i, 1, one);
        cudaStreamDestroy(one);
        cudaDeviceSynchronize();
    }
    return results[0] == 8 * (2016 - 2016 - 64) ? 0 : 2;
}
