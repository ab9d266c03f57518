// Reports each exec(2) on this machine. For with_libbpf.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";  // bpf_perf_event_output() requires GPL-compatible

struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __uint(key_size, sizeof(__u32));
  __uint(value_size, sizeof(__u32));
} events SEC(".maps");

SEC("raw_tp/sched_process_exec")
int on_exec(struct bpf_raw_tracepoint_args* ctx) {
  struct {
    __u32 pid;
    char command[16];
  } exec = {.pid = bpf_get_current_pid_tgid() >> 32};
  bpf_get_current_comm(exec.command, sizeof(exec.command));
  bpf_perf_event_output(ctx, &events, BPF_F_CURRENT_CPU, &exec, sizeof(exec));
  return 0;
}
