// The API: streams, events, host functions, kernels.
#pragma once
#include "api_memory.hpp"

thread_local uint3 threadIdx, blockIdx;
thread_local dim3 blockDim, gridDim;

namespace {

class HostFunction : public Work {
   public:
    HostFunction(cudaHostFn_t function, void* data) : function_(function), data_(data) {}
    HostFunction(cudaStreamCallback_t callback, cudaStream_t stream, void* data) : callback_(callback), stream_(stream), data_(data) {}
    void run(int, int) override { function_ ? function_(data_) : callback_(stream_, cudaSuccess, data_); }
    bool runs_own_code() const override { return true; }
    bool on_host_thread() const override { return true; }
    const char* name() const override { return "launch"; }
    void write(FILE*) const override {}

   private:
    const cudaHostFn_t function_ = nullptr;
    const cudaStreamCallback_t callback_ = nullptr;
    const cudaStream_t stream_ = nullptr;
    void* const data_;
};

class Kernel : public Work {
   public:
    Kernel(dim3 grid, dim3 block, void (*run)(void*), void (*drop)(void*), void* closure)
        : grid_(grid), block_(block), run_(run), drop_(drop), closure_(closure) {}
    ~Kernel() override { drop_(closure_); }
    void run(int first, int last) override {
        gridDim = grid_;
        blockDim = block_;
        const unsigned blocks = grid_.x * grid_.y * grid_.z;
        for (unsigned i = blocks * unsigned(first) / 2; i < blocks * unsigned(last) / 2; ++i) {
            blockIdx = {i % grid_.x, i / grid_.x % grid_.y, i / grid_.x / grid_.y};
            for (unsigned z = 0; z < block_.z; ++z)
                for (unsigned y = 0; y < block_.y; ++y)
                    for (unsigned x = 0; x < block_.x; ++x) {
                        threadIdx = {x, y, z};
                        run_(closure_);
                    }
        }
    }
    bool runs_own_code() const override { return true; }
    const char* name() const override { return "launch"; }
    void write(FILE*) const override {}

   private:
    const dim3 grid_, block_;
    void (*const run_)(void*);
    void (*const drop_)(void*);
    void* const closure_;
};

cudaError_t put_work(const Call& call, cudaStream_t given, Work* work) {
    Stream* stream = stream_of(given);
    cudaError_t error = stream ? capture_refuses(*stream) : cudaErrorInvalidResourceHandle;
    if (error) {
        delete work;
        return failed(error);
    }
    Operation operation;
    operation.work = work;
    put(call, *stream, operation);
    return cudaSuccess;
}

// The answer of a query. Under a schedule that holds what is asked for, "not ready" so often and no more: a loop that asks must end.
cudaError_t answer(const Call& call, const Point& point) {
    static int refused = 0;
    Device& it = device();
    if (!reached(point) && ++refused > Schedule::kPatience) {
        refused = 0;
        it.let_go();
    }
    it.progress();
    if (!reached(point)) return cudaErrorNotReady;
    call.wait(point);
    return cudaSuccess;
}

// All that a stream has got; with the legacy stream, what the blocking ones have got too.
std::vector<Point> all_of(Stream& stream) {
    std::vector<Point> found{{&stream, stream.issued, nullptr}};
    for (auto* other : device().streams)
        if (&stream == &device().legacy && other != &stream && other->blocking) found.push_back({other, other->issued, nullptr});
    return found;
}

void wait_for_all(const Call& call, Stream& stream) {
    for (auto& point : all_of(stream)) {
        call.wait(point);
        device().log.line("sync_stream\t%s", point.stream->name);
    }
}

}  // namespace

cudaError_t kvstage_launch_kernel(dim3 grid, dim3 block, cudaStream_t stream, void (*run)(void*), void (*drop)(void*), void* closure) {
    const uint64_t threads = uint64_t{block.x} * block.y * block.z, blocks = uint64_t{grid.x} * grid.y * grid.z;
    if (!threads || threads > 1024 || !blocks || blocks > UINT32_MAX / 2) {
        drop(closure);
        return failed(cudaErrorInvalidConfiguration);
    }
    Call call("kernel launch");
    device().counts.launches++;
    return put_work(call, stream, new Kernel(grid, block, run, drop, closure));
}
KVSTAGE_API cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
    Call call("cudaLaunchHostFunc");
    return function ? put_work(call, stream, new HostFunction(function, data)) : failed(cudaErrorInvalidValue);
}
KVSTAGE_API cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void* data, unsigned flags) {
    Call call("cudaStreamAddCallback");
    if (!function || flags) return failed(cudaErrorInvalidValue);
    return put_work(call, stream, new HostFunction(function, stream, data));
}

