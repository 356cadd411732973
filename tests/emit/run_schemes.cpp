// Runs emitted schemes of random transfers on the deferred backend. It reads a case a line:
//
//     NAME num_blocks block_size factor start stop slots chunk most order seed deaf n table... m larger_table...
//
// and answers each with every operation that was issued, in order, and whether all bytes are those of a copy of row by row.
// `deaf` names what the backend ignores, as `record:sent` or `sync_stream:copy`, or "-".
#include <cstdio>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

#include "copy.hpp"
#include "deferred_backend.hpp"
#include "direct.hpp"
#include "gather.hpp"
#include "gather_copy.hpp"
#include "gather_host.hpp"
#include "gather_pinned.hpp"
#include "per_block.hpp"
#include "per_row.hpp"
#include "per_run.hpp"
#include "ring.hpp"
#include "staged.hpp"

using namespace kvstage;

namespace {

constexpr Index kRow = 6;
constexpr int kCopy = 0, kCompute = 1;

class Tape : public DeferredBackend {
public:
    Tape(Order order, unsigned seed, std::string deaf) : DeferredBackend(order, seed), deaf_(std::move(deaf)) {}

    std::map<std::string, std::pair<const char*, std::size_t>> memory;
    std::map<int, std::string> event_name;
    std::map<int, int> event_index;
    std::ostringstream log;

    std::vector<Event> family(const std::string& name, Index count) {
        auto events = make_events(count);
        for (std::size_t k = 0; k < events.size(); ++k) {
            event_name[events[k]] = name;
            event_index[events[k]] = static_cast<int>(k);
        }
        return events;
    }
    void copy(int s, Rows a, Rows b) { log << "Copy " << stream(s) << place(a) << place(b) << ';', DeferredBackend::copy(s, a, b); }
    void gather(int s, Paged a, Rows b) { log << "Gather " << stream(s) << place(a) << place(b) << ';', DeferredBackend::gather(s, a, b); }
    void scatter(int s, Rows a, Paged b) { log << "Scatter " << stream(s) << place(a) << place(b) << ';', DeferredBackend::scatter(s, a, b); }
    void host_copy(Rows a, Rows b) { log << "HostCopy" << place(a) << place(b) << ';', DeferredBackend::host_copy(a, b); }
    void record_event(int e, int s) {
        log << "RecordEvent " << event(e) << ' ' << stream(s) << ';';
        if (deaf_ != "RecordEvent:" + event_name[e] + ":" + stream(s)) DeferredBackend::record_event(e, s);
    }
    void sync_event(int e) {
        log << "SyncEvent " << event(e) << ';';
        if (deaf_ != "SyncEvent:" + event_name[e] + ":") DeferredBackend::sync_event(e);
    }
    void wait_event(int s, int e) {
        log << "WaitEvent " << stream(s) << ' ' << event(e) << ';';
        if (deaf_ != "WaitEvent:" + event_name[e] + ":" + stream(s)) DeferredBackend::wait_event(s, e);
    }
    void sync_stream(int s) {
        log << "SyncStream " << stream(s) << ';';
        if (deaf_ != std::string("SyncStream::") + stream(s)) DeferredBackend::sync_stream(s);
    }

private:
    static const char* stream(int s) { return s == kCopy ? "copy" : "compute"; }
    std::string event(int e) { return event_name[e] + std::to_string(event_index[e]); }
    std::string place(const Rows& rows) const {
        for (const auto& [name, bytes] : memory)
            if (rows.data >= bytes.first && rows.data < bytes.first + bytes.second)
                return ' ' + name + '+' + std::to_string((rows.data - bytes.first) / kRow) + '*' + std::to_string(rows.count);
        return " nowhere";
    }
    std::string place(const Paged& paged) const {
        std::string all;
        for (Index row = 0; row < paged.count; ++row) all += place(paged.at(row));
        return all;
    }
    std::string deaf_;
};

std::vector<char> bytes(Index rows, int salt) {
    std::vector<char> made(static_cast<std::size_t>(rows * kRow + 1));
    for (std::size_t k = 0; k < made.size(); ++k) made[k] = static_cast<char>(k * 7 + k / 251 * 3 + static_cast<std::size_t>(salt));
    return made;
}

}  // namespace

