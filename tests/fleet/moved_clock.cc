// Loaded before a program (LD_PRELOAD), this moves its wall clock: by as many seconds as the file says that
// BERTH_MOVED_CLOCK names, one number of 64 bits, read at each look. All other clocks are the kernel's own.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

const volatile int64_t* moved_by() {
    static const int64_t none = 0;
    const char* path = std::getenv("BERTH_MOVED_CLOCK");
    const int file = path == nullptr ? -1 : ::open(path, O_RDONLY | O_CLOEXEC);
    void* at = file < 0 ? MAP_FAILED : ::mmap(nullptr, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (file >= 0) ::close(file);
    return at == MAP_FAILED ? &none : static_cast<const int64_t*>(at);
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* at) noexcept {
    static const volatile int64_t* const moved = moved_by();
    const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, at));
    if (result == 0 && clock == CLOCK_REALTIME) at->tv_sec += *moved;
    return result;
}
