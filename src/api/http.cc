#include "api/http.h"

#include <arpa/inet.h>

#include "api/exchange.h"

namespace berth::api {

std::string_view Request::header(std::string_view name) const {
    for (const auto& [key, value] : headers) {
        if (key == name) return value;
    }
    return {};
}

const std::string* Request::param(std::string_view name) const {
    for (const auto& [key, value] : query) {
        if (key == name) return &value;
    }
    return nullptr;
}

bool Response::has_header(std::string_view name) const {
    for (const auto& [key, value] : headers) {
        if (key == name) return true;
    }
    return false;
}

Responder::~Responder() {
    if (exchange_ == nullptr) return;
    Response lost;
    lost.status = 500;
    lost.content_type = "text/plain; charset=utf-8";
    lost.body = "the request was dropped without an answer\n";
    try {
        respond(std::move(lost));
    } catch (const std::exception&) {
        // Not even memory for an answer: the connection went with the last reference to it.
    }
}

void Responder::respond(Response response) {
    if (auto exchange = std::move(exchange_)) {
        Exchange& target = *exchange;
        target.answer(std::move(exchange), std::move(response));
    }
}

void Responder::stream(Response head, std::unique_ptr<Source> source) {
    if (auto exchange = std::move(exchange_)) {
        Exchange& target = *exchange;
        target.answer_stream(std::move(exchange), std::move(head), std::move(source));
    }
}

namespace {

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

}  // namespace

bool percent_decode(std::string_view text, bool plus_is_space, std::string& out) {
    out.clear();
    out.reserve(text.size());
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '+' && plus_is_space) {
            out += ' ';
        } else if (text[i] == '%') {
            if (i + 2 >= text.size()) return false;
            const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
            if (high < 0 || low < 0) return false;
            out += static_cast<char>(high * 16 + low);
            i += 2;
        } else {
            out += text[i];
        }
    }
    return true;
}

std::string_view host_of(std::string_view header) {
    if (header.starts_with('[')) return header.substr(1, header.find(']') - 1);
    return header.substr(0, header.rfind(':'));
}

bool is_address(std::string_view host) {
    if (host.empty() || host == "localhost") return true;
    unsigned char bytes[sizeof(in6_addr)];
    const std::string text(host);
    return ::inet_pton(AF_INET, text.c_str(), bytes) == 1 || ::inet_pton(AF_INET6, text.c_str(), bytes) == 1;
}

std::string_view status_text(int code) {
    switch (code) {
        case 200:
            return "OK";
        case 201:
            return "Created";
        case 202:
            return "Accepted";
        case 304:
            return "Not Modified";
        case 400:
            return "Bad Request";
        case 401:
            return "Unauthorized";
        case 403:
            return "Forbidden";
        case 404:
            return "Not Found";
        case 405:
            return "Method Not Allowed";
        case 406:
            return "Not Acceptable";
        case 409:
            return "Conflict";
        case 410:
            return "Gone";
        case 413:
            return "Request Entity Too Large";
        case 414:
            return "URI Too Long";
        case 415:
            return "Unsupported Media Type";
        case 422:
            return "Unprocessable Entity";
        case 429:
            return "Too Many Requests";
        case 431:
            return "Request Header Fields Too Large";
        case 500:
            return "Internal Server Error";
        case 503:
            return "Service Unavailable";
        case 504:
            return "Gateway Timeout";
        default:
            return "Status";
    }
}

}  // namespace berth::api
