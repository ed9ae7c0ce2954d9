"""Pods as every kind that makes them, good and bad, for an API server, and what it should say of each."""

import copy
import json
import re
import sys

LABELS = {"app": "a", "preheat.dev/pool": "chat", "cost-center": "a1", "product": "chat", "environment": "prod",
          "workload-type": "inference"}
EXACT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


def gpus(requests="1", limits="1", resource="nvidia.com/gpu"):
    """A container that asks for GPUs; None: not written."""
    resources = {}
    for key, value in (("requests", requests), ("limits", limits)):
        if value is not None:
            resources[key] = {resource: value}
    return {"name": "server", "image": "registry.invalid/a:1", "resources": resources}


def template(containers=None, labels=None, tolerations=None, **spec):
    """A pod template that breaks no rule, but for what is given."""
    return {"metadata": {"labels": dict(LABELS if labels is None else labels)},
            "spec": {"containers": [gpus()] if containers is None else containers,
                     "tolerations": [EXACT] if tolerations is None else tolerations, **spec}}


def without(key):
    """The labels but for one."""
    return {k: v for k, v in LABELS.items() if k != key}


PLAIN = {"name": "web", "image": "registry.invalid/web:1"}
CASES = [
    ("whole", "", template()),
    ("no gpus, no labels", "", template([PLAIN], labels={"app": "a"}, tolerations=[])),
    ("no resources at all", "", template([PLAIN], tolerations=[])),
    ("a slice", "", template([gpus(resource="nvidia.com/mig-1g.10gb")])),
    ("equal in other words", "", template([gpus("2", "2"), PLAIN])),
    ("a condition tolerated", "", template(tolerations=[EXACT, {"key": "node.kubernetes.io/unreachable",
                                                                 "operator": "Exists", "effect": "NoExecute",
                                                                 "tolerationSeconds": 30}])),
    ("no pool on purpose", "", template(labels={**LABELS, "preheat.dev/pool": "none"})),
    ("a limit alone", "", template([gpus(None, "1")])),
    ("a slice's limit alone", "", template([gpus(None, "1", "nvidia.com/mig-1g.10gb")])),
    ("the second container's limit alone", "", template([gpus(), {**gpus(None, "1"), "name": "two"}])),
    ("an init container's limit alone", "", template(initContainers=[{**gpus(None, "1"), "name": "first"}])),
    ("GPUs that are claimed", "", template([{**PLAIN, "resources": {"claims": [{"name": "gpu"}]}}],
                                           resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one"}])),
    ("no pool", "gpu-needs-pool", template(labels=without("preheat.dev/pool"))),
    ("an empty pool", "gpu-needs-pool", template(labels={**LABELS, "preheat.dev/pool": ""})),
    ("no cost centre", "cost-labels", template(labels=without("cost-center"))),
    ("an empty product", "cost-labels", template(labels={**LABELS, "product": ""})),
    ("no workload type", "cost-labels", template(labels=without("workload-type"))),
    ("every taint", "toleration-exact", template(tolerations=[{"operator": "Exists"}])),
    ("every taint of an effect", "toleration-exact",
     template(tolerations=[EXACT, {"operator": "Exists", "effect": "NoSchedule"}])),
    ("every effect", "toleration-exact", template(tolerations=[{"key": "spot", "operator": "Exists"}])),
    ("the GPU's taint without GPUs", "general-pods", template([PLAIN], tolerations=[EXACT])),
    ("every taint without GPUs", "general-pods", template([PLAIN], tolerations=[{"operator": "Exists"}])),
]


def workload(kind, t):
    """The object of that kind around a template."""
    t = copy.deepcopy(t)
    selector = {"matchLabels": {"app": t["metadata"]["labels"].get("app", "a")}}
    metadata = {"name": "case", "namespace": "llm"}
    if kind == "Pod":
        t["metadata"].update(metadata)
        return {"apiVersion": "v1", "kind": "Pod", **t}
    if kind in ("Job", "CronJob"):
        t["spec"]["restartPolicy"] = "Never"
        job = {"template": t}
        if kind == "Job":
            return {"apiVersion": "batch/v1", "kind": kind, "metadata": metadata, "spec": job}
        return {"apiVersion": "batch/v1", "kind": kind, "metadata": metadata,
                "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": job}}}
    spec = {"selector": selector, "template": t}
    if kind == "StatefulSet":
        spec["serviceName"] = "case"
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}


def cases():
    """Every case as every kind that it is about: name, rule ("": taken), object."""
    for kind in ("Deployment", "Pod", "Job", "CronJob", "StatefulSet", "DaemonSet", "ReplicaSet"):
        for name, rule, t in CASES:
            # Agents may tolerate what they like.
            expected = rule
            if kind == "DaemonSet" and rule in ("toleration-exact", "general-pods"):
                expected = ""
            yield f"{kind}: {name}", expected, workload(kind, t)
    owned = workload("Pod", template([gpus()], labels={"app": "a"}))
    owned["metadata"]["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u",
                                             "controller": True}]
    yield "Pod: made by a ReplicaSet", "", owned
    for place in ("object", "template"):
        ignored = workload("Deployment", template(labels=without("cost-center")))
        where = ignored if place == "object" else ignored["spec"]["template"]
        where["metadata"]["annotations"] = {"preheat.dev/ignore": "gpu-limits, cost-labels"}
        yield f"ignored on the {place}", "", ignored
    system = workload("Deployment", template([PLAIN], tolerations=[{"operator": "Exists"}],
                                             priorityClassName="system-cluster-critical"))
    yield "a system pod", "", system


def rules_in(said, name):
    """The policies that refused the object of that name; None: nothing was said of it."""
    rules = set()
    for line in said:
        if f"/{name} created" in line:
            return ""
        if f'"{name}"' in line or f"/{name} " in line:
            rules.update(re.findall(r"'preheat-([a-z-]+)' with binding", line))
            if "Do: " not in line:
                return line
    return " ".join(sorted(rules)) or None


def compare(said):
    """What the server said of all cases against what is expected; the number that differ."""
    wrong = total = 0
    for number, (name, rule, _) in enumerate(cases()):
        found = rules_in(said, f"case-{number}")
        total += 1
        if found != rule:
            wrong += 1
            print(f"FAILED: {name}: wanted: {rule or 'taken'}; found: {'taken' if found == '' else found}")
    print(f"{total} objects")
    return wrong


def main():
    """list: all cases as one List; one NAME: that object; compare FILE: what kubectl said of the list."""
    if sys.argv[1] == "list":
        items = []
        for number, (_, _, thing) in enumerate(cases()):
            thing["metadata"]["name"] = f"case-{number}"
            items.append(thing)
        print(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    elif sys.argv[1] == "one":
        print(json.dumps(next(thing for name, _, thing in cases() if name == sys.argv[2])))
    else:
        with open(sys.argv[2], encoding="utf-8") as said:
            sys.exit(compare(said.read().splitlines()) != 0)


main()
