// Holds files against the schema of SARIF 2.1.0, formats included. Usage: node validate.mjs MODULES FILE...
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [modules, ...files] = process.argv.slice(2);
const require = createRequire(`${modules}/package.json`);
const Ajv = require("ajv");
const schema = JSON.parse(
	readFileSync(`${modules}/node_modules/@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json`));
const ajv = new Ajv({ allErrors: true, schemaId: "auto", meta: false, validateSchema: false });
ajv.addMetaSchema(require("ajv/lib/refs/json-schema-draft-04.json"));
const isValid = ajv.compile({ ...schema, $schema: undefined });
let wrong = 0;

for (const file of files) {
	const log = JSON.parse(readFileSync(file));
	if (!isValid(log)) {
		wrong++;
		console.log(`${file}: ${ajv.errorsText(isValid.errors, { separator: "\n  " })}`);
	}
	for (const run of log.runs)
		for (const result of run.results)
			if (run.tool.driver.rules[result.ruleIndex]?.id !== result.ruleId) {
				wrong++;
				console.log(`${file}: ${result.ruleId} points to another rule`);
			}
}
console.log(`${files.length} files, ${wrong} wrong`);
process.exit(wrong ? 1 : 0);
