// Two threads of the runtime's own: one runs the host functions of streams, the other looks whether anything still happens.
//
// A program may wait, outside the API, for what a stream has yet to do: a real device would come to it, so after a moment in which nothing
// has happened the schedule holds back nothing any longer. If nothing happens for KVSTAGE_WATCHDOG seconds (60), the process ends, and
// says what it waits for.
#pragma once
#include <pthread.h>
#include <semaphore.h>

#include "device.hpp"

namespace {

constexpr int kHangs = 70;  // the exit code

sem_t* host_function_posted() {
    static auto* it = [] {
        auto* made = new sem_t;
        sem_init(made, 0, 0);
        return made;
    }();
    return it;
}

// Runs host functions, each on the fiber of its stream.
void* serve(void*) {
    Device& it = device();
    for (;;) {
        while (sem_wait(host_function_posted())) {
        }
        it.lock.take();
        Operation& operation = *it.at_work;
        it.lock.give();
        operation.stream->fiber.run(operation.site, true, [&operation] {
            operation.issued.acquire();
            for (auto& point : operation.after) acquire(point);
            operation.work->run(0, 2);
        });
        it.lock.take();
        {
            Unseen unseen;
            Work* work = std::exchange(operation.work, nullptr);
            it.advance(operation, 2, operation.issued);
            if (operation.owned) delete work;
            it.pop(*operation.stream);
            it.at_work = nullptr;
        }
        it.lock.give();
    }
}

[[noreturn]] void tell_and_end(Device& it, double seconds) {
    char words[512];
    Site nowhere, pending;
    nowhere.depth = 1;
    nowhere.frames[0] = it.last_caller;
    const char* what = "";
    for (auto* stream : it.streams)
        if (!stream->queue.empty() && !pending.depth) {
            pending = stream->queue.front()->site;
            what = stream->queue.front()->call;
        }
    const bool inside = it.at_work != nullptr;
    if (inside) pending = it.at_work->site, what = it.at_work->call;
    const Waiting* who = it.waiting.empty() ? nullptr : it.waiting.front();
    if (who)
        snprintf(words, sizeof words, "nothing has happened for %g s: %s waits for %s, which is in %s", seconds, who->call, who->stream->name,
                 inside ? "a host function that does not return" : what);
    else
        snprintf(words, sizeof words, "nothing has happened for %g s: no thread is in a call, the last one was %s%s", seconds, it.last_call,
                 inside ? ", and a host function does not return" : "");
    it.log.finding("hang", words, pending, who ? who->site : nowhere);
    it.log.end(it.counts);
    _exit(kHangs);
}

// Time is counted in ticks of this thread: on a machine that is busy it stands still for all.
void* look(void*) {
    Device& it = device();
    constexpr double kTick = 0.05;
    constexpr int kPatience = 10;
    const double limit = number_in("KVSTAGE_WATCHDOG", 60);
    unsigned long seen = 0;
    for (int quiet = 0;;) {
        constexpr timespec tick{0, long(kTick * 1e9)};
        nanosleep(&tick, nullptr);
        it.lock.take();
        {
            Unseen unseen;
            quiet = it.activity == seen ? quiet + 1 : 0;
            seen = it.activity;
            if (quiet * kTick > limit) tell_and_end(it, limit);
            if (quiet > kPatience) it.let_go();
        }
        it.lock.give();
    }
}

void start(void* (*body)(void*)) {
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    pthread_create(&thread, &detached, body, nullptr);
    pthread_attr_destroy(&detached);
}

// Starts the threads when they are first needed.
void watch() {
    static bool watching = false;
    if (!std::exchange(watching, true)) start(look);
}
void post_host_function() {
    static bool serving = false;
    if (!std::exchange(serving, true)) start(serve);
    sem_post(host_function_posted());
}

}  // namespace
