#!/usr/bin/env bash
# Our provider eks against the rig's AWS account over HTTPS, with each kind of credentials; then every request that it sent by
# botocore's models and signer.
#   provider.sh DRIVE          DRIVE is built of tests/clouds/drive.c
# Skips (exit 77) without Go or python3 with venv; with CI=true that is a failure. KEEP=DIR keeps the journal.
set -euo pipefail
. tests/clouds/aws/cloud.sh

packages=$(python_packages)
start_aws tests/clouds/aws/config.json --speed 200
python3 -B tests/clouds/aws/provider.py "$1" credentials
lines=$(wc -l <"$WIRE")
python3 -B tests/clouds/aws/provider.py "$1" calls
total=$(wc -l <"$WIRE")
sed 's/"aws": {/"aws": {"credentials_last": "6s", "calls_per_second": 4, "burst": 6,/' tests/clouds/aws/config.json >"$FOLDER/hurried.json"
start_aws "$FOLDER/hurried.json" --speed 200
python3 -B tests/clouds/aws/provider.py "$1" hurried
head -n "$lines" "$WIRE" >"$FOLDER/credentials.wire"
sed -n "$((lines + 1)),${total}p" "$WIRE" >"$FOLDER/calls.wire"
tail -n "+$((total + 1))" "$WIRE" >"$FOLDER/hurried.wire"
check=("$packages/venv/bin/python" -B tests/clouds/aws/wire.py)
"${check[@]}" --testing "$FOLDER/credentials.wire" AssumeRoleWithWebIdentity GetCallerIdentity
"${check[@]}" "$FOLDER/calls.wire" DescribeNodegroup DescribeAutoScalingGroups DescribeScalingActivities DescribeWarmPool \
	DescribeLifecycleHooks DescribeInstanceRefreshes \
	SetDesiredCapacity SetInstanceProtection UpdateAutoScalingGroup TerminateInstanceInAutoScalingGroup PutWarmPool LaunchInstances \
	UpdateNodegroupConfig DescribeUpdate DescribeLaunchTemplateVersions DescribeCapacityReservations
python3 -B tests/clouds/least.py aws "$FOLDER/calls.wire"
"${check[@]}" "$FOLDER/hurried.wire" AssumeRoleWithWebIdentity
