#ifndef PERFRING_RECORD_FIELDS_H_
#define PERFRING_RECORD_FIELDS_H_
#if __cplusplus < 202002L
#error "perfring/record needs C++20: compile with -std=c++20 or later"
#else

// visit_fields(): passes every field of a record to a visitor, by its name in the uapi and in the
// record's order, for printers and for comparisons.

#include <linux/perf_event.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "perfring/export.h"
#include "perfring/perf_event.h"
#include "perfring/record/bytes.h"
#include "perfring/record/callchain.h"
#include "perfring/record/decode.h"
#include "perfring/record/read_values.h"
#include "perfring/record/sample.h"

namespace perfring::record {

// Receives the fields one by one. An object or array contains the fields up to its end; in an
// array, names are empty.
class PERFRING_EXPORT FieldVisitor {
 public:
  virtual void number(std::string_view name, std::uint64_t value) = 0;
  virtual void address(std::string_view name, std::uint64_t value) = 0;  // or a mask, or flags
  virtual void text(std::string_view name, std::string_view value) = 0;  // any bytes but NUL
  virtual void bytes(std::string_view name, Bytes value) = 0;
  virtual void begin_object(std::string_view name) = 0;
  virtual void end_object() = 0;
  virtual void begin_array(std::string_view name) = 0;
  virtual void end_array() = 0;

 protected:
  ~FieldVisitor() = default;
};

// Passes the record's own fields, then sample_id, if the record has one, and `rest`, if there is
// any. Does not pass the header. For a Malformed: the field that is too short, and all bytes.
PERFRING_EXPORT void visit_fields(const Any& record, FieldVisitor& visitor);
PERFRING_EXPORT void visit_fields(const ReadValues& values, FieldVisitor& visitor);

// Returns the header of a record, as it was when the record was decoded.
PERFRING_EXPORT const perf_event_header& header_of(const Any& record) noexcept;

namespace internal {

// Passes the fields that samples and other records share, for visit_fields().
class FieldWriter {
 public:
  explicit FieldWriter(FieldVisitor& visitor) : to_{visitor} {}

  void of(const ReadValues& values);

 protected:
  template <class T>
  void number(std::string_view name, const std::optional<T>& value) {
    if (value) to_.number(name, *value);
  }
  void address(std::string_view name, const std::optional<std::uint64_t>& value) {
    if (value) to_.address(name, *value);
  }
  void words(std::string_view name, const U64s& words, bool addresses);
  void of(const Callchain& callchain) {
    to_.number("nr", callchain.ips().size());
    words("ips", callchain.ips(), true);
  }

  FieldVisitor& to_;
};

void visit_sample(const Sample& sample, FieldVisitor& visitor);

}  // namespace internal
}  // namespace perfring::record

#endif
#endif  // PERFRING_RECORD_FIELDS_H_
