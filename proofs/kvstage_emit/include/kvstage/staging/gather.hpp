// gather, written by kvstage 0.1.0 (kvstage emit). Don't edit it: change the scheme, and emit it anew.
//
// Judged when it was written:
//   PROVED   by_chunk:P1      the contract of a partition
//   PROVED   gather.read:T1   no hazard
//   PROVED   gather.read:T3   the result
//   PROVED   gather.read:T6   no deadlock
//   PROVED   gather.read:T7   bounds
//   PROVED   gather.read:T2   single-row guarantee
//   PROVED   gather.write:T1  no hazard
//   PROVED   gather.write:T3  the result
//   PROVED   gather.write:T6  no deadlock
//   PROVED   gather.write:T7  bounds
//   PROVED   gather.write:T2  single-row guarantee
//   PROVED   gather.read:T4   counts
//   PROVED   gather.write:T4  counts
#pragma once

#include "backend.hpp"

namespace kvstage {

/// A piece for every `chunk` rows, through `slots` device slots and as many pinned ones.
/// A kernel packs a piece into a device slot, a copy moves it to a pinned slot, the host takes it late.
///
/// The event `free` is needed if there are fewer device slots than pinned ones, and only then: else the host took the
/// piece, and so waited for its copy, before its device slot is packed again. It is kept, since the caller picks the depths.
///
/// Memory: pool (device), packed (device), stage (pinned), out (pageable).
template <class Backend>
void gather_read(
    Backend& backend,
    const PagedRows& rows,
    Index slots,
    Index chunk,
    typename Backend::Stream compute_stream,
    typename Backend::Stream copy_stream,
    Buffer pool,
    Buffer packed,
    Buffer stage,
    Buffer out,
    const std::vector<typename Backend::Event>& free,
    const std::vector<typename Backend::Event>& packed_event,
    const std::vector<typename Backend::Event>& filled) {
    rows.demand_valid("rows");
    demand_at_least("slots", slots, 1);
    demand_at_least("chunk", chunk, 1);
    const Index length = rows.stop - rows.start;
    const Index number = (length + chunk - 1) / chunk;
    pool.fit("pool", rows.num_blocks, rows.block_size);
    packed.fit("packed", slots, chunk);
    stage.fit("stage", slots, chunk);
    out.fit("out", 1, length);
    demand_same_rows("pool", pool, "packed", packed);
    demand_same_rows("packed", packed, "stage", stage);
    demand_events("free", free.size(), slots);
    demand_events("packed", packed_event.size(), slots);
    demand_events("filled", filled.size(), slots);
    for (Index i = 0; i < number + slots - 1; ++i) {
        if (i < number) {
            const Piece piece{i * chunk, std::min(chunk, length - i * chunk)};
            const Index device = i % slots;
            const Index pinned = i % slots;
            backend.wait_event(compute_stream, free[device]);
            backend.gather(compute_stream, rows.part(pool, piece.position, piece.count), packed.at(device, 0, piece.count));
            backend.record_event(packed_event[device], compute_stream);
            backend.wait_event(copy_stream, packed_event[device]);
            backend.copy(copy_stream, packed.at(device, 0, piece.count), stage.at(pinned, 0, piece.count));
            backend.record_event(free[device], copy_stream);
            backend.record_event(filled[pinned], copy_stream);
        }
        const Index item = i - slots + 1;
        if (0 <= item && item < number) {
            const Piece piece{item * chunk, std::min(chunk, length - item * chunk)};
            const Index pinned = item % slots;
            backend.sync_event(filled[pinned]);
            backend.host_copy(stage.at(pinned, 0, piece.count), out.at(0, piece.position, piece.count));
        }
    }
}

/// A piece for every `chunk` rows, through `slots` device slots and as many pinned ones.
/// The host fills a pinned slot, a copy moves it to a device slot, a kernel unpacks the piece from there.
///
/// Memory: pool (device), packed (device), stage (pinned), rows_buffer (pageable).
template <class Backend>
void gather_write(
    Backend& backend,
    const PagedRows& rows,
    Index slots,
    Index chunk,
    typename Backend::Stream copy_stream,
    typename Backend::Stream compute_stream,
    Buffer pool,
    Buffer packed,
    Buffer stage,
    Buffer rows_buffer,
    const std::vector<typename Backend::Event>& sent,
    const std::vector<typename Backend::Event>& free) {
    rows.demand_distinct("rows");
    demand_at_least("slots", slots, 1);
    demand_at_least("chunk", chunk, 1);
    const Index length = rows.stop - rows.start;
    const Index number = (length + chunk - 1) / chunk;
    pool.fit("pool", rows.num_blocks, rows.block_size);
    packed.fit("packed", slots, chunk);
    stage.fit("stage", slots, chunk);
    rows_buffer.fit("rows", 1, length);
    demand_same_rows("stage", stage, "packed", packed);
    demand_same_rows("packed", packed, "pool", pool);
    demand_events("sent", sent.size(), slots);
    demand_events("free", free.size(), slots);
    for (Index i = 0; i < number; ++i) {
        const Piece piece{i * chunk, std::min(chunk, length - i * chunk)};
        const Index device = i % slots;
        const Index pinned = i % slots;
        backend.sync_event(sent[pinned]);
        backend.host_copy(rows_buffer.at(0, piece.position, piece.count), stage.at(pinned, 0, piece.count));
        backend.wait_event(copy_stream, free[device]);
        backend.copy(copy_stream, stage.at(pinned, 0, piece.count), packed.at(device, 0, piece.count));
        backend.record_event(sent[pinned], copy_stream);
        backend.wait_event(compute_stream, sent[pinned]);
        backend.scatter(compute_stream, packed.at(device, 0, piece.count), rows.part(pool, piece.position, piece.count));
        backend.record_event(free[device], compute_stream);
    }
    backend.sync_stream(compute_stream);
}

}  // namespace kvstage
