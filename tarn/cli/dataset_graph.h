// Drawing the transactions of a dataset as a graph of lines, for `dataset log --graph`. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tarn::cli {

/// One transaction, newest first. Value.
struct GraphEntry {
  std::string id;
  std::optional<std::string> parent;
  std::optional<std::string> merged;  // A merge's second parent.
  std::string text;                   // What stands beside it.
};

/// Lines of text: a `*` per entry in its column, `|` for lines that pass it, `/` where a column
/// joins the one to its left.
std::vector<std::string> DrawGraph(const std::vector<GraphEntry>& entries);

}  // namespace tarn::cli
