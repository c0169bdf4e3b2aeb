#pragma once

#include <memory>
#include <string>

#include "link/backoff.h"
#include "link/feed_state.h"
#include "link/mailbox.h"
#include "link/wire.h"

namespace berth::link {

// Lists one resource in pages, then watches from where the list stood, for ever: a watch that ends is taken up again
// where it stopped, and when the server no longer knows that place (410) everything is listed anew. Belongs to the
// wire's loop.
class Follower : public std::enable_shared_from_this<Follower> {
public:
    Follower(Wire& wire, const Resource& resource, std::shared_ptr<Mailbox> out, uint64_t seed);
    ~Follower();
    Follower(const Follower&) = delete;
    Follower& operator=(const Follower&) = delete;

    void list();
    // The mailbox has room again.
    void resume();

private:
    void ask_page(const std::string& more);
    void on_page(const WireResult& result, bool first);
    void on_refused_list(const WireAnswer& answer, bool first);
    void watch();
    void on_head(int code);
    bool on_data(std::string_view bytes);
    void on_line(std::string_view line);
    void log_unreadable(std::string_view why);
    void on_end(const std::string& trouble);
    // Ends the watch from inside one of its calls.
    void leave_watch(std::string_view why, bool from_the_start);
    void later(base::Duration wait, void (Follower::*next)());
    // After a pause of at least that long, or what many failures ask for.
    void retry(std::string_view why, void (Follower::*next)(), base::Duration least = {});

    Wire& wire_;
    const Resource resource_;
    const std::string path_;
    const std::string selector_;  // the beginning of every query
    std::shared_ptr<Mailbox> out_;
    FeedState state_;
    Backoff backoff_;
    base::Random random_;
    std::unique_ptr<WireStream> stream_;
    base::TimerId timer_;
    std::string version_;   // where the watch goes on
    std::string line_;      // of the watch, not yet whole
    std::string waiting_;   // the page to ask for once there is room
    base::Instant opened_;  // the watch
    int code_ = 0;          // its head
    int restarts_ = 0;      // lists that were overtaken while they were read
    bool absent_ = false;   // the server does not serve this resource
    bool all_read_ = true;  // of the list so far
};

}  // namespace berth::link
