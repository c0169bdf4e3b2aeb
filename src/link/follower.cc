#include "link/follower.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/log.h"

namespace berth::link {
namespace {

constexpr int kPageSize = 500;
constexpr base::Duration kListWithin = std::chrono::seconds(60);
// Servers send a bookmark about every minute, so silence for longer means that nobody is there any more.
constexpr base::Duration kMostSilence = std::chrono::seconds(150);
constexpr base::Duration kFirstWait = std::chrono::milliseconds(100);
constexpr base::Duration kLongestWait = std::chrono::seconds(10);
constexpr base::Duration kAbsentAgain = std::chrono::seconds(30);
// A watch that lived for so long was a good one.
constexpr base::Duration kGoodWatch = std::chrono::seconds(5);
constexpr size_t kMostLine = size_t{64} << 20;
// A list so large that it is overtaken while it is read in pages is read in one.
constexpr int kMostRestarts = 2;

std::string encoded(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                           c == '_' || c == '.' || c == '~';
        if (plain) {
            out += c;
        } else {
            out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
        }
    }
    return out;
}

uint64_t number(std::string_view text) {
    uint64_t out = 0;
    std::from_chars(text.data(), text.data() + text.size(), out);
    return out;
}

}  // namespace

Follower::Follower(Wire& wire, const Resource& resource, std::shared_ptr<Mailbox> out, uint64_t seed)
    : wire_(wire),
      resource_(resource),
      path_(resource.path() + "/" + resource.plural),
      selector_((resource.only.empty() ? "" : "fieldSelector=" + encoded(resource.only) + "&") +
                (resource.labels.empty() ? "" : "labelSelector=" + encoded(resource.labels) + "&")),
      out_(std::move(out)),
      state_([this](FeedEvent event) { out_->push(std::move(event)); }),
      backoff_(kFirstWait, kLongestWait, seed),
      random_(seed + 1) {}

Follower::~Follower() {
    wire_.loop().cancel(timer_);
}

void Follower::later(base::Duration wait, void (Follower::*next)()) {
    timer_ = wire_.loop().run_after(wait, [this, next] { (this->*next)(); });
}

void Follower::retry(std::string_view why, void (Follower::*next)(), base::Duration least) {
    base::log_warning("Following is interrupted", {{"resource", resource_.plural}, {"error", why}});
    later(std::max(backoff_.next(), std::min(least, kLongestWait)), next);
}

// ---- the list

void Follower::list() {
    ask_page({});
}

// Without a resourceVersion the server answers from a quorum read: nothing that was written before is missing.
void Follower::ask_page(const std::string& more) {
    std::string target = path_ + "?" + selector_;
    if (restarts_ <= kMostRestarts) target += fmt::format("limit={}", kPageSize);
    if (!more.empty()) target += "&continue=" + encoded(more);
    wire_.call({"GET", std::move(target)}, kListWithin,
               [weak = weak_from_this(), first = more.empty()](const auto& result) {
                   if (const auto self = weak.lock()) self->on_page(result, first);
               });
}

void Follower::on_page(const WireResult& result, bool first) {
    if (const auto* trouble = std::get_if<WireTrouble>(&result)) return retry(trouble->what, &Follower::list);
    const auto& answer = std::get<WireAnswer>(result);
    if (answer.code != 200) return on_refused_list(answer, first);
    auto page = read_page(answer.body);
    if (!page) return retry(page.error().message, &Follower::list);
    if (first) state_.begin_list(number(page->version));
    absent_ = false;
    all_read_ = (first || all_read_) && page->unreadable.empty();
    for (const auto& why : page->unreadable) log_unreadable(why);
    for (auto& item : page->items) state_.put(std::move(item));
    if (page->more.empty()) {
        restarts_ = 0;
        version_ = page->version;
        state_.end_list(all_read_);
        return watch();
    }
    waiting_ = std::move(page->more);
    if (!out_->full()) resume();
}

