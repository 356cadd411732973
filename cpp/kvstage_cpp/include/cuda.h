// The CUDA driver's API without a GPU: its copies, fills, streams, events and host functions, by the runtime API below it.
// Device memory of a driver's CUdeviceptr is the host's, too. Contexts are one and the same; modules, and memory that is mapped
// page by page (cuMemCreate, cuMemMap), are not here: a program that needs them fails when it is linked, by that name.
#pragma once
#include "cuda_runtime.h"

#define CUDA_VERSION CUDART_VERSION
#define CUDAAPI
#define CUDA_CB

typedef enum cudaError_enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_NOT_SUPPORTED = 801,
} CUresult;
typedef int CUdevice;
typedef struct CUctx_st* CUcontext;
typedef cudaStream_t CUstream;
typedef cudaEvent_t CUevent;
typedef uintptr_t CUdeviceptr;
typedef cudaHostFn_t CUhostFn;
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void* user_data);
typedef enum CUmemorytype_enum { CU_MEMORYTYPE_HOST = 1, CU_MEMORYTYPE_DEVICE = 2, CU_MEMORYTYPE_UNIFIED = 4 } CUmemorytype;
typedef struct CUDA_MEMCPY2D_st {
    size_t srcXInBytes, srcY;
    CUmemorytype srcMemoryType;
    const void* srcHost;
    CUdeviceptr srcDevice;
    size_t srcPitch;
    size_t dstXInBytes, dstY;
    CUmemorytype dstMemoryType;
    void* dstHost;
    CUdeviceptr dstDevice;
    size_t dstPitch;
    size_t WidthInBytes, Height;
} CUDA_MEMCPY2D;
enum : unsigned int {
    CU_STREAM_DEFAULT = 0,
    CU_STREAM_NON_BLOCKING = 1,
    CU_EVENT_DEFAULT = 0,
    CU_EVENT_BLOCKING_SYNC = 1,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_EVENT_WAIT_DEFAULT = 0,
    CU_MEMHOSTALLOC_PORTABLE = 1,
    CU_MEMHOSTALLOC_DEVICEMAP = 2,
    CU_MEMHOSTREGISTER_PORTABLE = 1,
    CU_MEMHOSTREGISTER_DEVICEMAP = 2,
    CU_MEM_ATTACH_GLOBAL = 1,
    CU_CTX_SCHED_AUTO = 0,
};
typedef cudaDeviceAttr CUdevice_attribute;

namespace kvstage {
inline CUresult driver(cudaError_t error) { return static_cast<CUresult>(error); }
inline void* pointer(CUdeviceptr p) { return reinterpret_cast<void*>(p); }
inline CUdeviceptr address(void* p) { return reinterpret_cast<CUdeviceptr>(p); }
}  // namespace kvstage

// The device and its context
inline CUresult cuInit(unsigned int) { return CUDA_SUCCESS; }
inline CUresult cuDriverGetVersion(int* version) { return kvstage::driver(cudaDriverGetVersion(version)); }
inline CUresult cuDeviceGetCount(int* count) { return kvstage::driver(cudaGetDeviceCount(count)); }
inline CUresult cuDeviceGet(CUdevice* device, int ordinal) { return *device = ordinal, kvstage::driver(cudaSetDevice(ordinal)); }
inline CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
    return kvstage::driver(cudaDeviceGetAttribute(value, attribute, device));
}
inline CUcontext kvstage_context() { return reinterpret_cast<CUcontext>(uintptr_t{1}); }
inline CUresult cuCtxCreate(CUcontext* context, unsigned int, CUdevice) { return *context = kvstage_context(), CUDA_SUCCESS; }
inline CUresult cuCtxDestroy(CUcontext) { return CUDA_SUCCESS; }
inline CUresult cuCtxGetCurrent(CUcontext* context) { return *context = kvstage_context(), CUDA_SUCCESS; }
inline CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }
inline CUresult cuCtxPushCurrent(CUcontext) { return CUDA_SUCCESS; }
inline CUresult cuCtxPopCurrent(CUcontext* context) { return *context = kvstage_context(), CUDA_SUCCESS; }
inline CUresult cuCtxGetDevice(CUdevice* device) { return *device = 0, CUDA_SUCCESS; }
inline CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) { return *context = kvstage_context(), CUDA_SUCCESS; }
inline CUresult cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }

