#include "cli/near_word.h"

#include <algorithm>

namespace berth::cli {
namespace {

// How many letters must be put in, left out, changed, or swapped with the next one.
size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::vector<size_t>> at(a.size() + 1, std::vector<size_t>(b.size() + 1));
    for (size_t i = 0; i <= a.size(); ++i) {
        for (size_t j = 0; j <= b.size(); ++j) {
            if (i == 0 || j == 0) {
                at[i][j] = i + j;
                continue;
            }
            const bool same = a[i - 1] == b[j - 1];
            at[i][j] = std::min({at[i - 1][j] + 1, at[i][j - 1] + 1, at[i - 1][j - 1] + (same ? 0 : 1)});
            const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped) at[i][j] = std::min(at[i][j], at[i - 2][j - 2] + 1);
        }
    }
    return at[a.size()][b.size()];
}

}  // namespace

std::string near_word(std::string_view word, const std::vector<std::string>& known) {
    std::string out;
    size_t least = std::max<size_t>(1, word.size() / 3) + 1;
    for (const auto& each : known) {
        const size_t off = distance(word, each);
        if (off >= least) continue;
        least = off;
        out = each;
    }
    return out;
}

}  // namespace berth::cli