void Follower::on_refused_list(const WireAnswer& answer, bool first) {
    if (answer.code == 404 && first) {
        // E.g. a CustomResourceDefinition that is not installed: there is nothing, until there is.
        if (!absent_) {
            base::log_info("The server does not serve this resource", {{"resource", path_}});
            state_.list_nothing();
        }
        absent_ = true;
        return later(kAbsentAgain + base::Duration(random_.between(0, kAbsentAgain.count() / 10)), &Follower::list);
    }
    if (answer.code == 410) ++restarts_;
    if (answer.code == 401) wire_.refresh([](bool) {});  // the next try uses them
    retry(fmt::format("the server answered {}: {}", answer.code, answer.body.substr(0, 500)), &Follower::list,
          answer.retry_after.value_or(base::Duration::zero()));
}

void Follower::resume() {
    if (stream_) return stream_->resume();
    if (!waiting_.empty()) ask_page(std::exchange(waiting_, {}));
}

// ---- the watch

void Follower::watch() {
    const auto seconds = random_.between(300, 600);
    line_.clear();
    code_ = 0;
    opened_ = wire_.loop().clock().now();
    const auto weak = weak_from_this();
    StreamSink sink;
    sink.head = [weak](int code) {
        if (const auto self = weak.lock()) self->on_head(code);
    };
    sink.data = [weak](std::string_view bytes) {
        const auto self = weak.lock();
        return self && self->on_data(bytes);
    };
    sink.end = [weak](const std::string& trouble) {
        if (const auto self = weak.lock()) self->on_end(trouble);
    };
    const std::string target =
        fmt::format("{}?{}watch=true&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}", path_, selector_,
                    encoded(version_), seconds);
    stream_ = wire_.open({"GET", target}, kMostSilence, std::move(sink));
}

void Follower::on_head(int code) {
    code_ = code;
    if (code == 200) return;
    if (code == 401) wire_.refresh([](bool) {});
    leave_watch(fmt::format("the watch was answered {}", code), code == 410 || code == 404);
}

bool Follower::on_data(std::string_view bytes) {
    while (!bytes.empty() && stream_) {
        const auto end = bytes.find('\n');
        line_.append(bytes.substr(0, end));
        if (line_.size() > kMostLine) {
            leave_watch("a watch event is larger than 64 MiB", true);
            break;
        }
        if (end == std::string_view::npos) break;
        bytes.remove_prefix(end + 1);
        const std::string line = std::exchange(line_, {});
        if (!line.empty()) on_line(line);
    }
    return stream_ && !out_->full();
}

void Follower::on_line(std::string_view line) {
    auto event = read_watch_line(line);
    if (!event) return leave_watch(event.error().message, true);
    std::string version = event->object.version;
    switch (event->type) {
        case WatchLine::Type::Error:
            return leave_watch(fmt::format("the watch ended with {}: {}", event->code, event->trouble), true);
        case WatchLine::Type::Unreadable:
            return log_unreadable(event->trouble);
        case WatchLine::Type::Bookmark:
            state_.bookmark(event->object.revision);
            break;
        case WatchLine::Type::Put:
            state_.put(std::move(event->object));
            break;
        case WatchLine::Type::Gone:
            state_.gone(event->object);
            break;
    }
    if (!version.empty()) version_ = std::move(version);
}

// It harms itself only: whatever was told of it before stays.
void Follower::log_unreadable(std::string_view why) {
    base::log_error("Unreadable object", {{"resource", resource_.plural}, {"error", why}});
}

void Follower::leave_watch(std::string_view why, bool from_the_start) {
    stream_.reset();
    retry(why, from_the_start ? &Follower::list : &Follower::watch);
}

// Half a line that was cut off is told again by the next watch, which begins behind the last whole one.
void Follower::on_end(const std::string& trouble) {
    stream_.reset();
    const bool good = code_ == 200 && wire_.loop().clock().now() - opened_ >= kGoodWatch;
    if (good) backoff_.reset();
    if (good && trouble.empty()) return watch();
    retry(trouble.empty() ? "the watch ended at once" : trouble, &Follower::watch);
}

}  // namespace berth::link
