#include <fmt/format.h>

int main() {
    fmt::print("berth 0.1.0\n");
    return 0;
}
