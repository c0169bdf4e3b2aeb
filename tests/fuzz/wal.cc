#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "store/log_file.h"
#include "store/temp_dir.h"

// Recovery of a store whose files were damaged. The input is a list of steps of eight bytes, done to what a killed
// server left: {what, which file, place (3 bytes), length, value (2 bytes)}. Whatever they do: the store is refused, or
// it holds exactly what was written up to its revision, and that is no less than what was acknowledged.
namespace berth::store {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFiles = 3;
constexpr size_t kNote = 2;
constexpr size_t kWalFrame = 24 + 4096;
constexpr int kCommits = 10;
constexpr int kMovedAfter = 6;  // the write-ahead log then begins anew

using Contents = std::map<std::string, std::string>;
using Files = std::array<std::optional<std::string>, kFiles>;

std::array<std::string, kFiles> paths(const DataDir& dir) {
    return {dir.file(), dir.wal(), dir.acknowledged()};
}

std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

// What was on the disk after each acknowledged write, and what it meant.
struct Story {
    TempDir temp{TempDir::Where::Memory};
    DataDir place{temp.path() + "/place"};
    std::vector<Files> left;
    std::vector<Contents> meant{{}};

    Story() {
        const DataDir dir{temp.path() + "/told"};
        fs::create_directories(dir.path);
        fs::create_directories(place.path);
        auto file = *LogFile::open(dir, {.checkpoint_pages = 1, .wal_bytes = 0});
        left.push_back(copy(dir));
        std::map<std::string, RecordPtr> live;
        for (int i = 1; i <= kCommits; ++i) {
            Contents next = meant.back();
            const EntryPtr entry = change(i, live, next);
            CHECK(file->add({&entry, 1}) && file->commit() && file->sync());
            CHECK(file->acknowledge(static_cast<Revision>(i)) && file->sync_acknowledged());
            if (i == kMovedAfter) CHECK(file->checkpoint(false));
            meant.push_back(std::move(next));
            left.push_back(copy(dir));
        }
    }

    static Files copy(const DataDir& dir) {
        Files out;
        for (size_t i = 0; i < kFiles; ++i) out[i] = read(paths(dir)[i]);
        return out;
    }

    // Two objects come with each write; with every third, one goes.
    static EntryPtr change(int number, std::map<std::string, RecordPtr>& live, Contents& meant) {
        auto entry = std::make_shared<LogEntry>();
        entry->revision = static_cast<Revision>(number);
        const auto add = [&](Event::Type type, const std::string& name, std::string text) {
            auto record = std::make_shared<Record>();
            record->key = {"pods", "default", name};
            record->bytes = std::make_shared<const std::string>(std::move(text));
            record->revision = record->created = entry->revision;
            record->part = static_cast<uint16_t>(entry->events.size());
            entry->events.push_back(std::make_shared<Event>(Event{type, record, live[name]}));
            live[name] = record;
        };
        if (number % 3 == 0) {
            add(Event::Type::Deleted, fmt::format("{}-a", number - 1), "");
            meant.erase(fmt::format("{}-a", number - 1));
        }
        for (const char* half : {"a", "b"}) {
            const std::string name = fmt::format("{}-{}", number, half);
            meant[name] = std::string(static_cast<size_t>(300 * number), *half);
            add(Event::Type::Added, name, meant[name]);
        }
        return entry;
    }
};

struct Scene {
    Files files;
    size_t note = 0;            // which version of what was acknowledged stands there
    bool note_changed = false;  // or is it something else
};

void step(Scene& scene, const Story& story, const unsigned char* bytes) {
    const size_t which = bytes[1] % kFiles;
    std::optional<std::string>& file = scene.files[which];
    const size_t value = bytes[6] | static_cast<size_t>(bytes[7]) << 8;
    const size_t length = bytes[5];
    const size_t size = file ? file->size() : 0;
    const size_t at =
        (bytes[2] | static_cast<size_t>(bytes[3]) << 8 | static_cast<size_t>(bytes[4]) << 16) % (size + 1);
    const bool older = bytes[0] % 6 == 0;
    if (which == kNote) scene.note_changed = !older && (scene.note_changed || file);
    switch (bytes[0] % 6) {
        case 0:
            file = story.left[value % story.left.size()][which];
            if (which == kNote) scene.note = value % story.left.size();
            break;
        case 1:
            file.reset();
            break;
        case 2:
            if (at < size) (*file)[at] = static_cast<char>((*file)[at] ^ (1 + value % 255));
            break;
        case 3:
            if (file) file->resize(at);
            break;
        case 4:
            if (file) std::fill_n(file->begin() + static_cast<long>(at), std::min(length * 16, size - at), '\0');
            break;
        default: {
            // A frame, or as many bytes of another file, in the place of another.
            const size_t to = 32 + (value % 64) * kWalFrame, from = 32 + (length % 64) * kWalFrame;
            if (size >= std::max(to, from) + kWalFrame) file->replace(to, kWalFrame, file->substr(from, kWalFrame));
        }
    }
}

void put(const Scene& scene, const DataDir& place) {
    for (const auto& entry : fs::directory_iterator(place.path)) fs::remove(entry.path());
    for (size_t i = 0; i < kFiles; ++i) {
        if (scene.files[i]) std::ofstream(paths(place)[i], std::ios::binary) << *scene.files[i];
    }
}

void judge(const Scene& scene, const Story& story) {
    auto opened = LogFile::open(story.place, {.wal_bytes = 0});
    if (!opened) {
        CHECK(!opened.error().message.empty());
        return;
    }
    Contents found;
    const auto replayed = (*opened)->replay([&](Log::Change change) {
        const Record& record = *change.record;
        if (change.deleted) {
            found.erase(record.key.name);
        } else {
            found[record.key.name] = *record.bytes;
        }
        return RecordPtr();
    });
    if (!replayed) return;
    const Revision last = (*opened)->extent().last;
    CHECK(last < story.meant.size());
    CHECK(found == story.meant[last]);
    // Without the note a start is refused, unless there is nothing at all.
    if (!scene.files[kNote]) CHECK(last == 0);
    if (!scene.note_changed) CHECK(last >= scene.note);
}

}  // namespace
}  // namespace berth::store

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
    using namespace berth::store;
    static const Story story;
    Scene scene{story.left.back(), story.left.size() - 1, false};
    for (size_t at = 0; at + 8 <= size && at < 8 * 16; at += 8) step(scene, story, data + at);
    put(scene, story.place);
    judge(scene, story);
    return 0;
}
