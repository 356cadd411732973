// What the emitted schemes are written in: C++17, nothing beside the standard library. Written by kvstage emit.
//
// A buffer is `slots` slots of `rows` rows; a paged pool has a slot for each block. Numbers are of rows, never of bytes.
// What does not fit together is refused by name, with an exception, before anything is copied.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace kvstage {

using Index = std::int64_t;

struct Piece {
    Index position, count;  // `count` rows of a transfer, from its row `position` on
};

struct Run {
    Index position, count, slot, start;  // a piece that lies in one block of the pool: rows `start` and following of `slot`
};

// `count` rows side by side in memory.
struct Rows {
    char* data;
    Index count, row_bytes;
    Index bytes() const { return count * row_bytes; }
};

[[noreturn]] inline void refuse(const std::string& what) { throw std::invalid_argument("kvstage: " + what); }

// Memory of the caller's. Between two slots may lie other bytes: `slot_bytes` is from the begin of one to that of the next.
struct Buffer {
    char* data;
    Index slots, rows, row_bytes, slot_bytes;

    Buffer(void* memory, Index number_of_slots, Index rows_of_a_slot, Index bytes_of_a_row)
        : Buffer(memory, number_of_slots, rows_of_a_slot, bytes_of_a_row, rows_of_a_slot * bytes_of_a_row) {}
    Buffer(void* memory, Index number_of_slots, Index rows_of_a_slot, Index bytes_of_a_row, Index bytes_of_a_slot)
        : data(static_cast<char*>(memory)), slots(number_of_slots), rows(rows_of_a_slot), row_bytes(bytes_of_a_row),
          slot_bytes(bytes_of_a_slot) {}

    Rows at(Index slot, Index start, Index count) const { return {data + slot * slot_bytes + start * row_bytes, count, row_bytes}; }

    // Refuses a buffer with fewer slots, or shorter ones. One without gaps between its slots may be used as a single slot.
    void fit(const char* name, Index least_slots, Index least_rows) {
        if (slots < least_slots || rows < least_rows) {
            if (least_slots != 1 || slot_bytes != rows * row_bytes || slots * rows < least_rows)
                refuse(std::string("buffer '") + name + "' has " + std::to_string(slots) + " slots of " + std::to_string(rows) +
                       " rows: it must have " + std::to_string(least_slots) + " of " + std::to_string(least_rows));
            rows *= slots;
            slot_bytes = rows * row_bytes;
            slots = 1;
        }
    }
};

struct Address {
    Index slot, start;
};

struct PagedRows;

// Rows `first` and following of a transfer, each at its own place in the pool: what a kernel gathers or scatters.
struct Paged {
    Buffer pool;
    const PagedRows* rows;
    Index first, count;
    inline Rows at(Index row) const;  // the one row of the pool that is row `row` of these
};

namespace detail {
inline void demand_blocks(const std::string& name, const std::int32_t* table, Index entries, Index num_blocks, Index first, Index past) {
    if (past > entries)
        refuse(name + " reaches page " + std::to_string(past - 1) + ", beyond its block table of " + std::to_string(entries));
    for (Index k = first; k < past; ++k)
        if (table[k] < 0 || table[k] >= num_blocks)
            refuse(name + " has block id " + std::to_string(table[k]) + " for page " + std::to_string(k) + ": the pool has blocks 0 to " +
                   std::to_string(num_blocks - 1));
}

inline void demand_no_block_twice(const std::string& name, const std::int32_t* table, Index first, Index past) {
    std::vector<std::int32_t> blocks(table + first, table + past);
    std::sort(blocks.begin(), blocks.end());
    const auto twice = std::adjacent_find(blocks.begin(), blocks.end());
    if (twice != blocks.end()) refuse(name + " writes block " + std::to_string(*twice) + " twice");
}
}  // namespace detail

// Rows [start, stop) of one sequence: block `block_table[k]` of the pool holds rows [k * block_size, (k + 1) * block_size).
struct PagedRows {
    const std::int32_t* block_table;
    Index entries;  // of the table
    Index num_blocks, block_size;  // of the pool
    Index start, stop;

    Index table(Index k) const { return block_table[k]; }

    // Block and row of the `position`-th row that is moved.
    Address address(Index position) const {
        const Index row = start + position;
        return {table(row / block_size), row % block_size};
    }

    // `count` rows of the transfer, for a kernel.
    Paged part(const Buffer& pool, Index first, Index count) const { return {pool, this, first, count}; }

