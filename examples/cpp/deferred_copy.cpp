// A test of an engine's load loop, with traces of kvstage for schedules.
//
//     kvstage traces per_row -o traces
//     g++ -std=c++17 -o deferred_copy deferred_copy.cpp
//     ./deferred_copy traces/per_row-*.read/*.json
//
// It exits with 0 where the right loop is right under every schedule, and each wrong one is found by some.

#include <cstdio>
#include <fstream>
#include <sstream>

#include "fake_queue.hpp"

namespace {

constexpr std::size_t kRowBytes = 8;
using Rows = std::vector<char>;

// -- the engine: rows of a paged cache come to the host through one staging row

enum class Loop { kRight, kNoWait, kWaitsBehindItsUse };

Rows load(Queue& queue, const Rows& pool, const std::vector<std::size_t>& table, Loop loop) {
    Rows stage(kRowBytes, '\xa5'), out(table.size() * kRowBytes);
    for (std::size_t row = 0; row < table.size(); ++row) {
        queue.copy_async(stage.data(), pool.data() + table[row] * kRowBytes, kRowBytes);
        if (loop == Loop::kRight) queue.synchronize();
        std::memcpy(out.data() + row * kRowBytes, stage.data(), kRowBytes);
        if (loop == Loop::kWaitsBehindItsUse) queue.synchronize();
    }
    queue.synchronize();
    return out;
}

// -- the test

std::string contents(const char* file) {
    std::ifstream stream(file);
    if (!stream) throw std::runtime_error(std::string("can't read ") + file);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
}

}  // namespace

int main(int count, char** files) {
    Rows pool(4 * kRowBytes);
    for (std::size_t byte = 0; byte < pool.size(); ++byte) pool[byte] = static_cast<char>(byte);
    const std::vector<std::size_t> table{2, 0, 3};
    Rows expected;
    for (const auto row : table) expected.insert(expected.end(), pool.begin() + row * kRowBytes, pool.begin() + (row + 1) * kRowBytes);

    std::vector<Schedule> schedules;
    try {
        for (int file = 1; file < count; ++file) {
            const std::string text = contents(files[file]);
            schedules.emplace_back(json::Reader(text).document());
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 2;
    }

    const std::pair<Loop, const char*> loops[] = {
        {Loop::kRight, "the right loop"},
        {Loop::kNoWait, "no wait in the loop"},
        {Loop::kWaitsBehindItsUse, "a wait behind the use"},
    };
    bool as_expected = !schedules.empty();
    for (const auto& [loop, name] : loops) {
        EagerQueue at_once;
        const bool passes = load(at_once, pool, table, loop) == expected;
        std::size_t wrong = 0;
        for (const auto& schedule : schedules) {
            DeferredQueue deferred(schedule);
            wrong += load(deferred, pool, table, loop) != expected;
        }
        std::printf("%-22s  copied at once: %s   deferred: wrong under %zu of %zu schedules\n", name, passes ? "passes" : "fails",
                    wrong, schedules.size());
        as_expected = as_expected && passes && (wrong == 0) == (loop == Loop::kRight);
    }
    return as_expected ? 0 : 1;
}
