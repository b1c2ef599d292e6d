// Builds ../internal/page/page.js of src/. The first line names the sources by their hash, so
// that a test without Node can tell whether the build is theirs (internal/page/script_test.go).

import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const here = new URL("./", import.meta.url);
const sources = ["package-lock.json", "build.mjs", ...readdirSync(new URL("src/", here)).sort().map((name) => "src/" + name)];
const sum = createHash("sha256");
for (const name of sources) {
  const text = readFileSync(new URL(name, here));
  sum.update(`${name} ${text.length}\n`).update(text);
}
const { outputFiles: [out] } = await build({
  entryPoints: [new URL("src/page.ts", here).pathname],
  bundle: true, minify: true, write: false, format: "iife", target: "es2022", charset: "ascii", legalComments: "none",
});
writeFileSync(new URL("../internal/page/page.js", here), `// Built of ui/ by npm run build; sources ${sum.digest("hex")}\n${out.text}`);
console.log(`${out.text.length} bytes`);