KVSTAGE_API cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
    Call call("cudaStreamCreate");
    if (!stream || flags > cudaStreamNonBlocking) return failed(cudaErrorInvalidValue);
    char name[Stream::kLongestName];
    snprintf(name, sizeof name, "stream %ld", ++device().names);
    priority = std::min(Device::kLeast, std::max(Device::kGreatest, priority));
    *stream = handle<cudaStream_t>(device().new_stream(name, flags, priority));
    return cudaSuccess;
}
KVSTAGE_API cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) { return cudaStreamCreateWithPriority(stream, flags, 0); }
KVSTAGE_API cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0); }
KVSTAGE_API cudaStreamDestroy(cudaStream_t given) {
    Call call("cudaStreamDestroy");
    Stream* stream = stream_of(given);
    if (!stream || stream == &device().legacy || given == cudaStreamPerThread) return failed(cudaErrorInvalidResourceHandle);
    stream->gone = true;  // what it has got is done all the same
    if (stream->queue.empty()) stream->fiber.end();
    return cudaSuccess;
}
KVSTAGE_API cudaStreamGetFlags(cudaStream_t given, unsigned* flags) {
    Call call("cudaStreamGetFlags");
    Stream* stream = stream_of(given);
    if (!stream) return failed(cudaErrorInvalidResourceHandle);
    *flags = stream->flags;
    return cudaSuccess;
}
KVSTAGE_API cudaStreamGetPriority(cudaStream_t given, int* priority) {
    Call call("cudaStreamGetPriority");
    Stream* stream = stream_of(given);
    if (!stream) return failed(cudaErrorInvalidResourceHandle);
    *priority = stream->priority;
    return cudaSuccess;
}
KVSTAGE_API cudaStreamSynchronize(cudaStream_t given) {
    Call call("cudaStreamSynchronize");
    Stream* stream = stream_of(given);
    if (!stream) return failed(cudaErrorInvalidResourceHandle);
    if (const cudaError_t error = capture_forbids(*stream)) return failed(error);
    device().counts.waits++;
    wait_for_all(call, *stream);
    return cudaSuccess;
}
KVSTAGE_API cudaStreamQuery(cudaStream_t given) {
    Call call("cudaStreamQuery");
    Stream* stream = stream_of(given);
    if (!stream) return failed(cudaErrorInvalidResourceHandle);
    if (const cudaError_t error = capture_forbids(*stream)) return failed(error);
    for (auto& point : all_of(*stream))
        if (const cudaError_t told = answer(call, point)) return told;
    wait_for_all(call, *stream);
    return cudaSuccess;
}
KVSTAGE_API cudaStreamWaitEvent(cudaStream_t given, cudaEvent_t event, unsigned) {
    Call call("cudaStreamWaitEvent");
    Stream* stream = stream_of(given);
    if (!stream || !event) return failed(cudaErrorInvalidResourceHandle);
    Mark* mark = event_of(event).mark;
    if (!mark) return cudaSuccess;  // never recorded
    if (mark->capture && mark->capture != stream->capture) {
        if (stream->capture) return failed(cudaErrorStreamCaptureMerge);
        stream->capture = mark->capture;
        stream->capture->branches.push_back(stream);
    }
    if (stream->capture && !mark->capture) {
        stream->capture->invalid = true;
        return failed(cudaErrorStreamCaptureIsolation);
    }
    if (const cudaError_t error = capture_refuses(*stream)) return failed(error);
    Operation operation;
    operation.after.push_back({mark->stream, mark->position, kept(mark)});
    operation.event = &event_of(event);
    put(call, *stream, operation);
    return cudaSuccess;
}

KVSTAGE_API cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
    Call call("cudaEventCreate");
    static unsigned made = 0;
    auto* it = new Event;
    it->flags = flags;
    snprintf(it->name, sizeof it->name, "event %u", ++made);
    *event = handle<cudaEvent_t>(it);
    return cudaSuccess;
}
KVSTAGE_API cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
KVSTAGE_API cudaEventDestroy(cudaEvent_t event) {
    Call call("cudaEventDestroy");
    if (!event) return failed(cudaErrorInvalidResourceHandle);
    drop(event_of(event).mark);
    delete &event_of(event);
    return cudaSuccess;
}
KVSTAGE_API cudaEventRecord(cudaEvent_t event, cudaStream_t given) {
    Call call("cudaEventRecord");
    Stream* stream = stream_of(given);
    if (!stream || !event) return failed(cudaErrorInvalidResourceHandle);
    if (const cudaError_t error = capture_refuses(*stream)) return failed(error);
    Event& it = event_of(event);
    drop(it.mark);
    it.mark = new Mark(stream);
    Operation operation;
    operation.mark = kept(it.mark);
    operation.event = &it;
    put(call, *stream, operation);
    return cudaSuccess;
}
KVSTAGE_API cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) { return cudaEventRecord(event, stream); }
KVSTAGE_API cudaEventSynchronize(cudaEvent_t event) {
    Call call("cudaEventSynchronize");
    if (!event) return failed(cudaErrorInvalidResourceHandle);
    Event& it = event_of(event);
    device().counts.waits++;
    if (it.mark && it.mark->capture) return failed(cudaErrorCapturedEvent);
    if (it.mark) call.wait({it.mark->stream, it.mark->position, it.mark});
    device().log.line("sync_event\t%s\t%u", it.name, it.index);
    return cudaSuccess;
}
KVSTAGE_API cudaEventQuery(cudaEvent_t event) {
    Call call("cudaEventQuery");
    if (!event) return failed(cudaErrorInvalidResourceHandle);
    Event& it = event_of(event);
    if (it.mark && it.mark->capture) return failed(cudaErrorCapturedEvent);
    const cudaError_t told = it.mark ? answer(call, {it.mark->stream, it.mark->position, it.mark}) : cudaSuccess;
    device().log.line("query_event\t%s\t%u\t%d", it.name, it.index, told == cudaSuccess);
    return told;
}
KVSTAGE_API cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
    Call call("cudaEventElapsedTime");
    if (!begin || !end) return failed(cudaErrorInvalidResourceHandle);
    for (auto* each : {&event_of(begin), &event_of(end)}) {
        if (!each->mark || each->flags & cudaEventDisableTiming) return failed(cudaErrorInvalidResourceHandle);
        if (!reached({each->mark->stream, each->mark->position, nullptr})) return cudaErrorNotReady;
    }
    *milliseconds = 0.001F;  // there is no time here
    return cudaSuccess;
}
