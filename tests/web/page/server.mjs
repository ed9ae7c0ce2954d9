// `preheat view` and a history that grows, as processes of this test.

import { spawn } from "node:child_process";
import readline from "node:readline";

import { Fault } from "./browser.mjs";

const children = new Set();

function start(command, args, options) {
	const child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"], ...options });

	children.add(child);
	child.errors = "";
	child.stderr.on("data", text => { child.errors += text; });
	child.ended = new Promise(resolve => child.on("exit", code => { children.delete(child); resolve(code); }));
	return child;
}

function line(child, fits) {
	return new Promise((resolve, reject) => {
		const lines = readline.createInterface({ input: child.stdout });

		lines.on("line", text => {
			const found = fits(text);

			if (found) {
				lines.close();
				child.stdout.resume();
				resolve(found);
			}
		});
		child.ended.then(code => reject(new Fault(`ended with ${code}: ${child.errors}`)));
	});
}

export async function view(program, history, listen = "127.0.0.1:0") {
	const child = start(program, ["view", history, "--listen", listen]);
	const base = await line(child, text => (/(http:\/\/127\.0\.0\.1:\d+)/.exec(text) || [])[1]);

	return { base, child, port: Number(new URL(base).port) };
}

/** Ends it as Ctrl-C does; the exit code. */
export async function end(child) {
	child.kill("SIGINT");
	return child.ended;
}

export async function growing(program, from, to, held) {
	const child = start(program, [from, to, String(held)]);

	await line(child, text => text === "ready");
	return { append: (n = 1) => child.stdin.write("\n".repeat(n)), child };
}

export function endAll() {
	for (const child of children)
		child.kill("SIGKILL");
}
