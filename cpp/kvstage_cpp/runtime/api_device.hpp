// The API: graphs, the device, errors, and what a test tells and asks.
#pragma once
#include "api_streams.hpp"

KVSTAGE_API cudaStreamBeginCapture(cudaStream_t given, cudaStreamCaptureMode) {
    Call call("cudaStreamBeginCapture");
    Stream* stream = stream_of(given);
    if (!stream) return failed(cudaErrorInvalidResourceHandle);
    if (stream == &device().legacy) return failed(cudaErrorStreamCaptureUnsupported);
    if (stream->capture) return failed(cudaErrorIllegalState);
    stream->capture = new Capture;
    stream->capture->branches.push_back(stream);
    ++device().captures;
    return cudaSuccess;
}
KVSTAGE_API cudaStreamEndCapture(cudaStream_t given, cudaGraph_t* graph) {
    Call call("cudaStreamEndCapture");
    Stream* stream = stream_of(given);
    if (!stream) return failed(cudaErrorInvalidResourceHandle);
    Capture* capture = stream->capture;
    if (!capture) return failed(cudaErrorIllegalState);
    if (capture->branches[0] != stream) return failed(cudaErrorStreamCaptureUnmatched);
    for (auto* branch : capture->branches) branch->capture = nullptr;
    --device().captures;
    *graph = nullptr;
    if (capture->invalid) return failed(cudaErrorStreamCaptureInvalidated);
    if (!capture->joined()) return failed(cudaErrorStreamCaptureUnjoined);
    *graph = handle<cudaGraph_t>(new Graph{capture->commands, capture->branches.size(), capture->records});
    return cudaSuccess;
}
KVSTAGE_API cudaStreamIsCapturing(cudaStream_t given, cudaStreamCaptureStatus* status) {
    Call call("cudaStreamIsCapturing");
    Stream* stream = stream_of(given);
    if (!stream) return failed(cudaErrorInvalidResourceHandle);
    const Capture* capture = stream->capture;
    *status = !capture           ? cudaStreamCaptureStatusNone
              : capture->invalid ? cudaStreamCaptureStatusInvalidated
                                 : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}
KVSTAGE_API cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
    Call call("cudaGraphInstantiate");
    if (!executable || !graph) return failed(cudaErrorInvalidValue);
    *executable = handle<cudaGraphExec_t>(instantiate(*reinterpret_cast<Graph*>(graph)));
    return cudaSuccess;
}
KVSTAGE_API cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
    return cudaGraphInstantiate(executable, graph, flags);
}
KVSTAGE_API cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t given) {
    Call call("cudaGraphLaunch");
    Stream* stream = stream_of(given);
    if (!executable || !stream) return failed(cudaErrorInvalidResourceHandle);
    if (stream->capture) return failed(cudaErrorStreamCaptureUnsupported);
    launch(call, *reinterpret_cast<Executable*>(executable), *stream);
    return cudaSuccess;
}
KVSTAGE_API cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
// A graph's work is kept: a launch may be under way, and the program's objects in it were made by other threads.
KVSTAGE_API cudaGraphExecDestroy(cudaGraphExec_t executable) { return failed(executable ? cudaSuccess : cudaErrorInvalidValue); }
KVSTAGE_API cudaGraphDestroy(cudaGraph_t graph) { return failed(graph ? cudaSuccess : cudaErrorInvalidValue); }

KVSTAGE_API cudaDeviceSynchronize() {
    Call call("cudaDeviceSynchronize");
    Device& it = device();
    if (it.captures) return failed(cudaErrorStreamCaptureUnsupported);
    it.counts.waits++;
    for (size_t i = 0; i < it.streams.size(); ++i) wait_for_all(call, *it.streams[i]);  // a host function may add one
    auto& streams = it.streams;  // what was destroyed is in order with all that comes: it is not looked at any more
    streams.erase(std::remove_if(streams.begin(), streams.end(), [](Stream* each) { return each->gone && each->queue.empty(); }), streams.end());
    return cudaSuccess;
}
KVSTAGE_API cudaDeviceReset() { return cudaDeviceSynchronize(); }
KVSTAGE_API cudaGetDevice(int* number) {
    *number = 0;
    return cudaSuccess;
}
KVSTAGE_API cudaSetDevice(int number) { return failed(number ? cudaErrorInvalidDevice : cudaSuccess); }
KVSTAGE_API cudaGetDeviceCount(int* count) {
    *count = 1;
    return cudaSuccess;
}
KVSTAGE_API cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
KVSTAGE_API cudaGetDeviceProperties(cudaDeviceProp* it, int number) {
    if (number) return failed(cudaErrorInvalidDevice);
    *it = cudaDeviceProp{};
    snprintf(it->name, sizeof it->name, "kvstage: no GPU");
    it->totalGlobalMem = size_t{1} << 34;
    it->sharedMemPerBlock = 48 << 10;
    it->major = 9;
    it->multiProcessorCount = it->deviceOverlap = it->canMapHostMemory = it->unifiedAddressing = it->concurrentKernels = 1;
    it->managedMemory = 1;
    it->asyncEngineCount = 2;
    it->warpSize = 32;
    it->maxThreadsPerBlock = 1024;
    return cudaSuccess;
}
KVSTAGE_API cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int number) {
    if (number) return failed(cudaErrorInvalidDevice);
    switch (attribute) {
        case cudaDevAttrMaxThreadsPerBlock: *value = 1024; break;
        case cudaDevAttrWarpSize: *value = 32; break;
        case cudaDevAttrAsyncEngineCount: *value = 2; break;
        case cudaDevAttrComputeCapabilityMajor: *value = 9; break;
        case cudaDevAttrComputeCapabilityMinor:
        case cudaDevAttrComputeMode:
        case cudaDevAttrIntegrated: *value = 0; break;
        default: *value = 1;
    }
    return cudaSuccess;
}
KVSTAGE_API cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    *least = Device::kLeast;
    *greatest = Device::kGreatest;
    return cudaSuccess;
}
KVSTAGE_API cudaDeviceCanAccessPeer(int* can, int, int) {
    *can = 0;  // there is one device
    return cudaSuccess;
}
KVSTAGE_API cudaDeviceEnablePeerAccess(int, unsigned) { return failed(cudaErrorInvalidDevice); }
KVSTAGE_API cudaDeviceDisablePeerAccess(int) { return failed(cudaErrorPeerAccessNotEnabled); }
KVSTAGE_API cudaDriverGetVersion(int* version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}
KVSTAGE_API cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }
KVSTAGE_API cudaProfilerStart() { return cudaSuccess; }
KVSTAGE_API cudaProfilerStop() { return cudaSuccess; }

