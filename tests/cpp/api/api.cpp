// What each call of the API does and refuses. A check that fails prints its line; the program ends with how many have.
#include <cuda.h>

#include <vector>

#include "checks.hpp"

namespace {

constexpr size_t kBytes = 256;

void memory_of_all_kinds() {
    void *device = nullptr, *host = nullptr, *managed = nullptr, *pooled = nullptr;
    std::vector<char> own(kBytes);
    CHECK(cudaMalloc(&device, kBytes) == cudaSuccess && device);
    CHECK(cudaHostAlloc(&host, kBytes, cudaHostAllocMapped) == cudaSuccess && host);
    CHECK(cudaMallocManaged(&managed, kBytes) == cudaSuccess && managed);
    CHECK(cudaMallocAsync(&pooled, kBytes, nullptr) == cudaSuccess && pooled);
    CHECK(cudaHostRegister(own.data(), kBytes, cudaHostRegisterDefault) == cudaSuccess);
    CHECK(cudaHostRegister(own.data(), kBytes, cudaHostRegisterDefault) == cudaErrorHostMemoryAlreadyRegistered);
    cudaPointerAttributes attributes{};
    const auto type = [&](void* p) { return cudaPointerGetAttributes(&attributes, p), attributes.type; };
    CHECK(type(device) == cudaMemoryTypeDevice && !attributes.hostPointer);
    CHECK(type(host) == cudaMemoryTypeHost && attributes.devicePointer == host);
    CHECK(type(managed) == cudaMemoryTypeManaged);
    CHECK(type(static_cast<char*>(device) + kBytes - 1) == cudaMemoryTypeDevice);
    CHECK(type(&attributes) == cudaMemoryTypeUnregistered && !attributes.devicePointer);
    void* mapped = nullptr;
    unsigned flags = 0;
    CHECK(cudaHostGetDevicePointer(&mapped, host, 0) == cudaSuccess && mapped == host);
    CHECK(cudaHostGetDevicePointer(&mapped, device, 0) == cudaErrorInvalidValue);
    CHECK(cudaHostGetFlags(&flags, host) == cudaSuccess && flags == cudaHostAllocMapped);
    CHECK(cudaFree(host) == cudaErrorInvalidValue);
    CHECK(cudaFreeHost(device) == cudaErrorInvalidValue);
    CHECK(cudaFree(static_cast<char*>(device) + 1) == cudaErrorInvalidValue);
    CHECK(cudaHostUnregister(own.data()) == cudaSuccess);
    CHECK(cudaHostUnregister(own.data()) == cudaErrorHostMemoryNotRegistered);
    CHECK(cudaFree(device) == cudaSuccess && cudaFree(device) == cudaErrorInvalidValue);
    CHECK(cudaFreeHost(host) == cudaSuccess && cudaFree(managed) == cudaSuccess);
    CHECK(cudaFreeAsync(pooled, nullptr) == cudaSuccess && cudaFreeAsync(pooled, nullptr) == cudaErrorInvalidValue);
    CHECK(cudaFree(nullptr) == cudaSuccess && cudaFreeHost(nullptr) == cudaSuccess);
    CHECK(cudaMalloc(&device, SIZE_MAX) == cudaErrorMemoryAllocation && !device);
    CHECK(cudaGetLastError() == cudaErrorMemoryAllocation && cudaGetLastError() == cudaSuccess);
}

void copies_are_checked() {
    char *device, *pinned, pageable[kBytes] = {};
    cudaMalloc(&device, kBytes);
    cudaMallocHost(&pinned, kBytes);
    CHECK(cudaMemcpy(device, pinned, kBytes + 1, cudaMemcpyDefault) == cudaErrorInvalidValue);
    CHECK(cudaMemcpy(pageable, pinned, kBytes, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    CHECK(cudaMemcpy(device, pageable, kBytes, cudaMemcpyDeviceToDevice) == cudaErrorInvalidValue);
    CHECK(cudaMemcpy(device, pinned, kBytes, static_cast<cudaMemcpyKind>(9)) == cudaErrorInvalidMemcpyDirection);
    CHECK(cudaMemcpy2D(device, 4, pinned, 8, 8, 2, cudaMemcpyDefault) == cudaErrorInvalidPitchValue);
    CHECK(cudaMemcpy(nullptr, pinned, 1, cudaMemcpyDefault) == cudaErrorInvalidValue);
    CHECK(cudaMemset(pageable, 0, 1) == cudaErrorInvalidValue);
    CHECK(cudaMemcpyPeerAsync(device, 1, device, 0, 8) == cudaErrorInvalidDevice);
    CHECK(cudaMemcpyAsync(device, pinned, 8, cudaMemcpyDefault, reinterpret_cast<cudaStream_t>(pageable)) == cudaErrorInvalidResourceHandle);
    CHECK(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyDefault) == cudaSuccess);
    CHECK(kvstage_counts().copies == 0);
    cudaFree(device);
    cudaFreeHost(pinned);
}

void copies_of_boxes() {
    constexpr size_t kPitch = 16, kWidth = 4, kHeight = 3, kDepth = 2;
    std::vector<unsigned char> host(kPitch * kHeight * kDepth), back(host.size());
    for (size_t i = 0; i < host.size(); ++i) host[i] = static_cast<unsigned char>(i + 1);
    unsigned char *device, *other;
    cudaMalloc(&device, host.size());
    cudaMalloc(&other, host.size());
    cudaMemset(device, 0, host.size());
    CHECK(cudaMemcpy2D(device, kPitch, host.data(), kPitch, kWidth, kHeight, cudaMemcpyHostToDevice) == cudaSuccess);
    CHECK(cudaMemcpy(back.data(), device, host.size(), cudaMemcpyDeviceToHost) == cudaSuccess);
    for (size_t i = 0; i < host.size(); ++i) CHECK(back[i] == (i % kPitch < kWidth && i / kPitch < kHeight ? host[i] : 0));
    cudaMemset(other, 0, host.size());
    cudaMemcpy(device, host.data(), host.size(), cudaMemcpyHostToDevice);
    cudaMemcpy3DParms box{};
    box.srcPtr = make_cudaPitchedPtr(device, kPitch, kPitch, kHeight);
    box.dstPtr = make_cudaPitchedPtr(other, kPitch, kPitch, kHeight);
    box.srcPos = make_cudaPos(1, 1, 0);
    box.extent = make_cudaExtent(kWidth, 2, kDepth);
    box.kind = cudaMemcpyDeviceToDevice;
    CHECK(cudaMemcpy3DAsync(&box) == cudaSuccess);
    CHECK(cudaMemset2D(other, kPitch, 0xEE, 2, 1) == cudaSuccess);
    cudaMemcpy(back.data(), other, host.size(), cudaMemcpyDeviceToHost);
    for (size_t z = 0; z < kDepth; ++z)
        for (size_t y = 0; y < kHeight; ++y)
            for (size_t x = 0; x < kPitch; ++x) {
                const size_t at = (z * kHeight + y) * kPitch + x, from = (z * kHeight + y + 1) * kPitch + x + 1;
                const unsigned char copied = x < kWidth && y < 2 ? host[from] : 0;
                CHECK(back[at] == (z == 0 && y == 0 && x < 2 ? 0xEE : copied));
            }
    cudaFree(device);
    cudaFree(other);
}

void streams_and_events() {
    cudaStream_t stream, urgent;
    int least, greatest, priority;
    unsigned flags;
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest) == cudaSuccess && greatest < least);
    CHECK(cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, greatest - 7) == cudaSuccess);
    CHECK(cudaStreamGetPriority(urgent, &priority) == cudaSuccess && priority == greatest);
    CHECK(cudaStreamGetFlags(urgent, &flags) == cudaSuccess && flags == cudaStreamNonBlocking);
    CHECK(cudaStreamCreateWithFlags(&stream, 77) == cudaErrorInvalidValue);
    CHECK(cudaStreamCreate(&stream) == cudaSuccess && cudaStreamQuery(stream) == cudaSuccess);
    cudaEvent_t event, timed;
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaEventCreate(&timed);
    float milliseconds = -1;
    CHECK(cudaEventQuery(event) == cudaSuccess && cudaEventSynchronize(event) == cudaSuccess);  // never recorded
    CHECK(cudaEventElapsedTime(&milliseconds, timed, timed) == cudaErrorInvalidResourceHandle);
    CHECK(cudaEventRecord(timed, stream) == cudaSuccess && cudaEventSynchronize(timed) == cudaSuccess);
    CHECK(cudaEventElapsedTime(&milliseconds, timed, timed) == cudaSuccess && milliseconds >= 0);
    CHECK(cudaStreamDestroy(stream) == cudaSuccess && cudaStreamDestroy(stream) == cudaErrorInvalidResourceHandle);
    CHECK(cudaStreamSynchronize(stream) == cudaErrorInvalidResourceHandle);
    CHECK(cudaStreamDestroy(urgent) == cudaSuccess && cudaEventDestroy(event) == cudaSuccess && cudaEventDestroy(timed) == cudaSuccess);
    CHECK(!strcmp(cudaGetErrorName(cudaErrorNotReady), "cudaErrorNotReady") && *cudaGetErrorString(cudaErrorUnknown));
    CHECK(cudaSetDevice(0) == cudaSuccess && cudaSetDevice(1) == cudaErrorInvalidDevice);
}

