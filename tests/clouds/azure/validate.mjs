// Holds what passed the tenant's door against the vendor's OpenAPI.
//   validate.mjs WIRE OPENAPI          what the cloud accepted is valid, and so is what it answered
//   validate.mjs WIRE OPENAPI --ours   and all that was asked is valid: for requests of ours
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [wire, description, mode] = process.argv.slice(2);
const { OpenAPIBackend } = createRequire(`${process.env.MODULES}/here.js`)("openapi-backend");

// Calls that the trimmed description has not; each is documented elsewhere.
const beyond = [
	["GET", /\/managedClusters\/[^/]+$/i], // ManagedClusters_Get
	["GET", /\/providers\/Microsoft\.Authorization\/permissions$/i], // Permissions_ListForResource
	["GET", /\/operationresults\/[^/]+$/i], // Location of deleteMachines and abort
];
const definition = JSON.parse(readFileSync(description));
const api = new OpenAPIBackend({ definition, quick: true, strict: true, ajvOpts: { strict: false, logger: false } });
await api.init();

// An error is ARM's, or AKS's own.
function isError(body) {
	const error = body?.error ?? body;
	const deep = (e) => typeof e === "object" && e !== null && typeof e.message === "string" && (e.details ?? []).every(deep);
	return deep(error) && typeof error.code === "string";
}

// URLs that the cloud gave out: what their query says is its own affair, and they are to be used as they are.
const given = new Set();
function remember(line, answer) {
	for (const text of [line.response_headers?.["azure-asyncoperation"], line.response_headers?.location, answer?.nextLink]) {
		if (text) given.add(new URL(text).pathname + new URL(text).search);
	}
}

// What is wrong with a request and its answer, as texts.
function faults(line) {
	const url = new URL(line.url, "https://management.azure.com");
	const asked = [...url.searchParams].filter(([name]) => name === "api-version" || !given.has(line.url));
	const request = { method: line.method, path: url.pathname, query: Object.fromEntries(asked), headers: line.headers };
	const found = { request: [], answer: [] };
	if (line.body !== "") {
		try {
			request.body = JSON.parse(line.body);
		} catch (e) {
			found.request.push(`body: ${e.message}`);
		}
	}
	const operation = api.router.matchOperation(request);
	const answer = line.response === "" || !line.response_headers?.["content-type"]?.startsWith("application/json") ? undefined : JSON.parse(line.response);
	remember(line, answer);
	if (operation?.operationId === "AsyncOperation_Get" && !given.has(line.url)) found.request.push("a URL that the cloud did not give out");
	if (line.status >= 400 && answer !== undefined && !isError(answer)) found.answer.push(`no error: ${line.response}`);
	if (!operation) {
		if (!beyond.some(([method, path]) => method === line.method && path.test(url.pathname))) found.request.push("no such operation");
		return found;
	}
	for (const e of api.validateRequest(request, operation).errors ?? []) found.request.push(`${e.instancePath} ${e.message}`);
	if (line.body !== "" && !line.headers["content-type"]?.startsWith("application/json")) found.request.push("content-type");
	if (line.headers.authorization === undefined) found.request.push("no Authorization");
	if (line.status >= 200 && line.status < 300) {
		if (operation.responses[line.status] === undefined) found.answer.push(`status ${line.status}`);
		if (answer !== undefined) {
			for (const e of api.validateResponse(answer, operation, line.status).errors ?? []) found.answer.push(`${e.instancePath} ${e.message}`);
		}
		if (line.status === 201 || line.status === 202) {
			if (!line.response_headers["azure-asyncoperation"]) found.answer.push("no Azure-AsyncOperation");
		}
	}
	return found;
}

const lines = readFileSync(wire, "utf8").trim().split("\n").map((text) => JSON.parse(text)).filter((l) => l.cloud === "azure" &&
	l.url.startsWith("/subscriptions/"));
let bad = 0, refused = 0;
const tell = (line, texts) => {
	bad++;
	console.log(`${line.method} ${line.url.slice(0, 200)} -> ${line.status}: ${texts.join("; ")}\n  ${line.body.slice(0, 500)}`);
};
for (const line of lines) {
	const { request, answer } = faults(line);
	if (answer.length > 0) tell(line, answer);
	if (request.length > 0 && (mode === "--ours" || line.status < 400)) tell(line, request);
	if (request.length > 0 && line.status >= 400) refused++;
}
assert.ok(lines.length > 0, "nothing passed");
assert.equal(bad, 0, `${bad} of ${lines.length} exchanges are not as described`);

// It would have noticed: every accepted PUT and deleteMachines, spoiled one way each.
const spoil = [
	(l) => ({ ...l, url: l.url.replace(/\?.*/, "") }),
	(l) => ({ ...l, url: l.url.replace(/agentPools\/[^/?]+/, "agentPools/Not-A-Pool") }),
	(l) => ({ ...l, body: l.body.replace(/"count":(\d+)/g, '"count":"$1"').replace(/"machineNames":\[/, '"machineNames":[7,') }),
	(l) => ({ ...l, body: l.body.replace(/"vmSize":"[^"]*"/, '"vmSize":7').replace(/"machineNames"/, '"names"') }),
	(l) => ({ ...l, method: "PATCH" }),
	(l) => ({ ...l, headers: { ...l.headers, authorization: undefined } }),
];
const writes = lines.filter((l) => l.status >= 200 && l.status < 300 && (l.method === "PUT" || l.url.includes("/deleteMachines")));
for (const line of writes) {
	for (const way of spoil) {
		const other = way(line);
		if (JSON.stringify(other) !== JSON.stringify(line)) assert.notDeepEqual(faults(other).request, [], `${way} was not noticed`);
	}
}
console.log(`${lines.length} exchanges are as described, ${refused} wrong requests were refused, ${writes.length} writes`);
