#!/usr/bin/env python3
"""cluster_check.py PREHEAT: what `check --cluster` makes of pods that are alike, over pages of a played API server."""

import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import urllib.parse

NODES, PODS, PAGE = 30, 1000, 100
# Labels by which replicas of one workload differ.
OWN = ("statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index", "batch.kubernetes.io/job-completion-index",
       "leaderworkerset.sigs.k8s.io/group-index", "leaderworkerset.sigs.k8s.io/group-key")


def node(i):
    gpus = {"nvidia.com/gpu": "1"} if i % 3 else {}
    return {"metadata": {"name": f"node-{i:02}", "labels": {"kubernetes.io/hostname": f"node-{i:02}"}},
            "status": {"allocatable": {"cpu": "8", "memory": "64Gi", **gpus}}}


def pod(i):
    """Replicas of one Deployment that differ as real ones do, on GPU nodes for two thirds of them, and four odd ones."""
    token = f"kube-api-access-{i:05}"
    one = {"metadata": {"name": f"web-{i:04}", "namespace": "shop", "uid": f"u-{i}", "labels": {"app": "web", **{key: f"{i}" for key in OWN}},
                        "annotations": {"cni.example.com/ip": f"10.0.{i >> 8}.{i & 255}"},
                        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"web-{i % 7}", "uid": f"r-{i}"}]},
           "spec": {"nodeName": f"node-{i % NODES:02}", "hostname": f"web-{i}",
                    "volumes": [{"name": token, "projected": {}},
                                {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{i}"}}],
                    "containers": [{"name": "web", "image": "web:1", "volumeMounts": [{"name": token, "mountPath": "/run"}]}]}}
    if i == 1:
        one["metadata"]["annotations"]["preheat.dev/ignore"] = "general-pods"
    if i == 2:
        one["spec"]["containers"][0]["image"] = "web:2"
    if i == 4:
        one["metadata"]["labels"]["preheat.dev/placeholder"] = "chat"
    if i == 5:
        del one["metadata"]["ownerReferences"]
    return one


GROUP = {"metadata": {"name": "big", "namespace": "shop"}, "spec": {"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": [
    {"name": "c", "image": "x", "resources": {"requests": {"nvidia.com/gpu": "8"}}}]}}}}}
LISTS = {"nodes": [node(i) for i in range(NODES)], "pods": [pod(i) for i in range(PODS)], "leaderworkersets": [GROUP]}


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        url = urllib.parse.urlparse(self.path)
        items = LISTS.get(url.path.rsplit("/", 1)[-1], [])
        start = int(urllib.parse.parse_qs(url.query).get("continue", ["0"])[0])
        more = {"continue": str(start + PAGE)} if start + PAGE < len(items) else {}
        body = json.dumps({"kind": "List", "metadata": more, "items": items[start:start + PAGE]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def check(preheat, kubeconfig, *arguments):
    run = subprocess.run([preheat, "check", "--cluster", "--kubeconfig", kubeconfig, *arguments], capture_output=True, text=True, timeout=120)
    if run.returncode != 1:
        raise SystemExit(f"FAILED: exit code {run.returncode}, expected 1: {run.stderr}")
    return run.stdout


def same(what, found, wanted):
    if found != wanted:
        raise SystemExit(f"FAILED: {what}: found {found!r}, expected {wanted!r}")


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    on_gpus = sum(1 for i in range(PODS) if (i % NODES) % 3)
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = os.path.join(folder, "kubeconfig")
        with open(kubeconfig, "w") as out:
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "c",
                       "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
                       "users": [{"name": "u", "user": {"token": "t"}}],
                       "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}, out)
        text, answer = check(sys.argv[1], kubeconfig), json.loads(check(sys.argv[1], kubeconfig, "-o", "json"))
    pods = sorted((v["name"], v["times"], v["ignored"]) for v in answer["violations"] if v["rule"] == "general-pods")
    # Of the first shape all but the four odd ones, which are shapes of their own; the placeholder breaks no rule.
    same("pods of the answer", pods, [("web-0001", 1, True), ("web-0002", 1, False), ("web-0005", 1, False), ("web-0007", on_gpus - 4, False)])
    same("objects", answer["objects"], NODES + on_gpus + 1)
    same("what is said of a set of groups", {v["kind"] for v in answer["violations"] if v["rule"] == "gpu-limits"}, {"LeaderWorkerSet"})
    same("errors", answer["counts"]["error"], on_gpus - 2 + 20 + 3)  # of pods, nodes and the set of groups
    same("ignored", answer["counts"]["ignored"], 1)
    same("headings", [line for line in text.splitlines() if " times, " in line],
         ["20 times, for example Node node-01, node-02, node-04",
          f"{on_gpus - 2} times, for example Pod shop/web-0002, shop/web-0005, shop/web-0007"])
    same("what is said of the pods", text.count("general-pods: asks for no GPU and runs on a GPU node\n           at spec.nodeName"), 1)
    print(f"{NODES} nodes and {on_gpus} pods beside their GPUs, each counted once")


main()
