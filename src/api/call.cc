#include "api/call.h"

#include <fmt/format.h>

#include <charconv>

namespace berth::api {
namespace {

Result<int64_t> whole_number(const std::string& name, const std::string& value) {
    int64_t out = 0;
    const auto [end, ec] = std::from_chars(value.data(), value.data() + value.size(), out);
    if (ec != std::errc{} || end != value.data() + value.size()) {
        return base::bad_request(fmt::format("the query parameter {} is not a whole number: \"{}\"", name, value));
    }
    return out;
}

Status parse_validation(const std::string& value, CallOptions& out) {
    if (value.empty() || value == "Warn")
        out.validation = FieldValidation::Warn;
    else if (value == "Strict")
        out.validation = FieldValidation::Strict;
    else if (value == "Ignore")
        out.validation = FieldValidation::Ignore;
    else
        return base::bad_request(fmt::format(
            "fieldValidation: Unsupported value: \"{}\": supported values: \"Ignore\", \"Strict\", \"Warn\"", value));
    return {};
}

Status parse_numbers(const std::string& name, const std::string& value, CallOptions& out) {
    if (value.empty()) return {};
    const int64_t number = TRY(whole_number(name, value));
    if (name == "limit") {
        if (number < 0) return base::bad_request("limit must not be negative");
        out.limit = static_cast<size_t>(number);
    } else if (name == "timeoutSeconds") {
        out.timeout_seconds = number;
    } else {
        out.grace_seconds = number;
    }
    return {};
}

Status parse_text(const std::string& name, const std::string& value, CallOptions& out) {
    if (name == "labelSelector")
        out.label_selector = value;
    else if (name == "fieldSelector")
        out.field_selector = value;
    else if (name == "resourceVersion")
        out.resource_version = value;
    else if (name == "resourceVersionMatch")
        out.version_match = value;
    else if (name == "continue")
        out.continue_token = value;
    else if (name == "propagationPolicy")
        out.propagation = value;
    else if (name == "fieldManager")
        out.field_manager = value;
    else if (name == "container")
        out.container = value;
    else if (name == "allowWatchBookmarks")
        out.bookmarks = query_flag(value);
    else if (name == "sendInitialEvents")
        out.initial_events = query_flag(value);
    else if (name == "orphanDependents")
        out.orphan = query_flag(value);
    else if (name == "force")
        out.force = query_flag(value);
    else if (name == "fieldValidation")
        return parse_validation(value, out);
    else if (name == "dryRun") {
        if (!value.empty() && value != "All") {
            return base::bad_request(
                fmt::format("dryRun: Unsupported value: \"{}\": supported values: \"All\"", value));
        }
        out.dry_run = out.dry_run || value == "All";
    }
    return {};
}

}  // namespace

std::string_view name_of(Verb verb) {
    switch (verb) {
        case Verb::Get:
            return "get";
        case Verb::List:
            return "list";
        case Verb::Watch:
            return "watch";
        case Verb::Create:
            return "create";
        case Verb::Update:
            return "update";
        case Verb::Patch:
            return "patch";
        case Verb::Delete:
            return "delete";
        case Verb::DeleteCollection:
            return "deletecollection";
    }
    return "";
}

bool query_flag(std::string_view value) {
    if (value == "0") return false;
    constexpr std::string_view kFalse = "false";
    if (value.size() != kFalse.size()) return true;
    for (size_t i = 0; i < kFalse.size(); ++i) {
        if ((value[i] | 0x20) != kFalse[i]) return true;
    }
    return false;
}

Result<CallOptions> parse_options(const Pairs& query) {
    CallOptions out;
    for (const auto& [name, value] : query) {
        const bool numeric = name == "limit" || name == "timeoutSeconds" || name == "gracePeriodSeconds";
        auto parsed = numeric ? parse_numbers(name, value, out) : parse_text(name, value, out);
        if (!parsed) return parsed.error();
    }
    return out;
}

std::string store_kind(std::string_view group, std::string_view plural) {
    return group.empty() ? std::string(plural) : fmt::format("{}/{}", group, plural);
}

const model::Kind& Call::stored() const {
    if (kind->stored_kind.empty()) return *kind;
    const model::Kind* other = table->find(kind->stored_group, kind->stored_version, kind->plural);
    CHECK(other != nullptr);
    return *other;
}

store::Key Call::key() const {
    return {store_kind(stored().group, kind->plural), ns, name};
}

std::string Call::resource() const {
    return qualified(kind->group, kind->plural);
}

Subject Call::subject() const {
    return {kind->group, kind->plural, name};
}

Error not_found_error(std::string_view resource, std::string_view name) {
    return base::not_found(fmt::format("{} \"{}\" not found", resource, name));
}

Error already_exists_error(std::string_view resource, std::string_view name) {
    return {Reason::AlreadyExists, fmt::format("{} \"{}\" already exists", resource, name)};
}

Error modified_error(std::string_view resource, std::string_view name) {
    return base::conflict(fmt::format(
        "Operation cannot be fulfilled on {} \"{}\": the object has been modified; please apply your changes "
        "to the latest version and try again",
        resource, name));
}

}  // namespace berth::api
