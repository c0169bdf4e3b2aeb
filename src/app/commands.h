#pragma once

#include <string>
#include <vector>

// The subcommands that app itself wires. Those of a person alone live in cli/.
namespace berth::app {

int agent(std::vector<std::string> words);
int arbitrator(std::vector<std::string> words);
int certificate(std::vector<std::string> words);
int completion(std::vector<std::string> words);
int controllers(std::vector<std::string> words);
int scheduler(std::vector<std::string> words);
int store(std::vector<std::string> words);
int fleet(std::vector<std::string> words);
int serve(std::vector<std::string> words);
int token(std::vector<std::string> words);
int up(std::vector<std::string> words);
int version(std::vector<std::string> words);

}  // namespace berth::app
