#!/usr/bin/env python3
"""wire.py finds what is planted: a good exchange of a journal, spoiled in one way at a time.

    wire_selftest.py JOURNAL
"""

import copy
import json
import sys

import wire


def of(exchanges, text):
    return next(x for x in exchanges if text in x["body"] + x["url"] and x["status"] == 200 and "secret" in x)


def replaced(exchange, field, old, new):
    spoiled = copy.deepcopy(exchange)
    assert old in spoiled[field], (field, old)
    spoiled[field] = spoiled[field].replace(old, new)
    return spoiled


def without(exchange, header):
    spoiled = copy.deepcopy(exchange)
    del spoiled["headers"][header]
    return spoiled


def signed_otherwise(exchange, old, new):
    spoiled = copy.deepcopy(exchange)
    spoiled["headers"]["authorization"] = spoiled["headers"]["authorization"].replace(old, new)
    return spoiled


def main(path):
    with open(path, encoding="utf-8") as journal:
        exchanges = [json.loads(line) for line in journal]
    size, groups = of(exchanges, "Action=SetDesiredCapacity"), of(exchanges, "Action=DescribeAutoScalingGroups")
    nodegroup, ends = of(exchanges, "node-groups/g5-od"), of(exchanges, "Action=TerminateInstanceInAutoScalingGroup")
    spoiled = {
        "a parameter that does not exist": replaced(size, "body", "DesiredCapacity=", "DesiredCapacty="),
        "one more than there are": replaced(size, "body", "&DesiredCapacity", "&Force=true&DesiredCapacity"),
        "a text for a number": replaced(size, "body", "DesiredCapacity=", "DesiredCapacity=x"),
        "a number for a truth": replaced(ends, "body", "ShouldDecrementDesiredCapacity=true", "ShouldDecrementDesiredCapacity=1"),
        "one that is needed left out": replaced(ends, "body", "&ShouldDecrementDesiredCapacity=true", ""),
        "another version": replaced(size, "body", "2011-01-01", "2012-01-01"),
        "an action that does not exist": replaced(size, "body", "SetDesiredCapacity", "SetDesired"),
        "a path that does not exist": replaced(nodegroup, "url", "node-groups", "nodegroups"),
        "a query that does not exist": replaced(nodegroup, "url", "g5-od", "g5-od?all=true"),
        "no type of content": without(size, "content-type"),
        "another body than was signed": replaced(size, "body", "DesiredCapacity=", "DesiredCapacity=1"),
        "signed for another service": signed_otherwise(size, "/autoscaling/", "/ec2/"),
        "a date that is not signed": signed_otherwise(size, ";x-amz-date", ""),
        "another signature": signed_otherwise(size, "Signature=", "Signature=0"),
        "an answer with a stranger": replaced(groups, "response", "<MinSize>", "<Mini>0</Mini><MinSize>"),
        "an answer without what it needs": replaced(groups, "response", "CreatedTime>", "Created>"),
        "an answer in JSON with a stranger": replaced(nodegroup, "response", "\"capacityType\"", "\"capacity\""),
    }
    status = 0
    for what, exchange in spoiled.items():
        try:
            wire.check(exchange, False)
            print(f"FAILED: not found: {what}")
            status = 1
        except wire.Wrong:
            pass
    print(f"{len(spoiled)} spoiled exchanges")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
