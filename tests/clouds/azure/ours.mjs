// Our own provider against the rig's tenant, call by call, with every kind of credential; each has a pool to itself.
//   ours.mjs DRIVE        build/dev/drive
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createPrivateKey, createSign } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

const { AZURE, PLAIN, FOLDER, CA } = process.env;
const [program] = process.argv.slice(2);
const tenant = "11111111-2222-4333-8444-555555555555";

const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
function projected() {
	const now = Math.floor(Date.now() / 1000);
	const text = `${part({ alg: "RS256", typ: "JWT" })}.${part({ iss: "https://issuer.example/", nbf: now, exp: now + 3600, aud: ["api://AzureADTokenExchange"],
		sub: "system:serviceaccount:preheat:preheat" })}`;
	return `${text}.${createSign("RSA-SHA256").update(text).sign(createPrivateKey(readFileSync(`${FOLDER}/issuer.key`))).toString("base64url")}`;
}
writeFileSync(`${FOLDER}/token`, projected());

const identities = {
	secret: { AZURE_CLIENT_ID: "app-secret", AZURE_CLIENT_SECRET: "s3cret~value+/=" },
	certificate: { AZURE_CLIENT_ID: "app-certificate", AZURE_CLIENT_CERTIFICATE_PATH: `${FOLDER}/client.pem` },
	federated: { AZURE_CLIENT_ID: "app-federated", AZURE_FEDERATED_TOKEN_FILE: `${FOLDER}/token` },
	managed: { AZURE_TENANT_ID: undefined, AZURE_POD_IDENTITY_AUTHORITY_HOST: PLAIN, AZURE_CLIENT_ID: "app-managed" },
	reader: { AZURE_CLIENT_ID: "app-reader", AZURE_CLIENT_SECRET: "reader" },
	wrong: { AZURE_CLIENT_ID: "app-secret", AZURE_CLIENT_SECRET: "wrong" },
};

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
async function fault(body) {
	const answer = await fetch(`${PLAIN}/v1/faults`, { method: "POST", body: JSON.stringify(body) });
	assert.equal(answer.status, 200, await answer.clone().text());
	return (await answer.json()).id;
}
const clear = (id) => fetch(`${PLAIN}/v1/faults/${id}`, { method: "DELETE" });
const journal = async () => (await (await fetch(`${PLAIN}/v1/log`)).json());
const cloud = async (group) => (await fetch(`${PLAIN}/v1/groups/${group}`)).json();

// A pool driven as somebody: the environment is the driver's, a line is a call.
class Driver {
	constructor(who, pool, settings = {}) {
		const env = { PATH: process.env.PATH, ASAN_OPTIONS: process.env.ASAN_OPTIONS, AZURE_TENANT_ID: tenant, AZURE_AUTHORITY_HOST: AZURE,
			AZURE_RESOURCE_MANAGER_ENDPOINT: AZURE, SSL_CERT_FILE: CA, ...identities[who] };
		Object.keys(env).forEach((key) => env[key] === undefined && delete env[key]);
		this.pool = pool;
		this.settings = { subscription: "00000000-0000-0000-0000-000000000000", resourceGroup: "rg", cluster: "prod", pool, ...settings };
		this.child = spawn(program, { env, stdio: ["pipe", "pipe", "inherit"] });
		this.lines = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]();
		this.serial = 0;
	}
	async call(verb, more = {}) {
		this.child.stdin.write(`${JSON.stringify({ provider: "aks", verb, group: this.pool, settings: this.settings, timeout_ms: 30000,
			token: `${this.pool}-${++this.serial}`, ...more })}\n`);
		const { value, done } = await this.lines.next();
		assert.ok(!done, `${this.pool}: the driver ended at ${verb}`);
		const outcome = JSON.parse(value);
		if (outcome.operation) this.pending = outcome.operation;
		return outcome;
	}
	async ok(verb, more) {
		const outcome = await this.call(verb, more);
		assert.equal(outcome.kind, "ok", `${this.pool}: ${verb}: ${JSON.stringify(outcome)}`);
		return outcome;
	}
	async refused(kind, text, verb, more) {
		const outcome = await this.call(verb, more);
		assert.equal(outcome.kind, kind, JSON.stringify(outcome));
		assert.ok(outcome.message.includes(text), outcome.message);
		return outcome;
	}
	// The description once nothing is under way any more.
	async settled(more = {}) {
		for (let i = 0; i < 600; i++) {
			const { description } = await this.ok("describe", { pending: this.pending, ...more });
			if (!description.is_busy) return description;
			await pause(100);
		}
		return assert.fail(`${this.pool} never settles`);
	}
	ids = async () => (await this.settled()).machines.map((m) => m.id);
	async end() {
		this.child.stdin.end();
		const code = await new Promise((done) => this.child.on("exit", done));
		assert.equal(code, 0, `${this.pool}: the driver's exit code`);
	}
}

