#pragma once

// What Beast asserts about bytes of others is no reason to end the process: it throws (boost::assertion_failed), which
// ends the connection.
#define BOOST_ENABLE_ASSERT_HANDLER

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "api/http.h"

namespace berth::api {

// Bytes in, requests out, one after the other: Beast's parser with our limits around it. No socket, clock or thread.
class HttpReader {
public:
    enum class State : uint8_t {
        More,     // bytes are needed
        Head,     // head() is complete and its body was not looked at; told once for each request
        Whole,    // the body is there too
        Refused,  // refusal() says why; this reader reads nothing more
    };
    struct Refusal {
        int status = 400;
        std::string message;
    };

    explicit HttpReader(const HttpOptions& limits);

    // The next request; what came of it already stays.
    void begin();
    // Where the next bytes go, asked only in State::More; then how many came.
    boost::asio::mutable_buffer space();
    void came(size_t bytes) { buffer_.commit(bytes); }
    State advance();

    // What the header says. Trailers come later and never change it.
    Request& head() { return head_; }
    bool keep_alive() const { return keep_alive_; }
    bool http_11() const { return parser_->get().version() >= 11; }
    bool body_follows() const { return !parser_->is_done(); }
    bool wants_continue() const;
    // Bytes that wait to be parsed.
    size_t pending() const { return buffer_.size(); }
    // Memory that the request holds: what was read of its body, and what waits to be parsed.
    size_t held() const { return parser_->get().body().size() + buffer_.size(); }
    // The whole request, with its body.
    Request take();
    const Refusal& refusal() const { return refusal_; }

private:
    State take_head();
    State refuse(int status, std::string message);
    State refuse(boost::system::error_code why);
    State refuse_endless();

    const HttpOptions& limits_;
    boost::beast::flat_buffer buffer_;
    std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
    Request head_;
    Refusal refusal_;
    size_t header_bytes_ = 0;
    bool has_head_ = false;
    bool keep_alive_ = false;
};

}  // namespace berth::api