void kernel(int* cells, int step) { cells[blockIdx.x * blockDim.x + threadIdx.x] += step * int(gridDim.x); }

void kernels_and_callbacks() {
    int* cells;
    cudaMalloc(&cells, 6 * sizeof(int));
    cudaMemset(cells, 0, 6 * sizeof(int));
    kvstage_launch(3, 2)(kernel, cells, 5);
    int step = 7;
    void* arguments[] = {&cells, &step};
    CHECK(cudaLaunchKernel(kernel, 3, 2, arguments) == cudaSuccess);
    step = 1000;  // the arguments were taken at the launch
    int host[6] = {};
    cudaMemcpy(host, cells, sizeof host, cudaMemcpyDeviceToHost);
    for (int cell : host) CHECK(cell == 3 * (5 + 7));
    CHECK(kvstage::launch(1, 2048, nullptr, [] {}) == cudaErrorInvalidConfiguration);
    struct Seen {
        int calls = 0;
        cudaStream_t stream = nullptr;
    } seen;
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    const auto callback = [](cudaStream_t on, cudaError_t status, void* data) {
        auto& it = *static_cast<Seen*>(data);
        it.calls += status == cudaSuccess;
        it.stream = on;
    };
    CHECK(cudaStreamAddCallback(stream, callback, &seen, 1) == cudaErrorInvalidValue);
    CHECK(cudaStreamAddCallback(stream, callback, &seen, 0) == cudaSuccess);
    CHECK(cudaLaunchHostFunc(stream, nullptr, nullptr) == cudaErrorInvalidValue);
    cudaStreamSynchronize(stream);
    CHECK(seen.calls == 1 && seen.stream == stream);
    cudaStreamDestroy(stream);
    cudaFree(cells);
}

void the_drivers_names() {
    CUdeviceptr p = 0;
    CUstream stream = nullptr;
    CUevent event = nullptr;
    unsigned char back[8] = {};
    CHECK(cuInit(0) == CUDA_SUCCESS && cuMemAlloc(&p, 8) == CUDA_SUCCESS && cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    CHECK(cuMemsetD8Async(p, 9, 8, stream) == CUDA_SUCCESS && cuMemcpyDtoHAsync(back, p, 8, stream) == CUDA_SUCCESS);
    CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS && cuEventRecord(event, stream) == CUDA_SUCCESS);
    CHECK(cuEventSynchronize(event) == CUDA_SUCCESS && back[0] == 9 && back[7] == 9);
    CHECK(cuMemFree(p) == CUDA_SUCCESS && cuMemFree(p) == CUDA_ERROR_INVALID_VALUE);
}

}  // namespace

int main() {
    memory_of_all_kinds();
    copies_are_checked();
    copies_of_boxes();
    streams_and_events();
    kernels_and_callbacks();
    the_drivers_names();
    return checks_failed();
}
