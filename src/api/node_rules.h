#pragma once

#include "api/authz.h"
#include "store/record.h"

// What an identity system:node:NAME of the group system:nodes may do: a table (node_rules.cc) that has a row for every
// kind a node has to do with.
namespace berth::api {

bool node_allows(const store::Store& objects, const Identity& who, const Attributes& what);

// The same on the head that a write is composed from: the object may be another one by then. True for who is no node.
bool node_may_write(const Identity& who, const Attributes& what, const store::RecordPtr& head);

// Whether a node that creates an object may call it so. True for who is no node.
bool node_may_name(const Identity& who, const Attributes& what, std::string_view name);

std::vector<RuleRow> node_rules_of(const Identity& who);

// "pods" or "pods/status".
std::string with_part(const Attributes& what);

}  // namespace berth::api
