// gather_copy, written by kvstage 0.1.0 (kvstage emit). Don't edit it: change the scheme, and emit it anew.
//
// Judged when it was written:
//   PROVED   by_chunk:P1           the contract of a partition
//   PROVED   gather_copy.read:T1   no hazard
//   PROVED   gather_copy.read:T3   the result
//   PROVED   gather_copy.read:T6   no deadlock
//   PROVED   gather_copy.read:T7   bounds
//   PROVED   gather_copy.read:T2   single-row guarantee
//   PROVED   gather_copy.write:T1  no hazard
//   PROVED   gather_copy.write:T3  the result
//   PROVED   gather_copy.write:T6  no deadlock
//   PROVED   gather_copy.write:T7  bounds
//   PROVED   gather_copy.write:T2  single-row guarantee
//   PROVED   gather_copy.read:T4   counts
//   PROVED   gather_copy.write:T4  counts
#pragma once

#include "backend.hpp"

namespace kvstage {

/// A piece for every `chunk` rows.
/// A kernel packs a piece on the device, a copy moves it to its place in the pinned result; one wait for all.
///
/// Both are on one stream, whose order keeps the packed rows until their copy has read them: a single slot is enough.
///
/// Memory: pool (device), packed (device), out (pinned).
template <class Backend>
void gather_copy_read(
    Backend& backend,
    const PagedRows& rows,
    Index chunk,
    typename Backend::Stream copy_stream,
    Buffer pool,
    Buffer packed,
    Buffer out) {
    rows.demand_valid("rows");
    demand_at_least("chunk", chunk, 1);
    const Index length = rows.stop - rows.start;
    const Index number = (length + chunk - 1) / chunk;
    pool.fit("pool", rows.num_blocks, rows.block_size);
    packed.fit("packed", 1, chunk);
    out.fit("out", 1, length);
    demand_same_rows("pool", pool, "packed", packed);
    demand_same_rows("packed", packed, "out", out);
    for (Index i = 0; i < number; ++i) {
        const Piece piece{i * chunk, std::min(chunk, length - i * chunk)};
        backend.gather(copy_stream, rows.part(pool, piece.position, piece.count), packed.at(0, 0, piece.count));
        backend.copy(copy_stream, packed.at(0, 0, piece.count), out.at(0, piece.position, piece.count));
    }
    backend.sync_stream(copy_stream);
}

/// A piece for every `chunk` rows.
/// A copy moves a piece of the caller's pinned rows to the device, a kernel unpacks it there; one wait for all.
///
/// Memory: pool (device), packed (device), rows_buffer (pinned).
template <class Backend>
void gather_copy_write(
    Backend& backend,
    const PagedRows& rows,
    Index chunk,
    typename Backend::Stream copy_stream,
    Buffer pool,
    Buffer packed,
    Buffer rows_buffer) {
    rows.demand_distinct("rows");
    demand_at_least("chunk", chunk, 1);
    const Index length = rows.stop - rows.start;
    const Index number = (length + chunk - 1) / chunk;
    pool.fit("pool", rows.num_blocks, rows.block_size);
    packed.fit("packed", 1, chunk);
    rows_buffer.fit("rows", 1, length);
    demand_same_rows("rows_buffer", rows_buffer, "packed", packed);
    demand_same_rows("packed", packed, "pool", pool);
    for (Index i = 0; i < number; ++i) {
        const Piece piece{i * chunk, std::min(chunk, length - i * chunk)};
        backend.copy(copy_stream, rows_buffer.at(0, piece.position, piece.count), packed.at(0, 0, piece.count));
        backend.scatter(copy_stream, packed.at(0, 0, piece.count), rows.part(pool, piece.position, piece.count));
    }
    backend.sync_stream(copy_stream);
}

}  // namespace kvstage
