// What went wrong in a transform, under its name. Only for this room.
#pragma once

#include <string>

#include "tarn/base/status.h"

namespace tarn::task {

/// `failure` with "transform NAME" in front. A mapping names its target, the transform, by itself.
inline Status OfTransform(const std::string& name, const Status& failure) {
  const std::string context = "transform " + name;
  return failure.message().starts_with(context + ":") ? failure : failure.WithContext(context);
}

}  // namespace tarn::task
