#include "api/http_reader.h"

#include <fmt/format.h>

#include <boost/assert.hpp>
#include <stdexcept>

namespace boost {

void assertion_failed(const char* expression, const char* /*function*/, const char* file, long line) {
    throw std::logic_error(fmt::format("{}:{}: {} does not hold", file, line, expression));
}

void assertion_failed_msg(const char* expression, const char* message, const char* function, const char* file,
                          long line) {
    assertion_failed(fmt::format("{} ({})", expression, message).c_str(), function, file, line);
}

}  // namespace boost

namespace berth::api {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

constexpr size_t kReadBlock = 16u << 10;
// "0\r\n\r\n": a chunked body that is not over has as much to come. Beast asserts that it has.
constexpr size_t kLeastChunked = 5;

std::string_view plain(boost::beast::string_view text) {
    return {text.data(), text.size()};
}

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return out;
}

bool parse_query(std::string_view text, Pairs& out) {
    while (!text.empty()) {
        const auto end = text.find('&');
        const auto part = text.substr(0, end);
        text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
        if (part.empty()) continue;
        const auto equals = part.find('=');
        std::string name, value;
        if (!percent_decode(part.substr(0, equals), true, name)) return false;
        if (equals != std::string_view::npos && !percent_decode(part.substr(equals + 1), true, value)) return false;
        out.emplace_back(std::move(name), std::move(value));
    }
    return true;
}

bool parse_target(std::string_view target, Request& out) {
    const auto question = target.find('?');
    out.path = std::string(target.substr(0, question));
    if (target.empty() || target[0] != '/') return false;
    return question == std::string_view::npos || parse_query(target.substr(question + 1), out.query);
}

std::string kibibytes(size_t bytes) {
    return std::to_string(bytes >> 10) + " KiB";
}

}  // namespace

// What is not parsed stays below max_headers, and one block more is read.
HttpReader::HttpReader(const HttpOptions& limits) : limits_(limits), buffer_(limits.max_headers + kReadBlock) {
    begin();
}

void HttpReader::begin() {
    parser_.emplace();
    parser_->header_limit(static_cast<uint32_t>(limits_.max_headers + 1));  // never met: it counts in another way
    parser_->body_limit(limits_.max_body);
    head_ = {};
    has_head_ = false;
    header_bytes_ = 0;
}

boost::asio::mutable_buffer HttpReader::space() {
    return buffer_.prepare(kReadBlock);
}

HttpReader::State HttpReader::advance() {
    while (!has_head_ || !parser_->is_done()) {
        if (buffer_.size() < (has_head_ && parser_->chunked() ? kLeastChunked : 1)) return State::More;
        // Beast sees no more than a header may have, nor than the line of a chunk or the trailers: those may be of any
        // length to it. So the limits are the same in whatever pieces the bytes come.
        const size_t most = limits_.max_headers - (has_head_ ? 0 : header_bytes_);
        const auto seen = boost::asio::buffer(buffer_.cdata(), most);
        error_code ec;
        const size_t read = parser_->put(seen, ec);
        buffer_.consume(read);
        if (!has_head_) header_bytes_ += read;
        if (ec && ec != http::error::need_more) return refuse(ec);
        if (!has_head_ && parser_->is_header_done()) return take_head();
        if (!ec || read > 0) continue;
        return seen.size() < most ? State::More : refuse_endless();
    }
    return State::Whole;
}

bool HttpReader::wants_continue() const {
    return body_follows() && parser_->get()[http::field::expect] == "100-continue";
}

HttpReader::State HttpReader::take_head() {
    has_head_ = true;
    parser_->eager(true);
    keep_alive_ = parser_->keep_alive();
    const auto& message = parser_->get();
    const auto target = plain(message.target());
    if (target.size() > limits_.max_url) return refuse(414, "the URL is longer than " + kibibytes(limits_.max_url));
    const auto encoding = message[http::field::content_encoding];
    if (!encoding.empty() && encoding != "identity") return refuse(415, "compressed request bodies are not accepted");
    // Beast takes a body in any other coding for no body, and would read it as the next request.
    if (message.count(http::field::transfer_encoding) > 0 && !parser_->chunked()) {
        return refuse(400, "the only transfer coding that is accepted is chunked");
    }
    const auto hosts = message.count(http::field::host);
    if (hosts > 1 || (hosts == 0 && http_11())) return refuse(400, "a request has one Host");
    head_.method = std::string(plain(message.method_string()));
    if (!parse_target(target, head_)) return refuse(400, "malformed URL");
    for (const auto& field : message) {
        if (head_.headers.size() == limits_.max_header_fields) {
            return refuse(431, "there are more than " + std::to_string(limits_.max_header_fields) + " headers");
        }
        head_.headers.emplace_back(lower(plain(field.name_string())), std::string(plain(field.value())));
    }
    return State::Head;
}

Request HttpReader::take() {
    head_.body = std::move(parser_->get().body());
    return std::move(head_);
}

HttpReader::State HttpReader::refuse(int status, std::string message) {
    refusal_ = {status, std::move(message)};
    return State::Refused;
}

HttpReader::State HttpReader::refuse(error_code why) {
    if (why == http::error::body_limit) {
        return refuse(413, "the request's body is larger than " + kibibytes(limits_.max_body));
    }
    return refuse(400, "malformed HTTP request: " + why.message());
}

// Behind a complete line of the last chunk these are trailers; else it is the line of a chunk.
HttpReader::State HttpReader::refuse_endless() {
    const std::string most = " larger than " + kibibytes(limits_.max_headers);
    if (!has_head_) return refuse(431, "the request's headers are" + most);
    const auto data = buffer_.cdata();
    std::string_view text(static_cast<const char*>(data.data()), data.size());
    if (text.starts_with("\r\n")) text.remove_prefix(2);
    if (text.find('\n') == std::string_view::npos) return refuse(400, "the line of a chunk is" + most);
    return refuse(431, "the request's trailers are" + most);
}

}  // namespace berth::api