int main() {
    std::string name, deaf;
    Index num_blocks, size, factor, start, stop, slots, chunk, most, entries;
    int order;
    unsigned seed;
    while (std::cin >> name >> num_blocks >> size >> factor >> start >> stop >> slots >> chunk >> most >> order >> seed >> deaf >> entries) {
        std::vector<std::int32_t> table(static_cast<std::size_t>(entries));
        for (auto& block : table) std::cin >> block;
        Index larger_entries;
        std::cin >> larger_entries;
        std::vector<std::int32_t> larger_table(static_cast<std::size_t>(larger_entries));
        for (auto& block : larger_table) std::cin >> block;
        const bool pools = name.rfind("copy_", 0) == 0, read = name.rfind("_read") != std::string::npos;
        const Index length = stop - start, longest = std::max({size, chunk, most});
        const PagedRows rows{table.data(), entries, num_blocks, size, start, stop};
        const PairedRows pair{rows, larger_table.data(), larger_entries, larger_entries, factor};
        auto pool = bytes(num_blocks * size, 1), host = bytes(pools ? larger_entries * factor * size : length, 99);
        auto stage = bytes(slots * longest, 50), packed = bytes(slots * longest, 200);
        auto wanted_pool = pool, wanted_host = host;
        const Buffer expected(wanted_pool.data(), num_blocks, size, kRow);
        for (Index k = 0; k < length; ++k) {
            const Address at = rows.address(k), there = pools ? pair.address(k) : Address{0, k};
            char* const far = wanted_host.data() + (there.slot * (pools ? factor * size : 0) + there.start) * kRow;
            const Rows one = expected.at(at.slot, at.start, 1);
            read ? std::memcpy(far, one.data, kRow) : std::memcpy(one.data, far, kRow);
        }
        Tape tape(static_cast<DeferredBackend::Order>(order), seed, deaf);
        tape.memory = {{"pool", {pool.data(), pool.size()}}, {"host", {host.data(), host.size()}},
                       {"stage", {stage.data(), stage.size()}}, {"packed", {packed.data(), packed.size()}}};
        const Buffer p(pool.data(), num_blocks, size, kRow), h(host.data(), 1, length, kRow), st(stage.data(), slots, longest, kRow),
            pk(packed.data(), slots, longest, kRow), larger(host.data(), larger_entries, factor * size, kRow);
        if (name == "staged_read") staged_read(tape, rows, kCopy, p, st, h);
        else if (name == "staged_write") staged_write(tape, rows, kCopy, p, st, h);
        else if (name == "per_row_read") per_row_read(tape, rows, kCopy, p, st, h);
        else if (name == "per_row_write") per_row_write(tape, rows, kCopy, p, st, h);
        else if (name == "per_block_read") per_block_read(tape, rows, kCopy, p, st, h);
        else if (name == "per_block_write") per_block_write(tape, rows, kCopy, p, st, h);
        else if (name == "per_run_read") per_run_read(tape, rows, most, kCopy, p, st, h);
        else if (name == "per_run_write") per_run_write(tape, rows, most, kCopy, p, st, h);
        else if (name == "direct_read") direct_read(tape, rows, kCopy, p, h);
        else if (name == "direct_write") direct_write(tape, rows, kCopy, p, h);
        else if (name == "ring_read") ring_read(tape, rows, slots, kCopy, p, st, h, tape.family("filled", slots));
        else if (name == "ring_write") ring_write(tape, rows, slots, kCopy, p, st, h, tape.family("sent", slots));
        else if (name == "gather_pinned_read") gather_pinned_read(tape, rows, kCopy, p, h);
        else if (name == "gather_pinned_write") gather_pinned_write(tape, rows, kCopy, p, h);
        else if (name == "gather_host_read") gather_host_read(tape, rows, kCopy, p, h);
        else if (name == "gather_host_write") gather_host_write(tape, rows, kCopy, p, h);
        else if (name == "gather_copy_read") gather_copy_read(tape, rows, chunk, kCopy, p, pk, h);
        else if (name == "gather_copy_write") gather_copy_write(tape, rows, chunk, kCopy, p, pk, h);
        else if (name == "gather_read")
            gather_read(tape, rows, slots, chunk, kCompute, kCopy, p, pk, st, h, tape.family("free", slots), tape.family("packed", slots),
                        tape.family("filled", slots));
        else if (name == "gather_write")
            gather_write(tape, rows, slots, chunk, kCopy, kCompute, p, pk, st, h, tape.family("sent", slots), tape.family("free", slots));
        else if (name == "copy_read") copy_read(tape, pair, kCopy, p, larger);
        else if (name == "copy_write") copy_write(tape, pair, kCopy, p, larger);
        else return 2;
        std::printf("%d %s\n", host == wanted_host && pool == wanted_pool, tape.log.str().c_str());
    }
}
