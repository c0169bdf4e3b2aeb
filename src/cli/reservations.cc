#include "cli/reservations.h"

#include <fmt/format.h>

#include "base/json_view.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/live.h"
#include "cli/output.h"
#include "cli/phrases.h"
#include "cli/text_table.h"
#include "cli/until.h"
#include "model/reservation_rules.h"
#include "model/times.h"

namespace berth::cli {
namespace {

constexpr std::string_view kPath = "/apis/scheduling.koordinator.sh/v1alpha1/reservations";

// Which reservations, and of which server.
struct Chosen {
    std::vector<std::string> names;
    std::string selector;
    ServerFlags server;
    bool dry_run = false;
};

void add_chosen(CommandLine& line, Chosen& chosen) {
    line.option("names", chosen.names, "of the reservations");
    line.option("-l,--selector", chosen.selector, "those with these labels, e.g. app=web");
    add_server_flags(line, chosen.server);
}

Result<model::Reservation> read_one(const Json& object) {
    base::JsonParser parser;
    const std::string text = base::to_text(object);
    return model::read_reservation(TRY(parser.parse(text)));
}

Result<std::vector<Json>> ask_chosen(link::ApiClient& server, const Chosen& chosen) {
    std::vector<Json> out;
    for (const auto& name : chosen.names) {
        out.push_back(TRY(ask_object(server, {"GET", fmt::format("{}/{}", kPath, percent_encoded(name))})));
    }
    if (!chosen.names.empty()) return out;
    std::string path(kPath);
    if (!chosen.selector.empty()) path += "?labelSelector=" + percent_encoded(chosen.selector);
    const Json list = TRY(ask_object(server, {"GET", path}));
    for (const auto& item : list.at("items").as_array()) out.push_back(item);
    return out;
}

// For commands that change something: all of them is never meant by saying nothing.
std::optional<std::string> unclear(const Chosen& chosen) {
    if (!chosen.names.empty() && !chosen.selector.empty()) return "give names or --selector, not both";
    if (chosen.names.empty() && chosen.selector.empty()) return "which? Give names, or --selector with labels";
    return std::nullopt;
}

// "2h59m0s" -> "2h59m"
std::string rough(base::Duration left) {
    const auto minutes = std::chrono::floor<std::chrono::minutes>(left);
    std::string text = model::duration_text(minutes.count() > 0 ? base::Duration(minutes)
                                                                : std::chrono::floor<std::chrono::seconds>(left));
    if (minutes.count() > 0) text.erase(text.size() - 2);
    return text;
}

std::string end_words(const model::Reservation& reservation, base::Time now) {
    if (model::is_final(reservation.phase)) return "-";
    const auto end = model::end_of(reservation);
    if (!end) return "never";
    return *end <= now ? "now" : "in " + rough(*end - now);
}

int ended(const char* command, const Status& done) {
    if (done) return kDone;
    fmt::print(stderr, "{}: {}\n", command, done.error().message);
    return kFailed;
}

int wrong(const char* command, const std::string& what) {
    fmt::print(stderr, "{}: {}\n", command, what);
    return kWrongUsage;
}

Status list(const Chosen& chosen, Output output) {
    const auto connection = TRY(open_connection(chosen.server));
    auto objects = TRY(ask_chosen(*connection.server, chosen));
    const auto name = [](const Json& object) { return base::find_string(object, {"metadata", "name"}); };
    if (is_document(output)) {
        JsonArray items(objects.begin(), objects.end());
        print_document(JsonObject{{"apiVersion", "v1"}, {"kind", "List"}, {"items", items}}, output);
        return {};
    }
    if (objects.empty()) {
        fmt::print(stderr, "there are no reservations{}\n", chosen.selector.empty() ? "" : " with these labels");
        return {};
    }
    TextTable table({"NAME", "PHASE", "NODE", "RESERVED", "DRAWN", "IDLE", "FOR", "ENDS"});
    for (const auto& object : objects) {
        if (output == Output::Name) {
            fmt::print("reservation.scheduling.koordinator.sh/{}\n", name(object));
            continue;
        }
        const auto read = read_one(object);
        table.add(read ? reservation_row(*read, base::system_clock().wall())
                       : std::vector<std::string>{std::string(name(object)), "Broken", "-", "-", "-", "-",
                                                  read.error().message, "-"});
    }
    if (output != Output::Name) fmt::print("{}", table.text());
    return {};
}

Status extend_one(link::ApiClient& server, const Json& object, const Extension& wanted, bool dry_run) {
    const auto before = TRY(read_one(object));
    Json patch = TRY(extension_of(before, wanted, base::system_clock().wall()));
    // Nobody else's change is overwritten, and what is extended is what was looked at.
    base::object_at(patch, {"metadata"})["resourceVersion"] =
        base::find_string(object, {"metadata", "resourceVersion"});
    const auto path = fmt::format("{}/{}{}", kPath, before.meta.name, dry_run ? "?dryRun=All" : "");
    const Json stored = TRY(ask_object(server, {"PATCH", path, base::to_text(patch), "application/merge-patch+json"}));
    const auto after = TRY(read_one(stored));
    const auto when = [](const std::optional<base::Time>& end) { return end ? model::time_text(*end) : "never"; };
    fmt::print("reservation/{} ends {}{}; it would have ended {}{}\n", before.meta.name,
               model::end_of(after) ? "at " : "", when(model::end_of(after)), when(model::end_of(before)),
               dry_run ? " (server dry run)" : "");
    return {};
}

Status extend(const Chosen& chosen, const Extension& wanted) {
    const auto connection = TRY(open_connection(chosen.server));
    const auto objects = TRY(ask_chosen(*connection.server, chosen));
    if (objects.empty()) return base::not_found(fmt::format("no reservation has the labels {}", chosen.selector));
    for (const auto& object : objects) TRY(extend_one(*connection.server, object, wanted, chosen.dry_run));
    return {};
}

std::string let_go(const model::Reservation& reservation) {
    if (!model::holds_room(reservation)) return "it held nothing";
    const auto idle = idle_of(reservation.allocatable, reservation.allocated);
    std::string text = fmt::format("{} on {} is for everybody", amounts_text(idle), reservation.node);
    const size_t owners = reservation.current_owners.size();
    if (owners > 0)
        text += fmt::format("; {} pod{} of it go{} on", owners, owners == 1 ? "" : "s", owners == 1 ? "es" : "");
    return text;
}

Status release_one(link::ApiClient& server, const Json& object, bool dry_run) {
    const std::string name(base::find_string(object, {"metadata", "name"}));
    const JsonObject body{{"apiVersion", "v1"},
                          {"kind", "DeleteOptions"},
                          {"preconditions", JsonObject{{"uid", base::find_string(object, {"metadata", "uid"})}}}};
    TRY(ask_object(server,
                   {"DELETE", fmt::format("{}/{}{}", kPath, name, dry_run ? "?dryRun=All" : ""), base::to_text(body)}));
    const auto read = read_one(object);
    fmt::print("reservation/{} released: {}{}\n", name, read ? let_go(*read) : read.error().message,
               dry_run ? " (server dry run)" : "");
    return {};
}

Status release(const Chosen& chosen) {
    const auto connection = TRY(open_connection(chosen.server));
    const auto objects = TRY(ask_chosen(*connection.server, chosen));
    if (objects.empty()) return base::not_found(fmt::format("no reservation has the labels {}", chosen.selector));
    for (const auto& object : objects) TRY(release_one(*connection.server, object, chosen.dry_run));
    return {};
}

struct ExtendWords {
    std::string by, ttl, expires;
};

Result<Extension> read_extension(const ExtendWords& words) {
    Extension out;
    const auto duration = [](std::string_view flag, const std::string& text) -> Result<base::Duration> {
        const auto read = model::parse_duration(text);
        if (read && *read >= base::Duration::zero()) return *read;
        return base::bad_request(fmt::format("{}: \"{}\" is no duration such as 2h", flag, text));
    };
    const size_t given = !words.by.empty() + !words.ttl.empty() + !words.expires.empty();
    if (given != 1) return base::bad_request("until when? Give one of --by, --ttl and --expires");
    if (!words.by.empty()) out.by = TRY(duration("--by", words.by));
    if (!words.ttl.empty()) out.ttl = TRY(duration("--ttl", words.ttl));
    if (words.expires.empty()) return out;
    const auto time = model::parse_time(words.expires);
    if (!time) return base::bad_request(fmt::format("--expires: {}", time.error().message));
    out.expires = *time;
    return out;
}

}  // namespace

std::vector<std::string> reservation_row(const model::Reservation& reservation, base::Time now) {
    const bool placed = !reservation.node.empty();
    const model::Resources reserved = placed ? reservation.allocatable : reservation.spec->requests;
    return {reservation.meta.name,
            std::string(model::name_of(reservation.phase)),
            placed ? reservation.node : "-",
            amounts_text(reserved),
            amounts_text(reservation.allocated),
            model::holds_room(reservation) ? amounts_text(idle_of(reserved, reservation.allocated)) : "-",
            owners_text(reservation),
            end_words(reservation, now)};
}

Result<Json> extension_of(const model::Reservation& reservation, const Extension& wanted, base::Time now) {
    const auto no = [&](const std::string& why) {
        return base::bad_request(fmt::format("reservation \"{}\" {}", reservation.meta.name, why));
    };
    if (model::is_final(reservation.phase)) {
        return no(fmt::format("is {}: it holds nothing any more, make a new one", model::name_of(reservation.phase)));
    }
    const auto end = model::end_of(reservation);
    if (!end) return no("never ends: there is nothing to extend");
    if (wanted.ttl && wanted.ttl->count() == 0)
        return Json(JsonObject{{"spec", JsonObject{{"ttl", "0s"}, {"expires", nullptr}}}});
    base::Time later = *end + wanted.by.value_or(base::Duration::zero());
    if (wanted.ttl) later = reservation.meta.created + *wanted.ttl;
    if (wanted.expires) later = *wanted.expires;
    if (later <= *end || later <= now) {
        return no(
            fmt::format("ends at {}, and would end no later, at {}", model::time_text(*end), model::time_text(later)));
    }
    if (wanted.ttl) {
        return Json(JsonObject{{"spec", JsonObject{{"ttl", model::duration_text(*wanted.ttl)}, {"expires", nullptr}}}});
    }
    return Json(JsonObject{{"spec", JsonObject{{"ttl", nullptr}, {"expires", model::time_text(later)}}}});
}

int reserve_list(std::vector<std::string> words) {
    Chosen chosen;
    Output output = Output::Table;
    CommandLine line("Lists reservations: what each holds, what its owners have drawn, for whom, and until when.",
                     "berth reserve list");
    add_chosen(line, chosen);
    output_option(line, output, {Output::Table, Output::Json, Output::Yaml, Output::Name});
    line.example("berth reserve list -l team=a", "those of a team");
    if (const auto code = line.parse(std::move(words))) return *code;
    if (!chosen.names.empty() && !chosen.selector.empty()) return wrong("berth reserve list", *unclear(chosen));
    return ended("berth reserve list", list(chosen, output));
}

int reserve_extend(std::vector<std::string> words) {
    Chosen chosen;
    ExtendWords until;
    CommandLine line("Lets reservations end later than they would.", "berth reserve extend");
    add_chosen(line, chosen);
    line.option("--by", until.by, "how much later, e.g. 2h");
    line.option("--ttl", until.ttl, "how long after their creation, e.g. 48h; 0: for ever");
    line.option("--expires", until.expires, "when, RFC 3339");
    line.flag("--dry-run", chosen.dry_run, "let the server check it, change nothing");
    line.example("berth reserve extend web --by 2h", "two hours longer");
    if (const auto code = line.parse(std::move(words))) return *code;
    const auto wanted = read_extension(until);
    if (!wanted) return wrong("berth reserve extend", wanted.error().message);
    if (const auto what = unclear(chosen)) return wrong("berth reserve extend", *what);
    return ended("berth reserve extend", extend(chosen, *wanted));
}

int reserve_release(std::vector<std::string> words) {
    Chosen chosen;
    CommandLine line("Deletes reservations: what they hold is for everybody again; pods that drew from them go on.",
                     "berth reserve release");
    add_chosen(line, chosen);
    line.flag("--dry-run", chosen.dry_run, "say what would be let go, change nothing");
    line.example("berth reserve release web", "what it holds is for everybody again");
    if (const auto code = line.parse(std::move(words))) return *code;
    if (const auto what = unclear(chosen)) return wrong("berth reserve release", *what);
    return ended("berth reserve release", release(chosen));
}

}  // namespace berth::cli
