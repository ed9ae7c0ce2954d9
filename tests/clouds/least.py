#!/usr/bin/env python3
"""The policies and roles of deploy/iam against the calls that our providers really made: no call without a permission, no
permission without a call, each of them justified in docs/providers.md.

    least.py aws|azure JOURNAL       JOURNAL: as the rig's machines write it (--wire)

Beside that: what each file says is well formed, nothing in it is a wildcard, and what writes is bound to the cluster.
"""

import json
import pathlib
import re
import sys
import urllib.parse

IAM = pathlib.Path("deploy/iam")
# Checked by the cloud itself when we make another call.
BEHIND = {"aws": {"ec2:CreateFleet"},
          "azure": {"Microsoft.Network/virtualNetworks/subnets/join/action"}}
# Where nothing narrower is possible: what reads of Auto Scaling, and of EC2.
UNBOUND = {"autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeScalingActivities", "autoscaling:DescribeWarmPool",
           "autoscaling:DescribeLifecycleHooks", "autoscaling:DescribeInstanceRefreshes",
           "ec2:CreateFleet", "ec2:DescribeLaunchTemplateVersions", "ec2:DescribeCapacityReservations"}
AZURE_CALLS = (
    (r"GET .*/agentPools/[^/]+$", "Microsoft.ContainerService/managedClusters/agentPools/read"),
    (r"PUT .*/agentPools/[^/]+$", "Microsoft.ContainerService/managedClusters/agentPools/write"),
    (r"GET .*/agentPools/[^/]+/machines$", "Microsoft.ContainerService/managedClusters/agentPools/machines/read"),
    (r"POST .*/agentPools/[^/]+/deleteMachines$", "Microsoft.ContainerService/managedClusters/agentPools/deleteMachines/action"),
    (r"POST .*/agentPools/[^/]+/abort$", "Microsoft.ContainerService/managedClusters/agentPools/abort/action"),
    (r"GET .*/locations/[^/]+/operations/[^/]+$", "Microsoft.ContainerService/locations/operations/read"),
    (r"GET .*/locations/[^/]+/operationresults/[^/]+$", "Microsoft.ContainerService/locations/operationresults/read"),
    (r"GET .*/Microsoft.Authorization/permissions$", "Microsoft.Authorization/permissions/read"),
)
EKS_CALLS = (
    (r"GET /clusters/[^/]+/node-groups/[^/]+$", "eks:DescribeNodegroup"),
    (r"POST /clusters/[^/]+/node-groups/[^/]+/update-config$", "eks:UpdateNodegroupConfig"),
    (r"GET /clusters/[^/]+/updates/[^/]+$", "eks:DescribeUpdate"),
)


def listed(value):
    return value if isinstance(value, list) else [value]


def match(table, exchange):
    url = urllib.parse.urlsplit(exchange["url"])
    line = f"{exchange['method']} {url.path}"
    found = [action for pattern, action in table if re.match(pattern, line)]
    assert len(found) == 1, f"a call that is not known: {line}"
    return found[0]


def aws_action(exchange):
    if urllib.parse.urlsplit(exchange["url"]).path != "/":
        return match(EKS_CALLS, exchange)
    form = dict(urllib.parse.parse_qsl(exchange["body"]))
    action = form["Action"]
    if form["Version"] == "2016-11-15":
        return f"ec2:{action}"
    # Nobody needs a permission to be told who they are, or to take a role that trusts them.
    return None if action in ("GetCallerIdentity", "AssumeRoleWithWebIdentity") else f"autoscaling:{action}"


def azure_action(exchange):
    path = urllib.parse.urlsplit(exchange["url"]).path
    return None if "/oauth2/" in path or path.startswith("/metadata/") else match(AZURE_CALLS, exchange)


def check_statement(name, s):
    assert s["Effect"] == "Allow" and re.fullmatch("[A-Za-z0-9]+", s["Sid"]), (name, s)
    for action in listed(s["Action"]):
        assert "*" not in action, f"{name}: {action} is a wildcard"
        if listed(s["Resource"]) == ["*"]:
            assert action in UNBOUND, f"{name}: {action} is not bound to a resource"
            continue
        bound = "CLUSTER" in json.dumps([s["Resource"], s.get("Condition", {})])
        assert bound, f"{name}: {action} is not bound to the cluster"


def aws_granted():
    granted, sids = set(), []
    for path in sorted(IAM.glob("aws-*.json")):
        policy = json.loads(path.read_text(encoding="utf-8"))
        assert set(policy) == {"Version", "Statement"} and policy["Version"] == "2012-10-17", path
        sids += [s["Sid"] for s in policy["Statement"]]
        if path.name.startswith("aws-trust-"):
            for s in policy["Statement"]:
                assert all(a.startswith("sts:") for a in listed(s["Action"])) and "*" not in json.dumps(s), path
            continue
        for s in policy["Statement"]:
            check_statement(path.name, s)
            granted |= set(listed(s["Action"]))
    assert len(sids) == len(set(sids)), f"a Sid twice: {sids}"
    return granted


def azure_granted():
    granted = set()
    for path in sorted(IAM.glob("azure-*.json")):
        role = json.loads(path.read_text(encoding="utf-8"))
        assert role["IsCustom"] and not role["NotActions"] and not role["DataActions"] and not role["NotDataActions"], path
        assert role["AssignableScopes"] and all(s.startswith("/subscriptions/SUBSCRIPTION") for s in role["AssignableScopes"]), path
        for action in role["Actions"]:
            assert "*" not in action, f"{path.name}: {action} is a wildcard"
        granted |= set(role["Actions"])
    return granted


def justified(cloud):
    """The first column of the tables of actions; `.../` stands for what the row before began with."""
    found, last = set(), ""
    for line in pathlib.Path("docs/providers.md").read_text(encoding="utf-8").splitlines():
        if not line.startswith("| `") or line.count("|") < 3:
            continue
        for name in re.findall(r"`([^`]+)`", line.split("|")[1]):
            if name.startswith(".../"):
                start = name[4:].split("/")[0]
                name = last[:last.index(start)] + name[4:] if start in last else last.rsplit("/", 2)[0] + "/" + name[4:]
            if re.match(r"(autoscaling|eks|ec2):[A-Z]|Microsoft\.", name):
                found.add(name)
                last = name
    return {n for n in found if n.startswith("Microsoft.") == (cloud == "azure")}


def difference(what, left, right):
    return [f"{what}: {name}" for name in sorted(left - right)]


def main():
    cloud, journal = sys.argv[1:]
    action_of = {"aws": aws_action, "azure": azure_action}[cloud]
    with open(journal, encoding="utf-8") as lines:
        exchanges = [json.loads(line) for line in lines]
    called = {action_of(x) for x in exchanges if x["cloud"] == cloud} - {None}
    granted = {"aws": aws_granted, "azure": azure_granted}[cloud]()
    wrong = (difference("called, but no file of deploy/iam permits it", called, granted) +
             difference("permitted, but never called", granted - BEHIND[cloud], called) +
             difference("permitted, but docs/providers.md does not say what for", granted, justified(cloud)) +
             difference("in docs/providers.md, but not in deploy/iam", justified(cloud), granted))
    print("\n".join(wrong) or f"{len(granted)} permissions, each for a call")
    return 1 if wrong else 0


sys.exit(main())
