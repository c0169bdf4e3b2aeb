#pragma once

#include <string>

namespace berth::base {

// As JSON escapes it: a quote, a backslash, \n, \r and \t by name, what else is below U+10000 by number.
void append_escaped(char32_t c, std::string& out);

// UTF-8 on one line, whatever somebody sent: what would end the line, move the reader's cursor or turn the direction of
// what comes after it is escaped. E.g. "a\x1b[2J" becomes "a\u001b[2J", with a backslash.
std::string one_line(std::string text);

}  // namespace berth::base
