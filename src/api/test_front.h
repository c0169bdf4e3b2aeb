#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/bootstrap.h"
#include "api/exchange.h"
#include "api/front.h"
#include "base/json.h"

// A front door without sockets, over a store in memory and a clock that stands still.
namespace berth::api {

// Keeps what was answered. A stream is pulled by hand.
class FakeExchange : public Exchange {
public:
    void start() override {}
    void answer(std::shared_ptr<Exchange>, Response response) override { answered = std::move(response); }
    void answer_stream(std::shared_ptr<Exchange>, Response head, std::unique_ptr<Source> body) override {
        answered = std::move(head);
        source = std::move(body);
    }
    void pump() override {}
    void check_deadline(base::Instant) override {}
    void finish() override {}
    void close() override {}

    std::optional<Response> answered;
    std::unique_ptr<Source> source;
};

struct Answer {
    int code = 0;
    Json json;
    Response raw;
    std::string text(std::initializer_list<std::string_view> path) const {
        return std::string(base::find_string(json, path));
    }
};

class TestFront {
public:
    explicit TestFront(std::unique_ptr<store::Log> log = store::memory_log())
        : clock(base::Time{1'794'780'000'000'000'000}),
          store(std::move(store::Store::open(std::move(log), {{}, 64 << 20, &clock})).value()),
          context(*store, clock, 7),
          front(context, Authenticator()) {
        front.set_wake([] {});
        if (auto made = make_first_objects(context, {6443, ""}); !made) std::abort();
    }

    std::shared_ptr<FakeExchange> send(const std::string& method, const std::string& target, std::string body = {},
                                       Pairs headers = {}) {
        Request request;
        request.method = method;
        const auto question = target.find('?');
        request.path = target.substr(0, question);
        if (question != std::string::npos) add_query(target.substr(question + 1), request.query);
        request.headers = std::move(headers);
        request.body = std::move(body);
        request.peer = std::make_shared<PeerCertificate>(peer);
        auto exchange = std::make_shared<FakeExchange>();
        front.handle(std::move(request), Responder(exchange));
        return exchange;
    }

    Answer ask(const std::string& method, const std::string& target, std::string body = {}, Pairs headers = {}) {
        auto exchange = send(method, target, std::move(body), std::move(headers));
        Answer out;
        if (!exchange->answered) return out;
        std::string piece;
        out.raw = *exchange->answered;
        out.code = out.raw.status;
        // A large answer comes in pieces.
        while (exchange->source != nullptr && exchange->source->pull(piece) == Source::State::More) {
            out.raw.body += piece;
            piece.clear();
        }
        out.raw.body += piece;
        if (auto json = base::parse_json(out.raw.content())) out.json = std::move(*json);
        return out;
    }

    // The events a watch has for us now.
    static std::vector<Json> events(FakeExchange& exchange) {
        std::string text;
        while (exchange.source->pull(text) == Source::State::More) {
        }
        std::vector<Json> out;
        for (size_t at = 0; at < text.size();) {
            const auto end = text.find('\n', at);
            out.push_back(base::parse_json(std::string_view(text).substr(at, end - at)).value());
            at = end + 1;
        }
        return out;
    }

    base::ManualClock clock;
    std::unique_ptr<store::Store> store;
    ApiContext context;
    Front front;
    PeerCertificate peer{"admin", {"system:masters"}};

private:
    static void add_query(const std::string& text, Pairs& out) {
        for (size_t at = 0; at < text.size();) {
            const auto end = std::min(text.find('&', at), text.size());
            const auto part = text.substr(at, end - at);
            const auto equals = part.find('=');
            std::string value;
            if (equals != std::string::npos) percent_decode(part.substr(equals + 1), true, value);
            out.emplace_back(part.substr(0, equals), value);
            at = end + 1;
        }
    }
};

// With a 422 and these words in its message.
inline void expect_refused(const Answer& answer, std::string_view words) {
    EXPECT_EQ(answer.code, 422) << answer.raw.body;
    EXPECT_NE(answer.text({"message"}).find(words), std::string::npos) << answer.text({"message"});
}

inline const std::string kPods = "/api/v1/namespaces/default/pods";
inline const std::string kMaps = "/api/v1/namespaces/default/configmaps";

// `more`: of its spec.
inline std::string pod_body(const std::string& name, const std::string& more = "") {
    return R"({"metadata":{"name":")" + name + R"(","labels":{"app":")" + name +
           R"("}},"spec":{"containers":[{"name":"c","image":"i"}])" + more + "}}";
}

inline std::string map_body(const std::string& name, const std::string& value) {
    return R"({"metadata":{"name":")" + name + R"("},"data":{"k":")" + value + R"("}})";
}

inline const Pairs kMerge{{"content-type", "application/merge-patch+json"}};
inline const Pairs kStrategic{{"content-type", "application/strategic-merge-patch+json"}};
inline const Pairs kJsonPatch{{"content-type", "application/json-patch+json"}};
inline const Pairs kTable{{"accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}};

}  // namespace berth::api
