#include "api/negotiate.h"

#include <fmt/format.h>

namespace berth::api {
namespace {

std::string_view trim(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return out;
}

template <class Each>
void split(std::string_view text, char separator, Each&& each) {
    while (true) {
        const auto end = text.find(separator);
        each(trim(text.substr(0, end)));
        if (end == std::string_view::npos) return;
        text.remove_prefix(end + 1);
    }
}

std::optional<std::string_view> known_meta_version(std::string_view version) {
    if (version == "v1") return "v1";
    if (version == "v1beta1") return "v1beta1";
    return std::nullopt;
}

std::optional<Form> form_of(const MediaType& media) {
    if (media.type != "application/json" && media.type != "application/*" && media.type != "*/*") return std::nullopt;
    const auto as = media.param("as");
    if (as.empty()) return Form{};
    const auto version = known_meta_version(media.param("v"));
    if (media.param("g") != "meta.k8s.io" || !version) return std::nullopt;
    if (as == "Table") return Form{Form::Shape::Table, Form::Include::Metadata, *version};
    if (as == "PartialObjectMetadata" || as == "PartialObjectMetadataList") {
        return Form{Form::Shape::Metadata, Form::Include::Metadata, *version};
    }
    return std::nullopt;
}

}  // namespace

std::string_view MediaType::param(std::string_view name) const {
    for (const auto& [key, value] : params) {
        if (key == name) return value;
    }
    return {};
}

std::vector<MediaType> parse_media_types(std::string_view header) {
    std::vector<MediaType> out;
    split(header, ',', [&](std::string_view range) {
        MediaType media;
        split(range, ';', [&](std::string_view part) {
            if (media.type.empty()) {
                media.type = lower(part);
                return;
            }
            const auto equals = part.find('=');
            if (equals == std::string_view::npos) return;
            media.params.emplace_back(lower(trim(part.substr(0, equals))), std::string(trim(part.substr(equals + 1))));
        });
        if (!media.type.empty()) out.push_back(std::move(media));
    });
    return out;
}

Result<Form> negotiate(std::string_view accept) {
    if (accept.empty() || accept == "application/json" || accept == "*/*") return Form{};
    for (const auto& media : parse_media_types(accept)) {
        if (auto form = form_of(media)) return *form;
    }
    return Error{
        Reason::NotAcceptable,
        "only the following media types are accepted: application/json, "
        "application/json;as=Table;g=meta.k8s.io;v=v1, application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"};
}

std::optional<std::string> aggregated_version(std::string_view accept) {
    for (const auto& media : parse_media_types(accept)) {
        if (media.type != "application/json") continue;
        if (media.param("as").empty()) return std::nullopt;
        if (media.param("as") != "APIGroupDiscoveryList" || media.param("g") != "apidiscovery.k8s.io") continue;
        const auto version = media.param("v");
        if (version == "v2" || version == "v2beta1") return std::string(version);
    }
    return std::nullopt;
}

}  // namespace berth::api
