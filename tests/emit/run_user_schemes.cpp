// Runs the headers of user_schemes.py on the deferred backend, under several schedules; exits with 1 if a byte is wrong.
#include <cstdio>

#include "backwards.hpp"
#include "batch_session.hpp"
#include "deferred_backend.hpp"
#include "fresh.hpp"
#include "kernels.hpp"
#include "polled.hpp"
#include "ring_session.hpp"

using namespace kvstage;

namespace {

int checked = 0, wrong = 0;

void expect(const char* what, char found, char wanted) {
    ++checked;
    if (found != wanted) ++wrong, std::printf("%s: %d, not %d\n", what, found, wanted);
}

void fill(const Rows& rows, char value) { std::memset(rows.data, value, static_cast<std::size_t>(rows.bytes())); }

void uploads(DeferredBackend::Order order, unsigned seed) {
    constexpr Index kTurns = 7, kRow = 4;
    for (int scheme = 0; scheme < 3; ++scheme) {
        char pinned[3 * kRow] = {}, device[kTurns * kRow] = {};
        const Buffer p(pinned, 3, 1, kRow), d(device, kTurns, 1, kRow);
        DeferredBackend backend(order, seed);
        char turn = 1;
        const auto write = [&turn](const Rows& rows) { fill(rows, turn++); };
        if (scheme == 0) polled(backend, kTurns, 0, p, d, backend.make_events(2), write), backend.sync_stream(0);
        if (scheme == 1) fresh(backend, kTurns, 3, 0, p, d, write);
        if (scheme == 2) backwards(backend, kTurns, 0, p, d, write);
        for (Index k = 0; k < kTurns * kRow; ++k) expect("an upload", device[k], static_cast<char>(1 + k / kRow));
    }
}

void through_a_kernel(DeferredBackend::Order order, unsigned seed) {
    char device[16] = {}, pinned[16] = {};
    DeferredBackend backend(order, seed);
    char made = 0, read = 0;
    kernels(
        backend, 4, 0, 1, Buffer(device, 1, 4, 4), Buffer(pinned, 1, 4, 4), backend.make_events(1),
        [&](int stream, const Accesses&, const Accesses& writes) {
            const Rows rows = writes.at(0);
            const char value = ++made;
            backend.launch(stream, [rows, value](int half) { fill({rows.data + half * 8, 2, 4}, value); });
        },
        [&](const Rows& rows) { ++read, expect("the first row", rows.data[0], read), expect("the last row", rows.data[15], read); });
    expect("how many were read", read, 3);
}

void sessions(DeferredBackend::Order order, unsigned seed) {
    constexpr Index kBlocks = 3, kSize = 2, kRow = 4;
    const std::int32_t table[] = {2, 0, 1};
    const PagedRows reads{table, 3, kBlocks, kSize, 0, 4}, writes{table, 3, kBlocks, kSize, 1, 5};
    char pool[kBlocks * kSize * kRow] = {}, stage[2 * kSize * kRow] = {}, out[4 * kRow] = {}, rows[4 * kRow];
    std::memset(rows, 'r', sizeof rows);
    const Buffer p(pool, kBlocks, kSize, kRow), st(stage, 2, kSize, kRow), o(out, 1, 4, kRow), r(rows, 1, 4, kRow);
    DeferredBackend backend(order, seed);
    char after = 0;
    const auto set = [&](int stream, const Rows& all, char value) {
        backend.launch(stream, [all, value](int half) { if (half) fill(all, value); });
    };
    ring_session(
        backend, reads, writes, 2, 1, 0, p, st, o, r, backend.make_events(1), backend.make_events(2), backend.make_events(1),
        backend.make_events(2), backend.make_events(1),
        [&](int stream, const Accesses&, const Accesses& written) { set(stream, written.at(0), 'b'); },
        [&](int stream, const Accesses& read, const Accesses& written) {
            ++checked, wrong += read.at(0).data != written.at(0).data;
            set(stream, written.at(0), 'm');
        },
        [&](int stream, const Accesses& read, const Accesses&) {
            const Rows block = read.at(0);
            backend.launch(stream, [block, &after](int half) { after = half ? static_cast<char>(after + (block.data[0] == 'r')) : after; });
        });
    backend.sync_stream(1);
    for (char byte : out) expect("what was read", byte, 'b');
    for (Index k = 0; k < 4; ++k) expect("what was written", p.at(writes.address(k).slot, writes.address(k).start, 1).data[0], 'r');
    expect("a row that was not", p.at(2, 0, 1).data[3], 'm');
    expect("blocks that a kernel saw written", after, 2);

    char used = 0;
    batch_session(
        backend, writes, reads, 0, p, r, o, backend.make_events(1),
        [&](const Rows& row) { expect("what is used", row.data[3], used++ == 0 ? 'm' : 'r'); }, [](const Rows& row) { fill(row, 'n'); });
    expect("how many are used", used, 4);
}

}  // namespace

int main() {
    for (unsigned seed = 0; seed < 40; ++seed) {
        const auto order = static_cast<DeferredBackend::Order>(seed % 3);
        uploads(order, seed);
        through_a_kernel(order, seed);
        sessions(order, seed);
    }
    std::printf("%d wrong of %d\n", wrong, checked);
    return wrong != 0;
}
