// batch_session, written by kvstage 0.1.0 (kvstage emit). Don't edit it: change the scheme, and emit it anew.
//
// Judged when it was written:
//   PROVED   by_block:P1                       the contract of a partition
//   PROVED   user_schemes.py:batch_session:T1  no hazard
//   PROVED   user_schemes.py:batch_session:T6  no deadlock
//   PROVED   user_schemes.py:batch_session:T7  bounds
#pragma once

#include "backend.hpp"

namespace kvstage {

/// A write and a read under way at once, both by "direct": the host waits for the last one's event only.
///
/// Then it uses what was read, and fills again what it wrote from: so calls of a batch, or left under way, may follow each
/// other on one stream without a wait between them.
///
/// Memory: pool (device), rows (pinned), out (pinned).
template <class Backend, class Use, class Fill>
void batch_session(
    Backend& backend,
    const PagedRows& writes,
    const PagedRows& reads,
    typename Backend::Stream copy_stream,
    Buffer pool,
    Buffer rows,
    Buffer out,
    const std::vector<typename Backend::Event>& arrived,
    Use&& use,
    Fill&& fill) {
    writes.demand_distinct("writes");
    reads.demand_valid("reads");
    demand_one_pool(writes, reads);
    const Index size = writes.block_size;
    const Index start = writes.start;
    const Index stop = writes.stop;
    const Index first = start / size;
    const Index number = start < stop ? (stop - 1) / size - first + 1 : 0;
    const Index size_2 = reads.block_size;
    const Index start_2 = reads.start;
    const Index stop_2 = reads.stop;
    const Index first_2 = start_2 / size_2;
    const Index number_2 = start_2 < stop_2 ? (stop_2 - 1) / size_2 - first_2 + 1 : 0;
    pool.fit("pool", reads.num_blocks, size_2);
    rows.fit("rows", 1, stop - start);
    out.fit("out", 1, stop_2 - start_2);
    demand_same_rows("rows", rows, "pool", pool);
    demand_same_rows("pool", pool, "out", out);
    demand_events("arrived", arrived.size(), 1);
    // write
    for (Index i = 0; i < number; ++i) {
        const Index base = (first + i) * size;
        const Index low = std::max(start, base);
        const Index high = std::min(stop, base + size);
        const Run run{low - start, high - low, writes.table(first + i), low - base};
        backend.copy(copy_stream, rows.at(0, run.position, run.count), pool.at(run.slot, run.start, run.count));
    }
    // read
    for (Index i = 0; i < number_2; ++i) {
        const Index base = (first_2 + i) * size_2;
        const Index low = std::max(start_2, base);
        const Index high = std::min(stop_2, base + size_2);
        const Run run{low - start_2, high - low, reads.table(first_2 + i), low - base};
        backend.copy(copy_stream, pool.at(run.slot, run.start, run.count), out.at(0, run.position, run.count));
    }
    // wait
    backend.record_event(arrived[0], copy_stream);
    backend.sync_event(arrived[0]);
    // use
    for (Index position = 0; position < stop_2 - start_2; ++position) {
        use(out.at(0, position, 1));
    }
    // fill
    for (Index position = 0; position < stop - start; ++position) {
        fill(rows.at(0, position, 1));
    }
}

}  // namespace kvstage
