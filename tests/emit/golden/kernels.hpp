// kernels, written by kvstage 0.1.0 (kvstage emit). Don't edit it: change the scheme, and emit it anew.
//
// Judged when it was written:
//   PROVED   user_schemes.py:kernels:T1  no hazard
//   PROVED   user_schemes.py:kernels:T6  no deadlock
//   PROVED   user_schemes.py:kernels:T7  bounds
#pragma once

#include "backend.hpp"

namespace kvstage {

/// A kernel fills a slot, a copy takes it to the host, and the host reads it: before the loop, an event of the caller's.
///
/// Memory: device (device), pinned (pinned).
template <class Backend, class Kernel, class HostRead>
void kernels(
    Backend& backend,
    Index turns,
    typename Backend::Stream d2h_stream,
    typename Backend::Stream compute_stream,
    Buffer device,
    Buffer pinned,
    const std::vector<typename Backend::Event>& computed,
    Kernel&& kernel,
    HostRead&& host_read) {
    demand_at_least("turns", turns, 0);
    device.fit("device", 1, 4);
    pinned.fit("pinned", 1, 4);
    demand_same_rows("device", device, "pinned", pinned);
    demand_events("computed", computed.size(), 1);
    backend.sync_stream(d2h_stream);
    backend.sync_stream(compute_stream);
    for (Index i = 0; i < turns; ++i) {
        kernel(compute_stream, Accesses{}, Accesses{device.at(0, 0, 4)});
        backend.record_event(computed[0], compute_stream);
        backend.wait_event(d2h_stream, computed[0]);
        backend.copy(d2h_stream, device.at(0, 0, 4), pinned.at(0, 0, 4));
        if (i == turns - 1) {
            backend.sync_stream(d2h_stream);
        } else {
            backend.sync_stream(d2h_stream);
            host_read(pinned.at(0, 0, 4));
        }
    }
}

}  // namespace kvstage
