#pragma once

#include <string>

#include "base/clock.h"
#include "base/json.h"
#include "model/kinds/kinds.h"

// Objects as rows of a table, the way kubectl shows them.
namespace berth::model {

// columnDefinitions of a meta.k8s.io Table: name, type, format, description, priority.
JsonArray table_columns(const Kind& kind);

// One row: {"cells": [...]} and, for finished pods, "conditions". The caller adds "object".
JsonObject table_row(const Kind& kind, const Json& object, base::Time now);

// An age in two units at most: "5s", "3m20s", "2d3h", "1y20d".
std::string human_duration(base::Duration age);

}  // namespace berth::model