// What every pool bears, whatever its kind.
async function growAndRemove(d, before) {
	const { identity, permissions } = await d.ok("check");
	assert.ok(identity.length > 0);
	assert.deepEqual(permissions.filter((p) => p.state !== "granted"), []);
	assert.equal((await d.settled()).desired, before);
	const slow = await fault({ group: d.pool, fault: "slow-start", value: 6 }); // it is still going on when we look
	const grown = await d.ok("grow", { desired: before + 2 });
	assert.ok(grown.operation.startsWith("https://"), grown.operation);
	assert.equal((await d.ok("describe", { pending: grown.operation })).description.is_busy, true);
	await d.refused("conflict", "", "grow", { desired: before + 3 });
	await clear(slow);
	const up = await d.settled();
	assert.equal(up.desired, before + 2);
	assert.equal(up.machines.length, before + 2);
	const known = (await cloud(d.pool)).machines;
	for (const machine of up.machines) {
		assert.equal(machine.provider_id, known.find((k) => k.id === machine.id).provider_id);
	}
	const victim = up.machines[1].id;
	await d.ok("remove", { ids: [victim] });
	const left = await d.settled();
	assert.equal(left.desired, before + 1);
	assert.ok(!left.machines.some((m) => m.id === victim));
	await d.ok("remove", { ids: [victim] }); // gone already
	assert.equal((await d.settled()).desired, before + 1);
}

