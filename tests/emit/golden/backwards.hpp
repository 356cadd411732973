// backwards, written by kvstage 0.1.0 (kvstage emit). Don't edit it: change the scheme, and emit it anew.
//
// Judged when it was written:
//   PROVED   user_schemes.py:backwards:T1  no hazard
//   PROVED   user_schemes.py:backwards:T6  no deadlock
//   PROVED   user_schemes.py:backwards:T7  bounds
#pragma once

#include "backend.hpp"

namespace kvstage {

/// Counts its slots down, so that a remainder is of a negative number.
///
/// Memory: pinned (pinned), device (device).
template <class Backend, class HostWrite>
void backwards(
    Backend& backend,
    Index turns,
    typename Backend::Stream h2d_stream,
    Buffer pinned,
    Buffer device,
    HostWrite&& host_write) {
    demand_at_least("turns", turns, 0);
    pinned.fit("pinned", 3, 1);
    device.fit("device", turns, 1);
    demand_same_rows("pinned", pinned, "device", device);
    for (Index i = 0; i < turns; ++i) {
        const Index slot = floor_mod(0 - i, 3);
        Index place = 0;
        if (slot == 0) {
            place = i;
        } else {
            const Index place_2 = 0 * i + i;
            place = place_2;
        }
        backend.sync_stream(h2d_stream);
        host_write(pinned.at(slot, 0, 1));
        backend.copy_batch(h2d_stream, Copies{{pinned.at(slot, 0, 1), device.at(place, 0, 1)}});
    }
    backend.sync_stream(h2d_stream);
}

}  // namespace kvstage
