// Two fakes of a backend's copy queue: one that copies at once, and one that copies when a trace of kvstage says so.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "json.hpp"

// What the engine asks of its backend.
class Queue {
public:
    virtual ~Queue() = default;
    virtual void copy_async(void* target, const void* source, std::size_t bytes) = 0;
    virtual void synchronize() = 0;
};

// What most fakes do. A loop that forgets its wait passes every test with it.
class EagerQueue : public Queue {
public:
    void copy_async(void* target, const void* source, std::size_t bytes) override { std::memcpy(target, source, bytes); }
    void synchronize() override {}
};

// When each half of each copy moves. Time is counted by what the fake can see: it is 2n when the n-th copy has just been
// issued, and 2n + 1 when the host has touched memory since; the fake learns of that at the next call.
class Schedule {
public:
    struct Move {
        std::size_t copy;
        int half;
        std::size_t due;
    };
    std::vector<Move> moves;

    // From a trace: its program says which operations are copies, its events in which order everything happens.
    explicit Schedule(const json::Value& trace) {
        static const std::set<std::string> asynchronous{"Copy", "CopyBatch", "Gather", "Scatter", "Launch"};
        static const std::set<std::string> accesses{"HostCopy", "HostRead", "HostWrite"};
        const auto& program = trace.at("program").items;
        std::vector<std::size_t> number;  // of each operation: how many copies were issued before it
        std::size_t copies = 0;
        for (const auto& operation : program) {
            number.push_back(copies);
            copies += asynchronous.count(operation.at("kind").text);
        }
        std::size_t issued = 0, touched = 0;
        for (const auto& event : trace.at("events").items) {
            const auto index = static_cast<std::size_t>(event.at("operation").number);
            const std::string& kind = program.at(index).at("kind").text;
            const bool begins = event.at("moment").text == "begin", moves_rows = asynchronous.count(kind) != 0;
            const std::size_t by_now = number[index] + (moves_rows ? 1 : 0);  // the host issues in order: it has come so far
            if (by_now > issued) {
                issued = by_now;
                touched = 0;
            }
            if (moves_rows) moves.push_back({number[index], begins ? 0 : 1, 2 * issued + touched});
            if (accesses.count(kind) && begins) touched = 1;
        }
    }
};

// Holds copies back as long as the schedule does, and no longer than a wait allows: correct code never notices.
class DeferredQueue : public Queue {
public:
    explicit DeferredQueue(Schedule schedule) : schedule_(std::move(schedule)) {}

    void copy_async(void* target, const void* source, std::size_t bytes) override {
        advance(2 * copies_.size() + 1);
        copies_.push_back({static_cast<char*>(target), static_cast<const char*>(source), bytes, 0});
        advance(2 * copies_.size());
    }

    void synchronize() override {
        for (auto& copy : copies_)
            while (copy.halves < 2) move(copy);
    }

private:
    struct Copy {
        char* target;
        const char* source;
        std::size_t bytes;
        int halves;
    };

    void advance(std::size_t now) {
        for (; next_ < schedule_.moves.size(); ++next_) {
            const auto& due = schedule_.moves[next_];
            if (due.due > now || due.copy >= copies_.size()) return;
            if (copies_[due.copy].halves == due.half) move(copies_[due.copy]);
        }
    }

    static void move(Copy& copy) {  // the first half of the bytes when it begins, the second when it ends
        const std::size_t middle = copy.bytes / 2, from = copy.halves ? middle : 0, to = copy.halves ? copy.bytes : middle;
        std::memcpy(copy.target + from, copy.source + from, to - from);
        ++copy.halves;
    }

    Schedule schedule_;
    std::vector<Copy> copies_;
    std::size_t next_ = 0;
};
