#include "node/confine.h"

#include <fmt/format.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "node/descriptor.h"

namespace berth::node {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kMachine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kMachine = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kMachine = 0;  // nobody has written the list for it
#endif

// Sanitizers do more than the program does.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kPlain = false;
#else
constexpr bool kPlain = true;
#endif

constexpr std::array kAllowed{
    SYS_recvfrom,      SYS_sendto,      SYS_sendmsg,      SYS_openat2,        SYS_read,           SYS_pwrite64,
    SYS_lseek,         SYS_fstat,       SYS_close,        SYS_newfstatat,     SYS_write,          SYS_exit,
    SYS_exit_group,    SYS_mmap,        SYS_munmap,       SYS_mremap,         SYS_mprotect,       SYS_madvise,
    SYS_brk,           SYS_futex,       SYS_getpid,       SYS_gettid,         SYS_tgkill,         SYS_getrandom,
    SYS_clock_gettime, SYS_sched_yield, SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_restart_syscall};

sock_filter step(uint32_t code, uint32_t value, uint8_t yes = 0, uint8_t no = 0) {
    return {static_cast<uint16_t>(code), yes, no, value};
}

}  // namespace

bool give_up_writing_files() {
    landlock_ruleset_attr rules{};
    rules.handled_access_fs = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                              LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                              LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
                              LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
                              LANDLOCK_ACCESS_FS_MAKE_SYM;
    const Descriptor none(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0)));
    if (none.get() < 0 || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
    return ::syscall(SYS_landlock_restrict_self, none.get(), 0) == 0;
}

bool allow_orders_only() {
    if (kMachine == 0 || !kPlain) return false;
    std::vector<sock_filter> program{
        step(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
        step(BPF_JMP | BPF_JEQ | BPF_K, kMachine, 1, 0),
        step(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        step(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
    };
    for (const long call : kAllowed) {
        program.push_back(step(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1));
        program.push_back(step(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    }
    program.push_back(step(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
    const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
    return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

void give_up_capabilities() {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, 2> none{};
    ::syscall(SYS_capset, &head, none.data());  // refused where there is nothing to give up
}

Status become_user(uid_t user) {
    if (::geteuid() != 0 || user == 0) return {};
    const auto group = static_cast<gid_t>(user);
    if (::setgroups(0, nullptr) != 0 || ::setresgid(group, group, group) != 0 || ::setresuid(user, user, user) != 0)
        return base::internal(fmt::format(
            "cannot become user {}: {}; that takes the capabilities SETUID and SETGID, or --user 0 to stay root", user,
            std::strerror(errno)));
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return {};
}

}  // namespace berth::node
