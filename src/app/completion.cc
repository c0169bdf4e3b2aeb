#include <fmt/format.h>

#include "app/commands.h"
#include "cli/command.h"
#include "cli/command_line.h"

namespace berth::app {
namespace {

// Each shell asks `berth __complete WORDS... LAST`, which answers a candidate and its meaning a line
// (cli/command_line.h). Where nothing is offered the shell completes files.
constexpr const char* kBash = R"(# bash completion for berth
_berth() {
    local candidate
    COMPREPLY=()
    while IFS= read -r candidate; do
        COMPREPLY+=("${candidate%%$'\t'*}")
    done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _berth berth
)";

constexpr const char* kZsh = R"(#compdef berth
_berth() {
    local -a candidates
    local line
    while IFS= read -r line; do
        candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done < <("${words[1]}" __complete "${(@)words[2,$CURRENT]}" 2>/dev/null)
    if (( ${#candidates} )); then
        _describe -t berth berth candidates
    else
        _files
    fi
}
if [ "${funcstack[1]}" = "_berth" ]; then
    _berth "$@"
else
    compdef _berth berth
fi
)";

constexpr const char* kFish = R"(# fish completion for berth
function __berth_complete
    set -l words (commandline -opc)
    set -l berth $words[1]
    set -e words[1]
    set -l found ($berth __complete $words (commandline -ct) 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c berth -f -a '(__berth_complete)'
)";

}  // namespace

int completion(std::vector<std::string> words) {
    cli::CommandLine line("Prints what makes a shell complete the commands, flags and values of berth.",
                          "berth completion");
    std::string shell;
    line.option("shell", shell, "bash, zsh or fish").required().one_of({"bash", "zsh", "fish"});
    line.example("source <(berth completion bash)", "in this shell; put it into ~/.bashrc for every one");
    line.example("berth completion bash > /etc/bash_completion.d/berth", "for everybody");
    line.example("berth completion zsh > \"${fpath[1]}/_berth\"", "from the next zsh on");
    line.example("berth completion fish > ~/.config/fish/completions/berth.fish", "from the next fish on");
    if (const auto code = line.parse(std::move(words))) return *code;
    fmt::print("{}", shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish);
    return cli::kDone;
}

}  // namespace berth::app
