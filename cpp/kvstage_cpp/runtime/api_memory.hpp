// The API: memory, copies and fills.
#pragma once
#include "copies.hpp"

#define KVSTAGE_API extern "C" cudaError_t

namespace {
// Outside of a call, so that ThreadSanitizer takes it for a write by this thread.
void free_seen(void* p, void* caller) {
    Calling from(caller);
    free(p);
}

Box flat(void* dst, const void* src, size_t bytes) { return {static_cast<char*>(dst), static_cast<const char*>(src), bytes}; }
Box rows(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height) {
    Box box = flat(dst, src, width);
    box.height = height, box.dst_pitch = dpitch, box.src_pitch = spitch;
    return box;
}
Box planes(const cudaMemcpy3DParms& p) {
    auto at = [](const cudaPitchedPtr& of, const cudaPos& pos) {
        return static_cast<char*>(of.ptr) + (pos.z * of.ysize + pos.y) * of.pitch + pos.x;
    };
    Box box = rows(at(p.dstPtr, p.dstPos), p.dstPtr.pitch, at(p.srcPtr, p.srcPos), p.srcPtr.pitch, p.extent.width, p.extent.height);
    box.depth = p.extent.depth, box.dst_plane = p.dstPtr.pitch * p.dstPtr.ysize, box.src_plane = p.srcPtr.pitch * p.srcPtr.ysize;
    return box;
}
}  // namespace

KVSTAGE_API cudaMalloc(void** p, size_t bytes) {
    Call call("cudaMalloc");
    return allocate(call, p, bytes, cudaMemoryTypeDevice);
}
KVSTAGE_API cudaMallocPitch(void** p, size_t* pitch, size_t width, size_t height) {
    Call call("cudaMallocPitch");
    *pitch = (width + Memory::kAlignment - 1) / Memory::kAlignment * Memory::kAlignment;
    return allocate(call, p, *pitch * height, cudaMemoryTypeDevice);
}
KVSTAGE_API cudaMallocHost(void** p, size_t bytes) {
    Call call("cudaMallocHost");
    return allocate(call, p, bytes, cudaMemoryTypeHost);
}
KVSTAGE_API cudaHostAlloc(void** p, size_t bytes, unsigned flags) {
    Call call("cudaHostAlloc");
    return allocate(call, p, bytes, cudaMemoryTypeHost, flags);
}
KVSTAGE_API cudaMallocManaged(void** p, size_t bytes, unsigned flags) {
    Call call("cudaMallocManaged");
    return allocate(call, p, bytes, cudaMemoryTypeManaged, flags);
}
KVSTAGE_API cudaFree(void* p) {
    if (!p) return cudaSuccess;
    {
        Call call("cudaFree");
        if (const cudaError_t error = forget(call, p, false, cudaMemoryTypeDevice, cudaErrorInvalidValue)) return error;
    }
    free_seen(p, __builtin_return_address(0));
    return cudaSuccess;
}
KVSTAGE_API cudaFreeHost(void* p) {
    if (!p) return cudaSuccess;
    {
        Call call("cudaFreeHost");
        if (const cudaError_t error = forget(call, p, false, cudaMemoryTypeHost, cudaErrorInvalidValue)) return error;
    }
    free_seen(p, __builtin_return_address(0));
    return cudaSuccess;
}
KVSTAGE_API cudaHostRegister(void* p, size_t bytes, unsigned flags) {
    Call call("cudaHostRegister");
    if (!p || !bytes) return failed(cudaErrorInvalidValue);
    if (memory().find(p)) return failed(cudaErrorHostMemoryAlreadyRegistered);
    sync_implicitly(call);
    memory().add(p, {bytes, cudaMemoryTypeHost, flags, true});
    device().log.line("memory\t%p\t%zu\t%s", p, bytes, words(cudaMemoryTypeHost));
    return cudaSuccess;
}
KVSTAGE_API cudaHostUnregister(void* p) {
    Call call("cudaHostUnregister");
    return forget(call, p, true, cudaMemoryTypeHost, cudaErrorHostMemoryNotRegistered);
}
KVSTAGE_API cudaHostGetDevicePointer(void** on_device, void* p, unsigned) {
    Call call("cudaHostGetDevicePointer");
    if (!on_device || memory().type(p) != cudaMemoryTypeHost) return failed(cudaErrorInvalidValue);
    *on_device = p;
    return cudaSuccess;
}
KVSTAGE_API cudaHostGetFlags(unsigned* flags, void* p) {
    Call call("cudaHostGetFlags");
    const Block* block = memory().find(p);
    if (!block || block->type != cudaMemoryTypeHost) return failed(cudaErrorInvalidValue);
    *flags = block->flags;
    return cudaSuccess;
}
KVSTAGE_API cudaMallocAsync(void** p, size_t bytes, cudaStream_t handle) {
    Call call("cudaMallocAsync");
    Stream* stream = stream_of(handle);
    if (!stream) return failed(cudaErrorInvalidResourceHandle);
    if (const cudaError_t error = capture_forbids(*stream)) return failed(error);
    if (const cudaError_t error = allocate(call, p, bytes, cudaMemoryTypeDevice)) return error;
    if (!*p) return cudaSuccess;
    Operation operation;  // the memory is there from this place of the stream on: a write, for what comes too early
    operation.work = new Fill(flat(*p, nullptr, bytes), Memory::kFresh);
    put(call, *stream, operation);
    return cudaSuccess;
}
KVSTAGE_API cudaFreeAsync(void* p, cudaStream_t handle) {
    struct Free : Work {
        void* const what;
        explicit Free(void* p) : what(p) {}
        void run(int, int last) override {
            if (last == 2) free(what);
        }
        const char* name() const override { return "launch"; }
        void write(FILE*) const override {}
    };
    Call call("cudaFreeAsync");
    Stream* stream = stream_of(handle);
    if (!stream) return failed(cudaErrorInvalidResourceHandle);
    const char* begin;
    if (!p) return cudaSuccess;
    if (!memory().find(p, &begin) || begin != p) return failed(cudaErrorInvalidValue);
    if (const cudaError_t error = capture_forbids(*stream)) return failed(error);
    memory().remove(p);
    Operation operation;
    operation.work = new Free(p);
    put(call, *stream, operation);
    return cudaSuccess;
}
KVSTAGE_API cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
    *free_bytes = *total_bytes = size_t{1} << 34;
    return cudaSuccess;
}
KVSTAGE_API cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* p) {
    Call call("cudaPointerGetAttributes");
    const cudaMemoryType type = memory().type(p);
    auto* there = const_cast<void*>(p);
    *attributes = {type, 0, type == cudaMemoryTypeUnregistered ? nullptr : there, type == cudaMemoryTypeDevice ? nullptr : there};
    return cudaSuccess;
}
KVSTAGE_API cudaMemPrefetchAsync(const void* p, size_t, int, cudaStream_t) {
    Call call("cudaMemPrefetchAsync");
    return failed(memory().type(p) == cudaMemoryTypeManaged ? cudaSuccess : cudaErrorInvalidValue);
}
KVSTAGE_API cudaStreamAttachMemAsync(cudaStream_t, void*, size_t, unsigned) { return cudaSuccess; }

