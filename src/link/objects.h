#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// What a server says in lists and watches, taken apart into texts of single objects.
namespace berth::link {

struct Listed {
    std::string name;  // "namespace/name", or "name" where there is no namespace
    std::string uid;
    uint64_t revision = 0;  // 0: the server's versions are no numbers
    std::string version;    // as it was written
    std::string text;
};

struct Page {
    std::string version;  // of the whole list: where a watch goes on
    std::string more;     // the continue token; empty on the last page
    std::vector<Listed> items;
    std::vector<std::string> unreadable;  // of each such item, why
};
Result<Page> read_page(std::string_view body);

struct WatchLine {
    enum class Type : uint8_t { Put, Gone, Bookmark, Error, Unreadable };
    Type type = Type::Put;
    Listed object;        // of a bookmark only its version is meant
    int code = 0;         // of an error
    std::string trouble;  // its message, or why the object cannot be read
};
Result<WatchLine> read_watch_line(std::string_view line);

// metadata.resourceVersion of an answer; 0 where it has none.
uint64_t revision_in(std::string_view body);

// {"metadata":{"name":...,"namespace":...,"uid":...}}: all that is still known of an object that vanished unseen.
std::string last_words(std::string_view name, std::string_view uid);

}  // namespace berth::link
