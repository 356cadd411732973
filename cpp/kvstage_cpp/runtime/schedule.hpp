// Which operation may go on: KVSTAGE_SCHEDULE. The same strings as the schedules of kvstage's other tests, and `late`.
//
//   issue-order     each operation happens as soon as it may
//   late            no operation happens before the host waits for it
//   hold:N:begin    operation N begins as late as that, all others as in issue order
//   hold:N:end      half of operation N happens at once, the rest as late as that
//   seeded:S:R      after each call of the API some streams go on, drawn from seed S and number R: fast ones often, slow ones hardly ever
#pragma once
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

class Schedule {
   public:
    static constexpr int kPatience = 64;  // queries that a held operation lets pass, with "not ready", before it goes on

    explicit Schedule(const char* text) {
        char half[6] = "";
        uint64_t seed = 0, run = 0;
        if (!text || !*text || !strcmp(text, "issue-order")) return;
        if (!strcmp(text, "late")) {
            kind_ = Kind::late;
        } else if (sscanf(text, "hold:%ld:%5s", &held_, half) == 2 && (!strcmp(half, "begin") || !strcmp(half, "end"))) {
            kind_ = Kind::hold;
            held_half_ = half[0] == 'e';
        } else if (sscanf(text, "seeded:%" SCNu64 ":%" SCNu64, &seed, &run) == 2) {
            kind_ = Kind::seeded;
            state_ = (seed + 1) * 0x9E3779B97F4A7C15u ^ (run + 1) * 0xD1B54A32D192ED03u;
        } else {
            fprintf(stderr, "kvstage: KVSTAGE_SCHEDULE is %s: it must be issue-order, late, hold:N:begin, hold:N:end or seeded:S:R\n", text);
            exit(2);
        }
    }

    bool eager() const { return kind_ == Kind::issue_order; }

    // Whether half 0 or 1 of operation `number` may happen now, on a stream of that speed. Waits and records have number -1.
    bool lets(long number, int half, unsigned speed) {
        switch (kind_) {
            case Kind::issue_order: return true;
            case Kind::late: return number < 0;
            case Kind::hold: return number != held_ || half < held_half_;
            case Kind::seeded: return number < 0 || draw(kFast) < speed;
        }
        return true;
    }

    // How fast a new stream is: its chance, of kFast, to go on.
    unsigned speed() {
        static constexpr unsigned kSpeeds[] = {1, 8, kFast};
        return kind_ == Kind::seeded ? kSpeeds[draw(3)] : kFast;
    }

    // Whether a batched copy that may read its sources at any time does so before all that its stream has yet to do.
    bool reads_early() { return kind_ == Kind::issue_order || (kind_ == Kind::seeded && draw(2)); }

   private:
    static constexpr unsigned kFast = 64;
    enum class Kind { issue_order, late, hold, seeded };

    uint64_t draw(uint64_t below) {  // splitmix64, by Steele, Lea and Flood
        uint64_t z = state_ += 0x9E3779B97F4A7C15u;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        return (z ^ z >> 31) % below;
    }

    Kind kind_ = Kind::issue_order;
    long held_ = -1;
    int held_half_ = 0;
    uint64_t state_ = 0;
};

}  // namespace
