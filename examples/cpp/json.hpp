// A reader of JSON, as small as a test needs it. It throws std::runtime_error where a text is no JSON, or lacks something.
#pragma once

#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace json {

struct Value {
    std::int64_t number = 0;
    std::string text;                                    // of a string
    std::vector<Value> items;                            // of a list
    std::vector<std::pair<std::string, Value>> members;  // of an object

    const Value& at(const std::string& key) const {
        for (const auto& member : members)
            if (member.first == key) return member.second;
        throw std::runtime_error("the trace lacks " + key);
    }
};

class Reader {
public:
    explicit Reader(const std::string& text) : text_(text) {}

    Value document() {
        Value value = read(0);
        if (next() != '\0') fail();
        return value;
    }

private:
    static constexpr int kDeepest = 16;  // a trace is nested less deep

    Value read(int depth) {
        if (depth > kDeepest) fail();
        const char first = next();
        Value value;
        if (first == '{' || first == '[') {
            const char last = first == '{' ? '}' : ']';
            ++at_;
            if (next() == last) { ++at_; return value; }
            while (true) {
                if (first == '[') {
                    value.items.push_back(read(depth + 1));
                } else {
                    std::string key = string();
                    expect(':');
                    value.members.emplace_back(std::move(key), read(depth + 1));
                }
                if (next() == last) { ++at_; return value; }
                expect(',');
            }
        }
        if (first == '"') {
            value.text = string();
        } else {
            char* end = nullptr;
            value.number = std::strtoll(text_.c_str() + at_, &end, 10);
            if (end == text_.c_str() + at_) fail();
            at_ = static_cast<std::size_t>(end - text_.c_str());
        }
        return value;
    }

    std::string string() {
        expect('"');
        std::string found;
        while (at_ < text_.size() && text_[at_] != '"') {
            if (text_[at_] == '\\') ++at_;  // names of the schemes in this test have no escapes but \" and \\.
            if (at_ < text_.size()) found += text_[at_++];
        }
        expect('"');
        return found;
    }

    char next() {
        while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
        return at_ < text_.size() ? text_[at_] : '\0';
    }

    void expect(char wanted) {
        if (next() != wanted) fail();
        ++at_;
    }

    [[noreturn]] void fail() const { throw std::runtime_error("no JSON at byte " + std::to_string(at_)); }

    const std::string& text_;
    std::size_t at_ = 0;
};

}  // namespace json
