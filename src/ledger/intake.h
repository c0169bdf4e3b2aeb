#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <typeindex>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "ledger/change.h"
#include "ledger/ledger.h"

// The way into a ledger: one row for each kind that decisions read. Feeds, `whatif`, the guard, the webhook and
// `explain` loop over the rows.
namespace berth::ledger {

// An object of any of these kinds.
class Object {
public:
    template <class T>
    Object(std::shared_ptr<T> value) : type_(typeid(T)), value_(std::move(value)) {}
    // Null: it is something else.
    template <class T>
    std::shared_ptr<const T> as() const {
        return type_ == typeid(T) ? std::static_pointer_cast<const T>(value_) : nullptr;
    }

    std::type_index type() const { return type_; }

private:
    std::type_index type_;
    std::shared_ptr<const void> value_;
};

// Who has to know a kind: everybody who counts what is held, only those who judge placements, only those who decide,
// only those of them who are asked for shares.
enum class Reader : uint8_t { Counts, Judges, Decides, Shares };

struct Kind {
    std::string_view kind;
    std::string_view group;  // "" is core
    std::string_view version;
    std::string_view plural;
    Reader reader;
    Change change;  // what its coming, changing or going may be for those who wait
    // The revision counts where it is not 0: a document need not carry it.
    Result<Object> (*read)(JsonView document, uint64_t revision);
    void (*put)(Ledger& ledger, const Object& object);
    // Of the meta, namespace, name and uid. An empty uid is any.
    void (*remove)(Ledger& ledger, const model::Meta& meta);
    const std::type_info& type;  // of what read() gives

    template <class T>
    bool gives() const {
        return type == typeid(T);
    }

    // Whoever judges placements has to know it.
    bool judged() const { return reader == Reader::Counts || reader == Reader::Judges; }
    // As in a path, and as the store names it: "/apis/apps/v1", "apps/replicasets".
    std::string path() const;
    std::string stored() const;
};

// What stands on nodes comes after them, and after all that decides about it.
std::span<const Kind> kinds();
// Null: decisions do not read it.
const Kind* kind_named(std::string_view kind);
// What gives objects of this type; of kinds that are read alike, one.
const Kind& kind_of(std::type_index type);
// All that is known of a pod or a reservation that is gone, and enough.
model::Meta uid_alone(std::string_view uid);

// Claims that ask for no class, with the default one, as the API server gives it: the newest, then the first name.
std::vector<std::shared_ptr<const model::PersistentVolumeClaim>> given_default_class(const View& ledger);

}  // namespace berth::ledger
