#!/usr/bin/env python3
"""Records metrics pages of model servers by running the metric loggers of their own packages, and nothing else of them.

    python3 -m venv v && v/bin/pip install prometheus_client msgspec numpy
    v/bin/pip download --no-deps -d wheels vllm sglang lmdeploy
    v/bin/python tests/signals/record_pages.py wheels tests/signals/pages

The loggers are imported out of the wheels; whatever else they import (torch, configurations, engines) is a stand-in. They are
told of a short history of a server, and their page is written as the server would show it. The pages in the repository
come from vllm 0.33.0, sglang 0.5.23 and lmdeploy 0.18.0."""

import enum
import glob
import importlib.abc
import importlib.machinery
import re
import sys
import types
from unittest.mock import MagicMock

# Modules that run as they are; the rest of these packages, and what is not installed, is a stand-in.
REAL = {
    "vllm": ("vllm.v1.metrics.loggers", "vllm.v1.metrics.buckets", "vllm.v1.metrics.cache_hit_source",
             "vllm.v1.metrics.prometheus", "vllm.v1.metrics.stats", "vllm.v1.metrics.utils"),
    "sglang": ("sglang.srt.observability.metrics_collector", "sglang.srt.observability.scheduler_stage_metrics",
               "sglang.srt.observability.utils", "sglang.srt.utils.gauge_histogram"),
    "lmdeploy": ("lmdeploy.metrics.loggers", "lmdeploy.metrics.stats"),
}
STAND_INS = ("vllm", "sglang", "lmdeploy", "torch", "pydantic", "regex", "ray", "transformers")


class Anything:
    """Of a class that is a stand-in: made of whatever, and whatever is asked of it is done."""

    def __init__(self, *_, **__):
        pass

    def __getattr__(self, name):
        return MagicMock()


