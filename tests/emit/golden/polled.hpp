// polled, written by kvstage 0.1.0 (kvstage emit). Don't edit it: change the scheme, and emit it anew.
//
// Judged when it was written:
//   PROVED   user_schemes.py:polled:T1  no hazard
//   PROVED   user_schemes.py:polled:T6  no deadlock
//   PROVED   user_schemes.py:polled:T7  bounds
#pragma once

#include "backend.hpp"

namespace kvstage {

/// Asks whether a slot is free, and waits only if it is not.
///
/// Memory: pinned (pinned), device (device).
template <class Backend, class HostWrite>
void polled(
    Backend& backend,
    Index turns,
    typename Backend::Stream h2d_stream,
    Buffer pinned,
    Buffer device,
    const std::vector<typename Backend::Event>& sent,
    HostWrite&& host_write) {
    demand_at_least("turns", turns, 0);
    pinned.fit("pinned", 2, 1);
    device.fit("device", turns, 1);
    demand_same_rows("pinned", pinned, "device", device);
    demand_events("sent", sent.size(), 2);
    for (Index i = 0; i < turns; ++i) {
        const Index slot = i % 2;
        const Index answer = backend.query_event(sent[slot]) ? 1 : 0;
        if (!(answer != 0)) {
            backend.sync_event(sent[slot]);
        }
        host_write(pinned.at(slot, 0, 1));
        backend.copy(h2d_stream, pinned.at(slot, 0, 1), device.at(i, 0, 1));
        backend.record_event(sent[slot], h2d_stream);
    }
}

}  // namespace kvstage
