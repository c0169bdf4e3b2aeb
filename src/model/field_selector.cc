#include "model/field_selector.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::model {
namespace {

using base::bad_request;

// At commas that have no '\' before them; sorted, as Kubernetes prints them.
std::vector<std::string_view> split(std::string_view text) {
    std::vector<std::string_view> parts;
    size_t start = 0;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\') {
            ++i;
        } else if (text[i] == ',') {
            parts.push_back(text.substr(start, i - start));
            start = i + 1;
        }
    }
    parts.push_back(text.substr(start));
    std::erase(parts, std::string_view());
    std::sort(parts.begin(), parts.end());
    return parts;
}

Result<std::string> unescaped(std::string_view value) {
    std::string out;
    for (size_t i = 0; i < value.size(); ++i) {
        const bool escaped = value[i] == '\\';
        if (escaped) ++i;
        const bool special = i < value.size() && (value[i] == '\\' || value[i] == ',' || value[i] == '=');
        if (escaped != special) {
            return bad_request(fmt::format(
                "field selector value \"{}\": write '\\', ',' and '=' with a '\\' before them", value.substr(0, 128)));
        }
        out.push_back(value[i]);
    }
    return out;
}

std::string escaped(std::string_view value) {
    std::string out;
    for (const char c : value) {
        if (c == '\\' || c == ',' || c == '=') out.push_back('\\');
        out.push_back(c);
    }
    return out;
}

Result<FieldSelector::Term> parse_term(std::string_view part) {
    size_t at = part.find_first_of("=!");
    while (at != std::string_view::npos && part[at] == '!' && !part.substr(at).starts_with("!="))
        at = part.find_first_of("=!", at + 1);
    if (at == std::string_view::npos) {
        return bad_request(
            fmt::format("field selector \"{}\": write it as field=value or field!=value", part.substr(0, 128)));
    }
    const bool equal = part[at] == '=';
    const size_t length = !equal || part.substr(at).starts_with("==") ? 2 : 1;
    return FieldSelector::Term{std::string(part.substr(0, at)), TRY(unescaped(part.substr(at + length))), equal};
}

}  // namespace

Result<FieldSelector> FieldSelector::parse(std::string_view text, const SelectorLimits& limits) {
    const auto parts = split(text);
    if (parts.size() > limits.requirements)
        return bad_request(
            fmt::format("field selector has {} terms; at most {} are accepted", parts.size(), limits.requirements));
    std::vector<Term> terms;
    for (const auto part : parts) {
        Term term = TRY(parse_term(part));
        if (!term.field.empty() || !term.value.empty()) terms.push_back(std::move(term));
    }
    return FieldSelector(std::move(terms));
}

std::string FieldSelector::text() const {
    std::string out;
    for (const auto& term : terms_) {
        if (!out.empty()) out += ',';
        out += fmt::format("{}{}{}", term.field, term.equal ? "=" : "!=", escaped(term.value));
    }
    return out;
}

}  // namespace berth::model
