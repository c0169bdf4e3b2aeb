#include "api/render.h"

#include "api/wire.h"
#include "model/kinds/convert.h"
#include "model/kinds/table.h"

namespace berth::api {
namespace {

void append_table_head(const RenderContext& look, store::Revision revision, std::string& out) {
    out += "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/";
    out += look.form.meta_version;
    out += "\",\"metadata\":{\"resourceVersion\":\"";
    out += std::to_string(revision);
    out += '"';
}

void append_columns(const model::Kind& kind, std::string& out) {
    base::append_text(model::table_columns(kind), out);
}

void append_row(const RenderContext& look, const store::Record& record, std::string& out) {
    auto object = stored_object(record);
    if (!object) return;
    const Json viewed = model::from_stored(look.kind, std::move(*object));
    std::string row = base::to_text(model::table_row(look.kind, viewed, look.now));
    row.pop_back();
    out += row;
    if (look.form.include != Form::Include::None) {
        out += ",\"object\":";
        if (look.form.include == Form::Include::Object)
            append_view(look.kind, record, out);
        else
            append_partial(record, look.form.meta_version, out);
    }
    out += '}';
}

}  // namespace

void render_event_table(const RenderContext& look, const store::Record& record, bool with_columns, std::string& out) {
    append_table_head(look, record.revision, out);
    out += "},\"columnDefinitions\":";
    if (with_columns)
        append_columns(look.kind, out);
    else
        out += "null";
    out += ",\"rows\":[";
    append_row(look, record, out);
    out += "]}";
}

void render_object(const RenderContext& look, const store::Record& record, std::string& out) {
    switch (look.form.shape) {
        case Form::Shape::Object:
            return append_view(look.kind, record, out);
        case Form::Shape::Metadata:
            return append_partial(record, look.form.meta_version, out);
        case Form::Shape::Table:
            return render_event_table(look, record, true, out);
    }
}

void render_list_begin(const RenderContext& look, const ListMeta& meta, std::string& out) {
    const bool table = look.form.shape == Form::Shape::Table;
    if (table) {
        append_table_head(look, meta.revision, out);
    } else {
        const bool metadata = look.form.shape == Form::Shape::Metadata;
        out += "{\"kind\":\"";
        out += metadata ? "PartialObjectMetadataList" : look.kind.list_kind;
        out += "\",\"apiVersion\":\"";
        out += metadata ? "meta.k8s.io/" + std::string(look.form.meta_version) : look.kind.api_version();
        out += "\",\"metadata\":{\"resourceVersion\":\"";
        out += std::to_string(meta.revision);
        out += '"';
    }
    if (!meta.continue_token.empty()) {
        out += ",\"continue\":\"" + meta.continue_token + '"';
        if (meta.remaining) out += ",\"remainingItemCount\":" + std::to_string(*meta.remaining);
    }
    out += '}';
    if (table) {
        out += ",\"columnDefinitions\":";
        append_columns(look.kind, out);
    }
    out += table ? ",\"rows\":[" : ",\"items\":[";
}

void render_list_item(const RenderContext& look, const store::Record& record, std::string& out) {
    if (look.form.shape == Form::Shape::Table) return append_row(look, record, out);
    render_object(look, record, out);
}

}  // namespace berth::api
