#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/leaving.h"
#include "cli/workload_pods.h"
#include "cli/world.h"

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

struct Loaded {
    std::unique_ptr<World> world;
    // What is not taken as it is written, and what was done about it: a sentence each.
    std::vector<std::string> remarks;
    // "namespace/name" of the pods that a document beyond the question's asked for.
    std::set<std::string> added;
};
// The cluster that the documents tell of, and these in addition; nothing is decided yet. An Error: something cannot be
// read that would change the answer.
Result<Loaded> load(const Question& question, const std::vector<Question::Document>& more = {});

}  // namespace berth::cli
