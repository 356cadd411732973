// ring_session, written by kvstage 0.1.0 (kvstage emit). Don't edit it: change the scheme, and emit it anew.
//
// Judged when it was written:
//   PROVED   by_block:P1                      the contract of a partition
//   PROVED   user_schemes.py:ring_session:T1  no hazard
//   PROVED   user_schemes.py:ring_session:T6  no deadlock
//   PROVED   user_schemes.py:ring_session:T7  bounds
#pragma once

#include "backend.hpp"

namespace kvstage {

/// Reads and writes share one ring of slots and one stream. Nothing drains between turns: events outlive them.
///
/// Memory: pool (device), stage (pinned), out (pageable), rows (pageable).
template <class Backend, class Before, class Between, class After>
void ring_session(
    Backend& backend,
    const PagedRows& reads,
    const PagedRows& writes,
    Index slots,
    typename Backend::Stream compute_stream,
    typename Backend::Stream copy_stream,
    Buffer pool,
    Buffer stage,
    Buffer out,
    Buffer rows,
    const std::vector<typename Backend::Event>& computed,
    const std::vector<typename Backend::Event>& filled,
    const std::vector<typename Backend::Event>& changed,
    const std::vector<typename Backend::Event>& sent,
    const std::vector<typename Backend::Event>& written,
    Before&& before,
    Between&& between,
    After&& after) {
    reads.demand_valid("reads");
    writes.demand_distinct("writes");
    demand_at_least("slots", slots, 1);
    demand_one_pool(reads, writes);
    const Index size = reads.block_size;
    const Index start = reads.start;
    const Index stop = reads.stop;
    const Index first = start / size;
    const Index number = start < stop ? (stop - 1) / size - first + 1 : 0;
    const Index size_2 = writes.block_size;
    const Index start_2 = writes.start;
    const Index stop_2 = writes.stop;
    const Index first_2 = start_2 / size_2;
    const Index number_2 = start_2 < stop_2 ? (stop_2 - 1) / size_2 - first_2 + 1 : 0;
    pool.fit("pool", writes.num_blocks, size_2);
    stage.fit("stage", slots, size_2);
    out.fit("out", 1, stop - start);
    rows.fit("rows", 1, stop_2 - start_2);
    demand_same_rows("pool", pool, "stage", stage);
    demand_same_rows("stage", stage, "pool", pool);
    demand_events("computed", computed.size(), 1);
    demand_events("filled", filled.size(), slots);
    demand_events("changed", changed.size(), 1);
    demand_events("sent", sent.size(), slots);
    demand_events("written", written.size(), 1);
    // before
    for (Index block = 0; block < reads.num_blocks; ++block) {
        before(compute_stream, Accesses{}, Accesses{pool.at(block, 0, size)});
    }
    // computed
    backend.record_event(computed[0], compute_stream);
    backend.wait_event(copy_stream, computed[0]);
    // read
    for (Index i = 0; i < number + slots - 1; ++i) {
        if (i < number) {
            const Index base = (first + i) * size;
            const Index low = std::max(start, base);
            const Index high = std::min(stop, base + size);
            const Run run{low - start, high - low, reads.table(first + i), low - base};
            backend.copy(copy_stream, pool.at(run.slot, run.start, run.count), stage.at(i % slots, 0, run.count));
            backend.record_event(filled[i % slots], copy_stream);
        }
        const Index item = i - slots + 1;
        if (0 <= item && item < number) {
            const Index base = (first + item) * size;
            const Index low = std::max(start, base);
            const Index high = std::min(stop, base + size);
            const Run run{low - start, high - low, reads.table(first + item), low - base};
            backend.sync_event(filled[item % slots]);
            backend.host_copy(stage.at(item % slots, 0, run.count), out.at(0, run.position, run.count));
        }
    }
    // between
    for (Index block = 0; block < reads.num_blocks; ++block) {
        between(compute_stream, Accesses{pool.at(block, 0, size)}, Accesses{pool.at(block, 0, size)});
    }
    // changed
    backend.record_event(changed[0], compute_stream);
    backend.wait_event(copy_stream, changed[0]);
    // write
    for (Index i = 0; i < number_2; ++i) {
        const Index base = (first_2 + i) * size_2;
        const Index low = std::max(start_2, base);
        const Index high = std::min(stop_2, base + size_2);
        const Run run{low - start_2, high - low, writes.table(first_2 + i), low - base};
        backend.sync_event(sent[i % slots]);
        backend.host_copy(rows.at(0, run.position, run.count), stage.at(i % slots, 0, run.count));
        backend.copy(copy_stream, stage.at(i % slots, 0, run.count), pool.at(run.slot, run.start, run.count));
        backend.record_event(sent[i % slots], copy_stream);
    }
    // written
    backend.record_event(written[0], copy_stream);
    backend.wait_event(compute_stream, written[0]);
    // after
    for (Index block = 0; block < reads.num_blocks; ++block) {
        after(compute_stream, Accesses{pool.at(block, 0, size)}, Accesses{});
    }
}

}  // namespace kvstage