KVSTAGE_API cudaMemcpy(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind) {
    Call call("cudaMemcpy");
    return copy(call, nullptr, flat(dst, src, bytes), kind, true);
}
KVSTAGE_API cudaMemcpyAsync(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    Call call("cudaMemcpyAsync");
    return copy(call, stream, flat(dst, src, bytes), kind, false);
}
KVSTAGE_API cudaMemcpyPeer(void* dst, int to, const void* src, int from, size_t bytes) {
    Call call("cudaMemcpyPeer");
    if (to || from) return failed(cudaErrorInvalidDevice);
    return copy(call, nullptr, flat(dst, src, bytes), cudaMemcpyDeviceToDevice, false);
}
KVSTAGE_API cudaMemcpyPeerAsync(void* dst, int to, const void* src, int from, size_t bytes, cudaStream_t stream) {
    Call call("cudaMemcpyPeerAsync");
    if (to || from) return failed(cudaErrorInvalidDevice);
    return copy(call, stream, flat(dst, src, bytes), cudaMemcpyDeviceToDevice, false);
}
KVSTAGE_API cudaMemcpy2D(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height, cudaMemcpyKind kind) {
    Call call("cudaMemcpy2D");
    return copy(call, nullptr, rows(dst, dpitch, src, spitch, width, height), kind, true);
}
KVSTAGE_API cudaMemcpy2DAsync(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
    Call call("cudaMemcpy2DAsync");
    return copy(call, stream, rows(dst, dpitch, src, spitch, width, height), kind, false);
}
KVSTAGE_API cudaMemcpy3D(const cudaMemcpy3DParms* p) {
    Call call("cudaMemcpy3D");
    return copy(call, nullptr, planes(*p), p->kind, true);
}
KVSTAGE_API cudaMemcpy3DAsync(const cudaMemcpy3DParms* p, cudaStream_t stream) {
    Call call("cudaMemcpy3DAsync");
    return copy(call, stream, planes(*p), p->kind, false);
}
KVSTAGE_API cudaMemcpyBatchAsync(void** dsts, void** srcs, size_t* sizes, size_t count, cudaMemcpyAttributes* attributes, size_t* starts,
                                 size_t attribute_count, size_t* failed_at, cudaStream_t handle) {
    Call call("cudaMemcpyBatchAsync");
    Stream* stream = stream_of(handle);
    if (!stream) return failed(cudaErrorInvalidResourceHandle);
    if (stream == &device().legacy || (attribute_count && starts[0])) return failed(cudaErrorInvalidValue);
    if (failed_at) *failed_at = SIZE_MAX;
    std::vector<Box> boxes;
    std::vector<Order> orders;
    for (size_t i = 0, a = 0; i < count; ++i) {
        while (a + 1 < attribute_count && starts[a + 1] <= i) ++a;
        boxes.push_back(flat(dsts[i], srcs[i], sizes[i]));
        orders.push_back({attribute_count ? attributes[a].srcAccessOrder : cudaMemcpySrcAccessOrderStream});
    }
    return batch(call, *stream, boxes, orders);
}
KVSTAGE_API cudaMemset(void* p, int value, size_t bytes) {
    Call call("cudaMemset");
    return fill(call, nullptr, flat(p, nullptr, bytes), value, true);
}
KVSTAGE_API cudaMemsetAsync(void* p, int value, size_t bytes, cudaStream_t stream) {
    Call call("cudaMemsetAsync");
    return fill(call, stream, flat(p, nullptr, bytes), value, false);
}
KVSTAGE_API cudaMemset2D(void* p, size_t pitch, int value, size_t width, size_t height) {
    Call call("cudaMemset2D");
    return fill(call, nullptr, rows(p, pitch, nullptr, 0, width, height), value, true);
}
KVSTAGE_API cudaMemset2DAsync(void* p, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
    Call call("cudaMemset2DAsync");
    return fill(call, stream, rows(p, pitch, nullptr, 0, width, height), value, false);
}
