#include "cases.hpp"

std::vector<Case>& Case::all() {
    static std::vector<Case> cases;
    return cases;
}

int main(int count, char** arguments) {
    if (count == 1)
        for (auto& each : Case::all()) puts(each.name);
    if (count != 3) return count == 1 ? 0 : 2;
    for (auto& each : Case::all()) {
        if (strcmp(each.name, arguments[1])) continue;
        const int bytes = each.run(!strcmp(arguments[2], "right"));
        if (bytes) printf("wrong bytes: %d\n", bytes);
        return bytes != 0;
    }
    return 2;
}
