#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tidy {

std::string text_of(const std::filesystem::path& path);

// The files below a folder whose names have one of these ends, in order.
std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder,
                                               const std::vector<std::string_view>& ends);

// C++ without its comments, what stands in quotes, and the preprocessor's lines; each line stays a line.
std::string bare(std::string_view source);

}  // namespace tidy
