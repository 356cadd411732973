// per_row, written by kvstage 0.1.0 (kvstage emit). Don't edit it: change the scheme, and emit it anew.
//
// Judged when it was written:
//   PROVED   by_row:P1         the contract of a partition
//   PROVED   per_row.read:T1   no hazard
//   PROVED   per_row.read:T3   the result
//   PROVED   per_row.read:T6   no deadlock
//   PROVED   per_row.read:T7   bounds
//   PROVED   per_row.read:T2   single-row guarantee
//   PROVED   per_row.write:T1  no hazard
//   PROVED   per_row.write:T3  the result
//   PROVED   per_row.write:T6  no deadlock
//   PROVED   per_row.write:T7  bounds
//   PROVED   per_row.write:T2  single-row guarantee
#pragma once

#include "backend.hpp"

namespace kvstage {

/// A run for every row.
/// One staging buffer, used again for every run: copy, wait, take.
///
/// Memory: pool (device), stage (pinned), out (pageable).
template <class Backend>
void per_row_read(
    Backend& backend,
    const PagedRows& rows,
    typename Backend::Stream copy_stream,
    Buffer pool,
    Buffer stage,
    Buffer out) {
    rows.demand_valid("rows");
    const Index length = rows.stop - rows.start;
    pool.fit("pool", rows.num_blocks, rows.block_size);
    stage.fit("stage", 1, 1);
    out.fit("out", 1, length);
    demand_same_rows("pool", pool, "stage", stage);
    for (Index i = 0; i < length; ++i) {
        const Index row = rows.start + i;
        const Index slot = rows.table(row / rows.block_size);
        const Index start = row % rows.block_size;
        const Run run{i, 1, slot, start};
        const Rows staged = stage.at(0, 0, run.count);
        backend.copy(copy_stream, pool.at(run.slot, run.start, run.count), staged);
        backend.sync_stream(copy_stream);
        backend.host_copy(staged, out.at(0, run.position, run.count));
    }
}

/// A run for every row.
/// One staging buffer, used again for every run: fill, copy, wait.
///
/// Memory: pool (device), stage (pinned), rows_buffer (pageable).
template <class Backend>
void per_row_write(
    Backend& backend,
    const PagedRows& rows,
    typename Backend::Stream copy_stream,
    Buffer pool,
    Buffer stage,
    Buffer rows_buffer) {
    rows.demand_distinct("rows");
    const Index length = rows.stop - rows.start;
    pool.fit("pool", rows.num_blocks, rows.block_size);
    stage.fit("stage", 1, 1);
    rows_buffer.fit("rows", 1, length);
    demand_same_rows("stage", stage, "pool", pool);
    for (Index i = 0; i < length; ++i) {
        const Index row = rows.start + i;
        const Index slot = rows.table(row / rows.block_size);
        const Index start = row % rows.block_size;
        const Run run{i, 1, slot, start};
        const Rows staged = stage.at(0, 0, run.count);
        backend.host_copy(rows_buffer.at(0, run.position, run.count), staged);
        backend.copy(copy_stream, staged, pool.at(run.slot, run.start, run.count));
        backend.sync_stream(copy_stream);
    }
}

}  // namespace kvstage