// What waits, frees or copies is a macro: the place that a report names is then the program's, not one here.
#define cuCtxSynchronize() kvstage::driver(cudaDeviceSynchronize())

// Memory
#define cuMemAlloc(p, bytes) kvstage::driver(cudaMalloc(reinterpret_cast<void**>(p), bytes))
#define cuMemFree(p) kvstage::driver(cudaFree(kvstage::pointer(p)))
#define cuMemAllocHost(p, bytes) kvstage::driver(cudaMallocHost(p, bytes))
#define cuMemHostAlloc(p, bytes, flags) kvstage::driver(cudaHostAlloc(p, bytes, flags))
#define cuMemFreeHost(p) kvstage::driver(cudaFreeHost(p))
#define cuMemHostRegister(p, bytes, flags) kvstage::driver(cudaHostRegister(p, bytes, flags))
#define cuMemHostUnregister(p) kvstage::driver(cudaHostUnregister(p))
#define cuMemHostGetDevicePointer(device, p, flags) kvstage::driver(cudaHostGetDevicePointer(reinterpret_cast<void**>(device), p, flags))
#define cuMemAllocManaged(p, bytes, flags) kvstage::driver(cudaMallocManaged(reinterpret_cast<void**>(p), bytes, flags))
#define cuMemAllocAsync(p, bytes, stream) kvstage::driver(cudaMallocAsync(reinterpret_cast<void**>(p), bytes, stream))
#define cuMemFreeAsync(p, stream) kvstage::driver(cudaFreeAsync(kvstage::pointer(p), stream))
#define cuMemGetInfo(free_bytes, total_bytes) kvstage::driver(cudaMemGetInfo(free_bytes, total_bytes))

// Copies and fills
#define cuMemcpy(dst, src, bytes) kvstage::driver(cudaMemcpy(kvstage::pointer(dst), kvstage::pointer(src), bytes, cudaMemcpyDefault))
#define cuMemcpyAsync(dst, src, bytes, stream) \
    kvstage::driver(cudaMemcpyAsync(kvstage::pointer(dst), kvstage::pointer(src), bytes, cudaMemcpyDefault, stream))
#define cuMemcpyHtoD(dst, src, bytes) kvstage::driver(cudaMemcpy(kvstage::pointer(dst), src, bytes, cudaMemcpyHostToDevice))
#define cuMemcpyDtoH(dst, src, bytes) kvstage::driver(cudaMemcpy(dst, kvstage::pointer(src), bytes, cudaMemcpyDeviceToHost))
#define cuMemcpyDtoD(dst, src, bytes) \
    kvstage::driver(cudaMemcpy(kvstage::pointer(dst), kvstage::pointer(src), bytes, cudaMemcpyDeviceToDevice))
#define cuMemcpyHtoDAsync(dst, src, bytes, stream) \
    kvstage::driver(cudaMemcpyAsync(kvstage::pointer(dst), src, bytes, cudaMemcpyHostToDevice, stream))
#define cuMemcpyDtoHAsync(dst, src, bytes, stream) \
    kvstage::driver(cudaMemcpyAsync(dst, kvstage::pointer(src), bytes, cudaMemcpyDeviceToHost, stream))
#define cuMemcpyDtoDAsync(dst, src, bytes, stream) \
    kvstage::driver(cudaMemcpyAsync(kvstage::pointer(dst), kvstage::pointer(src), bytes, cudaMemcpyDeviceToDevice, stream))
#define cuMemcpyPeerAsync(dst, to, src, from, bytes, stream) \
    kvstage::driver(cudaMemcpyAsync(kvstage::pointer(dst), kvstage::pointer(src), bytes, cudaMemcpyDeviceToDevice, stream))
#define cuMemcpyBatchAsync(dsts, srcs, sizes, count, attributes, starts, attribute_count, failed, stream)                              \
    kvstage::driver(cudaMemcpyBatchAsync(reinterpret_cast<void**>(dsts), reinterpret_cast<void**>(srcs), sizes, count, attributes, starts, \
                                         attribute_count, failed, stream))
