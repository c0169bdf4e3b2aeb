#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "model/labels.h"

// What Kubernetes allows as names, label keys and label values. Each check gives nothing when the text is allowed, else
// the reason in Kubernetes' words, as the end of a sentence ("must be no more than 63 characters").
namespace berth::model {

using Fault = std::optional<std::string>;

// A rule about the form of a text in Kubernetes' manner, with examples and the regular expression behind it.
std::string form_fault(std::string_view rule, std::string_view form, std::initializer_list<std::string_view> examples);

// Lower-case letters, digits, '-': at most 63 characters, starting and ending with a letter or digit.
Fault dns1123_label_fault(std::string_view name);
// Such words joined by '.', at most 253 characters.
Fault dns1123_subdomain_fault(std::string_view name);
// Like a label, but it starts with a letter (names of Services).
Fault dns1035_label_fault(std::string_view name);
// [subdomain/]name, the name at most 63 letters, digits, '-', '_' or '.'.
Fault qualified_name_fault(std::string_view name);
inline Fault label_key_fault(std::string_view key) {
    return qualified_name_fault(key);
}
Fault label_value_fault(std::string_view value);
// Like a label key, the prefix in any case.
Fault annotation_key_fault(std::string_view key);
// A segment of a URL's path: not ".", "..", and no '/' or '%'.
Fault path_segment_fault(std::string_view name);
// PORT name: letters, digits, '-', at most 15, at least one letter.
Fault port_name_fault(std::string_view name);

}  // namespace berth::model
