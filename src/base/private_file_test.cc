#include "base/private_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace berth::base {
namespace {

TEST(PrivateFile, IsTheOwnersAlone) {
    char name[] = "/tmp/berth-private-XXXXXX";
    const std::string folder = ::mkdtemp(name), path = folder + "/key";
    std::ofstream(path) << "secret";
    const auto refused = [&](mode_t mode) {
        EXPECT_EQ(::chmod(path.c_str(), mode), 0);
        return !check_private(path).ok();
    };
    EXPECT_FALSE(refused(0600));
    EXPECT_FALSE(refused(0400));
    EXPECT_TRUE(refused(0604));
    EXPECT_TRUE(refused(0602));
    EXPECT_TRUE(refused(0644));
    EXPECT_TRUE(refused(0620));
    EXPECT_EQ(refused(0640), ::geteuid() != 0);
    EXPECT_TRUE(refused(0644));
    EXPECT_EQ(check_private(path).error().message,
              path + " holds a secret, and others may read or change it (mode 0644): run chmod 600 " + path);
    EXPECT_TRUE(check_private(folder + "/nothing").ok());
    EXPECT_TRUE(check_private("/dev/null").ok());
    std::filesystem::remove_all(folder);
}

TEST(PrivateDirectory, IsMadeForItsOwnerAloneAndLeftAsItIs) {
    char name[] = "/tmp/berth-private-XXXXXX";
    const std::string folder = ::mkdtemp(name);
    const auto mode = [](const std::string& path) {
        struct stat info{};
        EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
        return info.st_mode & 07777;
    };
    EXPECT_TRUE(make_private_directory(folder + "/a/b/"));
    EXPECT_EQ(mode(folder + "/a/b"), 0700u);
    EXPECT_EQ(::chmod((folder + "/a/b").c_str(), 0755), 0);
    EXPECT_TRUE(make_private_directory(folder + "/a/b"));
    EXPECT_EQ(mode(folder + "/a/b"), 0755u);
    std::ofstream(folder + "/file") << "no directory";
    EXPECT_FALSE(make_private_directory(folder + "/file"));
    EXPECT_FALSE(make_private_directory(folder + "/file/below"));
    EXPECT_FALSE(make_private_directory(""));
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace berth::base
