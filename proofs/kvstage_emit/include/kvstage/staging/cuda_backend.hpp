// The backend over the CUDA runtime API. An error of a call is a std::runtime_error with the call's name and CUDA's own words.
//
// `gather` and `scatter` are kernels of the engine's: derive from this, or give a scheme that needs none.
#pragma once

#include <cuda_runtime.h>

#include "backend.hpp"

namespace kvstage {

class CudaBackend {
public:
    using Stream = cudaStream_t;
    using Event = cudaEvent_t;

    // Events that are destroyed with this: CUDA frees them once what they mark has ended.
    class Events {
    public:
        explicit Events(Index count) {
            for (Index k = 0; k < count; ++k) {
                events_.push_back(nullptr);
                demand(cudaEventCreateWithFlags(&events_.back(), cudaEventDisableTiming), "cudaEventCreateWithFlags");
            }
        }
        Events(const Events&) = delete;
        Events& operator=(const Events&) = delete;
        Events(Events&& other) noexcept : events_(std::move(other.events_)) { other.events_.clear(); }
        Events& operator=(Events&&) = delete;
        ~Events() {
            for (Event event : events_)
                if (event != nullptr) static_cast<void>(cudaEventDestroy(event));
        }
        Event operator[](Index k) const { return events_[static_cast<std::size_t>(k)]; }
        const std::vector<Event>& all() const { return events_; }

    private:
        std::vector<Event> events_;
    };

    Events fresh_events(Index count) { return Events(count); }

    void copy(Stream stream, const Rows& source, const Rows& target) {
        demand(cudaMemcpyAsync(target.data, source.data, static_cast<std::size_t>(source.bytes()), cudaMemcpyDefault, stream),
               "cudaMemcpyAsync");
    }
    void copy_batch(Stream stream, const Copies& copies) {
        for (const auto& [source, target] : copies) copy(stream, source, target);
    }
    void host_copy(const Rows& source, const Rows& target) { copy_bytes(source, target); }
    void record_event(Event event, Stream stream) { demand(cudaEventRecord(event, stream), "cudaEventRecord"); }
    void sync_event(Event event) { demand(cudaEventSynchronize(event), "cudaEventSynchronize"); }
    void wait_event(Stream stream, Event event) { demand(cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent"); }
    void sync_stream(Stream stream) { demand(cudaStreamSynchronize(stream), "cudaStreamSynchronize"); }
    bool query_event(Event event) {
        const cudaError_t answer = cudaEventQuery(event);
        if (answer == cudaErrorNotReady) return false;
        demand(answer, "cudaEventQuery");
        return true;
    }

private:
    static void demand(cudaError_t error, const char* call) {
        if (error != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(error));
    }
};

}  // namespace kvstage