const tests = {
	async secret() { // a pool with what nobody knows yet, in zones
		const d = new Driver("secret", "gpu1");
		await growAndRemove(d, 2);
		for (const [body, kind, zone] of [ // AKS chooses the zone: a zone that is out is the whole pool for a while
			[{ fault: "stock-out", zone: "1" }, "stockout", ""], [{ fault: "stock-out", value: "SkuNotAvailable" }, "stockout", ""],
			[{ fault: "stock-out", value: "OverconstrainedAllocationRequest" }, "stockout", ""], [{ fault: "quota" }, "quota", ""],
		]) {
			const id = await fault({ group: "gpu1", ...body });
			const real = (await cloud("gpu1")).machines.length;
			await d.ok("grow", { desired: real + 4 });
			const { failures } = await d.settled();
			const failure = failures.at(-1);
			assert.equal(failure?.kind, kind, JSON.stringify(failures));
			assert.equal(failure.zone, zone, failure.message);
			assert.ok(failure.back_off > 0);
			await clear(id);
			const there = (await cloud("gpu1")).machines.length;
			await d.ok("cancel", { desired: there });
			assert.equal((await d.settled()).desired, there);
			assert.equal((await cloud("gpu1")).machines.length, there);
		}
		await d.end();
	},

	async certificate() { // single machines, not a scale set
		const d = new Driver("certificate", "single2");
		await growAndRemove(d, 1);
		const stuck = await fault({ group: "single2", fault: "stuck-operation" });
		await d.ok("grow", { desired: 6 });
		await pause(1500);
		assert.equal((await d.ok("describe", { pending: d.pending })).description.is_busy, true);
		await d.ok("cancel", { desired: 2 }); // aborts
		await clear(stuck);
		const real = (await cloud("single2")).machines.length;
		assert.ok(real >= 2 && real < 6);
		assert.equal((await d.settled()).desired, real);
		assert.equal((await cloud("single2")).machines.length, real); // what came was not killed
		await d.end();
	},

	async federated() { // stopped machines stand by
		const d = new Driver("federated", "cold1");
		await growAndRemove(d, 3);
		const all = await d.ids();
		await d.ok("stop", { ids: [all.at(-1)] });
		await d.settled();
		const stopped = (await cloud("cold1")).machines.filter((m) => m.state === "stopped").map((m) => m.id);
		assert.equal(stopped.length, 1);
		const known = { unready: stopped };
		const standing = await d.settled(known);
		assert.equal(standing.standby, 1);
		assert.equal(standing.desired, all.length - 1);
		assert.deepEqual(standing.machines.filter((m) => m.state === "stopped").map((m) => m.id), stopped);
		await d.ok("grow", { desired: all.length, ...known }); // wakes it
		assert.deepEqual((await d.settled()).machines.map((m) => m.id), all);
		await d.ok("stop", { ids: [all.at(-1)] });
		await d.settled();
		await d.ok("standby", { desired: 0, ...known }); // and deletes it
		const left = await d.settled();
		assert.equal(left.standby, 0);
		assert.equal(left.desired, all.length - 1);
		assert.equal(left.machines.length, all.length - 1);
		await d.end();
	},

	async managed() { // spot
		const gone = await fault({ fault: "identity-gone", count: 1 });
		const d = new Driver("managed", "spot1");
		await growAndRemove(d, 2);
		await clear(gone);
		await fault({ group: "spot1", fault: "spot-loss", value: 1 });
		for (let i = 0; i < 300 && (await cloud("spot1")).machines.length > 2; i++) await pause(100);
		assert.equal((await d.settled()).desired, 2);
		await d.end();
	},

	async troubles() {
		const d = new Driver("secret", "whole1");
		const asked = [
			[{ fault: "throttle", count: 1 }, "throttled", ""], [{ fault: "auth", count: 1 }, "auth", ""],
			[{ fault: "conflict", count: 1 }, "conflict", ""], [{ fault: "etag-mismatch", count: 1 }, "conflict", ""],
			[{ fault: "etag-mismatch", value: 409, count: 1 }, "conflict", ""], [{ fault: "quota", value: "sync", count: 1 }, "quota", ""],
			[{ fault: "server-error", count: 1 }, "unavailable", ""], [{ fault: "server-error", value: "html", count: 1 }, "unavailable", ""],
		];
		for (const [body, kind, text] of asked) {
			const id = await fault({ group: "whole1", ...body });
			const outcome = await d.refused(kind, text, "grow", { desired: 2 });
			if (kind === "throttled") assert.ok(outcome.retry_after > 0);
			await clear(id);
			assert.equal((await cloud("whole1")).machines.length, 1, JSON.stringify(body));
		}
		await fault({ group: "whole1", fault: "auth", value: "expired", count: 1 }); // a new token, and again
		await fault({ group: "whole1", fault: "lost-answer", count: 1 });
		assert.notEqual((await d.call("grow", { desired: 3 })).kind, "ok");
		assert.equal((await d.settled()).desired, 3);
		await d.ok("grow", { desired: 3 }); // nothing is bought twice
		assert.equal((await d.settled()).machines.length, 3);
		await fault({ group: "whole1", fault: "operation-expired" });
		await d.ok("grow", { desired: 4 });
		assert.equal((await d.settled()).desired, 4);
		await fault({ group: "whole1", fault: "partial-delete", value: 1, count: 1 });
		const ids = await d.ids();
		await d.ok("remove", { ids: ids.slice(0, 2) });
		assert.equal((await d.settled()).desired, 3);
		const slow = await fault({ group: "whole1", fault: "slow-start", value: 6 });
		const begun = await d.ok("grow", { desired: 4 });
		const successor = new Driver("certificate", "whole1"); // a restart: only the operation's name is left
		successor.pending = begun.operation;
		assert.equal((await successor.ok("describe", { pending: begun.operation })).description.is_busy, true);
		await clear(slow);
		assert.equal((await successor.settled()).desired, 4);
		await successor.end();
		const foreign = await fault({ group: "whole1", fault: "foreign-operation-url", count: 1 });
		assert.ok(!(await d.ok("grow", { desired: 5 })).operation.includes("evil.example"));
		assert.equal((await d.settled()).desired, 5);
		await clear(foreign);
		await fault({ group: "whole1", fault: "foreign-operation-url", count: 1 });
		const removed = await d.ok("remove", { ids: (await d.ids()).slice(0, 1) }); // the other address is AKS's own
		assert.ok(removed.operation.includes("/operationresults/"), removed.operation);
		assert.equal((await d.settled()).desired, 4);
		await d.end();
	},

	async notOurs() {
		const auto = new Driver("secret", "auto1");
		await auto.refused("invalid", "enableAutoScaling", "describe");
		await auto.end();
		const reader = new Driver("reader", "loose1");
		const { permissions } = await reader.ok("check");
		assert.ok(permissions.some((p) => p.action.endsWith("agentPools/write") && p.state === "denied"), JSON.stringify(permissions));
		assert.ok(permissions.some((p) => p.action.endsWith("machines/read") && p.state === "denied"), JSON.stringify(permissions));
		await reader.refused("auth", "", "grow", { desired: 2 });
		await reader.end();
		const wrong = new Driver("wrong", "loose1");
		const outcome = await wrong.refused("auth", "AADSTS7000215", "describe");
		assert.ok(!JSON.stringify(outcome).includes("wrong\""), "the secret is told");
		await wrong.end();
		const nobody = new Driver("secret", "nobody");
		await nobody.refused("not-found", "", "grow", { desired: 2 });
		await nobody.end();
		const system = new Driver("secret", "system1");
		await system.ok("describe");
		await system.end();
	},
};

const only = process.argv.slice(3);
const results = await Promise.all(Object.entries(tests).filter(([name]) => only.length === 0 || only.includes(name)).map(async ([name, test]) => {
	try {
		await test();
		console.log(`ok ${name}`);
		return true;
	} catch (e) {
		console.log(`FAILED ${name}: ${e.stack}`);
		return false;
	}
}));
const { calls } = await journal();
const odd = calls.filter((c) => c.effect?.startsWith("violation") || (c.method === "PUT" && c.effect === "without If-Match"));
assert.deepEqual(odd, []);
assert.ok(!readFileSync(process.env.WIRE, "utf8").includes("s3cret"), "a secret is in the recording");
process.exit(results.every(Boolean) ? 0 : 1);
