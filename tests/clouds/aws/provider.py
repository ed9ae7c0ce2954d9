#!/usr/bin/env python3
"""Our provider eks, call by call (tests/clouds/drive.c), against the rig's AWS account over HTTPS.

    provider.py DRIVE credentials     each kind of them, with the check, which asks what is wrong on purpose
    provider.py DRIVE calls           everything else
    provider.py DRIVE hurried         credentials that last 6 s, in an account of 4 calls a second

AWS, PLAIN, CA and FOLDER are of tests/clouds/aws/cloud.sh.
"""

import json
import os
import subprocess
import sys
import time
import urllib.request

DRIVE, PLAIN, FOLDER = sys.argv[1], os.environ["PLAIN"], os.environ["FOLDER"]
KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
# No file of this machine's own is found, and none is named either.
CLEAN = {k: v for k, v in os.environ.items() if k != "AWS_SHARED_CREDENTIALS_FILE"} | {"HOME": FOLDER}
ROLE = "arn:aws:iam::111122223333:role/preheat"


class Driven:
    """One process, so one provider with its credentials."""

    def __init__(self, environment):
        self.process = subprocess.Popen([DRIVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=CLEAN | environment)

    def __call__(self, verb, nodegroup="g5-od", settings=None, **fields):
        own = {"region": "eu-west-1", "clusterAutoscalerTags": "ignore"}
        if nodegroup:
            own |= {"cluster": "prod", "nodegroup": nodegroup}
        line = {"provider": "eks", "verb": verb, "group": nodegroup or "own", "settings": own | (settings or {})} | fields
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def done(self, *words, **fields):
        answer = self(*words, **fields)
        assert answer["kind"] == "ok", answer
        return answer

    def description(self, nodegroup="g5-od", settings=None, **fields):
        return self.done("describe", nodegroup, settings, **fields)["description"]

    def until(self, what, question, nodegroup="g5-od", settings=None, **fields):
        """Simulated time goes on meanwhile."""
        for _ in range(1200):
            d = self.description(nodegroup, settings, **fields)
            if question(d):
                return d
            time.sleep(0.05)
        raise AssertionError(f"never: {what}: {d}")

    def settled(self, size, nodegroup="g5-od", settings=None):
        return self.until(f"{size} run", lambda d: d["desired"] == size and len(ids(d, "running")) == size and
                          len(ids(d)) == size + len(ids(d, "stopped")), nodegroup, settings)

    def close(self):
        self.process.stdin.close()
        assert self.process.wait() == 0


def ids(description, state=None):
    return [m["id"] for m in description["machines"] if state in (None, m["state"])]


def fault(**fields):
    request = urllib.request.Request(PLAIN + "/v1/faults", json.dumps(fields).encode(), method="POST")
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200


def heal():
    urllib.request.urlopen(urllib.request.Request(PLAIN + "/v1/faults", method="DELETE")).close()


def written(name, text):
    path = os.path.join(FOLDER, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def credentials():
    token = written("web-token", "projected.web-identity.token")
    pod = written("pod-token", "projected.pod-identity.token")
    profile = written("credentials", f"[other]\naws_access_key_id = none\n\n[mine]\naws_access_key_id = "
                      f"{KEYS['AWS_ACCESS_KEY_ID']}\naws_secret_access_key = {KEYS['AWS_SECRET_ACCESS_KEY']}\n")
    irsa = {"AWS_ROLE_ARN": ROLE, "AWS_WEB_IDENTITY_TOKEN_FILE": token}
    kinds = {
        "environment": (KEYS, ":user/tester"),
        "profile": ({"AWS_SHARED_CREDENTIALS_FILE": profile, "AWS_PROFILE": "mine"}, ":user/tester"),
        "IRSA": (irsa, ":assumed-role/preheat/"),
        "Pod Identity": ({"AWS_CONTAINER_CREDENTIALS_FULL_URI": PLAIN + "/v1/credentials",
                          "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": pod}, ":assumed-role/preheat/"),
        "IMDSv2": ({"AWS_EC2_METADATA_SERVICE_ENDPOINT": PLAIN, "AWS_EC2_METADATA_DISABLED": "false"},
                   ":assumed-role/preheat/i-"),
    }
    for name, (environment, arn) in kinds.items():
        drive = Driven(environment)
        assert drive.description()["desired"] == 2, name
        identity = drive.done("check")["identity"]
        assert arn in identity, (name, identity)
        drive.close()
    drive = Driven(irsa)
    drive.description()
    fault(fault="expired", count=1)  # refreshed once, and asked again
    drive.description()
    heal()
    written("web-token", "nonsense")
    drive.description()  # what is held still holds
    drive.close()
    for name, environment in {"no token": irsa, "a wrong secret": KEYS | {"AWS_SECRET_ACCESS_KEY": "wrong"},
                              "nothing": {}}.items():
        drive = Driven(environment)
        answer = drive("describe")
        assert answer["kind"] == "auth", (name, answer)
        assert "wrong" not in answer["message"] and "nonsense" not in answer["message"], answer
        drive.close()


def exchanges(text):
    with open(os.environ["WIRE"], encoding="utf-8") as journal:
        return sum(text in line for line in journal)


def hurried():
    """Credentials are renewed before they end; too many calls are throttled, and some seconds later all is well."""
    drive = Driven({"AWS_ROLE_ARN": ROLE, "AWS_WEB_IDENTITY_TOKEN_FILE": written("web-token", "projected.web-identity.token")})
    drive.description()
    first, expired = exchanges("Action=AssumeRoleWithWebIdentity"), exchanges("ExpiredToken")
    time.sleep(6.5)  # as long as they last, in real time
    drive.description()
    assert exchanges("Action=AssumeRoleWithWebIdentity") > first and exchanges("ExpiredToken") == expired
    kinds = {drive("describe")["kind"] for _ in range(30)}
    assert kinds <= {"ok", "throttled"} and "throttled" in kinds, kinds
    for _ in range(100):
        time.sleep(0.1)
        if drive("describe")["kind"] == "ok":
            return drive.close()
    raise AssertionError("throttled for ever")


def sizes(drive):
    before = ids(drive.settled(2))
    drive.done("grow", token="t1", desired=4)
    d = drive.settled(4)
    assert {m["zone"] for m in d["machines"]} == {"eu-west-1a", "eu-west-1b"} and (d["min"], d["max"]) == (0, 10), d
    assert all(m["provider_id"] == f"aws:///{m['zone']}/{m['id']}" for m in d["machines"]), d
    drive.done("grow", token="t1", desired=4)  # again: nothing more
    drive.done("grow", token="t0", desired=1)  # never shrinks
    assert drive.description()["desired"] == 4
    assert drive("grow", token="t2", desired=11)["kind"] == "invalid"
    drive.done("remove", token="t3", ids=[before[0], "i-00000000000000000"])
    drive.done("remove", token="t3", ids=[before[0]])
    d = drive.settled(3)
    assert before[0] not in ids(d) and before[1] in ids(d), d
    assert drive("remove", "p5", token="t4", ids=ids(drive.description("p5")))["kind"] == "invalid"  # below its minimum
    assert drive.description("p5")["desired"] == 2


def starts_given_up(drive):
    """A failed launch is told when it is some seconds old, in real time; until then it might be a passing one."""
    running = set(ids(drive.settled(1, "g5-spot")))
    fault(group="g5-spot", fault="stock-out")
    drive.done("grow", "g5-spot", token="s1", desired=3)
    d = drive.until("failures are told", lambda d: len(d["failures"]) >= 2, "g5-spot")
    assert {(f["kind"], f["zone"]) for f in d["failures"]} == {("stockout", "eu-west-1a")} and d["desired"] == 3, d
    assert all(f["back_off"] > 0 and f["id"] > 0 for f in d["failures"]), d
    drive.done("cancel", "g5-spot", token="s2", desired=1, ids=[])
    heal()
    assert set(ids(drive.settled(1, "g5-spot"))) == running  # nobody who works was taken


def standby(drive):
    pooled = {"warmPool": "autoScalingGroup"}
    drive.done("standby", settings=pooled, token="w1", desired=2, size=drive.description()["desired"])
    d = drive.until("two stand by", lambda d: len(ids(d, "stopped")) == 2, settings=pooled)
    asleep = set(ids(d, "stopped"))
    drive.done("grow", settings=pooled, token="w2", desired=4)
    d = drive.until("one of them runs", lambda d: len(ids(d, "running")) == 4, settings=pooled)
    assert asleep & set(ids(d, "running")), d
    victim = ids(d, "running")[0]
    drive.done("stop", settings=pooled, token="w3", ids=[victim])
    drive.until("it stands by", lambda d: victim in ids(d, "stopped"), settings=pooled)
    drive.done("standby", settings=pooled, token="w4", desired=0, size=drive.description()["desired"])
    drive.until("none stands by", lambda d: len(ids(d)) == len(ids(d, "running")) == d["desired"], settings=pooled)
    assert drive("standby", "g5-spot", settings=pooled, token="w5", desired=1)["kind"] != "ok"


def node_groups_standby(drive):
    """A warm pool that EKS owns."""
    owned = {"warmPool": "nodegroup"}
    update = drive.done("standby", settings=owned, token="n1", desired=1, size=drive.description()["desired"])["operation"]
    assert update
    drive.until("one stands by", lambda d: not d["is_busy"] and len(ids(d, "stopped")) == 1, settings=owned, pending=update)
    update = drive.done("standby", settings=owned, token="n2", desired=0, size=drive.description()["desired"])["operation"]
    drive.until("none stands by", lambda d: not d["is_busy"] and len(ids(d)) == d["desired"], settings=owned, pending=update)


def launches(drive):
    settings = {"launch": "instances"}
    drive.done("grow", "p5", settings, token="l1", desired=3)
    drive.done("grow", "p5", settings, token="l1", desired=3)
    drive.settled(3, "p5")
    fault(group="p5", fault="stock-out")
    answer = drive("grow", "p5", settings, token="l2", desired=4)
    assert answer["kind"] == "stockout", answer
    heal()
    assert drive.settled(3, "p5")["desired"] == 3


def failures(drive):
    kinds = {"throttle": "throttled", "server-error": "unavailable", "auth": "auth", "contention": "unavailable"}
    for name, kind in kinds.items():
        fault(fault=name)
        for verb in ("grow", "describe"):  # after a change nothing that was told before counts
            answer = drive(verb, "g5-spot", token=name, desired=3)
            assert answer["kind"] == kind, (name, answer)
        heal()
    fault(group="g5-spot", fault="conflict")
    assert drive("grow", "g5-spot", token="c", desired=3)["kind"] == "conflict"
    heal()
    fault(group="g5-spot", fault="hang")
    assert drive("describe", "g5-spot", timeout_ms=500)["kind"] == "timeout"
    heal()
    assert drive.description("g5-spot")["desired"] == 1
    fault(group="g5-spot", fault="lost-answer", count=1)
    drive("grow", "g5-spot", token="lost", desired=3)  # its own affair whether it asks again
    heal()
    assert drive.description("g5-spot")["desired"] == 3
    assert drive("describe", "none")["kind"] == "not-found"
    assert drive("describe", None, {"autoScalingGroup": "none"})["kind"] == "not-found"


def discovery(drive):
    for settings in ({"autoScalingGroup": "own-asg"}, {"tags": "team=<research> & \"development\""}):
        d = drive.description(None, settings)
        assert (d["desired"], d["max"], len(d["machines"])) == (55, 60, 55), settings
    tagged = {"clusterAutoscalerTags": "refuse"}
    assert drive("grow", "p5", tagged, token="d1", desired=4)["kind"] == "invalid"
    assert drive.description("p5", tagged)["desired"] == 3


EXPOSED_THEN_GUARDED = ("", "exposed", "guarded")  # enum new_machines


def own_protection(drive):
    """A group that EKS does not manage protects what is new by its own setting, until that is lifted with the rest."""
    own = {"autoScalingGroup": "own-asg", "protection": "group"}

    def seen():
        d = drive.description(None, own)
        return EXPOSED_THEN_GUARDED[d["new_machines"]], d["exposed"], d["guarded"]

    assert seen() == ("exposed", 55, 0), seen()
    drive.done("protect", None, own, token="new1", desired=1)
    assert seen() == ("guarded", 0, 55), seen()
    drive.done("grow", None, own, token="new2", desired=57)
    drive.settled(57, None, own)
    assert seen() == ("guarded", 0, 57), seen()
    drive.done("protect", None, own, token="new3", desired=0)
    assert seen() == ("exposed", 57, 0), seen()


def reservations(drive):
    """When a Capacity Block ends stands in EC2, under what the launch template names."""
    left = drive.description("block")["ends_at"] / 1000 - time.time()
    assert 0 < left <= 240 * 3600 / 200, left  # of the account's time


def refreshes(drive):
    """An instance refresh waits for what we protect, and is told as long as it goes on."""

    def told(d):
        return [c for c in d["cautions"] if c.startswith("an instance refresh is in progress")]

    drive.done("protect", "g5-spot", token="r1", desired=1)
    fault(group="g5-spot", fault="instance-refresh")
    d = drive.until("it is told", told, "g5-spot", in_full=True)
    assert "(InProgress, 0%): it waits an hour for machines that are protected" in told(d)[0], d
    drive.done("protect", "g5-spot", token="r2", desired=0)
    drive.until("it is over", lambda d: not told(d), "g5-spot", in_full=True)


def main():
    if sys.argv[2] in ("credentials", "hurried"):
        return {"credentials": credentials, "hurried": hurried}[sys.argv[2]]()
    drive = Driven(KEYS)
    for test in (sizes, starts_given_up, standby, node_groups_standby, launches, reservations, failures, discovery, own_protection,
                 refreshes):
        test(drive)
        print(f"ok: {test.__name__}")
    drive.close()


main()
