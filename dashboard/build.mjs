/**
 * Builds the page: `node build.mjs --out DIR` writes index.html, app-HASH.js and app-HASH.css, and says what they weigh.
 * The names change with the content, so a browser may keep them for ever. Over 60 kB gzipped in all it fails.
 */

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const GZIPPED_MAX = 60_000;
const HERE = dirname(fileURLToPath(import.meta.url));

const { values } = parseArgs({ options: { out: { type: "string" } } });
if (!values.out) {
  console.error("usage: node build.mjs --out DIR");
  process.exit(2);
}
const out = resolve(values.out);

const built = await build({
  entryPoints: [join(HERE, "src/main.tsx")],
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  charset: "utf8",
  outdir: out,
  write: false,
  logLevel: "warning",
}).catch(() => process.exit(1)); // What is wrong was printed.

const files = new Map();
for (const { path, contents } of built.outputFiles) {
  const kind = path.endsWith(".css") ? "css" : "js";
  const digest = createHash("sha256").update(contents).digest("hex").slice(0, 12);
  files.set(`app-${digest}.${kind}`, contents);
}
const named = (kind) => [...files.keys()].find((name) => name.endsWith(kind));
const page = readFileSync(join(HERE, "index.html"), "utf8")
  .replace("app.css", named("css"))
  .replace("app.js", named("js"));
files.set("index.html", Buffer.from(page));

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
let all = 0;
for (const [name, contents] of files) {
  writeFileSync(join(out, name), contents);
  const gzipped = gzipSync(contents, { level: 9 }).length;
  all += gzipped;
  console.log(`${name}  ${contents.length} bytes, ${gzipped} gzipped`);
}
console.log(`in all ${all} bytes gzipped, of ${GZIPPED_MAX}`);
if (all > GZIPPED_MAX) {
  console.error(`the page is too heavy: ${all} bytes gzipped, ${GZIPPED_MAX} are allowed`);
  process.exit(1);
}
