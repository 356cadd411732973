// copy, written by kvstage 0.1.0 (kvstage emit). Don't edit it: change the scheme, and emit it anew.
//
// Judged when it was written:
//   PROVED   by_block:P1    the contract of a partition
//   PROVED   copy.read:T1   no hazard
//   PROVED   copy.read:T3   the result
//   PROVED   copy.read:T6   no deadlock
//   PROVED   copy.read:T7   bounds
//   PROVED   copy.write:T1  no hazard
//   PROVED   copy.write:T3  the result
//   PROVED   copy.write:T6  no deadlock
//   PROVED   copy.write:T7  bounds
//   PROVED   copy.read:T4   counts
//   PROVED   copy.write:T4  counts
#pragma once

#include "backend.hpp"

namespace kvstage {

/// From one pool into another one whose blocks are as large or larger: a copy for every small block, and one wait.
///
/// Memory: pool (device), larger_pool (pinned).
template <class Backend>
void copy_read(
    Backend& backend,
    const PairedRows& rows,
    typename Backend::Stream copy_stream,
    Buffer pool,
    Buffer larger_pool) {
    rows.demand_distinct_larger("rows");
    const Index size = rows.small.block_size;
    const Index start = rows.small.start;
    const Index stop = rows.small.stop;
    const Index first = start / size;
    const Index number = start < stop ? (stop - 1) / size - first + 1 : 0;
    pool.fit("pool", rows.small.num_blocks, rows.small.block_size);
    larger_pool.fit("larger pool", rows.num_blocks, rows.factor * rows.small.block_size);
    demand_same_rows("pool", pool, "larger_pool", larger_pool);
    for (Index i = 0; i < number; ++i) {
        const Index base = (first + i) * size;
        const Index low = std::max(start, base);
        const Index high = std::min(stop, base + size);
        const Run run{low - start, high - low, rows.small.table(first + i), low - base};
        const Index row = rows.small.start + run.position;
        const Index block = row / rows.small.block_size;
        const Index slot = rows.table(block / rows.factor);
        const Index start_2 = block % rows.factor * rows.small.block_size + row % rows.small.block_size;
        backend.copy(copy_stream, pool.at(run.slot, run.start, run.count), larger_pool.at(slot, start_2, run.count));
    }
    backend.sync_stream(copy_stream);
}

/// From one pool into another one whose blocks are as large or smaller: a copy for every small block, and one wait.
///
/// Memory: pool (device), larger_pool (pinned).
template <class Backend>
void copy_write(
    Backend& backend,
    const PairedRows& rows,
    typename Backend::Stream copy_stream,
    Buffer pool,
    Buffer larger_pool) {
    rows.demand_distinct_smaller("rows");
    const Index size = rows.small.block_size;
    const Index start = rows.small.start;
    const Index stop = rows.small.stop;
    const Index first = start / size;
    const Index number = start < stop ? (stop - 1) / size - first + 1 : 0;
    pool.fit("pool", rows.small.num_blocks, rows.small.block_size);
    larger_pool.fit("larger pool", rows.num_blocks, rows.factor * rows.small.block_size);
    demand_same_rows("larger_pool", larger_pool, "pool", pool);
    for (Index i = 0; i < number; ++i) {
        const Index base = (first + i) * size;
        const Index low = std::max(start, base);
        const Index high = std::min(stop, base + size);
        const Run run{low - start, high - low, rows.small.table(first + i), low - base};
        const Index row = rows.small.start + run.position;
        const Index block = row / rows.small.block_size;
        const Index slot = rows.table(block / rows.factor);
        const Index start_2 = block % rows.factor * rows.small.block_size + row % rows.small.block_size;
        backend.copy(copy_stream, larger_pool.at(slot, start_2, run.count), pool.at(run.slot, run.start, run.count));
    }
    backend.sync_stream(copy_stream);
}

}  // namespace kvstage
