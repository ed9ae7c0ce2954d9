#!/usr/bin/env python3
"""`preheat provider check` against the clouds that the rig plays: all that is needed granted, each single permission taken away,
credentials that ended, another region, no such group, no answer, too many calls. No secret may be in what it prints.

    check.py PREHEAT aws             AWS, PLAIN, CA, FOLDER of tests/clouds/aws/cloud.sh
    check.py PREHEAT azure-config    on stdout: the tenant, with a principal for each permission that is missing
    check.py PREHEAT azure           AZURE, PLAIN, CA, FOLDER of tests/clouds/azure/cloud.sh
"""

import json
import os
import subprocess
import sys
import time
import urllib.request

PREHEAT, MODE = sys.argv[1:3]
FOLDER, PLAIN = os.environ.get("FOLDER", ""), os.environ.get("PLAIN", "")
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "AZURE_"))} | {"HOME": FOLDER}
POOL = """apiVersion: preheat.dev/v1alpha1
kind: WarmPool
metadata: { name: chat, namespace: llm }
spec:
  mode: act
  objective: { queueWait: 2s, attainment: 99%% }
  nodeGroups:
%s
"""


class Checked:
    """One run, with -o json; no secret may be told."""

    def __init__(self, environment, groups, *options, secrets=()):
        path = os.path.join(FOLDER, "pools.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(POOL % "\n".join(f"    - {json.dumps(g)}" for g in groups))
        command = [PREHEAT, "provider", "check", "-f", path, *options]
        run = subprocess.run(command + ["-o", "json"], env=CLEAN | environment, capture_output=True, text=True, timeout=120)
        self.code, self.text, self.said = run.returncode, run.stdout, run.stderr
        for secret in secrets:
            assert secret not in run.stdout + run.stderr, f"{secret} is told: {run.stdout}{run.stderr}"
        self.groups = {g["name"]: g for g in json.loads(run.stdout)["nodeGroups"]} if run.stdout else {}

    def states(self, name):
        return {p["action"]: p["state"] for p in self.groups[name]["permissions"]}

    def is_(self, code, name, verdict, *texts):
        group = self.groups[name]
        told = json.dumps([group["refused"], group["notes"], group["would"]])
        assert (self.code, group["verdict"]) == (code, verdict), (self.code, group, self.said)
        for text in texts:
            assert text in told, (text, told)
        return self


def fault(**fields):
    request = urllib.request.Request(PLAIN + "/v1/faults", json.dumps(fields).encode(), method="POST")
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200


def heal():
    urllib.request.urlopen(urllib.request.Request(PLAIN + "/v1/faults", method="DELETE")).close()


def spent():
    """What the cloud was made to do: nothing may change by a check."""
    with urllib.request.urlopen(PLAIN + "/v1/log") as answer:
        log = json.load(answer)
    sizes = []
    with urllib.request.urlopen(PLAIN + "/v1/groups") as answer:
        for group in json.load(answer)["groups"]:
            sizes.append((group["name"], group["desired"], [m["id"] for m in group["machines"]]))
    return log["purchases"], sizes


def people(environment, *options):
    """As a person sees it: the pools file of the last run."""
    run = subprocess.run([PREHEAT, "provider", "check", "-f", os.path.join(FOLDER, "pools.yaml"), *options],
                         env=CLEAN | environment, capture_output=True, text=True, timeout=120)
    assert "\x1b" not in run.stdout + run.stderr
    return run


# --- AWS ---

SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
TOKENS = ("projected.web-identity.token", "projected.pod-identity.token")
SHARED = {k: os.environ[k] for k in ("AWS_ENDPOINT_URL", "AWS_CA_BUNDLE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE",
                                     "AWS_EC2_METADATA_DISABLED") if k in os.environ}
KEYS = SHARED | {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": SECRET}
STANDBY = {"autoscaling:DescribeWarmPool", "autoscaling:PutWarmPool", "eks:UpdateNodegroupConfig", "eks:DescribeUpdate"}
HELPING = {"autoscaling:DescribeLifecycleHooks", "autoscaling:DescribeInstanceRefreshes"}
# Asked about what does not exist, so a refusal may be of a policy that is bound to tags.
UNKNOWABLE = {"autoscaling:TerminateInstanceInAutoScalingGroup", "eks:DescribeUpdate"}


def eks(nodegroup, region="eu-west-1", name=None, tagged="ignore", **fields):
    return {"name": name or nodegroup, "max": 10, "eks": {"cluster": "prod", "nodegroup": nodegroup, "region": region,
                                                          "clusterAutoscalerTags": tagged}} | fields


def aws_check(*groups, environment=None, options=()):
    return Checked(environment or KEYS, groups, *options, secrets=(SECRET, *TOKENS))


def aws_granted():
    before = spent()
    c = aws_check(eks("g5-od", min=3)).is_(0, "g5-od", "fine", "raise the size from 2 to the manifest's min of 3",
                                         "protect 2 machines in service", "no standby: the group has no warm pool")
    assert set(c.states("g5-od").values()) == {"granted"} and len(c.states("g5-od")) == 12, c.text
    assert c.groups["g5-od"]["identity"] == "arn:aws:iam::111122223333:user/tester", c.text
    sees = c.groups["g5-od"]["sees"]
    assert (sees["min"], sees["max"], sees["desired"]) == (0, 10, 2) and len(sees["machines"]) == 2, sees
    run = people(KEYS)
    assert run.returncode == 0 and "g5-od: fine" in run.stdout and "Nothing was changed" in run.stdout, run
    assert "ResourceInUse" not in aws_check(eks("g5-od")).text, "a check began an update of the node group"
    assert spent() == before, "a check changed something"


def aws_each_denied():
    actions = aws_check(eks("g5-od")).states("g5-od")
    for action in actions:
        fault(fault="deny", value=action)
        fine = aws_check(eks("g5-od"))
        c = aws_check(eks("g5-od", name="rests", standby={"max": 2}))
        heal()
        states = c.states("rests")
        expected = "unknown" if action in UNKNOWABLE else "denied"
        assert states[action] == expected, (action, states)
        others = {s for a, s in states.items() if a != action}
        blind = action == "eks:DescribeNodegroup"  # then nobody knows the Auto Scaling group
        assert others == ({"granted", "unknown"} if blind else {"granted"}), (action, states)
        if expected == "denied" and action not in HELPING:
            assert any(f"{action} is denied" in s for s in c.groups["rests"]["refused"]), c.text
        spare = action in STANDBY | UNKNOWABLE | HELPING
        assert fine.groups["g5-od"]["verdict"] == ("fine" if spare else "refused"), (action, fine.text)
        assert c.code == 1, c.text  # "rests" has no warm pool in any case


def aws_disks():
    """Whether a stop empties the disk that images lie on: read, told, and not taken for granted where it cannot be read."""
    made = eks("g5-od", standby={"max": 2})
    made["eks"]["warmPool"] = "nodegroup"
    action = "ec2:DescribeLaunchTemplateVersions"
    c = aws_check(made).is_(0, "g5-od", "fine", "pull their image when they wake", "localStorage.strategy RAID0", "version 1")
    assert c.states("g5-od")[action] == "granted" and "RAID0\\n" not in c.text, c.text
    fault(fault="deny", value=action)
    c = aws_check(made).is_(0, "g5-od", "fine", "is not known, and they are taken to be kept", "not authorized")
    heal()
    assert c.states("g5-od")[action] == "denied" and "pull their image" not in c.text, c.text


def aws_credentials():
    fault(fault="expired")
    aws_check(eks("g5-od")).is_(1, "g5-od", "refused", "ExpiredToken")
    heal()
    aws_check(eks("g5-od"), environment=KEYS | {"AWS_SECRET_ACCESS_KEY": "wrong"}).is_(1, "g5-od", "refused", "SignatureDoesNotMatch")
    aws_check(eks("g5-od"), environment=SHARED).is_(1, "g5-od", "refused", "credentials")
    token = os.path.join(FOLDER, "web-token")
    with open(token, "w", encoding="utf-8") as file:
        file.write(TOKENS[0])
    irsa = SHARED | {"AWS_ROLE_ARN": "arn:aws:iam::111122223333:role/preheat", "AWS_WEB_IDENTITY_TOKEN_FILE": token}
    c = aws_check(eks("g5-od"), environment=irsa).is_(0, "g5-od", "fine")
    assert ":assumed-role/preheat/" in c.groups["g5-od"]["identity"], c.text
    with open(token, "w", encoding="utf-8") as file:
        file.write(TOKENS[0] + ".expired")
    aws_check(eks("g5-od"), environment=irsa).is_(1, "g5-od", "refused", "ExpiredToken")


def aws_groups():
    aws_check(eks("g5-od", region="us-east-1", name="far")).is_(1, "far", "refused")
    c = aws_check(eks("nobody"), eks("p5", tagged="refuse", max=20), eks("g5-od"), {"name": "dream", "max": 3})
    c.is_(1, "nobody", "refused", "No node group found").is_(1, "g5-od", "fine")
    c.is_(1, "p5", "refused", "has tags k8s.io/cluster-autoscaler/", "sizes above 4", "never below 1")
    c.is_(1, "dream", "refused", "no cloud is named")
    c = aws_check(eks("nobody"), eks("g5-od"), options=("--group", "g5-od"))
    assert list(c.groups) == ["g5-od"] and c.code == 0, c.text
    c = aws_check(eks("g5-od"), options=("--group", "g5-of"))
    assert c.code == 2 and "did you mean 'g5-od'" in c.said, c.said
    fault(group="g5-spot", fault="stock-out")
    urllib.request.urlopen(urllib.request.Request(PLAIN + "/v1/groups/g5-spot/grow", json.dumps(
        {"token": "t", "desired": 3}).encode(), method="POST")).close()
    end = time.monotonic() + 90  # a failure counts when machines are still missing 15 s after it
    while time.monotonic() < end:
        failures = aws_check(eks("g5-spot")).groups["g5-spot"]["sees"]["failures"]
        if failures:
            break
    heal()
    assert failures and {(f["kind"], f["zone"]) for f in failures} == {("stockout", "eu-west-1a")}, failures


def aws_silence():
    dead = KEYS | {"AWS_ENDPOINT_URL": "https://127.0.0.1:1"}
    aws_check(eks("g5-od"), environment=dead).is_(3, "g5-od", "unanswered", "connect")
    fault(fault="hang", group="p5")
    c = aws_check(eks("g5-od"), eks("p5", max=4), options=("--timeout", "5s"))
    heal()
    c.is_(3, "p5", "unanswered", "5000 ms").is_(3, "g5-od", "fine")  # nobody waits for it
    fault(fault="throttle", count=2)
    aws_check(eks("g5-od")).is_(0, "g5-od", "fine")
    heal()
    fault(fault="throttle")
    aws_check(eks("g5-od"), options=("--timeout", "5s")).is_(3, "g5-od", "unanswered", "Throttling")
    heal()


# --- Azure ---

TENANT = "11111111-2222-4333-8444-555555555555"
POOLS = "Microsoft.ContainerService/managedClusters/agentPools/"
RIGHTS = [POOLS + "read", POOLS + "machines/read", POOLS + "write", POOLS + "deleteMachines/action", POOLS + "abort/action",
          "Microsoft.ContainerService/locations/operations/read", "Microsoft.ContainerService/locations/operationresults/read"]
HELPFUL = RIGHTS[5:]
LOOK = "Microsoft.Authorization/permissions/read"


def azure_config():
    def principal(name, actions):
        return {"client_id": name, "object_id": f"object-{name}", "secret": f"s3cret-of-{name}", "actions": actions}

    principals = [principal("all", RIGHTS + [LOOK]), principal("blind", RIGHTS)]
    principals += [principal(f"lacks{i}", [r for r in RIGHTS + [LOOK] if r != right]) for i, right in enumerate(RIGHTS)]
    common = {"max": 100, "initial": 2, "stages": {"provision": "60s"}}
    json.dump({"azure": {"tenant": TENANT, "principals": principals}, "groups": [
        common | {"name": "gpu1", "aks": {}},
        common | {"name": "cold1", "aks": {"properties": {"scaleDownMode": "Deallocate"}}},
        common | {"name": "auto1", "aks": {"properties": {"enableAutoScaling": True, "minCount": 1, "maxCount": 5}}}]}, sys.stdout)


def azure_check(*groups, who="all", options=(), **environment):
    env = {"AZURE_TENANT_ID": TENANT, "AZURE_AUTHORITY_HOST": os.environ["AZURE"], "SSL_CERT_FILE": os.environ["CA"],
           "AZURE_RESOURCE_MANAGER_ENDPOINT": os.environ["AZURE"], "AZURE_CLIENT_ID": who,
           "AZURE_CLIENT_SECRET": f"s3cret-of-{who}"} | environment
    c = Checked(env, groups, *options, secrets=("s3cret-of-",))
    c.environment = env
    return c


def aks(pool, **fields):
    return {"name": pool, "max": 10, "aks": {"subscription": "00000000-0000-0000-0000-000000000000", "resourceGroup": "rg",
                                             "cluster": "prod", "pool": pool}} | fields


def azure_granted():
    before = spent()
    c = azure_check(aks("gpu1"), aks("cold1", standby={"max": 2})).is_(0, "gpu1", "fine", "scaleDownMode is Delete").is_(0, "cold1", "fine")
    assert set(c.states("gpu1")) == set(RIGHTS) and set(c.states("gpu1").values()) == {"granted"}, c.text
    assert "object object-all" in c.groups["gpu1"]["identity"], c.text
    assert c.groups["gpu1"]["sees"]["desired"] == 2 and spent() == before
    azure_check(aks("gpu1", standby={"max": 2})).is_(1, "gpu1", "refused", "standby, which the manifest wants")
    c = azure_check(aks("gpu1"), who="blind").is_(0, "gpu1", "fine")
    assert set(c.states("gpu1").values()) == {"unknown"}, c.text


def azure_each_denied():
    for i, right in enumerate(RIGHTS):
        c = azure_check(aks("gpu1"), who=f"lacks{i}")
        states = c.states("gpu1")
        assert states.pop(right) == "denied" and set(states.values()) == {"granted"}, c.text
        if right in HELPFUL:
            c.is_(0, "gpu1", "fine")
        else:
            c.is_(1, "gpu1", "refused", f"{right} is denied")


def azure_groups():
    c = azure_check(aks("auto1"), aks("nobody"), aks("gpu1"))
    c.is_(1, "auto1", "refused", "enableAutoScaling").is_(1, "nobody", "refused").is_(1, "gpu1", "fine")
    c = azure_check(aks("gpu1"), AZURE_CLIENT_SECRET="s3cret-of-nobody").is_(1, "gpu1", "refused", "AADSTS7000215")
    assert c.states("gpu1") == {}, c.text
    run = people(c.environment)
    assert run.returncode == 1 and "AADSTS7000215" in run.stdout and "s3cret-of-" not in run.stdout + run.stderr, run
    fault(fault="auth", value="expired")
    azure_check(aks("gpu1")).is_(1, "gpu1", "refused", "expir")
    heal()
    azure_check(aks("gpu1"), AZURE_RESOURCE_MANAGER_ENDPOINT="https://127.0.0.1:1").is_(3, "gpu1", "unanswered", "connect")
    fault(fault="throttle", value="arm", count=1)
    azure_check(aks("gpu1")).is_(0, "gpu1", "fine")
    heal()
    fault(fault="throttle", value="arm")
    azure_check(aks("gpu1"), options=("--timeout", "5s")).is_(3, "gpu1", "unanswered", "SubscriptionRequestsThrottled")
    heal()
    fault(fault="hang", group="auto1")
    azure_check(aks("auto1"), aks("gpu1"), options=("--timeout", "5s")).is_(3, "auto1", "unanswered").is_(3, "gpu1", "fine")
    heal()


def main():
    if MODE == "azure-config":
        return azure_config()
    tests = {"aws": (aws_granted, aws_each_denied, aws_disks, aws_credentials, aws_groups, aws_silence),
             "azure": (azure_granted, azure_each_denied, azure_groups)}
    for test in tests[MODE]:
        test()
        print(f"ok: {test.__name__}")


main()
