// ring, written by kvstage 0.1.0 (kvstage emit). Don't edit it: change the scheme, and emit it anew.
//
// Judged when it was written:
//   PROVED   by_block:P1    the contract of a partition
//   PROVED   ring.read:T1   no hazard
//   PROVED   ring.read:T3   the result
//   PROVED   ring.read:T6   no deadlock
//   PROVED   ring.read:T7   bounds
//   PROVED   ring.read:T2   single-row guarantee
//   PROVED   ring.write:T1  no hazard
//   PROVED   ring.write:T3  the result
//   PROVED   ring.write:T6  no deadlock
//   PROVED   ring.write:T7  bounds
//   PROVED   ring.write:T2  single-row guarantee
//   PROVED   ring.read:I1   a ring by induction
//   PROVED   ring.write:I1  a ring by induction
//   PROVED   ring.read:T4   counts
//   PROVED   ring.write:T4  counts
#pragma once

#include "backend.hpp"

namespace kvstage {

/// A run for every block that the rows touch, through `slots` slots.
/// A ring of pinned slots, pipelined: the host takes one run while the copies of the next ones are under way.
///
/// Memory: pool (device), stage (pinned), out (pageable).
template <class Backend>
void ring_read(
    Backend& backend,
    const PagedRows& rows,
    Index slots,
    typename Backend::Stream copy_stream,
    Buffer pool,
    Buffer stage,
    Buffer out,
    const std::vector<typename Backend::Event>& filled) {
    rows.demand_valid("rows");
    demand_at_least("slots", slots, 1);
    const Index size = rows.block_size;
    const Index start = rows.start;
    const Index stop = rows.stop;
    const Index first = start / size;
    const Index number = start < stop ? (stop - 1) / size - first + 1 : 0;
    pool.fit("pool", rows.num_blocks, size);
    stage.fit("stage", slots, size);
    out.fit("out", 1, stop - start);
    demand_same_rows("pool", pool, "stage", stage);
    demand_events("filled", filled.size(), slots);
    for (Index i = 0; i < number + slots - 1; ++i) {
        if (i < number) {
            const Index base = (first + i) * size;
            const Index low = std::max(start, base);
            const Index high = std::min(stop, base + size);
            const Run run{low - start, high - low, rows.table(first + i), low - base};
            backend.copy(copy_stream, pool.at(run.slot, run.start, run.count), stage.at(i % slots, 0, run.count));
            backend.record_event(filled[i % slots], copy_stream);
        }
        const Index item = i - slots + 1;
        if (0 <= item && item < number) {
            const Index base = (first + item) * size;
            const Index low = std::max(start, base);
            const Index high = std::min(stop, base + size);
            const Run run{low - start, high - low, rows.table(first + item), low - base};
            backend.sync_event(filled[item % slots]);
            backend.host_copy(stage.at(item % slots, 0, run.count), out.at(0, run.position, run.count));
        }
    }
}

/// A run for every block that the rows touch, through `slots` slots.
/// A ring of pinned slots: the host fills one while the copies of the others are under way; one wait at the end.
///
/// Memory: pool (device), stage (pinned), rows_buffer (pageable).
template <class Backend>
void ring_write(
    Backend& backend,
    const PagedRows& rows,
    Index slots,
    typename Backend::Stream copy_stream,
    Buffer pool,
    Buffer stage,
    Buffer rows_buffer,
    const std::vector<typename Backend::Event>& sent) {
    rows.demand_distinct("rows");
    demand_at_least("slots", slots, 1);
    const Index size = rows.block_size;
    const Index start = rows.start;
    const Index stop = rows.stop;
    const Index first = start / size;
    const Index number = start < stop ? (stop - 1) / size - first + 1 : 0;
    pool.fit("pool", rows.num_blocks, size);
    stage.fit("stage", slots, size);
    rows_buffer.fit("rows", 1, stop - start);
    demand_same_rows("stage", stage, "pool", pool);
    demand_events("sent", sent.size(), slots);
    for (Index i = 0; i < number; ++i) {
        const Index base = (first + i) * size;
        const Index low = std::max(start, base);
        const Index high = std::min(stop, base + size);
        const Run run{low - start, high - low, rows.table(first + i), low - base};
        backend.sync_event(sent[i % slots]);
        backend.host_copy(rows_buffer.at(0, run.position, run.count), stage.at(i % slots, 0, run.count));
        backend.copy(copy_stream, stage.at(i % slots, 0, run.count), pool.at(run.slot, run.start, run.count));
        backend.record_event(sent[i % slots], copy_stream);
    }
    backend.sync_stream(copy_stream);
}

}  // namespace kvstage
