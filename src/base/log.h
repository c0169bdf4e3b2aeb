#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <source_location>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

// Log lines for operators. Outer rooms only: decisions return values instead. Any thread; a line is written whole.
namespace berth::base {

enum class LogLevel : uint8_t { Debug, Info, Warning, Error, Off };
enum class LogFormat : uint8_t {
    Text,  // I1115 22:00:00.000000    4711 file.cc:12] "Bound pod" pod="default/web-1", as klog writes; times in UTC
    JsonLines,  // {"ts":1794780000.000000,"level":"info","caller":"file.cc:12","msg":"Bound pod","pod":"default/web-1"}
};

// A key with what it names; texts are quoted, numbers and booleans are not.
struct LogField {
    template <class T>
    LogField(std::string_view name, const T& from) : key(name) {
        if constexpr (std::same_as<T, bool>) {
            value = from ? "true" : "false";
        } else if constexpr (std::integral<T>) {
            value = std::to_string(from);
        } else if constexpr (std::same_as<T, Error>) {
            value = from.message;
            quoted = true;
        } else {
            value = std::string_view(from);
            quoted = true;
        }
    }
    std::string_view key;
    std::string value;
    bool quoted = false;
};

// Default: Info, Text, stderr, the machine's clock.
struct LogSettings {
    LogLevel level = LogLevel::Info;
    LogFormat format = LogFormat::Text;
    std::function<void(std::string_view line)> sink = {};  // empty: stderr
    const Clock* clock = nullptr;                          // null: the machine's
};
void set_log(LogSettings settings);

// "debug", "info", "warning", "error", "off".
Result<LogLevel> parse_log_level(std::string_view name);
Result<LogFormat> parse_log_format(std::string_view name);

bool log_enabled(LogLevel level);

using LogFields = std::initializer_list<LogField>;
void log(LogLevel level, std::string_view message, LogFields fields, std::source_location where);

inline void log_debug(std::string_view message, LogFields fields = {},
                      std::source_location where = std::source_location::current()) {
    log(LogLevel::Debug, message, fields, where);
}
inline void log_info(std::string_view message, LogFields fields = {},
                     std::source_location where = std::source_location::current()) {
    log(LogLevel::Info, message, fields, where);
}
inline void log_warning(std::string_view message, LogFields fields = {},
                        std::source_location where = std::source_location::current()) {
    log(LogLevel::Warning, message, fields, where);
}
inline void log_error(std::string_view message, LogFields fields = {},
                      std::source_location where = std::source_location::current()) {
    log(LogLevel::Error, message, fields, where);
}

}  // namespace berth::base
