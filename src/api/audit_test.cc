#include "api/audit.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "api/handlers.h"
#include "api/test_front.h"

namespace berth::api {
namespace {

struct AuditedFront : TestFront {
    AuditedFront() {
        context.audit = [this](AuditEvent&& event) {
            auto line = base::parse_json(audit_line(event));
            EXPECT_TRUE(line.ok()) << audit_line(event);
            if (line) lines.push_back(std::move(*line));
        };
    }
    std::string last(std::initializer_list<std::string_view> path) const {
        return lines.empty() ? "" : std::string(base::find_string(lines.back(), path));
    }
    int64_t last_code() const { return base::find(lines.back(), {"responseStatus", "code"})->as_int64(); }

    std::vector<Json> lines;
};

TEST(Audit, TellsWhoWroteWhat) {
    AuditedFront t;
    t.peer.serial = "1A";
    const std::string maps = kMaps;
    t.ask("POST", maps + "?fieldManager=me", R"({"metadata":{"generateName":"m-"}})", {{"user-agent", "kubectl/1"}});
    ASSERT_EQ(t.lines.size(), 1U);
    EXPECT_EQ(t.last({"apiVersion"}), "audit.k8s.io/v1");
    EXPECT_EQ(t.last({"kind"}), "Event");
    EXPECT_EQ(t.last({"level"}), "Metadata");
    EXPECT_EQ(t.last({"stage"}), "ResponseComplete");
    EXPECT_EQ(t.last({"verb"}), "create");
    EXPECT_EQ(t.last({"requestURI"}), maps + "?fieldManager=me");
    EXPECT_EQ(t.last({"user", "username"}), "admin");
    EXPECT_EQ(t.last({"userAgent"}), "kubectl/1");
    EXPECT_EQ(t.last({"objectRef", "resource"}), "configmaps");
    EXPECT_EQ(t.last({"objectRef", "namespace"}), "default");
    EXPECT_TRUE(t.last({"objectRef", "name"}).starts_with("m-"));
    EXPECT_EQ(t.last({"requestReceivedTimestamp"}), "2026-11-15T22:00:00.000000Z");
    EXPECT_EQ(t.last({"annotations", "berth.dev/revisions"}), std::to_string(t.store->revision()));
    EXPECT_EQ(t.last_code(), 201);
    EXPECT_EQ(base::to_text(*base::find(t.lines[0], {"user", "extra"})),
              R"({"authentication.kubernetes.io/credential-id":["X509SERIAL=1A"]})");
}

TEST(Audit, TellsOfReadsOnlyWhenTheyAreRefused) {
    AuditedFront t;
    t.ask("GET", kMaps);
    EXPECT_TRUE(t.lines.empty());
    t.peer = {"eve", {}};
    t.ask("GET", kMaps);
    ASSERT_EQ(t.lines.size(), 1U);
    EXPECT_EQ(t.last_code(), 403);
    EXPECT_EQ(t.last({"verb"}), "list");
    EXPECT_EQ(t.last({"annotations", "authorization.k8s.io/decision"}), "forbid");
    t.ask("GET", "/metrics");
    EXPECT_EQ(t.last_code(), 403);
    EXPECT_EQ(t.last({"requestURI"}), "/metrics");
    t.peer = {"", {}};
    t.ask("DELETE", kMaps + "/x");
    ASSERT_EQ(t.lines.size(), 3U);
    EXPECT_EQ(t.last_code(), 401);
    EXPECT_EQ(t.last({"user", "username"}), "system:anonymous");
}

TEST(Audit, TellsWhoActsAsWhom) {
    AuditedFront t;
    t.ask("POST", kMaps, R"({"metadata":{"name":"m"}})",
          {{"impersonate-user", "bob"}, {"impersonate-group", "system:masters"}});
    EXPECT_EQ(t.last({"user", "username"}), "admin");
    EXPECT_EQ(t.last({"impersonatedUser", "username"}), "bob");
    t.peer = {"eve", {}};
    t.ask("POST", kMaps, "{}", {{"impersonate-user", "bob"}});
    EXPECT_EQ(t.last({"user", "username"}), "eve");
    EXPECT_EQ(t.last_code(), 403);
}

TEST(Audit, TellsTheRevisionsOfManyDeletes) {
    AuditedFront t;
    const auto before = t.store->revision();
    for (const auto* name : {"a", "b", "c"}) {
        t.ask("POST", kMaps, std::string(R"({"metadata":{"name":")") + name + R"("}})");
    }
    t.ask("DELETE", kMaps);
    EXPECT_EQ(t.last({"verb"}), "deletecollection");
    EXPECT_EQ(t.last({"annotations", "berth.dev/revisions"}), fmt::format("{}-{}", before + 4, before + 6));
    AuditTrail trail;
    for (const store::Revision revision : {9, 3, 4, 5, 12}) trail.add(revision);
    EXPECT_EQ(trail.text(), "3-5,9,12");
}

TEST(Audit, TellsOfComponentsInTheProcess) {
    AuditedFront t;
    t.front.call(make_call(t.context, controller_identity("job"), Verb::Create, {"", "v1", "configmaps"}, "default", "",
                           {R"({"metadata":{"name":"m"}})", ""}),
                 [](const Result<Served>& made) { EXPECT_TRUE(made.ok()); });
    ASSERT_EQ(t.lines.size(), 1U);
    EXPECT_EQ(t.last({"user", "username"}), "system:controller:job");
    EXPECT_EQ(t.last({"objectRef", "name"}), "m");
    EXPECT_EQ(t.last({"annotations", "berth.dev/revisions"}), std::to_string(t.store->revision()));
    t.front.call(
        make_call(t.context, scheduler_identity(), Verb::Create, {"", "v1", "secrets"}, "default", "", {"{}", ""}),
        [](const Result<Served>& made) { EXPECT_FALSE(made.ok()); });
    EXPECT_EQ(t.last_code(), 403);
}

TEST(Audit, EventsThatEndAreToldToo) {
    AuditedFront t;
    t.ask("POST", "/api/v1/namespaces/default/events",
          R"({"metadata":{"name":"e"},"involvedObject":{"kind":"Pod","namespace":"default","name":"p"}})");
    t.clock.advance(std::chrono::hours(2));
    expire_events(t.context);
    ASSERT_EQ(t.lines.size(), 2U);
    EXPECT_EQ(t.last({"user", "username"}), "system:apiserver");
    EXPECT_EQ(t.last({"verb"}), "delete");
    EXPECT_EQ(t.last({"annotations", "berth.dev/revisions"}), std::to_string(t.store->revision()));
}

TEST(Audit, WhatClientsSayOfThemselvesIsTextAndBounded) {
    AuditEvent event;
    event.agent = "\xff\xfe\"\n" + std::string(5000, 'x');
    event.uri = "/a\x01";
    const auto line = audit_line(event);
    EXPECT_TRUE(base::parse_json(line).ok()) << line;
    EXPECT_LT(line.size(), 2000U);
    EXPECT_EQ(line.find('\n'), line.size() - 1);
}

struct Folder {
    Folder() {
        char name[] = "/tmp/berth-audit-XXXXXX";
        path = ::mkdtemp(name);
    }
    ~Folder() { std::filesystem::remove_all(path); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    size_t lines(const std::string& file) const {
        std::ifstream in(path + "/" + file);
        size_t out = 0;
        for (std::string line; std::getline(in, line); ++out) EXPECT_TRUE(base::parse_json(line).ok()) << line;
        return out;
    }
    std::string path;
};

AuditEvent numbered(int i) {
    AuditEvent out;
    out.id = std::to_string(i);
    out.verb = "create";
    return out;
}

TEST(AuditLog, WritesLinesThatOnlyTheOwnerReads) {
    const Folder folder;
    {
        AuditLog log({folder.path + "/audit.log"});
        for (int i = 0; i < 1000; ++i) log.tell(numbered(i));
    }
    EXPECT_EQ(folder.lines("audit.log"), 1000U);
    struct stat info{};
    ASSERT_EQ(::stat((folder.path + "/audit.log").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST(AuditLog, KeepsSoManyFullFiles) {
    const Folder folder;
    const std::string path = folder.path + "/audit.log";
    for (int i = 0; i < 12; ++i) {
        AuditLog log({path, 100, 3});
        log.tell(numbered(i));
    }
    for (const auto* file : {"audit.log", "audit.log.1", "audit.log.2", "audit.log.3"}) {
        EXPECT_EQ(folder.lines(file), 1U) << file;
    }
    EXPECT_FALSE(std::filesystem::exists(path + ".4"));
    {
        AuditLog({path, 100, 1}).tell(numbered(99));
    }
    EXPECT_FALSE(std::filesystem::exists(path + ".2"));
    EXPECT_FALSE(std::filesystem::exists(path + ".3"));
}

TEST(AuditLog, AFullDiskIsCounted) {
    AuditLog log({"/dev/full"});
    for (int i = 0; i < 10; ++i) log.tell(numbered(i));
    while (log.lost() < 10) std::this_thread::yield();
    EXPECT_EQ(log.told(), 10U);
}

TEST(AuditLog, AFileThatComesBackIsWrittenAgain) {
    const Folder folder;
    const std::string path = folder.path + "/there/audit.log";
    AuditLog log({path});
    log.tell(numbered(1));
    while (log.lost() < 1) std::this_thread::yield();
    std::filesystem::create_directory(folder.path + "/there");
    log.tell(numbered(2));
    while (!std::filesystem::exists(path) || std::filesystem::file_size(path) == 0) std::this_thread::yield();
    EXPECT_EQ(folder.lines("there/audit.log"), 1U);
}

// A pipe that nobody reads: the thread hangs in its open, as on a dead network disk.
TEST(AuditLog, ADiskThatHangsHoldsNobodyUp) {
    const Folder folder;
    const std::string path = folder.path + "/pipe";
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    {
        AuditLog log({path});
        for (int i = 0; i < 40'000; ++i) log.tell(numbered(i));
        EXPECT_GE(log.lost(), 40'000U - 2 * 16'384U);
    }
    const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);  // lets the thread go
    ::close(reader);
}

}  // namespace
}  // namespace berth::api
