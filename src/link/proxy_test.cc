#include "link/proxy.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "link/url.h"

namespace berth::link {
namespace {

TEST(Proxy, IsReadFromItsUrl) {
    const auto proxy = parse_proxy("http://me:p%40ss@proxy.example.com:3128/").value();
    EXPECT_EQ(proxy.url(), "http://proxy.example.com:3128");
    EXPECT_EQ(proxy.user, "me");
    EXPECT_EQ(proxy.password, "p@ss");
    EXPECT_EQ(parse_proxy("proxy").value().url(), "http://proxy:80");
    EXPECT_EQ(parse_proxy("SOCKS5://localhost").value().url(), "socks5://localhost:1080");
    EXPECT_EQ(parse_proxy("socks5h://localhost:9").value().kind, Proxy::Kind::Socks5);
    EXPECT_EQ(parse_proxy("https://proxy").error().message, "is a proxy with TLS of its own, which is not supported");
    for (const auto* bad : {"ftp://proxy", "http://", "http://a:b", "http://%zz@a", "http://[::1"}) {
        EXPECT_EQ(parse_proxy(bad).error().message, "is not http://HOST[:PORT] or socks5://HOST[:PORT]") << bad;
    }
}

// The rows are those of Go's httpproxy.Config.ProxyFunc.
TEST(Proxy, ExceptionsAreReadAsGoReadsThem) {
    struct Row {
        const char* no_proxy;
        const char* host;
        bool excepted;
    };
    for (const Row& row : std::initializer_list<Row>{
             {"", "api.example.com", false},
             {"*", "api.example.com", true},
             {"example.com", "api.example.com", true},
             {"example.com", "example.com", true},
             {"example.com", "notexample.com", false},
             {".example.com", "api.example.com", true},
             {".example.com", "example.com", false},
             {"*.example.com", "api.example.com", true},
             {"other, Example.COM ", "API.example.com", true},
             {"example.com:6443", "api.example.com", true},
             {"example.com:443", "api.example.com", false},
             {"10.0.0.0/8", "10.1.2.3", true},
             {"10.0.0.0/8", "11.1.2.3", false},
             {"10.1.2.3", "10.1.2.3", true},
             {"10.1.2.3:443", "10.1.2.3", false},
             {"10.1.2", "10.1.2.3", false},
             {"fd00::/8", "fd12::1", true},
             {"fd12::1", "fd12:0::1", true},
             {"[fd12::1]:6443", "fd12::1", true},
             {",,", "api.example.com", false},
         }) {
        EXPECT_EQ(excepted_from_proxy(row.no_proxy, row.host, "6443"), row.excepted)
            << row.no_proxy << " of " << row.host;
    }
}

class ProxyEnvironment : public testing::Test {
protected:
    ProxyEnvironment() { clear(); }
    ~ProxyEnvironment() override { clear(); }
    static void clear() {
        for (const auto* name : {"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"}) {
            ::unsetenv(name);
        }
    }
    static std::string of(bool tls, const std::string& host) {
        const auto proxy = proxy_from_environment(tls, host, "6443");
        return !proxy ? proxy.error().message : *proxy ? (*proxy)->url() : "none";
    }
};

TEST_F(ProxyEnvironment, Counts) {
    EXPECT_EQ(of(true, "api"), "none");
    ::setenv("https_proxy", "small:1", 1);
    EXPECT_EQ(of(true, "api"), "http://small:1");
    ::setenv("HTTPS_PROXY", "socks5://large:2", 1);
    EXPECT_EQ(of(true, "api"), "socks5://large:2");
    EXPECT_EQ(of(false, "api"), "none");
    for (const auto* here : {"localhost", "127.0.0.1", "127.9.9.9", "::1"}) EXPECT_EQ(of(true, here), "none") << here;
    ::setenv("NO_PROXY", "api", 1);
    EXPECT_EQ(of(true, "api"), "none");
    ::setenv("HTTP_PROXY", "https://secret:word@proxy", 1);
    EXPECT_EQ(of(false, "other"),
              "HTTP_PROXY in the environment is a proxy with TLS of its own, which is not supported");
}

}  // namespace
}  // namespace berth::link
