#include "tarn/cli/dataset_graph.h"

#include <algorithm>

namespace tarn::cli {

namespace {

std::string Row(size_t columns, size_t star) {
  std::string row;
  for (size_t i = 0; i < columns; ++i) {
    row += i == star ? "* " : "| ";
  }
  return row;
}

// The line on which columns from `first` on that wait for the same entry join the one on the left.
std::string JoinRow(const std::vector<std::string>& waiting, size_t first, const std::string& id) {
  std::string row;
  for (size_t i = 0; i < waiting.size(); ++i) {
    row += i > first && waiting[i] == id ? "/ " : "| ";
  }
  return row;
}

void Trim(std::string& row) {
  while (!row.empty() && row.back() == ' ') {
    row.pop_back();
  }
}

}  // namespace

std::vector<std::string> DrawGraph(const std::vector<GraphEntry>& entries) {
  std::vector<std::string> lines;
  std::vector<std::string> waiting;  // Per column, the entry it leads down to.
  for (const GraphEntry& entry : entries) {
    auto column = std::find(waiting.begin(), waiting.end(), entry.id);
    if (column == waiting.end()) {
      waiting.push_back(entry.id);
      column = waiting.end() - 1;
    }
    const auto own = static_cast<size_t>(column - waiting.begin());
    if (std::count(waiting.begin(), waiting.end(), entry.id) > 1) {
      lines.push_back(JoinRow(waiting, own, entry.id));
      Trim(lines.back());
      for (size_t i = waiting.size() - 1; i > own; --i) {
        if (waiting[i] == entry.id) {
          waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(i));
        }
      }
    }
    lines.push_back(Row(waiting.size(), own) + entry.text);
    Trim(lines.back());
    if (entry.parent) {
      waiting[own] = *entry.parent;
    } else {
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(own));
    }
    if (entry.merged) {
      waiting.push_back(*entry.merged);
    }
  }
  return lines;
}

}  // namespace tarn::cli
