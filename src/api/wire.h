#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "model/kinds/kinds.h"
#include "store/record.h"

// Stored bytes as clients see them. Stored objects are compact JSON that begins with apiVersion, kind and metadata, in
// this order, and have no metadata.resourceVersion; it is spliced in on the way out.
namespace berth::api {

// apiVersion, kind, metadata first; resourceVersion, managedFields and selfLink out of metadata. `unread` stands behind
// the metadata.
store::Bytes stored_bytes(const Json& object, std::string_view unread = {});
// The object with metadata.resourceVersion, as a document that can be patched.
Result<Json> full_object(const store::Record& record);
// Without resourceVersion.
Result<Json> stored_object(const store::Record& record);

// An object of which only apiVersion, kind, metadata and status are read: who changes nothing else need not read the
// rest.
struct PartlyRead {
    Json object;              // without the rest
    std::string_view unread;  // what stands between metadata and status, ,"spec":{...}; empty when all was read
};
Result<PartlyRead> stored_ends(const store::Record& record);

// The object as the kind shows it, which may be a view of the stored one.
void append_view(const model::Kind& kind, const store::Record& record, std::string& out);
void append_object(const store::Record& record, std::string& out);
// The raw text of the object's metadata, with the resourceVersion.
void append_metadata(const store::Record& record, std::string& out);
void append_partial(const store::Record& record, std::string_view meta_version, std::string& out);

}  // namespace berth::api
