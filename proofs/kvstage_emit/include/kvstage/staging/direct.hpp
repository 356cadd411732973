// direct, written by kvstage 0.1.0 (kvstage emit). Don't edit it: change the scheme, and emit it anew.
//
// Judged when it was written:
//   PROVED   by_block:P1      the contract of a partition
//   PROVED   direct.read:T1   no hazard
//   PROVED   direct.read:T3   the result
//   PROVED   direct.read:T6   no deadlock
//   PROVED   direct.read:T7   bounds
//   PROVED   direct.write:T1  no hazard
//   PROVED   direct.write:T3  the result
//   PROVED   direct.write:T6  no deadlock
//   PROVED   direct.write:T7  bounds
//   PROVED   direct.read:T4   counts
//   PROVED   direct.write:T4  counts
#pragma once

#include "backend.hpp"

namespace kvstage {

/// A run for every block that the rows touch.
/// Each run straight into its own place of the pinned result; one wait for all.
///
/// Memory: pool (device), out (pinned).
template <class Backend>
void direct_read(
    Backend& backend,
    const PagedRows& rows,
    typename Backend::Stream copy_stream,
    Buffer pool,
    Buffer out) {
    rows.demand_valid("rows");
    const Index size = rows.block_size;
    const Index start = rows.start;
    const Index stop = rows.stop;
    const Index first = start / size;
    const Index number = start < stop ? (stop - 1) / size - first + 1 : 0;
    pool.fit("pool", rows.num_blocks, size);
    out.fit("out", 1, stop - start);
    demand_same_rows("pool", pool, "out", out);
    for (Index i = 0; i < number; ++i) {
        const Index base = (first + i) * size;
        const Index low = std::max(start, base);
        const Index high = std::min(stop, base + size);
        const Run run{low - start, high - low, rows.table(first + i), low - base};
        backend.copy(copy_stream, pool.at(run.slot, run.start, run.count), out.at(0, run.position, run.count));
    }
    backend.sync_stream(copy_stream);
}

/// A run for every block that the rows touch.
/// Each run straight from its own place in the caller's pinned rows; one wait for all.
///
/// Memory: pool (device), rows_buffer (pinned).
template <class Backend>
void direct_write(
    Backend& backend,
    const PagedRows& rows,
    typename Backend::Stream copy_stream,
    Buffer pool,
    Buffer rows_buffer) {
    rows.demand_distinct("rows");
    const Index size = rows.block_size;
    const Index start = rows.start;
    const Index stop = rows.stop;
    const Index first = start / size;
    const Index number = start < stop ? (stop - 1) / size - first + 1 : 0;
    pool.fit("pool", rows.num_blocks, size);
    rows_buffer.fit("rows", 1, stop - start);
    demand_same_rows("rows_buffer", rows_buffer, "pool", pool);
    for (Index i = 0; i < number; ++i) {
        const Index base = (first + i) * size;
        const Index low = std::max(start, base);
        const Index high = std::min(stop, base + size);
        const Run run{low - start, high - low, rows.table(first + i), low - base};
        backend.copy(copy_stream, rows_buffer.at(0, run.position, run.count), pool.at(run.slot, run.start, run.count));
    }
    backend.sync_stream(copy_stream);
}

}  // namespace kvstage
