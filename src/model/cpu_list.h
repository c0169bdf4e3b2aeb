#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace berth::model {

// CPU ids as Linux writes them: "0-3,8".
using CpuIds = std::vector<int32_t>;  // sorted, distinct

inline constexpr int32_t kMaxCpuId = 8191;

// What can be read of the text; the first part that cannot is remembered in `fault`, and the others still count.
CpuIds read_cpu_list(std::string_view text, std::string& fault);
std::string cpu_list_text(const CpuIds& cpus);

}  // namespace berth::model