KVSTAGE_API cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
KVSTAGE_API cudaPeekAtLastError() { return last_error; }

#define KVSTAGE_ERRORS(X)                                               \
    X(cudaSuccess, "no error")                                          \
    X(cudaErrorInvalidValue, "invalid argument")                        \
    X(cudaErrorMemoryAllocation, "out of memory")                       \
    X(cudaErrorInvalidConfiguration, "invalid launch configuration")    \
    X(cudaErrorInvalidPitchValue, "a pitch is smaller than its row")    \
    X(cudaErrorInvalidMemcpyDirection, "no direction of a copy")        \
    X(cudaErrorInvalidDevice, "no such device: there is one, number 0") \
    X(cudaErrorInvalidResourceHandle, "no such stream or event")        \
    X(cudaErrorIllegalState, "not in this state of a capture")          \
    X(cudaErrorNotReady, "not ready")                                   \
    X(cudaErrorPeerAccessNotEnabled, "there is no peer")                \
    X(cudaErrorHostMemoryAlreadyRegistered, "registered already")       \
    X(cudaErrorHostMemoryNotRegistered, "not registered")               \
    X(cudaErrorStreamCaptureUnsupported, "not while it is captured")    \
    X(cudaErrorStreamCaptureInvalidated, "the capture was broken off")  \
    X(cudaErrorStreamCaptureMerge, "two captures would become one")     \
    X(cudaErrorStreamCaptureUnmatched, "captured from another stream")  \
    X(cudaErrorStreamCaptureUnjoined, "a captured stream never joined") \
    X(cudaErrorStreamCaptureIsolation, "an event from outside")         \
    X(cudaErrorStreamCaptureImplicit, "the default stream would wait for a capture") \
    X(cudaErrorCapturedEvent, "an event of a capture")
extern "C" const char* cudaGetErrorString(cudaError_t error) {
    switch (error) {
#define KVSTAGE_STRING(name, text) case name: return text;
        KVSTAGE_ERRORS(KVSTAGE_STRING)
        default: return "unrecognized error code";
    }
}
extern "C" const char* cudaGetErrorName(cudaError_t error) {
    switch (error) {
#define KVSTAGE_NAME(name, text) case name: return #name;
        KVSTAGE_ERRORS(KVSTAGE_NAME)
        default: return "unrecognized error code";
    }
}

extern "C" int kvstage_default_stream_per_thread(int per_thread) {
    Call call("kvstage_default_stream_per_thread");
    device().stream_0_is_per_thread = per_thread != 0;
    return per_thread;
}
extern "C" kvstage_counts_t kvstage_counts(void) {
    Call call("kvstage_counts");
    return device().counts;
}
extern "C" void kvstage_name_stream(cudaStream_t given, const char* name) {
    Call call("kvstage_name_stream");
    if (Stream* stream = stream_of(given)) stream->rename(name);
}
extern "C" void kvstage_name_event(cudaEvent_t event, const char* name, unsigned index) {
    Call call("kvstage_name_event");
    snprintf(event_of(event).name, sizeof event_of(event).name, "%s", name);
    event_of(event).index = index;
}
extern "C" void kvstage_name_buffer(const void* p, const char* name, size_t slots, size_t rows_of_slot, size_t row_bytes) {
    Call call("kvstage_name_buffer");
    device().log.line("buffer\t%p\t%zu\t%zu\t%zu\t%s\t%s", p, slots, rows_of_slot, row_bytes, words(memory().type(p)), name);
}
extern "C" void kvstage_begin_call(const char* arguments) {
    Call call("kvstage_begin_call");
    device().log.line("call\t%s", arguments);
}
extern "C" void kvstage_end_call(void) {
    Call call("kvstage_end_call");
    device().log.line("caller");
}
extern "C" void kvstage_note_host_copy(const void* target, const void* source, size_t bytes) {
    Call call("kvstage_note_host_copy");
    device().log.line("host_copy\t%p\t%p\t%zu", target, source, bytes);
}
extern "C" void kvstage_note_host_read(const void* source, size_t bytes) {
    Call call("kvstage_note_host_read");
    device().log.line("host_read\t%p\t%zu", source, bytes);
}
extern "C" void kvstage_note_host_write(const void* target, size_t bytes) {
    Call call("kvstage_note_host_write");
    device().log.line("host_write\t%p\t%zu", target, bytes);
}