#define cuMemsetD8(p, value, bytes) kvstage::driver(cudaMemset(kvstage::pointer(p), value, bytes))
#define cuMemsetD8Async(p, value, bytes, stream) kvstage::driver(cudaMemsetAsync(kvstage::pointer(p), value, bytes, stream))
inline const char* kvstage_from(const CUDA_MEMCPY2D& c) {
    const auto* base = c.srcMemoryType == CU_MEMORYTYPE_HOST ? static_cast<const char*>(c.srcHost) : static_cast<char*>(kvstage::pointer(c.srcDevice));
    return base + c.srcY * c.srcPitch + c.srcXInBytes;
}
inline char* kvstage_to(const CUDA_MEMCPY2D& c) {
    auto* base = static_cast<char*>(c.dstMemoryType == CU_MEMORYTYPE_HOST ? c.dstHost : kvstage::pointer(c.dstDevice));
    return base + c.dstY * c.dstPitch + c.dstXInBytes;
}
#define cuMemcpy2D(c)                                                                                                              \
    kvstage::driver(cudaMemcpy2D(kvstage_to(*(c)), (c)->dstPitch, kvstage_from(*(c)), (c)->srcPitch, (c)->WidthInBytes, (c)->Height, \
                                 cudaMemcpyDefault))
#define cuMemcpy2DAsync(c, stream)                                                                                                       \
    kvstage::driver(cudaMemcpy2DAsync(kvstage_to(*(c)), (c)->dstPitch, kvstage_from(*(c)), (c)->srcPitch, (c)->WidthInBytes, (c)->Height, \
                                      cudaMemcpyDefault, stream))

// Streams and events
#define cuStreamCreate(stream, flags) kvstage::driver(cudaStreamCreateWithFlags(stream, flags))
#define cuStreamCreateWithPriority(stream, flags, priority) kvstage::driver(cudaStreamCreateWithPriority(stream, flags, priority))
#define cuStreamDestroy(stream) kvstage::driver(cudaStreamDestroy(stream))
#define cuStreamSynchronize(stream) kvstage::driver(cudaStreamSynchronize(stream))
#define cuStreamQuery(stream) kvstage::driver(cudaStreamQuery(stream))
#define cuStreamWaitEvent(stream, event, flags) kvstage::driver(cudaStreamWaitEvent(stream, event, flags))
#define cuStreamAddCallback(stream, function, data, flags) \
    kvstage::driver(cudaStreamAddCallback(stream, reinterpret_cast<cudaStreamCallback_t>(function), data, flags))
#define cuLaunchHostFunc(stream, function, data) kvstage::driver(cudaLaunchHostFunc(stream, function, data))
#define cuEventCreate(event, flags) kvstage::driver(cudaEventCreateWithFlags(event, flags))
#define cuEventDestroy(event) kvstage::driver(cudaEventDestroy(event))
#define cuEventRecord(event, stream) kvstage::driver(cudaEventRecord(event, stream))
#define cuEventSynchronize(event) kvstage::driver(cudaEventSynchronize(event))
#define cuEventQuery(event) kvstage::driver(cudaEventQuery(event))
#define cuEventElapsedTime(milliseconds, begin, end) kvstage::driver(cudaEventElapsedTime(milliseconds, begin, end))
inline CUresult cuGetErrorString(CUresult error, const char** text) {
    return *text = cudaGetErrorString(static_cast<cudaError_t>(error)), CUDA_SUCCESS;
}
inline CUresult cuGetErrorName(CUresult error, const char** text) {
    return *text = cudaGetErrorName(static_cast<cudaError_t>(error)), CUDA_SUCCESS;
}

// Not here
typedef unsigned long long CUmemGenericAllocationHandle;
typedef struct CUmemAllocationProp_st CUmemAllocationProp;
extern "C" {
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* properties, unsigned long long flags);
CUresult cuMemAddressReserve(CUdeviceptr* p, size_t bytes, size_t alignment, CUdeviceptr at, unsigned long long flags);
CUresult cuMemMap(CUdeviceptr p, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags);
}
