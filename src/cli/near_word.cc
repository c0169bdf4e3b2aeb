#include "cli/near_word.h"

#include <algorithm>

namespace berth::cli {
namespace {

// Letters to add, to leave out, to change, or neighbours to exchange.
size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
    for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
    for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
        for (size_t j = 1; j <= b.size(); ++j) {
            const size_t change = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, change});
            const bool exchanged = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (exchanged) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
        }
    }
    return cost[a.size()][b.size()];
}

constexpr size_t kLongestWord = 64;

}  // namespace

std::string near_word(std::string_view given, const std::vector<std::string>& words) {
    if (given.empty() || given.size() > kLongestWord) return {};
    const std::string* nearest = nullptr;
    size_t least = 1 + std::min<size_t>(2, given.size() / 3);
    for (const auto& word : words) {
        const size_t far = distance(given, word);
        if (far >= least) continue;
        least = far;
        nearest = &word;
    }
    if (nearest != nullptr) return *nearest;
    const auto begins = [&](const std::string& word) { return word.starts_with(given); };
    if (std::count_if(words.begin(), words.end(), begins) != 1) return {};
    return *std::find_if(words.begin(), words.end(), begins);
}

}  // namespace berth::cli
