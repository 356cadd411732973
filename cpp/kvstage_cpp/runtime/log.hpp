// What a run leaves behind: KVSTAGE_LOG names a file. Lines of fields, with tabs between them; `kvstage cpp` reads them.
//
//   start and end    that the program uses this runtime, and what it comes to
//   finding          a mistake that the runtime itself has seen, with the places in the program
//   all others       with KVSTAGE_TRACE=1 only: what was issued, when it began and ended, and what the program says of itself
#pragma once
#include <unistd.h>

#include <cstdarg>

#include "../include/kvstage/notes.h"
#include "operations.hpp"

namespace {

class Log {
   public:
    Log() {
        const char* path = getenv("KVSTAGE_LOG");
        const char* trace = getenv("KVSTAGE_TRACE");
        if (path && *path) file_ = fopen(path, "a");
        tracing_ = file_ && trace && *trace == '1';
        if (file_) {
            fprintf(file_, "start\t%d\t%s\n", int(getpid()), under_tsan() ? "ThreadSanitizer" : under_asan() ? "AddressSanitizer" : "");
            fflush(file_);
        }
    }

    bool tracing() const { return tracing_; }
    FILE* file() const { return file_; }

    // A line of the trace, as printf takes it. Names come last, since they are the program's.
    __attribute__((format(printf, 2, 3))) void line(const char* form, ...) {
        if (!tracing_) return;
        va_list fields;
        va_start(fields, form);
        vfprintf(file_, form, fields);
        va_end(fields);
        fputc('\n', file_);
    }

    void issued(const Operation& operation) {
        if (!tracing_) return;
        const char* kind = operation.work ? operation.work->name() : operation.mark ? "record" : "await";
        fprintf(file_, "%s\t%ld\t%s", kind, operation.id, operation.stream->name);
        if (operation.work) operation.work->write(file_);
        else if (operation.event) fprintf(file_, "\t%s\t%u", operation.event->name, operation.event->index);
        fputc('\n', file_);
    }

    // A mistake, once for each two places. Without a file it is told at once.
    void finding(const char* kind, const char* words, const Site& first, const Site& second) {
        for (auto& each : told_)
            if (each.kind == kind && each.first == first.frames[0] && each.second == second.frames[0]) return;
        told_.push_back({kind, first.frames[0], second.frames[0]});
        FILE* out = file_ ? file_ : stderr;
        fprintf(out, file_ ? "finding\t%s\t%s\t" : "kvstage: %s: %s\n  first:  ", kind, words);
        frames(out, first);
        fprintf(out, file_ ? "\t" : "\n  second: ");
        frames(out, second);
        fputc('\n', out);
        fflush(out);
    }

    // AddressSanitizer has something to report, while a stream does what was issued at `site`.
    void during(const Site& site) {
        if (!file_) return;
        fputs("during\t", file_);
        frames(file_, site);
        fputc('\n', file_);
        fflush(file_);
    }

    void end(const kvstage_counts_t& counts) {
        if (!file_) return;
        fprintf(file_, "end\t%lu\t%lu\t%lu\t%lu\t%lu\n", counts.operations, counts.copies, counts.bytes, counts.launches, counts.waits);
        fflush(file_);
    }

    static void frames(FILE* out, const Site& site) {
        for (int i = 0; i < site.depth; ++i) {
            Dl_info module;
            if (!dladdr(site.frames[i], &module) || !module.dli_fname) continue;
            const auto offset = static_cast<char*>(site.frames[i]) - static_cast<char*>(module.dli_fbase) - 1;  // inside the call
            fprintf(out, "%s(%s+0x%lx)", i ? " " : "", module.dli_fname, static_cast<unsigned long>(offset));
        }
    }

   private:
    struct Told {
        const char* kind;
        void *first, *second;
    };
    FILE* file_ = nullptr;
    bool tracing_ = false;
    std::vector<Told> told_;
};

}  // namespace
