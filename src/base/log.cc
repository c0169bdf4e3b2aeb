#include "base/log.h"

#include <fmt/format.h>
#include <simdjson.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

#include "base/json.h"

namespace berth::base {
namespace {

std::atomic<LogLevel> g_level = LogLevel::Info;
std::mutex g_mutex;  // guards settings() and the order of lines

LogSettings& settings() {
    static LogSettings* const instance = new LogSettings;  // lines may still come while statics die
    return *instance;
}

constexpr std::string_view kNames[] = {"debug", "info", "warning", "error", "off"};

void write_to_stderr(std::string_view line) {
    while (!line.empty()) {
        const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
        if (written <= 0) return;
        line.remove_prefix(static_cast<size_t>(written));
    }
}

std::string_view file_of(const std::source_location& where) {
    const std::string_view path(where.file_name());
    return path.substr(path.rfind('/') + 1);
}

// Texts come from anywhere; whatever is not UTF-8 must not break the line's format.
void append_safe(std::string_view text, std::string& out) {
    if (simdjson::validate_utf8(text.data(), text.size())) {
        append_quoted(text, out);
        return;
    }
    std::string ascii(text);
    for (char& c : ascii) c = static_cast<unsigned char>(c) < 0x80 ? c : '?';
    append_quoted(ascii, out);
}

void append_text_line(LogLevel level, Time now, std::string_view message, LogFields fields,
                      const std::source_location& where, std::string& out) {
    using namespace std::chrono;
    const sys_time<microseconds> point = floor<microseconds>(sys_time<nanoseconds>(nanoseconds(now.nanos)));
    const auto day = floor<days>(point);
    const year_month_day date(day);
    const hh_mm_ss<microseconds> clock(point - day);
    fmt::format_to(std::back_inserter(out), "{}{:02}{:02} {:02}:{:02}:{:02}.{:06} {:7} {}:{}] ",
                   "DIWE"[static_cast<size_t>(level)], static_cast<unsigned>(date.month()),
                   static_cast<unsigned>(date.day()), clock.hours().count(), clock.minutes().count(),
                   clock.seconds().count(), clock.subseconds().count(), ::getpid(), file_of(where), where.line());
    append_safe(message, out);
    for (const auto& field : fields) {
        out.append(" ").append(field.key).append("=");
        field.quoted ? append_safe(field.value, out) : void(out.append(field.value));
    }
}

void append_json_line(LogLevel level, Time now, std::string_view message, LogFields fields,
                      const std::source_location& where, std::string& out) {
    const int64_t micros = now.nanos / 1000;
    fmt::format_to(std::back_inserter(out), R"({{"ts":{}.{:06},"level":"{}","caller":"{}:{}","msg":)",
                   micros / 1'000'000, micros % 1'000'000, kNames[static_cast<size_t>(level)], file_of(where),
                   where.line());
    append_safe(message, out);
    for (const auto& field : fields) {
        out.push_back(',');
        append_safe(field.key, out);
        out.push_back(':');
        field.quoted ? append_safe(field.value, out) : void(out.append(field.value));
    }
    out.push_back('}');
}

}  // namespace

void set_log(LogSettings wanted) {
    const std::lock_guard lock(g_mutex);
    g_level.store(wanted.level, std::memory_order_relaxed);
    settings() = std::move(wanted);
}

Result<LogLevel> parse_log_level(std::string_view name) {
    for (size_t i = 0; i < std::size(kNames); ++i) {
        if (name == kNames[i]) return static_cast<LogLevel>(i);
    }
    return bad_request(fmt::format("log level \"{}\" is not one of debug, info, warning, error, off", name));
}

Result<LogFormat> parse_log_format(std::string_view name) {
    if (name == "text") return LogFormat::Text;
    if (name == "json") return LogFormat::JsonLines;
    return bad_request(fmt::format("log format \"{}\" is not one of text, json", name));
}

bool log_enabled(LogLevel level) {
    return level >= g_level.load(std::memory_order_relaxed) && level != LogLevel::Off;
}

void log(LogLevel level, std::string_view message, LogFields fields, std::source_location where) {
    if (!log_enabled(level)) return;
    const std::lock_guard lock(g_mutex);
    const LogSettings& how = settings();
    const Time now = (how.clock ? *how.clock : system_clock()).wall();
    std::string line;
    const auto append = how.format == LogFormat::JsonLines ? append_json_line : append_text_line;
    append(level, now, message, fields, where, line);
    line.push_back('\n');
    how.sink ? how.sink(line) : write_to_stderr(line);
}

}  // namespace berth::base
