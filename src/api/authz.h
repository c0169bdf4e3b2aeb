#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/identity.h"
#include "store/store.h"

namespace berth::api {

struct Call;

// What is asked for: a verb on a resource, or on a plain path.
struct Attributes {
    std::string_view verb;
    std::string_view group = {};
    std::string_view resource = {};
    std::string_view subresource = {};
    std::string_view ns = {};
    std::string_view name = {};
    std::string_view path = {};  // set for everything that is not a resource
    std::string_view field_selector = {};
};
Attributes attributes_of(const Call& call);

// The fixed rules: masters may do everything; our components what their work needs; everybody who is known may read
// discovery documents and ask about himself.
bool allowed(const Identity& who, const Attributes& what);
// And a node what node_rules.cc says, which depends on the objects.
bool allowed(const Identity& who, const Attributes& what, const store::Store& objects);

bool has_word(std::string_view words, std::string_view word);
std::vector<std::string> split_words(std::string_view words);

// What anybody may ask, by whatever name he reaches us.
bool is_health_path(std::string_view path);

// What an identity may do, for a SelfSubjectRulesReview.
struct RuleRow {
    std::vector<std::string> verbs;
    std::vector<std::string> groups;
    std::vector<std::string> resources;
    std::vector<std::string> paths;  // set for plain paths
};
std::vector<RuleRow> rules_of(const Identity& who);

// `pods is forbidden: User "x" cannot list resource "pods" in API group "" in the namespace "y"`
std::string refusal(const Identity& who, const Attributes& what);

}  // namespace berth::api
