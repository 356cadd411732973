// per_run, written by kvstage 0.1.0 (kvstage emit). Don't edit it: change the scheme, and emit it anew.
//
// Judged when it was written:
//   PROVED   by_block:P1       the contract of a partition
//   PROVED   merged:P2         merged runs
//   PROVED   per_run.read:T1   no hazard
//   PROVED   per_run.read:T3   the result
//   PROVED   per_run.read:T6   no deadlock
//   PROVED   per_run.read:T7   bounds
//   PROVED   per_run.read:T2   single-row guarantee
//   PROVED   per_run.write:T1  no hazard
//   PROVED   per_run.write:T3  the result
//   PROVED   per_run.write:T6  no deadlock
//   PROVED   per_run.write:T7  bounds
//   PROVED   per_run.write:T2  single-row guarantee
#pragma once

#include "backend.hpp"

namespace kvstage {

inline Run in_one_slot(const Run& run, Index block_size) {
    return Run{run.position, run.count, 0, run.slot * block_size + run.start};
}

inline bool joins(const Run& last, const Run& following, Index most) {
    const bool on_in_transfer = last.position + last.count == following.position;
    const bool on_in_pool = last.slot == following.slot && last.start + last.count == following.start;
    return on_in_transfer && on_in_pool && last.count + following.count <= most;
}

inline Run joined(const Run& last, const Run& following) {
    return Run{last.position, last.count + following.count, last.slot, last.start};
}

/// A run for every stretch of up to `most` rows that lie side by side in the pool, across its blocks.
/// One staging buffer, used again for every run: copy, wait, take.
///
/// Memory: pool (device), stage (pinned), out (pageable).
template <class Backend>
void per_run_read(
    Backend& backend,
    const PagedRows& rows,
    Index most,
    typename Backend::Stream copy_stream,
    Buffer pool,
    Buffer stage,
    Buffer out) {
    rows.demand_valid("rows");
    demand_at_least("most", most, 1);
    if (most > rows.block_size) {
        const Index size = rows.block_size;
        const Index start = rows.start;
        const Index stop = rows.stop;
        const Index first = start / size;
        const Index number = start < stop ? (stop - 1) / size - first + 1 : 0;
        std::vector<Run> found;
        for (Index i = 0; i < number; ++i) {
            const Index base = (first + i) * size;
            const Index low = std::max(start, base);
            const Index high = std::min(stop, base + size);
            const Run run = in_one_slot(Run{low - start, high - low, rows.table(first + i), low - base}, rows.block_size);
            if (!found.empty() && joins(found.back(), run, most)) {
                found.back() = joined(found.back(), run);
            } else {
                found.push_back(run);
            }
        }
        const Index longest = std::max(most, rows.block_size);
        const Index whole = rows.num_blocks * rows.block_size;
        pool.fit("pool", 1, whole);
        stage.fit("stage", 1, longest);
        out.fit("out", 1, rows.stop - rows.start);
        demand_same_rows("pool", pool, "stage", stage);
        for (Index i = 0; i < Index(found.size()); ++i) {
            const Run run = found[i];
            const Rows staged = stage.at(0, 0, run.count);
            backend.copy(copy_stream, pool.at(run.slot, run.start, run.count), staged);
            backend.sync_stream(copy_stream);
            backend.host_copy(staged, out.at(0, run.position, run.count));
        }
    } else {
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
}

/// A run for every stretch of up to `most` rows that lie side by side in the pool, across its blocks.
/// One staging buffer, used again for every run: fill, copy, wait.
///
/// Memory: pool (device), stage (pinned), rows_buffer (pageable).
template <class Backend>
void per_run_write(
    Backend& backend,
    const PagedRows& rows,
    Index most,
    typename Backend::Stream copy_stream,
    Buffer pool,
    Buffer stage,
    Buffer rows_buffer) {
    rows.demand_distinct("rows");
    demand_at_least("most", most, 1);
    if (most > rows.block_size) {
        const Index size = rows.block_size;
        const Index start = rows.start;
        const Index stop = rows.stop;
        const Index first = start / size;
        const Index number = start < stop ? (stop - 1) / size - first + 1 : 0;
        std::vector<Run> found;
        for (Index i = 0; i < number; ++i) {
            const Index base = (first + i) * size;
            const Index low = std::max(start, base);
            const Index high = std::min(stop, base + size);
            const Run run = in_one_slot(Run{low - start, high - low, rows.table(first + i), low - base}, rows.block_size);
            if (!found.empty() && joins(found.back(), run, most)) {
                found.back() = joined(found.back(), run);
            } else {
                found.push_back(run);
            }
        }
        const Index longest = std::max(most, rows.block_size);
        const Index whole = rows.num_blocks * rows.block_size;
        pool.fit("pool", 1, whole);
        stage.fit("stage", 1, longest);
        rows_buffer.fit("rows", 1, rows.stop - rows.start);
        demand_same_rows("stage", stage, "pool", pool);
        for (Index i = 0; i < Index(found.size()); ++i) {
            const Run run = found[i];
            const Rows staged = stage.at(0, 0, run.count);
            backend.host_copy(rows_buffer.at(0, run.position, run.count), staged);
            backend.copy(copy_stream, staged, pool.at(run.slot, run.start, run.count));
            backend.sync_stream(copy_stream);
        }
    } else {
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
}

}  // namespace kvstage
