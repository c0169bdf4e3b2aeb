#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/memo.h"

// The values of the store: what is kept, what is asked for, what is told. All of them are immutable once shared.
namespace berth::store {

// One global counter: each transaction that changes something takes the next number, also across restarts.
using Revision = uint64_t;

// An object as compact JSON without metadata.resourceVersion: the revision is known only after the bytes are made, so
// api splices it in when it serves them. The store never looks inside.
using Bytes = std::shared_ptr<const std::string>;

// Ordered by kind, then namespace, then name, bytewise. The kind is "pods" or "group/plural"; cluster objects have no
// ns.
struct Key {
    std::string kind;
    std::string ns;
    std::string name;
    auto operator<=>(const Key&) const = default;
    template <class H>
    friend H AbslHashValue(H state, const Key& key) {
        return H::combine(std::move(state), key.kind, key.ns, key.name);
    }
};

// "pods default/web-1", for messages.
std::string to_text(const Key&);

struct Record {
    Key key;
    Bytes bytes;
    std::string uid;
    Revision created = 0;   // the revision that created this object (not an earlier one of the same name)
    Revision revision = 0;  // the revision that wrote these bytes
    uint16_t part = 0;      // its place in the transaction; (revision, part) is unique
};
using RecordPtr = std::shared_ptr<const Record>;

enum class Op : uint8_t {
    Create,  // refused with AlreadyExists when the key is taken
    Update,  // refused with NotFound when it is not; keeps the uid; the same bytes again are no change
    Delete,  // refused with NotFound when it is not
    Check,   // changes nothing: the key must be taken, and its preconditions hold
};

struct Write {
    Op op = Op::Create;
    Key key;
    Bytes bytes = {};      // Create and Update
    std::string uid = {};  // Create
    std::optional<Revision> if_revision = {};
    std::optional<std::string> if_uid = {};
};

// All or none, at one revision. Each key at most once; at most kMaxWrites of them.
struct Txn {
    std::vector<Write> writes;
};
inline constexpr size_t kMaxWrites = 1 << 16;

// An accepted and durable transaction. `records` has one entry for each write: what is stored now, or for a Delete what
// was, carrying the revision of the deletion. When nothing changed, `revision` is that of the newest record named.
struct Commit {
    Revision revision = 0;
    std::vector<RecordPtr> records;
};

// record->revision is the revision of the event. A Deleted event's record is the previous one with the new revision.
// `previous` is null for Added.
struct Event {
    enum class Type : uint8_t { Added, Modified, Deleted };
    Type type = Type::Added;
    RecordPtr record;
    RecordPtr previous;
    base::Memo memo = {};                         // of what `record` says
    mutable std::shared_ptr<void> prepared = {};  // by the guard for itself, until it has admitted the event
};
using EventPtr = std::shared_ptr<const Event>;

}  // namespace berth::store