class StandIn(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (Anything,), {}) if name[0].isupper() else MagicMock(name=name)
        setattr(self, name, made)
        return made


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Packages are empty folders of the wheel; a real module in them is found by the ordinary importers."""

    def __init__(self, wheel, real):
        self.wheel, self.real = wheel, real

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in STAND_INS or name in self.real:
            return None
        spec = importlib.machinery.ModuleSpec(name, self, is_package=True)
        spec.submodule_search_locations = [self.wheel + "/" + name.replace(".", "/")]
        return spec

    def create_module(self, spec):
        return StandIn(spec.name)

    def exec_module(self, module):
        pass


def vllm(page):
    # The enumeration of its engine package, which imports all of it.
    sys.modules["vllm.v1.engine"].FinishReason = enum.Enum(
        "FinishReason", {"STOP": "stop", "LENGTH": "length", "ABORT": "abort", "ERROR": "error", "REPETITION": "repetition"})
    sys.modules["vllm.v1.engine"].FinishReason.__str__ = lambda self: self.value
    from vllm.v1.metrics.loggers import PrometheusStatLogger
    from vllm.v1.metrics.stats import FinishedRequestStats, IterationStats, PrefixCacheStats, SchedulerStats
    import vllm.envs
    vllm.envs.VLLM_COMPUTE_NANS_IN_LOGITS = False
    config = MagicMock()
    config.model_config.served_model_name = "m"
    config.model_config.max_model_len = 32768
    config.observability_config.show_hidden_metrics = False
    config.observability_config.kv_cache_metrics = False
    config.observability_config.custom_histogram_buckets = None
    config.kv_transfer_config = config.lora_config = config.watermark_config = None
    logger = PrometheusStatLogger(config, [0, 1])
    for engine in (0, 1):
        seen = IterationStats()
        seen.num_generation_tokens = 300 + engine
        seen.prompt_token_stats.total = 9000
        seen.time_to_first_tokens_iter = [0.2, 0.4, 3.0]
        seen.inter_token_latencies_iter = [0.03] * 100
        seen.finished_requests = [
            FinishedRequestStats(finish_reason=reason, num_prompt_tokens=3000, num_generation_tokens=100, queued_time=wait)
            for reason, wait in zip(sys.modules["vllm.v1.engine"].FinishReason, (0.1, 2.2))]
        logger.record(SchedulerStats(num_running_reqs=4 + engine, num_waiting_reqs=2, num_skipped_waiting_reqs=1,
                                     kv_cache_usage=0.25 + engine / 4,
                                     prefix_cache_stats=PrefixCacheStats(queries=9000, hits=2000)), seen, engine_idx=engine)
    logger.record_admission_rejection("max_num_queued_reqs")
    logger.record_admission_rejection("max_num_queued_reqs")
    page("vllm")
    logger.record_sleep_state(1, 2)
    for engine in (0, 1):
        logger.record(SchedulerStats(), None, engine_idx=engine)
    page("vllm_asleep")


def sglang(page):
    import sglang.srt.observability.metrics_collector as c
    mode = MagicMock()
    mode.to_engine_type = lambda _: "unified"
    c.DisaggregationMode = mode
    observability = types.SimpleNamespace(enable_metrics=True, enable_metrics_for_all_schedulers=True, kv_events_config=None,
                                          extra_metric_labels=None, tokenizer_metrics_allowed_custom_labels=None,
                                          prompt_tokens_buckets=None, generation_tokens_buckets=None)
    c.get_observability = lambda: observability
    c.get_serving = lambda: types.SimpleNamespace(served_model_name="m", enable_streaming_session=False)
    c.get_schedule = lambda: MagicMock(enable_priority_scheduling=True, prefill_delayer_max_delay_passes=30,
                                       prefill_delayer_forward_passes_buckets=None,
                                       prefill_delayer_wait_seconds_buckets=None)
    c.get_disagg = lambda: types.SimpleNamespace(enable_pd_role_switch=False, disaggregation_mode="null")
    c.get_bool_env_var = lambda *_: False
    c.resolve_collector_class = lambda _, cls: cls
    c.exports_expert_balancedness_to_prometheus = lambda: False
    settings = MagicMock(prompt_tokens_buckets=None, generation_tokens_buckets=None, decode_log_interval=40)
    shared = {}
    names = ("Counter", "Gauge", "Histogram", "Summary")
    import prometheus_client
    made = {name: getattr(prometheus_client, name) for name in names}
    for name in names:  # the processes of a server share one page: a family that is there is used again
        def once(*args, _make=made[name], **more):
            return shared.setdefault(more["name"], None) or shared.__setitem__(more["name"], _make(*args, **more)) \
                or shared[more["name"]]
        setattr(prometheus_client, name, once)
    for dp, pp, tp in ((0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 2)):
        c.get_parallel = lambda: types.SimpleNamespace(attn_tp_rank=tp % 2, attn_cp_rank=0, tp_rank=tp, pp_rank=pp,
                                                       moe_ep_rank=0, dp_rank=dp)
        collector = c.SchedulerMetricsCollector.init_new(server_args=settings, enable_priority_scheduling=True,
                                                         enable_lora=False, enable_hierarchical_cache=False).collector
        collector.log_stats(c.SchedulerStats(
            num_running_reqs=c.QueueCount(5 + dp, {0: 3, 7: 2 + dp}), num_queue_reqs=c.QueueCount(2, {0: 2}),
            num_grammar_queue_reqs=1, num_decode_transfer_queue_reqs=c.QueueCount(1, {0: 1}), token_usage=0.25 + dp / 4,
            cache_hit_rate=0.5))
        collector.observe_queue_time(0.2)
        collector.observe_queue_time(2.6)
    labels = c.tokenizer_metric_labels()
    tokens = c.TokenizerMetricsCollector(server_args=settings, labels=labels)
    tokens.emit_startup_time({"load_weight": 41.5, "kv_cache_allocation": 2.25, "scheduler_e2e": 80.0, "tokenizer_e2e": 93.75,
                              "cuda_graph": {}})
    for priority in ("0", "7"):
        of = dict(labels, priority=priority)
        tokens.observe_one_finished_request(of, 3000, 100, 1000, 4.5, False)
        tokens.observe_time_to_first_token(of, 0.4, stream=True)
        tokens.observe_inter_token_latency(of, 3.0, 100)
        tokens.observe_one_aborted_request(of)
    page("sglang")


def lmdeploy(page):
    sys.modules["lmdeploy.messages"].ResponseType = enum.Enum(
        "ResponseType", ["SUCCESS", "FINISH", "ENGINE_STOP_ERROR", "INPUT_LENGTH_ERROR", "CANCEL"])
    from lmdeploy.metrics.loggers import PrometheusStatLogger
    from lmdeploy.metrics.stats import IterationStats, RequestStats, SchedulerStats
    finished = sys.modules["lmdeploy.messages"].ResponseType.FINISH
    logger = PrometheusStatLogger("m", 8192)
    stats = SchedulerStats()
    stats.num_total_reqs, stats.num_succeeded_reqs, stats.num_api_routed_reqs = 12, 2, 7
    stats.num_running_reqs, stats.num_waiting_reqs, stats.gpu_cache_usage = 5, 2, 0.375
    stats.prefix_cache_hit_rate = 0.5
    logger.record_schedule(stats)
    for wait in (0.1, 2.2):
        request = RequestStats(arrival_time=1000.0, prompt_tokens=900)
        request.queued_time, request.scheduled_time = 1000.0, 1000.0 + wait
        request.first_token_time, request.finish_time = 1003.0, 1006.0
        request.generation_tokens, request.finish_reason = 100, finished
        first, later = IterationStats(), IterationStats()
        first.prompt_tokens, first.new_generation_tokens, first.ttft = 900, 1, 3.0
        later.new_generation_tokens, later.itl, later.tpot = 99, 0.03, 0.03
        logger.record_iteration(first)
        logger.record_iteration(later)
        logger.record_finish(request)
    page("lmdeploy")


def write_page(text, path):
    """Long families that no engine's table names are left out."""
    named = set(re.findall(r'METRIC\(\w+, \d+, "([^"]+?)(?:_bucket|_count|_sum)?"', "".join(
        open(f, encoding="utf-8").read() for f in glob.glob("signals/engines/*.def"))))
    families = re.split(r"(?m)^(?=# HELP )", text)
    with open(path, "w", encoding="utf-8") as out:
        out.writelines(f for f in families if f.count("\n") <= 14 or f.split()[2] in named)


def record(engine, wheel, folder):
    import prometheus_client
    prometheus_client.disable_created_metrics()
    for collector in list(prometheus_client.REGISTRY._collector_to_names):
        prometheus_client.REGISTRY.unregister(collector)
    sys.path.insert(0, wheel)
    sys.meta_path.insert(0, Finder(wheel, REAL[engine]))
    __import__({"vllm": "vllm.v1.engine", "sglang": "sglang.srt", "lmdeploy": "lmdeploy.messages"}[engine])

    globals()[engine](lambda name: write_page(prometheus_client.generate_latest().decode(), f"{folder}/{name}.prom"))


if __name__ == "__main__":
    if len(sys.argv) == 3:
        import subprocess
        for each in REAL:
            subprocess.run([sys.executable, sys.argv[0], *sys.argv[1:], each], check=True)
    else:
        record(sys.argv[3], glob.glob(f"{sys.argv[1]}/{sys.argv[3]}-*.whl")[0], sys.argv[2])
