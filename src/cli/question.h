#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "cli/explanation.h"
#include "cli/leaving.h"
#include "cli/share_flags.h"
#include "cli/workload_pods.h"
#include "run/world.h"

namespace berth::cli {

// What whatif is asked about: documents, at a time, without some of the nodes. It can be asked several times.
struct Question {
    using Document = std::pair<std::string, Json>;  // the file it comes from

    base::Time now = {};
    run::ClusterOptions options;
    std::vector<Document> documents;
    std::string without_nodes;  // a selector

    // Adds what a file has. An Error: it cannot be read, or there is nothing in it.
    Status read(const std::string& file);
};

// How a question is put; the same flags wherever files are asked.
struct QuestionFlags {
    std::string now;
    std::string config;
    std::string without_nodes;
    bool no_preemption = false;
    bool shares = false;
    ShareFlags share;
};
void add_question_flags(CommandLine& line, QuestionFlags& flags);
// A question without documents. An Error: wrong usage.
Result<Question> question_of(const QuestionFlags& flags);
// Adds what the files have, and the configuration.
Status gather(const QuestionFlags& flags, const std::vector<std::string>& files, Question& out);

struct Loaded {
    std::unique_ptr<run::World> world;
    // What is not taken as it is written, and what was done about it: a sentence each.
    std::vector<std::string> remarks;
    // What a document beyond the question's asked for: "namespace/name" of pods, the names of reservations.
    std::set<std::string> added;
    bool has_added(const run::Placement& answer) const {
        return added.contains(answer.is_reservation ? answer.name : answer.ns + "/" + answer.name);
    }
};
// The cluster that the documents tell of, and these in addition; nothing is decided yet. An Error: something cannot be
// read that would change the answer.
Result<Loaded> load(const Question& question, const std::vector<Question::Document>& more = {});

// One of the objects whose turn comes.
struct Asked {
    bool is_reservation = false;
    std::string ns, name;
};
// The cluster as whatif has it when the object's turn has come, and what whatif says of it.
struct Turn {
    Loaded loaded;
    Foretold foretold;
};
Result<Turn> load_until(const Question& question, const Asked& asked);

}  // namespace berth::cli
