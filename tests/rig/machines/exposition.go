package main

import (
	"fmt"
	"strconv"
	"strings"
)

// exposition is /metrics in the names, types and labels of vLLM V1. Durations are simulated seconds.
func (s *modelServer) exposition(now float64, wrong string) string {
	p := s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advanceLocked(now)
	e, c := s.engine, &s.engine.counters
	generated, kv := e.generated(now), e.kv(now)
	w := writer{labels: fmt.Sprintf(`engine="0",model_name=%q`, p.conf.Model), nan: wrong == "nan"}
	s.process(&w)
	if wrong == "absent" {
		return w.text.String()
	}
	w.gauge("vllm:num_requests_running", "Number of requests in model execution batches.", float64(len(e.running)))
	w.gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed.", float64(len(e.waiting)))
	w.gauge("vllm:engine_sleep_state", "Engine sleep state; awake = 0 means engine is sleeping; awake = 1 means "+
		"engine is awake.", 1)
	w.gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.",
		min(1, float64(kv)/float64(p.conf.KVTokens)))
	w.counter("vllm:prefix_cache_queries", "Prefix cache queries, in terms of number of queried tokens.", c.prefixQueries)
	w.counter("vllm:prefix_cache_hits", "Prefix cache hits, in terms of number of cached tokens.", c.prefixHits)
	w.counter("vllm:num_preemptions", "Cumulative number of preemption from the engine.", c.preemptions)
	w.counter("vllm:prompt_tokens", "Number of prefill tokens processed.", c.prompt)
	w.counter("vllm:generation_tokens", "Number of generation tokens processed.", c.generation+generated)
	w.success(c.success)
	w.histogram("vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds.", &c.firstTokenTime)
	w.histogram("vllm:inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", &c.itl)
	w.histogram("vllm:time_per_output_token_seconds", "Histogram of time per output token in seconds."+
		"DEPRECATED: Use vllm:inter_token_latency_seconds instead.", &c.itl)
	w.histogram("vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", &c.e2e)
	w.histogram("vllm:request_queue_time_seconds", "Histogram of time spent in WAITING phase for request.", &c.queueTime)
	w.head("vllm:cache_config_info", "gauge", "Information of the LLMEngine CacheConfig")
	w.line("vllm:cache_config_info", fmt.Sprintf(`block_size="16",cache_dtype="auto",engine="0",`+
		`gpu_memory_utilization="0.9",num_gpu_blocks="%d"`, p.conf.KVTokens/16), 1)
	return w.text.String()
}

// process are the lines that every Python server has.
func (s *modelServer) process(w *writer) {
	w.head("python_info", "gauge", "Python platform information")
	w.line("python_info", `implementation="CPython",major="3",minor="12",patchlevel="11",version="3.12.11"`, 1)
	w.head("process_resident_memory_bytes", "gauge", "Resident memory size in bytes.")
	w.line("process_resident_memory_bytes", "", 2.5e9)
	w.head("process_start_time_seconds", "gauge", "Start time of the process since unix epoch in seconds.")
	w.line("process_start_time_seconds", "", float64(s.started.UnixMilli())/1000)
}

type writer struct {
	text   strings.Builder
	labels string
	nan    bool // all values of vllm:* are NaN
}

func (w *writer) head(name, kind, help string) {
	fmt.Fprintf(&w.text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func (w *writer) line(name, labels string, value float64) {
	shown := strconv.FormatFloat(value, 'g', -1, 64)
	if w.nan && strings.HasPrefix(name, "vllm:") {
		shown = "NaN"
	} else if value == float64(int64(value)) && value < 1e15 {
		shown = strconv.FormatFloat(value, 'f', 1, 64)
	}
	if labels != "" {
		labels = "{" + labels + "}"
	}
	fmt.Fprintf(&w.text, "%s%s %s\n", name, labels, shown)
}

func (w *writer) gauge(name, help string, value float64) {
	w.head(name, "gauge", help)
	w.line(name, w.labels, value)
}

// counter is declared and exposed with _total, as the Python client does in the text format.
func (w *writer) counter(name, help string, value int) {
	w.head(name+"_total", "counter", help)
	w.line(name+"_total", w.labels, float64(value))
}

func (w *writer) success(stopped int) {
	name := "vllm:request_success_total"
	w.head(name, "counter", "Count of successfully processed requests.")
	for _, reason := range []string{"stop", "length", "abort"} {
		count := 0
		if reason == "stop" {
			count = stopped
		}
		w.line(name, fmt.Sprintf(`engine="0",finished_reason=%q,%s`, reason, strings.TrimPrefix(w.labels,
			`engine="0",`)), float64(count))
	}
}

func (w *writer) histogram(name, help string, h *histogram) {
	w.head(name, "histogram", help)
	sum := 0
	for i, limit := range h.limits {
		sum += h.counts[i]
		le := strconv.FormatFloat(limit, 'f', -1, 64)
		if !strings.Contains(le, ".") {
			le += ".0"
		}
		w.line(name+"_bucket", w.labels+`,le="`+le+`"`, float64(sum))
	}
	w.line(name+"_bucket", w.labels+`,le="+Inf"`, float64(h.total))
	w.line(name+"_count", w.labels, float64(h.total))
	w.line(name+"_sum", w.labels, h.sum)
}
