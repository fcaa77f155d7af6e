// BeforeImage: what hdr__cdc_before keeps of the row before an update, as JSON that reads like the
// landed row does.
//
// Debezium encodes dates, decimals, times and bytes. The row's columns hold their values, so the
// image holds them as text that casts to the same values: ISO-8601, decimal digits, upper-case
// hexadecimal for bytes. Numbers with a fraction are strings, lest a reader round them.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tarn/landing/debezium_envelope.h"
#include "tarn/landing/landing_spec.h"

namespace tarn::landing {

/// One owner thread: it keeps buffers.
class BeforeImage {
 public:
  /// `spec` must outlive it: its cdc_before and declared columns count.
  explicit BeforeImage(const LandingSpec& spec);
  ~BeforeImage();
  BeforeImage(const BeforeImage&) = delete;
  BeforeImage& operator=(const BeforeImage&) = delete;

  /// The image to keep of an event; empty: none. Valid until the next call.
  std::string_view TextOf(const DebeziumEvent& event);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tarn::landing
