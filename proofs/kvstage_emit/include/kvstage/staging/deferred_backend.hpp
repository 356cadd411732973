// A backend for tests: copies and kernels happen as late as waits allow, or whenever a seed says, one half of the bytes after
// the other. Code that forgets a wait gets wrong bytes from it; a fake that copies at once gives it the right ones.
#pragma once

#include <deque>
#include <functional>
#include <random>

#include "backend.hpp"

namespace kvstage {

class DeferredBackend {
public:
    enum class Order { kLate, kAtOnce, kSeeded };

    using Stream = int;
    using Event = int;

    explicit DeferredBackend(Order order = Order::kLate, unsigned seed = 0) : order_(order), random_(seed) {}
    virtual ~DeferredBackend() = default;

    std::vector<Event> make_events(Index count) {
        std::vector<Event> events;
        for (Index k = 0; k < count; ++k) {
            events.push_back(static_cast<Event>(last_record_.size()));
            last_record_.push_back(-1);
        }
        return events;
    }
    std::vector<Event> fresh_events(Index count) { return make_events(count); }

    void copy(Stream stream, Rows source, Rows target) {
        launch(stream, [source, target](int half) { copy_half(source, target, half); });
    }
    void copy_batch(Stream stream, const Copies& copies) {
        launch(stream, [copies](int half) {
            for (const auto& [source, target] : copies) copy_half(source, target, half);
        });
    }
    void gather(Stream stream, Paged source, Rows target) { move(stream, source, target, true); }
    void scatter(Stream stream, Rows source, Paged target) { move(stream, target, source, false); }

    // Any other kernel: called once for its first half and once for its second.
    void launch(Stream stream, std::function<void(int)> run) {
        work_.push_back({std::move(run), 0, stream, -1});
        some_time_passes();
    }

    void host_copy(Rows source, Rows target) {
        some_time_passes();
        copy_bytes(source, target);
    }

    void record_event(Event event, Stream stream) {
        last_record_.at(static_cast<std::size_t>(event)) = static_cast<Index>(work_.size());
        launch(stream, nullptr);
    }
    void sync_event(Event event) {
        force(last_record_.at(static_cast<std::size_t>(event)));
        some_time_passes();
    }
    void wait_event(Stream stream, Event event) {
        work_.push_back({nullptr, 0, stream, last_record_.at(static_cast<std::size_t>(event))});
        some_time_passes();
    }
    bool query_event(Event event) {
        some_time_passes();
        const Index record = last_record_.at(static_cast<std::size_t>(event));
        return record < 0 || done(record);
    }
    void sync_stream(Stream stream) {
        for (std::size_t k = first_; k < work_.size(); ++k)
            if (work_[k].stream == stream) force(static_cast<Index>(k));
        some_time_passes();
    }

private:
    struct Work {
        std::function<void(int)> run;
        int halves;
        Stream stream;
        Index after;  // the record that it waits for, or -1
    };

    static void copy_half(const Rows& source, const Rows& target, int half) {
        const Index middle = source.bytes() / 2, from = half ? middle : 0, past = half ? source.bytes() : middle;
        if (past > from) std::memcpy(target.data + from, source.data + from, static_cast<std::size_t>(past - from));
    }

    void move(Stream stream, const Paged& paged, const Rows& flat, bool gathers) {
        std::vector<Rows> places;
        for (Index row = 0; row < paged.count; ++row) places.push_back(paged.at(row));
        launch(stream, [places, flat, gathers](int half) {
            for (std::size_t row = half ? places.size() / 2 : 0; row < (half ? places.size() : places.size() / 2); ++row) {
                const Rows one{flat.data + static_cast<Index>(row) * flat.row_bytes, 1, flat.row_bytes};
                gathers ? copy_bytes(places[row], one) : copy_bytes(one, places[row]);
            }
        });
    }

    bool done(Index k) const { return work_[static_cast<std::size_t>(k)].halves == 2; }

    void move_on(Work& work) {
        if (work.run) work.run(work.halves);
        if (++work.halves == 2) work.run = nullptr;
    }

    // Everything before it on its stream, and what that waits for, has ended when this returns.
    void force(Index last) {
        if (last < 0) return;
        const Stream stream = work_[static_cast<std::size_t>(last)].stream;
        for (std::size_t k = first_; k <= static_cast<std::size_t>(last); ++k) {
            if (work_[k].stream != stream) continue;
            if (work_[k].after >= 0 && !done(work_[k].after)) force(work_[k].after);
            while (work_[k].halves < 2) move_on(work_[k]);
        }
        while (first_ < work_.size() && work_[first_].halves == 2) ++first_;
    }

    bool may_go_on(std::size_t k) const {
        if (work_[k].halves == 2 || (work_[k].after >= 0 && !done(work_[k].after))) return false;
        for (std::size_t earlier = first_; earlier < k; ++earlier)
            if (work_[earlier].stream == work_[k].stream && work_[earlier].halves < 2) return false;
        return true;
    }

    void some_time_passes() {
        if (order_ == Order::kLate) return;
        for (std::size_t k = first_; k < work_.size(); ++k)
            while (may_go_on(k) && (order_ == Order::kAtOnce || random_() % 3 == 0)) move_on(work_[k]);
    }

    Order order_;
    std::minstd_rand random_;
    std::deque<Work> work_;
    std::size_t first_ = 0;
    std::vector<Index> last_record_;
};

}  // namespace kvstage
