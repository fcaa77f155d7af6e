// The value of one hexadecimal digit. For the .cc files of this room that read such text.
#pragma once

namespace tarn {

/// 0 to 15 for 0-9, a-f and A-F; -1 for any other character.
inline int HexValue(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  if (c >= 'a' && c <= 'f') {
    return c - 'a' + 10;
  }
  if (c >= 'A' && c <= 'F') {
    return c - 'A' + 10;
  }
  return -1;
}

}  // namespace tarn
