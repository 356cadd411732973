// The backend over one in-order queue that has a copy and a synchronize, and no events: enough for `per_row`, `per_block`,
// `per_run`, `staged`, `direct` and `copy`.
//
// `Queue` has `copy_async(void* target, const void* source, std::size_t bytes)` and `synchronize()`. `HostCopy` is called with
// (source, target) when the host moves rows, and may convert them: between bf16 and f32, say.
#pragma once

#include "backend.hpp"

namespace kvstage {

template <class Queue, class HostCopy = void (*)(const Rows&, const Rows&)>
class QueueBackend {
public:
    struct Stream {};  // there is one
    using Event = void*;

    explicit QueueBackend(Queue& queue, HostCopy host_copy = copy_bytes) : queue_(queue), host_copy_(std::move(host_copy)) {}

    void copy(Stream, const Rows& source, const Rows& target) {
        queue_.copy_async(target.data, source.data, static_cast<std::size_t>(source.bytes()));
    }
    void host_copy(const Rows& source, const Rows& target) { host_copy_(source, target); }
    void sync_stream(Stream) { queue_.synchronize(); }

private:
    Queue& queue_;
    HostCopy host_copy_;
};

}  // namespace kvstage
