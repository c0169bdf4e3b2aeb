#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <thread>
#include <unordered_set>

#include "api/exchange.h"
#include "api/guests.h"

// What the server and its connections share. Only the HTTP units include this.
namespace berth::api {

struct Shared {
    HttpOptions options;
    Handler handler;
    Screen screen;
    std::shared_ptr<HttpCounters> counters = std::make_shared<HttpCounters>();
    Guests guests{options, counters};
    std::unique_ptr<boost::asio::ssl::context> tls;
};

// One I/O thread and the connections it owns.
class IoThread {
public:
    explicit IoThread(Shared& shared) : shared_(shared), second_(io_), flush_(io_) {}

    void start();
    void stop();
    void join();
    void wake();

    boost::asio::io_context& io() { return io_; }
    Shared& shared() { return shared_; }
    const std::string& date() const { return date_; }
    bool stopping() const { return stopping_; }
    base::Instant now() const { return shared_.options.clock->now(); }
    void add(Exchange* exchange);
    void remove(Exchange* exchange);
    void add_stream(Exchange* exchange) { streams_.insert(exchange); }
    void remove_stream(Exchange* exchange) { streams_.erase(exchange); }

    // What runs for a connection, or for none: an exception ends that connection, is logged and counted.
    template <class Work>
    void guarded(Exchange* exchange, Work work) {
        try {
            work();
        } catch (const std::exception& error) {
            failed(exchange, error.what());
        } catch (...) {
            failed(exchange, "something that is no std::exception");
        }
    }

private:
    void run();
    void failed(Exchange* exchange, std::string_view what);
    void each(const std::function<void(Exchange&)>& work);
    void arm_second();
    void each_second();
    void on_wake();
    void flush();
    void flush_some();
    void close_when_quiet(int tries);

    Shared& shared_;
    std::unordered_set<Exchange*> all_;
    std::unordered_set<Exchange*> streams_;
    std::string date_;
    // After the sets: dropping pending operations drops connections, which take themselves out of them.
    boost::asio::io_context io_{1};
    boost::asio::steady_timer second_;
    boost::asio::steady_timer flush_;
    std::thread thread_;
    base::Instant last_flush_{};
    // The pause between two rounds follows their cost, so that pulling never takes more than about half of the thread.
    std::chrono::nanoseconds pause_{0};
    std::atomic<bool> wake_pending_{false};
    bool flush_armed_ = false;      // one is due, or under way
    std::vector<Exchange*> round_;  // the streams that are still to be pumped
    base::Instant flush_begin_{};
    bool stopping_ = false;
};

// The certificate that the client showed, or null.
std::shared_ptr<const PeerCertificate> peer_of(SSL* ssl);

std::shared_ptr<Exchange> make_connection(IoThread& thread, boost::asio::ip::tcp::socket socket,
                                          std::unique_ptr<Guest> guest);

}  // namespace berth::api
