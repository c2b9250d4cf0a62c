/** Runs the page's own tests: each file of `test/` is bundled and given to node's test runner. */

import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const HERE = dirname(fileURLToPath(import.meta.url));
const tests = readdirSync(join(HERE, "test")).filter((name) => name.endsWith(".test.ts"));
const out = mkdtempSync(join(tmpdir(), "lifesigns-dashboard-"));
try {
  await build({
    entryPoints: tests.map((name) => join(HERE, "test", name)),
    bundle: true,
    format: "esm",
    platform: "node",
    target: ["node18"],
    jsx: "automatic",
    jsxImportSource: "preact",
    loader: { ".css": "empty" },
    outdir: out,
    outExtension: { ".js": ".mjs" },
    logLevel: "warning",
  });
  const files = readdirSync(out).map((name) => join(out, name));
  process.exitCode = spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit" }).status ?? 1;
} finally {
  rmSync(out, { recursive: true, force: true });
}
