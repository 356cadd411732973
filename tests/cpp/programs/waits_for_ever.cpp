// Waits that never end: a host function that waits for what the host does after it has waited, and a host that waits for nothing.
#include <cuda_runtime.h>

#include <atomic>
#include <thread>

int main(int, char** arguments) {
    static std::atomic<bool> gate{false};
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaMemsetAsync(nullptr, 0, 0, stream);
    if (!strcmp(arguments[1], "function")) {
        cudaLaunchHostFunc(stream, [](void*) { while (!gate) std::this_thread::yield(); }, nullptr);
        cudaStreamSynchronize(stream);
        gate = true;
    } else {
        while (!gate) std::this_thread::yield();
    }
}
