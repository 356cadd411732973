// per_block, written by kvstage 0.1.0 (kvstage emit). Don't edit it: change the scheme, and emit it anew.
//
// Judged when it was written:
//   PROVED   by_block:P1         the contract of a partition
//   PROVED   per_block.read:T1   no hazard
//   PROVED   per_block.read:T3   the result
//   PROVED   per_block.read:T6   no deadlock
//   PROVED   per_block.read:T7   bounds
//   PROVED   per_block.read:T2   single-row guarantee
//   PROVED   per_block.write:T1  no hazard
//   PROVED   per_block.write:T3  the result
//   PROVED   per_block.write:T6  no deadlock
//   PROVED   per_block.write:T7  bounds
//   PROVED   per_block.write:T2  single-row guarantee
#pragma once

#include "backend.hpp"

namespace kvstage {

/// A run for every block that the rows touch.
/// One staging buffer, used again for every run: copy, wait, take.
///
/// Memory: pool (device), stage (pinned), out (pageable).
template <class Backend>
void per_block_read(
    Backend& backend,
    const PagedRows& rows,
    typename Backend::Stream copy_stream,
    Buffer pool,
    Buffer stage,
    Buffer out) {
    rows.demand_valid("rows");
    const Index size = rows.block_size;
    const Index start = rows.start;
    const Index stop = rows.stop;
    const Index first = start / size;
    const Index number = start < stop ? (stop - 1) / size - first + 1 : 0;
    pool.fit("pool", rows.num_blocks, size);
    stage.fit("stage", 1, size);
    out.fit("out", 1, stop - start);
    demand_same_rows("pool", pool, "stage", stage);
    for (Index i = 0; i < number; ++i) {
        const Index base = (first + i) * size;
        const Index low = std::max(start, base);
        const Index high = std::min(stop, base + size);
        const Run run{low - start, high - low, rows.table(first + i), low - base};
        const Rows staged = stage.at(0, 0, run.count);
        backend.copy(copy_stream, pool.at(run.slot, run.start, run.count), staged);
        backend.sync_stream(copy_stream);
        backend.host_copy(staged, out.at(0, run.position, run.count));
    }
}

/// A run for every block that the rows touch.
/// One staging buffer, used again for every run: fill, copy, wait.
///
/// Memory: pool (device), stage (pinned), rows_buffer (pageable).
template <class Backend>
void per_block_write(
    Backend& backend,
    const PagedRows& rows,
    typename Backend::Stream copy_stream,
    Buffer pool,
    Buffer stage,
    Buffer rows_buffer) {
    rows.demand_distinct("rows");
    const Index size = rows.block_size;
    const Index start = rows.start;
    const Index stop = rows.stop;
    const Index first = start / size;
    const Index number = start < stop ? (stop - 1) / size - first + 1 : 0;
    pool.fit("pool", rows.num_blocks, size);
    stage.fit("stage", 1, size);
    rows_buffer.fit("rows", 1, stop - start);
    demand_same_rows("stage", stage, "pool", pool);
    for (Index i = 0; i < number; ++i) {
        const Index base = (first + i) * size;
        const Index low = std::max(start, base);
        const Index high = std::min(stop, base + size);
        const Run run{low - start, high - low, rows.table(first + i), low - base};
        const Rows staged = stage.at(0, 0, run.count);
        backend.host_copy(rows_buffer.at(0, run.position, run.count), staged);
        backend.copy(copy_stream, staged, pool.at(run.slot, run.start, run.count));
        backend.sync_stream(copy_stream);
    }
}

}  // namespace kvstage
