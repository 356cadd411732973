// fresh, written by kvstage 0.1.0 (kvstage emit). Don't edit it: change the scheme, and emit it anew.
//
// Judged when it was written:
//   PROVED   user_schemes.py:fresh:T1  no hazard
//   PROVED   user_schemes.py:fresh:T6  no deadlock
//   PROVED   user_schemes.py:fresh:T7  bounds
#pragma once

#include "backend.hpp"

namespace kvstage {

/// Makes its events anew in each call, and drains at its end.
///
/// Memory: pinned (pinned), device (device).
template <class Backend, class HostWrite>
void fresh(
    Backend& backend,
    Index turns,
    Index slots,
    typename Backend::Stream h2d_stream,
    Buffer pinned,
    Buffer device,
    HostWrite&& host_write) {
    demand_at_least("turns", turns, 0);
    demand_at_least("slots", slots, 1);
    pinned.fit("pinned", slots, 1);
    device.fit("device", turns, 1);
    demand_same_rows("pinned", pinned, "device", device);
    const auto sent = backend.fresh_events(slots);
    for (Index i = 0; i < turns; ++i) {
        backend.sync_event(sent[i % slots]);
        host_write(pinned.at(i % slots, 0, 1));
        backend.copy(h2d_stream, pinned.at(i % slots, 0, 1), device.at(i, 0, 1));
        backend.record_event(sent[i % slots], h2d_stream);
    }
    backend.sync_stream(h2d_stream);
}

}  // namespace kvstage
