#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "model/kinds/kinds.h"

// What this server does with what it accepts (effects.tbl): what becomes of each kind, and of which members nothing
// comes. Whoever writes something that nobody acts on is told.
namespace berth::model {

enum class Effect : uint8_t {
    Acted,
    Kept,      // it is data, for whoever reads it
    Answered,  // a question; nothing is stored
    Idle,      // no controller of `berth up` acts on it
    Unserved,  // the API server itself would have to act on it
    Policy,    // the same, of what people would trust
};

struct KindEffect {
    Effect effect = Effect::Kept;
    std::vector<std::string> actors = {};  // of Acted: api-server, scheduler, or controllers by their names
    std::string words = {};
};

// nullptr: a kind that the table does not know.
const KindEffect* effect_of(const Kind& kind);

// What is to be said of a write, in one sentence. Equal faults give equal sentences, whatever the object is called.
struct Remark {
    Effect effect = Effect::Idle;
    std::string text = {};
};
// About an object of a stored kind. At most one of its kind and one for each reason of the table: they repeat nothing
// of the object but a key.
std::vector<Remark> remarks_on(const Json& object, const Kind& kind);

// The members of types that the table accounts for, and the reasons of those that nobody acts on; for documents and
// tests.
struct MemberEffect {
    Effect effect = Effect::Kept;
    std::string member = {};  // as the table writes it: "type=LoadBalancer", "label:KEY"
    std::string words = {};
};
const std::vector<MemberEffect>* members_of(const Type& type);

}  // namespace berth::model
