// staged, written by kvstage 0.1.0 (kvstage emit). Don't edit it: change the scheme, and emit it anew.
//
// Judged when it was written:
//   PROVED   by_block:P1      the contract of a partition
//   PROVED   staged.read:T1   no hazard
//   PROVED   staged.read:T3   the result
//   PROVED   staged.read:T6   no deadlock
//   PROVED   staged.read:T7   bounds
//   PROVED   staged.read:T2   single-row guarantee
//   PROVED   staged.write:T1  no hazard
//   PROVED   staged.write:T3  the result
//   PROVED   staged.write:T6  no deadlock
//   PROVED   staged.write:T7  bounds
//   PROVED   staged.write:T2  single-row guarantee
//   PROVED   staged.read:T4   counts
//   PROVED   staged.write:T4  counts
#pragma once

#include "backend.hpp"

namespace kvstage {

/// One staging buffer, used again for every run: copy, wait, take.
///
/// Memory: pool (device), stage (pinned), out (pageable).
template <class Backend>
void staged_read(
    Backend& backend,
    const PagedRows& runs,
    typename Backend::Stream copy_stream,
    Buffer pool,
    Buffer stage,
    Buffer out) {
    runs.demand_valid("runs");
    const Index size = runs.block_size;
    const Index start = runs.start;
    const Index stop = runs.stop;
    const Index first = start / size;
    const Index number = start < stop ? (stop - 1) / size - first + 1 : 0;
    pool.fit("pool", runs.num_blocks, size);
    stage.fit("stage", 1, size);
    out.fit("out", 1, stop - start);
    demand_same_rows("pool", pool, "stage", stage);
    for (Index i = 0; i < number; ++i) {
        const Index base = (first + i) * size;
        const Index low = std::max(start, base);
        const Index high = std::min(stop, base + size);
        const Run run{low - start, high - low, runs.table(first + i), low - base};
        const Rows staged = stage.at(0, 0, run.count);
        backend.copy(copy_stream, pool.at(run.slot, run.start, run.count), staged);
        backend.sync_stream(copy_stream);
        backend.host_copy(staged, out.at(0, run.position, run.count));
    }
}

/// One staging buffer, used again for every run: fill, copy, wait.
///
/// Memory: pool (device), stage (pinned), rows (pageable).
template <class Backend>
void staged_write(
    Backend& backend,
    const PagedRows& runs,
    typename Backend::Stream copy_stream,
    Buffer pool,
    Buffer stage,
    Buffer rows) {
    runs.demand_distinct("runs");
    const Index size = runs.block_size;
    const Index start = runs.start;
    const Index stop = runs.stop;
    const Index first = start / size;
    const Index number = start < stop ? (stop - 1) / size - first + 1 : 0;
    pool.fit("pool", runs.num_blocks, size);
    stage.fit("stage", 1, size);
    rows.fit("rows", 1, stop - start);
    demand_same_rows("stage", stage, "pool", pool);
    for (Index i = 0; i < number; ++i) {
        const Index base = (first + i) * size;
        const Index low = std::max(start, base);
        const Index high = std::min(stop, base + size);
        const Run run{low - start, high - low, runs.table(first + i), low - base};
        const Rows staged = stage.at(0, 0, run.count);
        backend.host_copy(rows.at(0, run.position, run.count), staged);
        backend.copy(copy_stream, staged, pool.at(run.slot, run.start, run.count));
        backend.sync_stream(copy_stream);
    }
}

}  // namespace kvstage