    // The pages that the rows reach into.
    Index first_page() const { return start / block_size; }
    Index past_page() const { return start < stop ? (stop - 1) / block_size + 1 : start / block_size; }

    // Refuses a range or a table that can't be: a fresh sequence, without rows, reads no entry of its table.
    void demand_valid(const std::string& name) const {
        if (block_size < 1 || num_blocks < 0) refuse(name + ": a pool has blocks of at least one row");
        if (start < 0 || stop < start)
            refuse(name + " are rows [" + std::to_string(start) + ", " + std::to_string(stop) + "): these are no rows");
        if (start < stop) detail::demand_blocks(name, block_table, entries, num_blocks, first_page(), past_page());
    }

    // The same, and that no block is written twice.
    void demand_distinct(const std::string& name) const {
        demand_valid(name);
        if (start < stop) detail::demand_no_block_twice(name, block_table, first_page(), past_page());
    }
};

inline Rows Paged::at(Index row) const {
    const Address place = rows->address(first + row);
    return pool.at(place.slot, place.start, 1);
}

// Rows of a sequence in two pools: `small` in the one, and in the other the same rows in blocks `factor` times as large.
struct PairedRows {
    PagedRows small;
    const std::int32_t* block_table;
    Index entries;
    Index num_blocks, factor;  // of the larger pool

    Index table(Index k) const { return block_table[k]; }

    // Block and row of the `position`-th row in the larger pool.
    Address address(Index position) const {
        const Index row = small.start + position;
        const Index block = row / small.block_size;
        return {table(block / factor), block % factor * small.block_size + row % small.block_size};
    }

    Index first_page() const { return small.first_page() / factor; }
    Index past_page() const { return small.start < small.stop ? (small.past_page() - 1) / factor + 1 : first_page(); }

    void demand_valid(const std::string& name) const {
        small.demand_valid(name);
        if (factor < 1) refuse(name + ": the larger blocks are a whole number of smaller ones, at least one");
        if (small.start < small.stop)
            detail::demand_blocks(name + " in the larger pool", block_table, entries, num_blocks, first_page(), past_page());
    }

    void demand_distinct_smaller(const std::string& name) const {
        demand_valid(name);
        small.demand_distinct(name);
    }

    void demand_distinct_larger(const std::string& name) const {
        demand_valid(name);
        if (small.start < small.stop)
            detail::demand_no_block_twice(name + " in the larger pool", block_table, first_page(), past_page());
    }
};

inline void demand_at_least(const char* name, Index value, Index least) {
    if (value < least) refuse(std::string(name) + " is " + std::to_string(value) + ": it must be at least " + std::to_string(least));
}

inline void demand_events(const char* name, std::size_t events, Index least) {
    if (static_cast<Index>(events) < least)
        refuse(std::string("there are ") + std::to_string(events) + " events '" + name + "': there must be " + std::to_string(least));
}

// What copies and kernels move between two buffers keeps its bytes; only a host's copy may convert.
inline void demand_same_rows(const char* name, const Buffer& buffer, const char* other_name, const Buffer& other) {
    if (buffer.row_bytes != other.row_bytes)
        refuse(std::string("rows of '") + name + "' have " + std::to_string(buffer.row_bytes) + " bytes, and rows of '" + other_name +
               "' have " + std::to_string(other.row_bytes));
}

inline void demand_one_pool(const PagedRows& rows, const PagedRows& other) {
    if (rows.num_blocks != other.num_blocks || rows.block_size != other.block_size) refuse("two transfers of pools of two shapes");
}

// Python's // and %, which round down: used if an operand may be negative.
inline Index floor_div(Index a, Index b) {
    const Index quotient = a / b;
    return a % b != 0 && (a % b < 0) != (b < 0) ? quotient - 1 : quotient;
}

inline Index floor_mod(Index a, Index b) {
    const Index remainder = a % b;
    return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

// Of one call of a driver: source and target of each copy, in no order.
using Copies = std::vector<std::pair<Rows, Rows>>;

// What a kernel of the caller's reads or writes.
using Accesses = std::vector<Rows>;

// What a backend's host_copy does, unless it converts.
inline void copy_bytes(const Rows& source, const Rows& target) {
    if (source.bytes() != target.bytes()) refuse("the host copies rows of two sizes, and converts none");
    if (source.bytes() > 0) std::memcpy(target.data, source.data, static_cast<std::size_t>(source.bytes()));
}

}  // namespace kvstage
