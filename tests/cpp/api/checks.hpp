// CHECK(condition): prints where a condition does not hold, and counts. checks_failed() is the exit code of a program of checks.
#pragma once
#include <cstdio>

inline int failed_checks = 0, made_checks = 0;
#define CHECK(...) ((__VA_ARGS__) ? void(++made_checks) : void((++failed_checks, printf("%s:%d: %s\n", __FILE__, __LINE__, #__VA_ARGS__))))

inline int checks_failed() {
    if (!made_checks) puts("nothing was checked");
    return failed_checks || !made_checks;
}
