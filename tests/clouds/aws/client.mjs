// The SDK as a client of the rig's account, and what a test does with it.
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";

export const require = createRequire(process.env.MODULES + "/");
export const eks = require("@aws-sdk/client-eks");
export const auto = require("@aws-sdk/client-auto-scaling");
export const sts = require("@aws-sdk/client-sts");
const config = JSON.parse(readFileSync(process.env.CONFIG));
export const credentials = {accessKeyId: config.aws.keys[0].id, secretAccessKey: config.aws.keys[0].secret};
export const once = {region: "eu-west-1", credentials, maxAttempts: 1};
export const clusters = new eks.EKSClient(once), groups = new auto.AutoScalingClient(once), tokens = new sts.STSClient(once);

// ask("DescribeNodegroup", {...}) with the client whose SDK has that command.
export function ask(action, input = {}) {
	for (const [sdk, client] of [[eks, clusters], [auto, groups], [sts, tokens]])
		if (sdk[action + "Command"])
			return client.send(new sdk[action + "Command"](input));
	throw new Error("no SDK has " + action);
}

export async function refused(promise, name, status, pattern = /./) {
	const e = await promise.then(() => assert.fail("was not refused"), e => e);
	assert.equal(e.name, name, e.message);
	assert.equal(e.$metadata?.httpStatusCode, status, e.message);
	assert.match(e.message, pattern);
	return e;
}

export async function fault(fields) {
	const answer = await fetch(process.env.PLAIN + "/v1/faults", {method: "POST", body: JSON.stringify(fields)});
	assert.equal(answer.status, 200, await answer.clone().text());
	return (await answer.json()).id;
}
export const heal = () => fetch(process.env.PLAIN + "/v1/faults", {method: "DELETE"});

// until repeats a question, until it says yes; simulated time goes on meanwhile.
export async function until(what, question) {
	for (let i = 0; i < 600; i++) {
		const answer = await question();
		if (answer)
			return answer;
		await new Promise(resolve => setTimeout(resolve, 50));
	}
	assert.fail("never: " + what);
}
