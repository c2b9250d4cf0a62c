// Plays opencode: loads our plugin (argv[2]) and calls it as opencode does, by the steps on stdin; prints what came of each.
import { readFileSync } from "node:fs"

const aborted = []
const client = { session: { abort: async ({ path }) => aborted.push(path.id) } }
const { Lifesigns } = await import(process.argv[2])
const hooks = await Lifesigns({ client, directory: "/home/dev/shop" })
const results = []
for (const { hook, input, output, thinks = 0 } of JSON.parse(readFileSync(0, "utf8"))) {
  const result = { output }
  await new Promise((resolve) => setTimeout(resolve, thinks))
  const began = performance.now()
  try {
    await hooks[hook]?.(input, output)
  } catch (error) {
    result.error = error.message
  }
  result.ms = performance.now() - began
  results.push(result)
}
console.log(JSON.stringify({ hooks: Object.keys(hooks), aborted, results }))
process.exit(0)
