// gather_host, written by kvstage 0.1.0 (kvstage emit). Don't edit it: change the scheme, and emit it anew.
//
// Judged when it was written:
//   PROVED   gather_host.read:T1   no hazard
//   PROVED   gather_host.read:T3   the result
//   PROVED   gather_host.read:T6   no deadlock
//   PROVED   gather_host.read:T7   bounds
//   PROVED   gather_host.write:T1  no hazard
//   PROVED   gather_host.write:T3  the result
//   PROVED   gather_host.write:T6  no deadlock
//   PROVED   gather_host.write:T7  bounds
//   PROVED   gather_host.read:T4   counts
//   PROVED   gather_host.write:T4  counts
#pragma once

#include "backend.hpp"

namespace kvstage {

/// The rows as they are.
/// One kernel that writes ordinary memory of the caller's, and one wait: for devices whose kernels reach it.
///
/// Memory: pool (device), out (pageable).
template <class Backend>
void gather_host_read(
    Backend& backend,
    const PagedRows& rows,
    typename Backend::Stream copy_stream,
    Buffer pool,
    Buffer out) {
    rows.demand_valid("rows");
    const Index length = rows.stop - rows.start;
    pool.fit("pool", rows.num_blocks, rows.block_size);
    out.fit("out", 1, length);
    demand_same_rows("pool", pool, "out", out);
    for (Index i = 0; i < std::min<Index>(length, 1); ++i) {
        backend.gather(copy_stream, rows.part(pool, 0, length), out.at(0, 0, length));
    }
    backend.sync_stream(copy_stream);
}

/// The rows as they are.
/// One kernel that reads ordinary memory of the caller's, and one wait: for devices whose kernels reach it.
///
/// Memory: pool (device), rows_buffer (pageable).
template <class Backend>
void gather_host_write(
    Backend& backend,
    const PagedRows& rows,
    typename Backend::Stream copy_stream,
    Buffer pool,
    Buffer rows_buffer) {
    rows.demand_distinct("rows");
    const Index length = rows.stop - rows.start;
    pool.fit("pool", rows.num_blocks, rows.block_size);
    rows_buffer.fit("rows", 1, length);
    demand_same_rows("rows_buffer", rows_buffer, "pool", pool);
    for (Index i = 0; i < std::min<Index>(length, 1); ++i) {
        backend.scatter(copy_stream, rows_buffer.at(0, 0, length), rows.part(pool, 0, length));
    }
    backend.sync_stream(copy_stream);
}

}  // namespace kvstage
