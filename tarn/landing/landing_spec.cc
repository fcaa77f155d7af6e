#include "tarn/landing/landing_spec.h"

namespace tarn::landing {

bool MatchesPattern(std::string_view pattern, std::string_view text) {
  const size_t percent = pattern.find('%');
  if (percent == std::string_view::npos) {
    return pattern == text;
  }
  if (text.substr(0, percent) != pattern.substr(0, percent)) {
    return false;
  }
  const std::string_view rest = pattern.substr(percent + 1);
  for (size_t at = percent; at <= text.size(); ++at) {
    if (MatchesPattern(rest, text.substr(at))) {
      return true;
    }
  }
  return false;
}

}  // namespace tarn::landing
