// The same questions to moto and to the rig's account, through the SDK: each answer's shape and the group's state after it have to
// be the same, field by field, but for the differences listed and justified below. One that is listed and no longer there fails too.
import assert from "node:assert/strict";
import {createRequire} from "node:module";

const require = createRequire(process.env.MODULES + "/");
const sdks = ["eks", "auto-scaling", "sts"].map(name => require("@aws-sdk/client-" + name));
const credentials = {accessKeyId: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"};

function cloud(endpoint) {
	const common = {region: "eu-west-1", credentials, maxAttempts: 1, endpoint};
	const clients = [new sdks[0].EKSClient(common), new sdks[1].AutoScalingClient(common), new sdks[2].STSClient(common)];
	return (action, input = {}) => {
		const at = sdks.findIndex(sdk => sdk[action + "Command"]);
		return clients[at].send(new sdks[at][action + "Command"](input));
	};
}

const moto = cloud(process.env.MOTO), rig = cloud(process.env.AWS);
const asg = {AutoScalingGroupName: "eks-g5-od"}, of = {clusterName: "prod", nodegroupName: "g5-od"};

// What the rig's config says, made in moto.
async function build() {
	const roleArn = "arn:aws:iam::123456789012:role/nodes";
	await moto("CreateCluster", {name: "prod", roleArn, resourcesVpcConfig: {subnetIds: ["subnet-1"]}, version: "1.36"});
	await moto("CreateNodegroup", {...of, nodeRole: roleArn, subnets: ["subnet-1"], instanceTypes: ["g5.xlarge"],
		scalingConfig: {minSize: 1, maxSize: 5, desiredSize: 2}, labels: {"nvidia.com/gpu.product": "NVIDIA-A10G"},
		taints: [{key: "nvidia.com/gpu", value: "present", effect: "NO_SCHEDULE"}], tags: {team: "research"}});
	await moto("CreateLaunchConfiguration",
		{LaunchConfigurationName: "lc", ImageId: "ami-12c6146b", InstanceType: "g5.xlarge"});
	await moto("CreateAutoScalingGroup", {...asg, LaunchConfigurationName: "lc", MinSize: 1, MaxSize: 5, DesiredCapacity: 2,
		AvailabilityZones: ["eu-west-1a"],
		Tags: [["team", "research"], ["eks:cluster-name", "prod"]].map(([Key, Value]) => ({Key, Value, PropagateAtLaunch: true}))});
}

// Differences, by question and path. "-": only moto has it; "+": only the rig; "~": both, but not the same.
const cluster = "nothing of a cluster but its name and that it is active is needed";
const template = "EKS has launch templates; moto's group was made with the older launch configuration, for which no EC2 is needed";
const crash = "moto's server fails where the service has a name for the error";
const activity = "the service documents it; moto leaves it out";
const ended = "moto ends an activity at once; here it ends when the machine is gone";
const group = {
	"- AutoScalingGroups[].LaunchConfigurationName": template,
	"- AutoScalingGroups[].Instances[].LaunchConfigurationName": template,
	"+ AutoScalingGroups[].MixedInstancesPolicy": template,
	"+ AutoScalingGroups[].Instances[].LaunchTemplate": template,
	"+ AutoScalingGroups[].VPCZoneIdentifier": "subnets, which node groups always have",
	"+ AutoScalingGroups[].TrafficSources": "the service sends the empty list; moto leaves it out",
};
const known = {
	"0 DescribeCluster": {
		"- cluster.certificateAuthority": cluster, "- cluster.clientRequestToken": cluster,
		"- cluster.encryptionConfig": cluster, "- cluster.identity": cluster, "- cluster.kubernetesNetworkConfig": cluster,
		"- cluster.logging": cluster, "- cluster.resourcesVpcConfig": cluster, "- cluster.roleArn": cluster,
	},
	"3 ListNodegroups": {"~ error: SyntaxError, ResourceNotFoundException": crash, "~ status: 500, 404": crash},
	"4 DescribeNodegroup": {
		"- nodegroup.remoteAccess": "the node group was made without",
		"- nodegroup.resources.remoteAccessSecurityGroup": "the node group was made without",
		"+ nodegroup.updateConfig": "the service always has one; moto when it was given",
	},
	"6 DescribeAutoScalingGroups": group, "8 DescribeAutoScalingGroups": group,
	"11 DescribeAutoScalingInstances": {
		"- AutoScalingInstances[].LaunchConfigurationName": template, "+ AutoScalingInstances[].LaunchTemplate": template,
	},
	"13 SetDesiredCapacity": {"~ error: Error, ValidationError": crash, "~ status: 500, 400": crash},
	"18 TerminateInstanceInAutoScalingGroup": {
		"- Activity.EndTime": ended, "+ Activity.Details": activity, "+ Activity.AutoScalingGroupARN": activity,
	},
	"19 TerminateInstanceInAutoScalingGroup": {
		"- Activity.EndTime": ended, "+ Activity.Details": activity, "+ Activity.AutoScalingGroupARN": activity,
	},
	"20 TerminateInstanceInAutoScalingGroup": {"~ error: Error, ValidationError": crash, "~ status: 500, 400": crash},
	"28 DescribeScalingActivities": {"+ Activities[]": "moto keeps no history and always says that there is none"},
	"30 DetachInstances": {
		"- Activities[].EndTime": ended, "+ Activities[].Details": activity, "+ Activities[].AutoScalingGroupARN": activity,
	},
	"33 AssumeRoleWithWebIdentity": {
		"- PackedPolicySize": "of session policies, which are not used", "+ SubjectFromWebIdentityToken": "left out by moto",
		"+ Provider": "left out by moto", "+ Audience": "left out by moto",
	},
};

// shape is a value with its texts, numbers and dates replaced by their types; a list is the shapes found in it.
function shape(value, path, into) {
	if (Array.isArray(value)) {
		into.set(path, "list");
		value.forEach(v => shape(v, path + "[]", into));
	} else if (value && typeof value === "object" && !(value instanceof Date)) {
		into.set(path, "object");
		for (const [key, v] of Object.entries(value))
			if (key !== "$metadata" && v !== undefined && v !== null)
				shape(v, path ? path + "." + key : key, into);
	} else {
		into.set(path, value instanceof Date ? "date" : typeof value);
	}
	return into;
}

// state is what a group is, without names that a cloud makes up.
async function state(ask) {
	const g = (await ask("DescribeAutoScalingGroups", {AutoScalingGroupNames: ["eks-g5-od"]})).AutoScalingGroups[0];
	return {min: g.MinSize, max: g.MaxSize, desired: g.DesiredCapacity, zones: g.AvailabilityZones,
		suspended: g.SuspendedProcesses.map(p => p.ProcessName).sort(), warm: g.WarmPoolConfiguration?.MinSize,
		instances: g.Instances.map(i => [i.LifecycleState, i.HealthStatus, i.InstanceType, i.ProtectedFromScaleIn].join()).sort()};
}

async function settled(ask) {
	for (let i = 0; i < 400; i++) {
		const g = (await ask("DescribeAutoScalingGroups", {AutoScalingGroupNames: ["eks-g5-od"]})).AutoScalingGroups[0];
		if (g.Instances.length === g.DesiredCapacity && g.Instances.every(i => i.LifecycleState === "InService"))
			return;
		await new Promise(resolve => setTimeout(resolve, 25));
	}
	assert.fail("the group does not settle");
}

const first = async ask =>
	(await ask("DescribeAutoScalingGroups", {AutoScalingGroupNames: ["eks-g5-od"]})).AutoScalingGroups[0].Instances[0].InstanceId;

// Questions in their order; a function makes the input for one cloud.
const questions = [
	["DescribeCluster", {name: "prod"}], ["DescribeCluster", {name: "none"}],
	["ListNodegroups", {clusterName: "prod"}], ["ListNodegroups", {clusterName: "none"}],
	["DescribeNodegroup", of], ["DescribeNodegroup", {...of, nodegroupName: "none"}],
	["DescribeAutoScalingGroups", {AutoScalingGroupNames: ["eks-g5-od"]}],
	["DescribeAutoScalingGroups", {AutoScalingGroupNames: ["none"]}],
	["DescribeAutoScalingGroups", {Filters: [{Name: "tag:team", Values: ["research"]}]}],
	["DescribeAutoScalingGroups", {Filters: [{Name: "tag:team", Values: ["other"]}]}],
	["DescribeTags", {Filters: [{Name: "key", Values: ["team"]}]}],
	["DescribeAutoScalingInstances", {}],
	["SetDesiredCapacity", {...asg, DesiredCapacity: 4, HonorCooldown: false}],
	["SetDesiredCapacity", {AutoScalingGroupName: "none", DesiredCapacity: 1}],
	["SetInstanceProtection", async ask => ({...asg, InstanceIds: [await first(ask)], ProtectedFromScaleIn: true})],
	["SetDesiredCapacity", {...asg, DesiredCapacity: 1}],
	["SetInstanceProtection", async ask => ({...asg, InstanceIds: [await first(ask)], ProtectedFromScaleIn: false})],
	["SetDesiredCapacity", {...asg, DesiredCapacity: 4}],
	["TerminateInstanceInAutoScalingGroup",
		async ask => ({InstanceId: await first(ask), ShouldDecrementDesiredCapacity: true})],
	["TerminateInstanceInAutoScalingGroup",
		async ask => ({InstanceId: await first(ask), ShouldDecrementDesiredCapacity: false})],
	["TerminateInstanceInAutoScalingGroup", {InstanceId: "i-00000000000000000", ShouldDecrementDesiredCapacity: true}],
	["SuspendProcesses", {...asg, ScalingProcesses: ["AZRebalance"]}],
	["ResumeProcesses", {...asg, ScalingProcesses: ["AZRebalance"]}],
	["PutWarmPool", {...asg, MinSize: 0, MaxGroupPreparedCapacity: 0, PoolState: "Stopped"}],
	["DescribeWarmPool", asg], ["DeleteWarmPool", {...asg, ForceDelete: true}], ["DescribeWarmPool", asg],
	["SetInstanceHealth", async ask => ({InstanceId: await first(ask), HealthStatus: "Healthy"})],
	["DescribeScalingActivities", asg],
	["UpdateAutoScalingGroup", {...asg, MinSize: 0, MaxSize: 6, NewInstancesProtectedFromScaleIn: true}],
	["DetachInstances", async ask => ({...asg, InstanceIds: [await first(ask)], ShouldDecrementDesiredCapacity: true})],
	["UpdateNodegroupConfig", {...of, scalingConfig: {minSize: 0, maxSize: 6}}],
	["GetCallerIdentity", {}],
	["AssumeRoleWithWebIdentity", {RoleArn: "arn:aws:iam::123456789012:role/preheat", RoleSessionName: "preheat",
		WebIdentityToken: "projected.web-identity.token"}],
];

async function answer(ask, action, input) {
	try {
		return shape(await ask(action, input), "", new Map());
	} catch (e) {
		return new Map([["error", e.name], ["status", e.$metadata?.httpStatusCode]]);
	}
}

function compare(theirs, ours) {
	const found = [];
	const beneath = (path, other) => [...other.keys()].every(k => k !== path);
	for (const [path, type] of theirs)
		if (beneath(path, ours))
			found.push("- " + path);
		else if (ours.get(path) !== type)
			found.push(`~ ${path}: ${type}, ${ours.get(path)}`);
	for (const path of ours.keys())
		if (beneath(path, theirs))
			found.push("+ " + path);
	// Of what is missing whole, only the top counts.
	return found.filter(x => !found.some(y => y !== x && (x.startsWith(y + ".") || x.startsWith(y + "[]"))));
}

await build();
let failed = 0;
const met = new Set();
for (const [index, [action, input]] of questions.entries()) {
	const inputs = await Promise.all([moto, rig].map(ask => typeof input === "function" ? input(ask) : input));
	const [theirs, ours] = [await answer(moto, action, inputs[0]), await answer(rig, action, inputs[1])];
	await Promise.all([moto, rig].map(settled));
	const differences = compare(theirs, ours);
	const [a, b] = [await state(moto), await state(rig)];
	for (const key of Object.keys(a))
		if (JSON.stringify(a[key]) !== JSON.stringify(b[key]))
			differences.push(`~ state ${key}: ${JSON.stringify(a[key])}, ${JSON.stringify(b[key])}`);
	const name = `${index} ${action}`;
	for (const d of differences) {
		met.add(`${name}/${d}`);
		if (!known[name]?.[d]) {
			failed++;
			console.log(`FAILED: ${name} ${JSON.stringify(input)}: ${d}`);
		}
	}
	console.log(`${differences.length ? `${differences.length} differences` : "the same"}: ${name}`);
}
for (const [name, list] of Object.entries(known))
	for (const d of Object.keys(list))
		if (!met.has(`${name}/${d}`)) {
			failed++;
			console.log(`FAILED: listed, but not there any more: ${name}: ${d}`);
		}
process.exitCode = failed ? 1 : 0;
