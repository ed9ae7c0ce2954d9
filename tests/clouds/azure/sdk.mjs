// Azure's own SDK as a client of the rig's tenant: long-running operations to their end, errors by name, every credential.
// Pools are independent, so each test has its own and they run side by side.
import assert from "node:assert/strict";
import { createPrivateKey, createHash, createSign, X509Certificate, randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

const { AZURE, PLAIN, FOLDER, MODULES } = process.env;
const require = createRequire(`${MODULES}/here.js`);
const { ContainerServiceClient } = require("@azure/arm-containerservice");
const identity = require("@azure/identity");

const tenant = "11111111-2222-4333-8444-555555555555";
const subscription = "00000000-0000-0000-0000-000000000000";
const at = ["rg", "prod"];
const options = { authorityHost: AZURE, disableInstanceDiscovery: true };
const secret = new identity.ClientSecretCredential(tenant, "app-secret", "s3cret~value+/=", options);
const client = (credential, more = {}) => new ContainerServiceClient(credential, subscription,
	{ endpoint: AZURE, retryOptions: { maxRetries: 0 }, ...more });
const sdk = client(secret);
const quick = { updateIntervalInMs: 100 };

async function fault(body) {
	const answer = await fetch(`${PLAIN}/v1/faults`, { method: "POST", body: JSON.stringify(body) });
	assert.equal(answer.status, 200, await answer.clone().text());
	return (await answer.json()).id;
}
const clear = (id) => fetch(`${PLAIN}/v1/faults/${id}`, { method: "DELETE" });
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const journal = async (pool) => (await (await fetch(`${PLAIN}/v1/log`)).json()).calls.filter((c) => c.path.includes(`/agentPools/${pool}`));
const get = (pool) => sdk.agentPools.get(...at, pool);
const put = (pool, body, more = {}) => sdk.agentPools.createOrUpdate(...at, pool, body, { ...quick, ...more });
const resize = async (pool, count, more = {}) => put(pool, { ...await get(pool), count }, more);
async function names(pool) {
	const list = [];
	for await (const machine of sdk.machines.list(...at, pool)) list.push(machine.name);
	return list;
}
async function refused(promise, status, code, text = "") {
	const error = await Promise.resolve(promise).then(() => assert.fail("was not refused"), (e) => e);
	assert.equal(error.statusCode ?? error.status, status, error.stack);
	assert.equal(error.code, code, error.stack);
	assert.ok(error.message.includes(text), error.message);
}
async function failed(promise, ...texts) {
	const error = await Promise.resolve(promise).then(() => assert.fail("did not fail"), (e) => e);
	for (const text of texts) assert.ok(error.message.includes(text), `${error.message}, wanted ${text}`);
}

const key = (file) => createPrivateKey(readFileSync(`${FOLDER}/${file}`));
const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
function jwt(header, claims, file) {
	const text = `${part({ alg: "RS256", typ: "JWT", ...header })}.${part(claims)}`;
	return `${text}.${createSign("RSA-SHA256").update(text).sign(key(file)).toString("base64url")}`;
}
const seconds = () => Math.floor(Date.now() / 1000);
const projected = (more = {}, file = "issuer.key") => jwt({}, { iss: "https://issuer.example/", iat: seconds(), nbf: seconds(),
	sub: "system:serviceaccount:preheat:preheat", aud: ["api://AzureADTokenExchange"], exp: seconds() + 3600, ...more }, file);
async function token(form) {
	const answer = await fetch(`${AZURE}/${tenant}/oauth2/v2.0/token`, { method: "POST", body: new URLSearchParams(
		{ grant_type: "client_credentials", scope: "https://management.azure.com/.default", ...form }) });
	return { status: answer.status, ...await answer.json() };
}
const asserted = (client_id, client_assertion) => token({ client_id, client_assertion,
	client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" });

const tests = {
	async credentials() {
		writeFileSync(`${FOLDER}/token`, projected());
		process.env.AZURE_POD_IDENTITY_AUTHORITY_HOST = PLAIN;
		const all = {
			secret,
			certificate: new identity.ClientCertificateCredential(tenant, "app-certificate", `${FOLDER}/client.pem`, options),
			federated: new identity.WorkloadIdentityCredential({ ...options, tenantId: tenant, clientId: "app-federated",
				tokenFilePath: `${FOLDER}/token` }),
			managed: new identity.ManagedIdentityCredential({ clientId: "app-managed" }),
		};
		for (const [name, credential] of Object.entries(all)) {
			const pools = [];
			for await (const pool of client(credential).agentPools.list(...at)) pools.push(pool.name);
			assert.deepEqual(pools.slice(0, 2), ["gpu1", "loose1"], name);
		}
	},

	async tokensRefused() {
		const base = `${AZURE}/${tenant}/oauth2/v2.0/token`;
		const certificate = new X509Certificate(readFileSync(`${FOLDER}/client.crt`));
		const x5t = createHash("sha1").update(certificate.raw).digest("base64url");
		const own = (more = {}, head = { x5t }, file = "client.key") => jwt(head, { iss: "app-certificate", sub: "app-certificate",
			aud: base, jti: randomUUID(), nbf: seconds(), exp: seconds() + 600, ...more }, file);
		const old = { nbf: seconds() - 7200, exp: seconds() - 3600 };
		assert.equal((await asserted("app-certificate", own())).status, 200);
		const cases = [
			[token({ client_id: "app-secret", client_secret: "wrong" }), 401, "invalid_client", "AADSTS7000215"],
			[token({ client_id: "app-secret" }), 401, "invalid_client", "AADSTS7000218"],
			[token({ client_id: "nobody", client_secret: "wrong" }), 400, "unauthorized_client", "AADSTS700016"],
			[token({ client_id: "app-secret", grant_type: "password" }), 400, "unsupported_grant_type", "AADSTS70003"],
			[token({ client_id: "app-secret", scope: "https://other.example/.default" }), 400, "invalid_resource", "AADSTS500011"],
			[token({ client_id: "app-secret", scope: "https://management.azure.com" }), 400, "invalid_scope", "AADSTS1002012"],
			[asserted("app-certificate", own({}, { x5t: "AAAA" })), 401, "invalid_client", "AADSTS700027"],
			[asserted("app-certificate", own({}, { x5t }, "issuer.key")), 401, "invalid_client", "AADSTS700027"],
			[asserted("app-certificate", own({ aud: "https://elsewhere.example" })), 401, "invalid_client", "AADSTS700023"],
			[asserted("app-certificate", own(old)), 401, "invalid_client", "AADSTS700024"],
			[asserted("app-certificate", own({ sub: "other" })), 401, "invalid_client", "AADSTS700021"],
			[asserted("app-federated", projected(old)), 401, "invalid_client", "AADSTS700024"],
			[asserted("app-federated", projected({ sub: "system:serviceaccount:other:other" })), 401, "invalid_client", "AADSTS700213"],
			[asserted("app-federated", projected({ iss: "https://other.example/" })), 401, "invalid_client", "AADSTS700211"],
			[asserted("app-federated", projected({ aud: ["other"] })), 401, "invalid_client", "AADSTS700212"],
			[asserted("app-federated", projected({}, "client.key")), 401, "invalid_client", "AADSTS5000131"],
			[asserted("app-federated", "no.token"), 401, "invalid_client", "AADSTS50027"],
		];
		for (const [asked, status, error, number] of cases) {
			const answer = await asked;
			assert.equal(answer.status, status, number);
			assert.equal(answer.error, error, number);
			assert.ok(answer.error_description.startsWith(`${number}: `), answer.error_description);
		}
		await failed(new identity.ClientSecretCredential(tenant, "app-secret", "wrong", options).getToken("https://management.azure.com/.default"),
			"AADSTS7000215");
		await failed(new identity.ClientSecretCredential("99999999-0000-4000-8000-000000000000", "app-secret", "s", options)
			.getToken("https://management.azure.com/.default"), "AADSTS90002");
	},

	async metadataService() {
		const ask = async (query, headers = { Metadata: "true" }) => {
			const answer = await fetch(`${PLAIN}/metadata/identity/oauth2/token?${query}`, { headers });
			return { status: answer.status, ...await answer.json() };
		};
		const good = "api-version=2018-02-01&resource=https%3A%2F%2Fmanagement.azure.com%2F";
		const given = await ask(good);
		assert.equal(given.status, 200);
		assert.equal(typeof given.expires_in, "string");
		assert.equal((await ask(good, {})).status, 400);
		assert.equal((await ask("api-version=2017-01-01&resource=https://management.azure.com/")).status, 400);
		assert.equal((await ask(`${good}&client_id=nobody`)).error_description, "Identity not found");
		process.env.AZURE_POD_IDENTITY_AUTHORITY_HOST = PLAIN;
		for (const name of ["identity-gone", "identity-absent", "identity-throttled"]) {
			const id = await fault({ fault: name, count: 1 });
			const credential = new identity.ManagedIdentityCredential({ clientId: "app-managed" });
			assert.ok((await credential.getToken("https://management.azure.com/.default")).token, name);
			await clear(id);
		}
	},

	async growsAndShrinks() {
		const before = await get("loose1");
		assert.equal(before.provisioningState, "Succeeded");
		const slow = await fault({ group: "loose1", fault: "slow-start", value: 6 }); // it is still going on when we look
		const poller = put("loose1", { ...before, count: 4 }, { ifMatch: before.eTag });
		await poller.submitted();
		const meanwhile = await get("loose1");
		assert.equal(meanwhile.provisioningState, "Scaling");
		await refused(resize("loose1", 6), 409, "OperationNotAllowed", "Another operation (loose1 - Updating) is in progress");
		await clear(slow);
		const after = await poller;
		assert.equal(after.count, 4);
		assert.equal(after.provisioningState, "Succeeded");
		assert.notEqual(after.eTag, before.eTag);
		const machines = await names("loose1"); // in two pages
		assert.equal(machines.length, 4);
		assert.match(machines[3], /^aks-loose1-\d{8}-vmss000003$/);
		const one = await sdk.machines.get(...at, "loose1", machines[3]);
		assert.match(one.properties.resourceId, /\/resourceGroups\/MC_rg_prod_westeurope\/.*-vmss\/virtualMachines\/3$/);
		await refused(put("loose1", { ...before, count: 5 }, { ifMatch: before.eTag }).submitted(), 412, "PreconditionFailed");
		await sdk.agentPools.deleteMachines(...at, "loose1", { machineNames: [machines[1], machines[2]] }, quick);
		assert.deepEqual(await names("loose1"), [machines[0], machines[3]]);
		assert.equal((await get("loose1")).count, 2);
		await refused(sdk.agentPools.deleteMachines(...at, "loose1", { machineNames: ["nobody"] }, quick).submitted(), 400,
			"InvalidParameter", "Cannot find any valid machines");
		await refused(sdk.agentPools.abortLatestOperation(...at, "loose1", quick).submitted(), 409, "OperationNotAllowed");
		await refused(sdk.machines.get(...at, "loose1", "nobody"), 404, "NotFound");
		await refused(sdk.agentPools.get(...at, "nobody"), 404, "NotFound");
		await refused(sdk.agentPools.get("nobody", "prod", "loose1"), 404, "ResourceGroupNotFound");
		await refused(sdk.agentPools.get("rg", "nobody", "loose1"), 404, "ResourceNotFound");
	},

	async whatFails() {
		const stockOut = await fault({ group: "loose2", fault: "stock-out", zone: "2" });
		await failed(resize("loose2", 4), "ReconcileVMSSAgentPoolFailed");
		const pool = await get("loose2");
		assert.equal(pool.provisioningState, "Failed");
		assert.equal(pool.count, 4); // as asked for, though
		const real = (await names("loose2")).length;
		assert.ok(real < 4);
		assert.match(JSON.stringify(pool.status.provisioningError), /ZonalAllocationFailed/);
		await clear(stockOut);
		await put("loose2", { ...pool, count: real });
		assert.equal((await get("loose2")).provisioningState, "Succeeded");
		for (const [body, text] of [
			[{ fault: "stock-out", value: "SkuNotAvailable" }, "SkuNotAvailable"], [{ fault: "quota" }, "exceeding approved"],
			[{ fault: "stock-out", value: "OverconstrainedAllocationRequest" }, "OverconstrainedAllocationRequest"],
		]) {
			const id = await fault({ group: "loose2", ...body });
			await failed(resize("loose2", real + 1), "ReconcileVMSSAgentPoolFailed");
			assert.ok(JSON.stringify((await get("loose2")).status).includes(text), text);
			await clear(id);
			await resize("loose2", real);
		}
		await fault({ group: "loose2", fault: "quota", value: "sync", count: 1 });
		await refused(resize("loose2", real + 1), 400, "ErrCode_InsufficientVCPUQuota");
		await fault({ group: "loose2", fault: "stock-out", value: "sync", count: 1 });
		await refused(resize("loose2", real + 1), 400, "VMSizeNotSupported");
		await resize("loose2", real + 3);
		const victims = (await names("loose2")).slice(0, 2);
		await fault({ group: "loose2", fault: "partial-delete", value: 1, count: 1 });
		await failed(sdk.agentPools.deleteMachines(...at, "loose2", { machineNames: victims }, quick).pollUntilDone(), "Failed to delete 1 machines");
		assert.ok((await names("loose2")).includes(victims[0]));
		assert.ok(!(await names("loose2")).includes(victims[1]));
		assert.equal((await get("loose2")).count, real + 2);
	},

	async whoComesLater() {
		const stuck = await fault({ group: "loose3", fault: "stuck-operation" });
		const never = put("loose3", { ...await get("loose3"), count: 5 });
		const ended = never.pollUntilDone().then(() => "done", (e) => e.message);
		await never.submitted();
		await pause(1500);
		assert.equal((await get("loose3")).provisioningState, "Scaling");
		await refused(resize("loose3", 1), 409, "OperationNotAllowed");
		await sdk.agentPools.abortLatestOperation(...at, "loose3", quick);
		assert.equal((await get("loose3")).provisioningState, "Canceled");
		assert.match(await ended, /cancel/i);
		await clear(stuck);
		await resize("loose3", 1);
		const slow = await fault({ group: "loose3", fault: "slow-start", value: 6 });
		for (const [value, text] of [[undefined, /cancel/i], ["etag", /preempted by Updating/]]) {
			const first = put("loose3", { ...await get("loose3"), count: 3 });
			const over = first.pollUntilDone().then(() => "done", (e) => e.message);
			await first.submitted();
			await fault({ group: "loose3", fault: "preempted", count: 1, value });
			await resize("loose3", 2);
			assert.match(await over, text);
			await resize("loose3", 1);
		}
		await clear(slow);
		await fault({ group: "loose3", fault: "conflict", count: 1 });
		await refused(resize("loose3", 2), 409, "OperationNotAllowed", "PutExtensionAddonHandler");
		await fault({ group: "loose3", fault: "etag-mismatch", count: 1, value: 409 });
		await refused(resize("loose3", 2), 409, "EtagMismatch");
		const known = await get("loose3");
		await fault({ group: "loose3", fault: "etag-mismatch", count: 1 });
		await refused(put("loose3", { ...known, count: 2 }, { ifMatch: known.eTag }), 412, "PreconditionFailed");
		await fault({ group: "loose3", fault: "operation-expired", count: 1 });
		await refused(resize("loose3", 2), 404, "OperationNotFound");
		await fault({ group: "loose3", fault: "foreign-operation-url", count: 1 });
		await failed(resize("loose3", 3));
	},

	async poolsOfOtherKinds() {
		await refused(put("system1", { ...await get("system1"), mode: undefined, count: 2 }), 400, "OperationNotAllowed", "system agent pool");
		await refused(resize("system1", 0), 400, "InvalidParameter");
		await refused(sdk.agentPools.deleteMachines(...at, "system1", { machineNames: await names("system1") }, quick), 400, "OperationNotAllowed");
		await refused(resize("auto1", 2), 400, "InvalidParameter", "Cannot manually scale AgentPool 'auto1'");
		await refused(put("loose1", { ...await get("loose1"), vmSize: "Standard_B1s" }), 400, "PropertyChangeNotAllowed");
		const single = await get("single1");
		single.virtualMachinesProfile.scale.manual[0].count = 3;
		await put("single1", single);
		assert.deepEqual((await get("single1")).virtualMachineNodesStatus, [{ size: single.vmSize, count: 3 }]);
		assert.match((await names("single1"))[2], /^aks-single1-\d{8}-vms2$/);
		const all = await names("cold1");
		await resize("cold1", 1); // deallocates
		assert.deepEqual(await names("cold1"), all);
		assert.equal((await get("cold1")).count, 1);
		await resize("cold1", 4); // the two start again, one is new
		assert.deepEqual((await names("cold1")).slice(0, 3), all);
		assert.equal((await names("cold1")).length, 4);
		const spot = await get("spot1");
		await fault({ group: "spot1", fault: "spot-loss", value: 1 });
		for (let i = 0; i < 300 && (await names("spot1")).length > 1; i++) await pause(100);
		const shrunk = await get("spot1");
		assert.equal(shrunk.count, 1);
		assert.notEqual(shrunk.eTag, spot.eTag);
	},

	// The SDK sends what it knows only: a pool with more must not lose it.
	async nothingIsLost() {
		await refused(resize("gpu1", 3), 400, "InvalidParameter", "drops futureProfile");
		assert.ok((await journal("gpu1")).some((c) => c.effect?.startsWith("violation: the PUT drops futureProfile")));
		const { token: bearer } = await secret.getToken("https://management.azure.com/.default");
		const url = `${AZURE}/subscriptions/${subscription}/resourceGroups/rg/providers/Microsoft.ContainerService/managedClusters/prod` +
			"/agentPools/gpu1?api-version=2026-02-01";
		const headers = { Authorization: `Bearer ${bearer}`, "Content-Type": "application/json" };
		const text = await (await fetch(url, { headers })).text();
		assert.ok(text.includes("9007199254740993") && text.includes("2.50"), text);
		const rounded = JSON.stringify(JSON.parse(text)).replace('"count":2', '"count":3'); // 9007199254740992
		assert.equal((await fetch(url, { headers, method: "PUT", body: rounded })).status, 400);
		const whole = await fetch(url, { headers, method: "PUT", body: text.replace('"count":2', '"count":3') });
		assert.equal(whole.status, 201);
		for (const [body, status, says] of [
			["{", 400, "InvalidRequestContent"], ['{"properties":{"count":"3"}}', 400, "UnmarshalError"],
			['{"properties":{"count":-1}}', 400, "InvalidParameter"], ["{}", 400, "InvalidParameter"],
		]) {
			const answer = await fetch(url, { headers, method: "PUT", body });
			assert.equal(answer.status, status, body);
			assert.ok((await answer.text()).includes(says), body);
		}
		assert.equal((await fetch(url.split("?")[0], { headers })).status, 400);
		assert.equal((await fetch(url)).status, 401);
		assert.equal((await fetch(url, { headers: { Authorization: `Bearer ${bearer.slice(0, -2)}xx` } })).status, 401);
	},

	async whoMayDoWhat() {
		const reader = client(new identity.ClientSecretCredential(tenant, "app-reader", "reader", options));
		assert.equal((await reader.agentPools.get(...at, "whole1")).name, "whole1");
		await failed(reader.machines.list(...at, "whole1").next(), "403");
		await refused(reader.agentPools.createOrUpdate(...at, "whole1", { count: 1 }).submitted(), 403, "AuthorizationFailed", "agentPools/write");
		await refused(reader.agentPools.abortLatestOperation(...at, "whole1").submitted(), 403, "AuthorizationFailed", "abort/action");
		await fault({ group: "whole1", fault: "auth", value: "expired", count: 1 });
		await refused(get("whole1"), 401, "ExpiredAuthenticationToken");
	},

	async troublesOnTheWay() {
		const patient = client(secret, { retryOptions: { maxRetries: 3 } });
		for (const body of [{ fault: "throttle", count: 1 }, { fault: "throttle", value: "arm", count: 1 }, { fault: "server-error", value: 503, count: 1 },
			{ fault: "server-error", value: "html", count: 1 }]) {
			await fault({ group: "loose4", ...body });
			assert.equal((await patient.agentPools.get(...at, "loose4")).name, "loose4");
		}
		await fault({ group: "loose4", fault: "throttle", count: 1 });
		await refused(get("loose4"), 429, "Throttled");
		await fault({ group: "loose4", fault: "lost-answer", count: 1 });
		await failed(resize("loose4", 3));
		for (let i = 0; i < 300 && (await get("loose4")).provisioningState !== "Succeeded"; i++) await pause(100);
		assert.equal((await names("loose4")).length, 3); // it was done all the same
	},
};

const only = process.argv.slice(2);
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
// The limit on PUTs is of the region, so it comes last.
if (only.length === 0) {
	let answer = 200;
	for (let i = 0; i < 40 && answer !== 429; i++) {
		const error = await put("auto1", { ...await get("auto1"), count: 1 }).submitted().then(() => null, (e) => e);
		answer = error?.statusCode ?? 200;
		if (answer === 429) assert.ok(Number(error.response.headers.get("retry-after")) >= 1);
	}
	assert.equal(answer, 429);
	console.log("ok the bucket of PUTs is empty some day");
}
process.exit(results.every(Boolean) ? 0 : 1);
