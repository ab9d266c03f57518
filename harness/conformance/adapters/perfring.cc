// perfring as a subject of `perfring conform -- perfring_subject {pages} {wakeup_watermark}
// {wakeup_events} {sample_type} {sample_id_all}`: opens a ring for each online CPU through a map,
// drains the rings after each wait, and prints the events until SIGINT. PerfEventArray opens RAW
// events that wake for each record, or by a watermark. This program opens other events itself, and
// reads them with a Cursor and record::decode().
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cinttypes>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "perfring/os/fd.h"
#include "perfring/os/syscalls.h"
#include "perfring/perfring.h"
#include "perfring/record/decode.h"
#include "perfring/record/layout.h"
#include "perfring/record/sample.h"
#include "perfring/record/whole.h"
#include "perfring/ring/cursor.h"
using namespace perfring;

namespace {

volatile std::sig_atomic_t stopped = 0;

struct Request {
  std::uint64_t pages = 64;
  std::uint64_t wakeup_watermark = 0;
  std::uint64_t wakeup_events = 1;
  std::uint64_t sample_type = PERF_SAMPLE_RAW;
  std::uint64_t sample_id_all = 0;

  bool is_plain() const {
    return wakeup_events <= 1 && sample_type == PERF_SAMPLE_RAW && sample_id_all == 0;
  }
};

void print(Bytes head, Bytes tail) {
  std::printf("sample ");
  for (const Bytes bytes : {head, tail}) {
    for (const std::byte byte : bytes) std::printf("%02x", static_cast<unsigned>(byte));
  }
  std::printf("\n");
}

void print(const PerfEvent& event) {
  if (const auto* const sample = std::get_if<Sample>(&event))
    return print(sample->head, sample->tail);
  if (const auto* const lost = std::get_if<Lost>(&event)) {
    std::printf("lost %" PRIu64 "\n", lost->count);
  } else {
    std::printf("error %s\n", to_string(std::get<Malformed>(event).defect));
  }
}

perf_event_attr attr_of(const Request& request) {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_BPF_OUTPUT;
  attr.sample_period = 1;
  attr.sample_type = request.sample_type;
  attr.sample_id_all = request.sample_id_all != 0;
  attr.watermark = request.wakeup_watermark != 0;
  attr.wakeup_events =
      static_cast<std::uint32_t>(attr.watermark ? request.wakeup_watermark : request.wakeup_events);
  return attr;
}

// The ring of an event that PerfEventArray cannot open.
class OpenedRing {
 public:
  OpenedRing(const Request& request, int map, std::uint32_t cpu) : attr_{attr_of(request)} {
    auto file = os::perf_event_open(attr_, cpu);
    const std::size_t size = (static_cast<std::size_t>(request.pages) + 1) * os::page_size();
    void* const memory =
        file ? ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file->get(), 0)
             : MAP_FAILED;
    if (memory == MAP_FAILED) return;
    if (!os::bpf_map_update(map, cpu, static_cast<std::uint32_t>(file->get()))) return;
    file_ = *std::move(file);
    cursor_ = Cursor<>::over({static_cast<std::byte*>(memory), size}, os::page_size());
  }
  bool is_open() const { return cursor_.has_value(); }
  int fd() const { return file_.get(); }

  void drain() {
    cursor_->look();
    while (const auto one = cursor_->next()) {
      const bool sample = one->header().type == PERF_RECORD_SAMPLE;
      if (!sample || one->size() != one->header().size) {
        print(one->event());
        continue;
      }
      const Bytes bytes = record::whole(one->head(), one->tail(), scratch_);
      const record::Any any = record::decode(bytes, layout_);
      const auto* const decoded = std::get_if<record::Sample>(&any);
      const auto raw = decoded == nullptr ? std::nullopt : decoded->raw();
      raw ? print(*raw, {}) : print(Malformed{Defect::BadSample, one->head(), one->tail()});
    }
    cursor_->release();
  }

 private:
  perf_event_attr attr_;
  os::Fd file_;
  record::Layout layout_{attr_};
  std::optional<Cursor<>> cursor_;
  std::array<std::byte, record::kRecordMax> scratch_{};
};

bool wait_for(int epoll, int fd) {
  epoll_event readable{.events = EPOLLIN, .data = {}};
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &readable) == 0;
}

int failed(const char* what) {
  return std::fprintf(stderr, "%s\n", what), 1;
}

}  // namespace

int main(int argc, char** argv) {
  Request request;
  const std::array fields{&request.pages, &request.wakeup_watermark, &request.wakeup_events,
                          &request.sample_type, &request.sample_id_all};
  for (int i = 1; i < argc && i <= static_cast<int>(fields.size()); ++i) {
    *fields[static_cast<std::size_t>(i) - 1] = std::strtoull(argv[i], nullptr, 10);
  }
  std::signal(SIGINT, [](int) { stopped = 1; });
  const auto cpus = online_cpus();
  if (!cpus) return failed(cpus.error().explain().c_str());
  const auto map = os::bpf_map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 64, 0);
  if (!map) return failed(map.error().message().c_str());
  auto array = PerfEventArray::from_fd(map->get());
  if (!array) return failed(array.error().explain().c_str());
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  std::vector<PerfEventArrayBuffer> buffers;
  std::vector<std::unique_ptr<OpenedRing>> opened;
  for (const std::uint32_t cpu : *cpus) {
    if (request.is_plain()) {
      auto buffer = array->open(
          cpu, {.page_count = static_cast<std::size_t>(request.pages),
                .wakeup_watermark = static_cast<std::uint32_t>(request.wakeup_watermark)});
      if (!buffer) return failed(buffer.error().explain().c_str());
      if (!wait_for(epoll, buffer->fd())) return failed("epoll_ctl");
      buffers.push_back(*std::move(buffer));
    } else {
      opened.push_back(std::make_unique<OpenedRing>(request, map->get(), cpu));
      if (!opened.back()->is_open()) return failed("the event, its ring or its entry");
      if (!wait_for(epoll, opened.back()->fd())) return failed("epoll_ctl");
    }
  }
  for (epoll_event ready; stopped == 0; epoll_wait(epoll, &ready, 1, /*milliseconds=*/20)) {
    for (PerfEventArrayBuffer& buffer : buffers) {
      buffer.for_each([](const PerfEvent& event) { print(event); });
    }
    for (const auto& each : opened) each->drain();
  }
  return 0;
}
