// The vendor's own SDK as a client of the rig's account: every operation, errors by name, pages, states as they change.
import assert from "node:assert/strict";
import {ask, auto, clusters, credentials, eks, fault, groups, heal, once, refused, require, sts, until} from "./client.mjs";

const nodegroup = async name => (await ask("DescribeNodegroup", {clusterName: "prod", nodegroupName: name})).nodegroup;
const asgOf = async name => (await nodegroup(name)).resources.autoScalingGroups[0].name;
const asg = async name =>
	(await ask("DescribeAutoScalingGroups", {AutoScalingGroupNames: [name]})).AutoScalingGroups[0];
const activities = async name =>
	(await ask("DescribeScalingActivities", {AutoScalingGroupName: name})).Activities;
const resize = (name, size) =>
	ask("SetDesiredCapacity", {AutoScalingGroupName: name, DesiredCapacity: size, HonorCooldown: false});
const inService = group => group.Instances.filter(i => i.LifecycleState === "InService");
// settled: as many in service as desired, and nothing else.
const settled = (name, size) => until(`${name} has ${size} in service`, async () => {
	const g = await asg(name);
	return g.DesiredCapacity === size && g.Instances.length === size && inService(g).length === size && g;
});

const tests = {
	async "clusters and node groups are found"() {
		const {cluster} = await ask("DescribeCluster", {name: "prod"});
		assert.equal(cluster.status, "ACTIVE");
		const n = await nodegroup("g5-od");
		assert.deepEqual([n.status, n.capacityType, n.scalingConfig],
			["ACTIVE", "ON_DEMAND", {minSize: 0, maxSize: 10, desiredSize: 2}]);
		assert.deepEqual(n.taints, [{key: "nvidia.com/gpu", value: "present", effect: "NO_SCHEDULE"}]);
		assert.ok(n.createdAt instanceof Date && n.labels["nvidia.com/gpu.product"]);
		await refused(ask("DescribeNodegroup", {clusterName: "prod", nodegroupName: "none"}), "ResourceNotFoundException", 404);
		await refused(ask("DescribeCluster", {name: "none"}), "ResourceNotFoundException", 404, /No cluster found/);
	},

	async "lists come in pages"() {
		const names = [];
		for await (const page of eks.paginateListNodegroups({client: clusters, pageSize: 1}, {clusterName: "prod"}))
			names.push(...page.nodegroups);
		assert.deepEqual(names, ["g5-od", "g5-spot", "p5", "block"]);
		const found = [];
		for await (const page of auto.paginateDescribeAutoScalingGroups({client: groups, pageSize: 3}, {}))
			found.push(...page.AutoScalingGroups.map(g => g.AutoScalingGroupName));
		assert.equal(new Set(found).size, 5);
		let pages = 0, instances = [];
		for await (const page of auto.paginateDescribeAutoScalingInstances({client: groups, pageSize: 20}, {})) {
			pages++;
			instances.push(...page.AutoScalingInstances);
		}
		assert.deepEqual([pages, new Set(instances.map(i => i.InstanceId)).size], [4, 61]);
		await refused(ask("DescribeAutoScalingGroups", {NextToken: "nonsense"}), "InvalidNextToken", 400);
		await refused(ask("DescribeAutoScalingGroups", {MaxRecords: 101}), "ValidationError", 400, /less than or equal to 100/);
		await refused(ask("ListNodegroups", {clusterName: "prod", nextToken: "x"}), "InvalidParameterException", 400);
		await refused(ask("ListNodegroups", {clusterName: "prod", maxResults: 101}), "InvalidParameterException", 400);
	},

	async "tags are texts of any kind, and filters find by them"() {
		const g = await asg("own-asg");
		assert.equal(g.Tags.find(t => t.Key === "team").Value, "<research> & \"development\"");
		const byTag = await ask("DescribeAutoScalingGroups",
			{Filters: [{Name: "tag:eks:nodegroup-name", Values: ["p5"]}, {Name: "tag-key", Values: ["eks:cluster-name"]}]});
		assert.deepEqual(byTag.AutoScalingGroups.map(g => g.AutoScalingGroupName), [await asgOf("p5")]);
		const {Tags} = await ask("DescribeTags", {Filters: [{Name: "key", Values: ["team"]}]});
		assert.deepEqual(Tags.map(t => t.ResourceId), ["own-asg"]);
		assert.deepEqual((await ask("DescribeAutoScalingGroups", {AutoScalingGroupNames: ["none"]})).AutoScalingGroups, []);
		await refused(ask("DescribeAutoScalingGroups", {Filters: [{Name: "colour", Values: ["red"]}]}), "ValidationError", 400);
	},

	async "growing: Pending, InService, and an activity for each"() {
		const name = await asgOf("g5-od");
		await fault({group: "g5-od", fault: "slow-start", value: 10000});
		await resize(name, 4);
		const g = await asg(name);
		assert.equal(g.DesiredCapacity, 4);
		const fresh = g.Instances.filter(i => i.LifecycleState === "Pending");
		assert.equal(fresh.length, 2);
		assert.deepEqual((await activities(name)).map(a => a.StatusCode), ["PreInService", "PreInService"]);
		await refused(ask("SetInstanceProtection", {AutoScalingGroupName: name, InstanceIds: [fresh[0].InstanceId],
			ProtectedFromScaleIn: true}), "ValidationError", 400, /not in InService/);
		await heal();
		for (const {InstanceId} of fresh)
			await ask("TerminateInstanceInAutoScalingGroup", {InstanceId, ShouldDecrementDesiredCapacity: true});
		await settled(name, 2);
		await resize(name, 4);
		const grown = await settled(name, 4);
		assert.deepEqual(grown.AvailabilityZones.map(z => grown.Instances.filter(i => i.AvailabilityZone === z).length), [2, 2]);
		const done = await activities(name);
		assert.deepEqual(done.map(a => a.StatusCode).sort(), ["Cancelled", "Cancelled", ...Array(4).fill("Successful")]);
		assert.ok(done[0].EndTime >= done[0].StartTime && JSON.parse(done[0].Details)["Availability Zone"]);
		await until("EKS shows it", async () => (await nodegroup("g5-od")).scalingConfig.desiredSize === 4);
	},

	async "a launch hook holds what boots, and may say no"() {
		const name = await asgOf("g5-spot"), hook = "Launch-LC-Hook";
		await fault({group: "g5-spot", fault: "launch-hook", count: 2, value: 36000});
		await resize(name, 3);
		let held = [];
		await until("two are held", async () => {
			held = (await asg(name)).Instances.filter(i => i.LifecycleState === "Pending:Wait");
			return held.length === 2;
		});
		await heal();
		assert.deepEqual((await activities(name)).slice(0, 2).map(a => a.StatusCode), ["MidLifecycleAction", "MidLifecycleAction"]);
		await refused(ask("SetInstanceProtection", {AutoScalingGroupName: name, InstanceIds: [held[0].InstanceId],
			ProtectedFromScaleIn: true}), "ValidationError", 400, /not in InService/);
		await ask("RecordLifecycleActionHeartbeat",
			{AutoScalingGroupName: name, LifecycleHookName: hook, InstanceId: held[0].InstanceId});
		await refused(ask("CompleteLifecycleAction", {AutoScalingGroupName: name, LifecycleHookName: hook,
			LifecycleActionResult: "PERHAPS", InstanceId: held[0].InstanceId}), "ValidationError", 400, /CONTINUE or ABANDON/);
		for (const [i, result] of ["CONTINUE", "ABANDON"].entries())
			await ask("CompleteLifecycleAction", {AutoScalingGroupName: name, LifecycleHookName: hook,
				LifecycleActionResult: result, InstanceId: held[i].InstanceId});
		const grown = await settled(name, 3);
		assert.ok(grown.Instances.some(i => i.InstanceId === held[0].InstanceId));
		assert.ok(!inService(grown).some(i => i.InstanceId === held[1].InstanceId));
		const failed = (await activities(name)).find(a => a.StatusCode === "Failed");
		assert.match(failed.StatusMessage, /Lifecycle Action .* was abandoned/);
		await resize(name, 1);
		await settled(name, 1);
	},

	async "sizes out of bounds are refused"() {
		const name = await asgOf("p5");
		await refused(resize(name, 5), "ValidationError", 400, /above max value 4/);
		await refused(resize(name, 0), "ValidationError", 400, /below min value 1/);
		await refused(resize("none", 0), "ValidationError", 400, /not found/);
		await refused(ask("SetDesiredCapacity", {AutoScalingGroupName: name}), "ValidationError", 400, /desiredCapacity/);
		assert.equal((await asg(name)).DesiredCapacity, 2);
	},

	async "the named instance goes, with a hook before it"() {
		const name = await asgOf("p5");
		const [first] = (await asg(name)).Instances;
		const {Activity} = await ask("TerminateInstanceInAutoScalingGroup",
			{InstanceId: first.InstanceId, ShouldDecrementDesiredCapacity: true});
		assert.equal(Activity.StatusCode, "MidLifecycleAction");
		const g = await asg(name);
		assert.equal(g.DesiredCapacity, 1);
		assert.equal(g.Instances.find(i => i.InstanceId === first.InstanceId).LifecycleState, "Terminating:Wait");
		const [second] = inService(g);
		await refused(ask("TerminateInstanceInAutoScalingGroup",
			{InstanceId: second.InstanceId, ShouldDecrementDesiredCapacity: true}), "ValidationError", 400,
			/desiredSize equals minSize \(1\)/);
		await ask("RecordLifecycleActionHeartbeat",
			{AutoScalingGroupName: name, LifecycleHookName: "Terminate-LC-Hook", InstanceId: first.InstanceId});
		await ask("CompleteLifecycleAction", {AutoScalingGroupName: name, LifecycleHookName: "Terminate-LC-Hook",
			LifecycleActionResult: "CONTINUE", InstanceId: first.InstanceId});
		await settled(name, 1);
		await refused(ask("TerminateInstanceInAutoScalingGroup",
			{InstanceId: first.InstanceId, ShouldDecrementDesiredCapacity: true}), "ValidationError", 400, /not found/);
		const again = await ask("TerminateInstanceInAutoScalingGroup",
			{InstanceId: second.InstanceId, ShouldDecrementDesiredCapacity: false});
		assert.match(again.Activity.Description, /Terminating EC2 instance/);
		await until("another in its place", async () =>
			(await asg(name)).Instances.some(i => i.InstanceId !== second.InstanceId));
		await ask("CompleteLifecycleAction", {AutoScalingGroupName: name, LifecycleHookName: "Terminate-LC-Hook",
			LifecycleActionResult: "CONTINUE", InstanceId: second.InstanceId});
		await settled(name, 1);
	},

	async "lowering the size kills who is not protected, and nobody else"() {
		const name = await asgOf("g5-od");
		const before = (await asg(name)).Instances;
		const kept = before.slice(0, 3).map(i => i.InstanceId);
		await ask("SetInstanceProtection", {AutoScalingGroupName: name, InstanceIds: kept, ProtectedFromScaleIn: true});
		await resize(name, 1);
		await until("the unprotected one is gone", async () => (await asg(name)).Instances.length === 3);
		const g = await asg(name);
		assert.deepEqual(g.Instances.map(i => i.InstanceId).sort(), [...kept].sort());
		assert.ok(g.Instances.every(i => i.ProtectedFromScaleIn) && g.DesiredCapacity === 1);
		assert.ok((await activities(name)).some(a => a.StatusCode === "Cancelled" && /protected from scale-in/.test(a.StatusMessage)));
		await resize(name, 3);
		await ask("SetInstanceProtection", {AutoScalingGroupName: name, InstanceIds: kept, ProtectedFromScaleIn: false});
		await resize(name, 2);
		await settled(name, 2);
	},

	async "protection is for fifty instances in service"() {
		const ids = (await asg("own-asg")).Instances.map(i => i.InstanceId);
		const protect = (AutoScalingGroupName, InstanceIds) =>
			ask("SetInstanceProtection", {AutoScalingGroupName, InstanceIds, ProtectedFromScaleIn: true});
		await refused(protect("own-asg", ids.slice(0, 51)), "ValidationError", 400, /less than or equal to 50/);
		await protect("own-asg", ids.slice(0, 50));
		await refused(protect("own-asg", ["i-00000000000000000"]), "ValidationError", 400, /not found/);
	},

	async "a stock-out fails, is tried again for ever, and its text is cut"() {
		const name = await asgOf("p5");
		await fault({group: "p5", fault: "stock-out"});
		await resize(name, 3);
		const failed = await until("two attempts failed", async () => {
			const list = (await activities(name)).filter(a => a.StatusCode === "Failed");
			return list.length >= 4 && list;
		});
		assert.match(failed[0].StatusMessage, /do not have sufficient p5.48xlarge capacity/);
		assert.ok(failed[0].StatusMessage.length <= 255);
		assert.equal(JSON.parse(failed[0].Details)["Availability Zone"], "eu-west-1c");
		const g = await asg(name), n = await nodegroup("p5");
		assert.deepEqual([g.DesiredCapacity, g.Instances.length], [3, 1]);
		assert.deepEqual([n.status, n.health.issues[0].code], ["DEGRADED", "AsgInstanceLaunchFailures"]);
		await heal();
		await settled(name, 3);
		assert.equal((await nodegroup("p5")).status, "ACTIVE");
	},

	async "a stock-out of one zone or type goes to the next"() {
		const name = await asgOf("g5-od"), spot = await asgOf("g5-spot");
		await fault({group: "g5-od", fault: "stock-out", zone: "eu-west-1b"});
		await resize(name, 7);
		const g = await settled(name, 7);
		assert.ok(g.Instances.filter(i => i.AvailabilityZone === "eu-west-1a").length >= 5);
		assert.ok((await activities(name)).some(a => a.StatusCode === "Failed" && /eu-west-1b/.test(a.Details)));
		await fault({group: "g5-spot", fault: "stock-out", zone: "g5.xlarge", value: "no <Spot> capacity & none soon"});
		await resize(spot, 2);
		assert.equal((await settled(spot, 2)).Instances[1].InstanceType, "g5.2xlarge");
		assert.ok((await activities(spot)).some(a => /no <Spot> capacity & none soon/.test(a.StatusMessage)));
		await heal();
	},

	async "a warm pool: stopped, woken first, given back on scale-in"() {
		const name = await asgOf("g5-od");
		await resize(name, 2);
		await settled(name, 2);
		await ask("PutWarmPool", {AutoScalingGroupName: name, MinSize: 1, MaxGroupPreparedCapacity: 4, PoolState: "Stopped",
			InstanceReusePolicy: {ReuseOnScaleIn: true}});
		const warm = () => ask("DescribeWarmPool", {AutoScalingGroupName: name});
		assert.ok((await warm()).Instances.every(i => /^Warmed:(Pending|Stopped)/.test(i.LifecycleState)));
		const stopped = await until("two stand by", async () => {
			const w = await warm();
			return w.Instances.filter(i => i.LifecycleState === "Warmed:Stopped").length === 2 && w;
		});
		assert.deepEqual(stopped.WarmPoolConfiguration, {MinSize: 1, MaxGroupPreparedCapacity: 4, PoolState: "Stopped",
			InstanceReusePolicy: {ReuseOnScaleIn: true}});
		assert.equal((await asg(name)).WarmPoolSize, 2);
		await refused(ask("TerminateInstanceInAutoScalingGroup", {InstanceId: stopped.Instances[0].InstanceId,
			ShouldDecrementDesiredCapacity: true}), "ValidationError", 400, /warm pool/);
		await resize(name, 3);
		const g = await settled(name, 3);
		assert.equal(g.Instances.filter(i => stopped.Instances.some(w => w.InstanceId === i.InstanceId)).length, 1);
		await resize(name, 2);
		await until("one came back", async () =>
			(await warm()).Instances.filter(i => i.LifecycleState === "Warmed:Stopped").length === 2);
		await ask("DeleteWarmPool", {AutoScalingGroupName: name, ForceDelete: true});
		assert.equal((await warm()).WarmPoolConfiguration.Status, "PendingDelete");
		await until("the pool is gone", async () => !(await warm()).WarmPoolConfiguration);
		await refused(ask("DeleteWarmPool", {AutoScalingGroupName: name}), "ValidationError", 400);
		await refused(ask("PutWarmPool", {AutoScalingGroupName: await asgOf("g5-spot")}), "ValidationError", 400, /Spot/);
		await refused(ask("PutWarmPool", {AutoScalingGroupName: "own-asg"}), "ValidationError", 400);
	},

	async "the node group's own configuration is an update that takes its time"() {
		const of = {clusterName: "prod", nodegroupName: "p5"};
		const {update} = await ask("UpdateNodegroupConfig",
			{...of, scalingConfig: {maxSize: 6}, warmPoolConfig: {enabled: true, maxGroupPreparedCapacity: 4, poolState: "STOPPED"},
				clientRequestToken: "once"});
		assert.deepEqual([update.status, update.type], ["InProgress", "ConfigUpdate"]);
		assert.equal((await ask("UpdateNodegroupConfig", {...of, clientRequestToken: "once"})).update.id, update.id);
		await refused(ask("UpdateNodegroupConfig", {...of, scalingConfig: {minSize: 0}}), "ResourceInUseException", 409);
		assert.equal((await nodegroup("p5")).status, "UPDATING");
		await until("it is done", async () => (await ask("DescribeUpdate",
			{name: "prod", nodegroupName: "p5", updateId: update.id})).update.status === "Successful");
		const n = await nodegroup("p5");
		assert.equal(n.scalingConfig.maxSize, 6);
		assert.deepEqual([n.warmPoolConfig.enabled, n.warmPoolConfig.maxGroupPreparedCapacity, n.warmPoolConfig.poolState],
			[true, 4, "STOPPED"]);
		await until("one stands by", async () => (await ask("DescribeWarmPool",
			{AutoScalingGroupName: await asgOf("p5")})).Instances.some(i => i.LifecycleState === "Warmed:Stopped"));
		assert.deepEqual((await ask("ListUpdates", {name: "prod", nodegroupName: "p5"})).updateIds, [update.id]);
		await refused(ask("UpdateNodegroupConfig", {...of, scalingConfig: {minSize: 9}}), "InvalidParameterException", 400);
		await refused(ask("DescribeUpdate", {name: "prod", nodegroupName: "p5", updateId: "none"}), "ResourceNotFoundException", 404);
	},

	async "LaunchInstances answers at once, once per token"() {
		const name = await asgOf("g5-od");
		const launch = fields => ask("LaunchInstances", {AutoScalingGroupName: name, RequestedCapacity: 1, RetryStrategy: "none",
			AvailabilityZones: ["eu-west-1a"], ...fields});
		const first = await launch({ClientToken: "l1"});
		assert.equal(first.Instances[0].InstanceIds.length, 1);
		assert.deepEqual((await launch({ClientToken: "l1"})).Instances, first.Instances);
		await refused(launch({ClientToken: "l1", RequestedCapacity: 2}), "IdempotentParameterMismatchError", 400);
		await fault({group: "g5-od", fault: "stock-out", zone: "eu-west-1a"});
		const none = await launch({ClientToken: "l2"});
		assert.deepEqual([none.Instances, none.Errors[0].ErrorCode, none.Errors[0].AvailabilityZone],
			[[], "InsufficientInstanceCapacity", "eu-west-1a"]);
		await heal();
		assert.equal((await asg(name)).DesiredCapacity, 3);
		await refused(launch({ClientToken: "l3", AvailabilityZones: undefined}), "ValidationError", 400);
		await refused(launch({ClientToken: "l4", RequestedCapacity: 100}), "ValidationError", 400, /maximum/);
		await settled(name, 3);
	},

	async "the rest of the group's switches"() {
		const name = await asgOf("g5-od");
		const of = {AutoScalingGroupName: name};
		await ask("SuspendProcesses", {...of, ScalingProcesses: ["AZRebalance", "Launch"]});
		assert.deepEqual((await asg(name)).SuspendedProcesses.map(p => p.ProcessName), ["AZRebalance", "Launch"]);
		await resize(name, 4);
		assert.equal((await asg(name)).Instances.length, 3);
		await ask("ResumeProcesses", of);
		await settled(name, 4);
		await refused(ask("SuspendProcesses", {...of, ScalingProcesses: ["Sleep"]}), "ValidationError", 400);
		await ask("UpdateAutoScalingGroup", {...of, NewInstancesProtectedFromScaleIn: true, MaxSize: 12});
		await resize(name, 5);
		const g = await settled(name, 5);
		assert.deepEqual([g.MaxSize, g.Instances.filter(i => i.ProtectedFromScaleIn).length], [12, 1]);
		const [sick, other] = g.Instances;
		await ask("SetInstanceHealth", {InstanceId: sick.InstanceId, HealthStatus: "Unhealthy"});
		await settled(name, 5);
		assert.ok(!(await asg(name)).Instances.some(i => i.InstanceId === sick.InstanceId));
		await ask("DetachInstances", {...of, InstanceIds: [other.InstanceId], ShouldDecrementDesiredCapacity: true});
		await settled(name, 4);
		assert.deepEqual((await ask("DescribeLaunchConfigurations")).LaunchConfigurations, []);
	},

	async "a spot machine that is taken is replaced"() {
		const name = await asgOf("g5-spot");
		const before = (await asg(name)).Instances.map(i => i.InstanceId);
		await fault({group: "g5-spot", fault: "spot-loss", value: 1});
		await until("another in its place", async () => {
			const g = await asg(name);
			return inService(g).length === 2 && g.Instances.some(i => !before.includes(i.InstanceId));
		});
		await heal();
	},

	async "faults of calls have the services' names"() {
		const table = [["throttle", "Throttling", 400, "TooManyRequestsException", 429],
			["server-error", "ServiceUnavailable", 503, "ServiceUnavailableException", 503],
			["auth", "AccessDenied", 403, "AccessDeniedException", 403],
			["expired", "ExpiredToken", 403, "ExpiredTokenException", 403],
			["contention", "ResourceContentionFault", 500, "ServerException", 500]];
		for (const [name, code, status, eksCode, eksStatus] of table) {
			await fault({fault: name});
			await refused(ask("DescribeAutoScalingGroups"), code, status);
			await refused(ask("ListNodegroups", {clusterName: "prod"}), eksCode, eksStatus);
			await heal();
		}
		await fault({group: "p5", fault: "conflict"});
		await refused(resize(await asgOf("p5"), 3), "ScalingActivityInProgressFault", 400);
		await refused(ask("UpdateNodegroupConfig", {clusterName: "prod", nodegroupName: "p5"}), "ResourceInUseException", 409);
		await heal();
		await fault({fault: "deny", value: "autoscaling:PutWarmPool"});
		await refused(ask("PutWarmPool", {AutoScalingGroupName: "none"}), "AccessDenied", 403, /autoscaling:PutWarmPool/);
		await heal();
		await fault({group: "p5", fault: "lost-answer", count: 1});
		await assert.rejects(resize(await asgOf("p5"), 4));
		assert.equal((await asg(await asgOf("p5"))).DesiredCapacity, 4);
		await heal();
	},

	async "signatures are checked"() {
		const wrong = fields => new auto.AutoScalingClient({...once, ...fields}).send(new auto.DescribeTagsCommand({}));
		await refused(wrong({credentials: {...credentials, secretAccessKey: "wrong"}}), "SignatureDoesNotMatch", 403);
		await refused(wrong({credentials: {...credentials, accessKeyId: "AKIDUNKNOWN"}}), "InvalidClientTokenId", 403);
		await refused(wrong({region: "us-east-1"}), "SignatureDoesNotMatch", 403, /valid region/);
		const skewed = new auto.AutoScalingClient({...once, systemClockOffset: -3600e3});
		await refused(skewed.send(new auto.DescribeTagsCommand({})), "SignatureDoesNotMatch", 403, /Signature expired/);
		const other = new eks.EKSClient({...once, credentials: {...credentials, secretAccessKey: "wrong"}});
		await refused(other.send(new eks.ListNodegroupsCommand({clusterName: "prod"})), "InvalidSignatureException", 403);
		const bare = await fetch(process.env.AWS_ENDPOINT_URL + "/clusters/prod").catch(e => e);
		assert.equal(bare.status, 403, String(bare.cause ?? bare));
		assert.match(bare.headers.get("x-amzn-errortype"), /^MissingAuthenticationTokenException:/);
	},

	async "credentials of every kind"() {
		const {writeFileSync} = await import("node:fs");
		const providers = require("@aws-sdk/credential-providers");
		const token = process.env.FOLDER + "/token";
		writeFileSync(token, "projected.web-identity.token");
		const role = {roleArn: "arn:aws:iam::111122223333:role/preheat", roleSessionName: "preheat", webIdentityTokenFile: token};
		const who = async credentials =>
			(await new sts.STSClient({...once, credentials}).send(new sts.GetCallerIdentityCommand({}))).Arn;
		assert.equal((await ask("GetCallerIdentity")).Arn, "arn:aws:iam::111122223333:user/tester");
		assert.match(await who(providers.fromTokenFile(role)), /assumed-role\/preheat\/preheat$/);
		await refused(who(providers.fromTokenFile({...role, roleArn: "arn:aws:iam::111122223333:role/other"})), "AccessDenied", 403);
		writeFileSync(token, "projected.web-identity.token.expired");
		await refused(who(providers.fromTokenFile(role)), "ExpiredTokenException", 400);
		writeFileSync(token, "nonsense");
		await refused(who(providers.fromTokenFile(role)), "InvalidIdentityTokenException", 400);
		writeFileSync(token, "projected.pod-identity.token");
		process.env.AWS_CONTAINER_CREDENTIALS_FULL_URI = process.env.PLAIN + "/v1/credentials";
		process.env.AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE = token;
		assert.match(await who(providers.fromHttp()), /assumed-role\/preheat/);
		process.env.AWS_EC2_METADATA_SERVICE_ENDPOINT = process.env.PLAIN;
		assert.match(await who(providers.fromInstanceMetadata()), /assumed-role\/preheat\/i-/);
		const taken = await providers.fromInstanceMetadata()();
		await refused(who({...taken, sessionToken: "other"}), "InvalidClientTokenId", 403);
	},
};

for (const [name, test] of Object.entries(tests)) {
	try {
		await test();
		console.log("ok: " + name);
	} catch (e) {
		console.log("FAILED: " + name + "\n" + e.stack);
		process.exitCode = 1;
		break;
	}
}
