// Generates the types of the player API from the document of a running Muster, checks playerflow.ts with them, and runs it.
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const modules = join(import.meta.dirname, "node_modules");
const dir = mkdtempSync(join(tmpdir(), "playerflow-"));
const tool = (path, ...args) => execFileSync(process.execPath, [join(modules, path), ...args], { cwd: dir, stdio: ["ignore", "pipe", "inherit"] });
try {
  const answer = await fetch(`${process.env.MUSTER_URL}/playerflow/v1/player/openapi.json`);
  writeFileSync(join(dir, "openapi.json"), await answer.text());
  writeFileSync(join(dir, "package.json"), '{"type":"module"}');
  symlinkSync(modules, join(dir, "node_modules"));
  cpSync(join(import.meta.dirname, "playerflow.ts"), join(dir, "playerflow.ts"));
  writeFileSync(join(dir, "tsconfig.json"), JSON.stringify({
    compilerOptions: { strict: true, target: "es2022", module: "esnext", moduleResolution: "bundler", lib: ["es2022", "dom"], types: [], skipLibCheck: true },
    files: ["playerflow.ts", "globals.d.ts"],
  }));
  writeFileSync(join(dir, "globals.d.ts"), "declare const process: { env: Record<string, string | undefined> };");
  tool("openapi-typescript/bin/cli.js", "openapi.json", "-o", "playerflow.types.ts");
  try {
    tool("typescript/bin/tsc", "-p", ".");
  } catch (e) {
    console.error(String(e.stdout));
    throw e;
  }
  process.stdout.write(execFileSync(process.execPath, ["playerflow.js"], { cwd: dir, env: process.env, stdio: ["ignore", "pipe", "inherit"] }));
} finally {
  rmSync(dir, { recursive: true });
}
