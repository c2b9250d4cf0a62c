// A plugin of opencode, put here by: lifesigns hooks install opencode   # lifesigns
// It tells the hub of this machine what sessions do, and does as it is answered. It never fails and never waits long: what a hub
// that is away should know later is left in the spool of the state folder.
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, writeFileSync } from "node:fs"
import { homedir } from "node:os"
import { basename, join } from "node:path"

const STATE = null // the state folder; in a file that several people share it is looked for
const PATIENCE = 1000 * Number(process.env.LIFESIGNS_HOOK_PATIENCE || 0.04) // milliseconds a hub may take to answer
const START_PATIENCE = Math.max(PATIENCE, 250) // a start is written down first
const LEFT_ALONE = 3_000 // milliseconds a hub that did not answer in time is left alone
const LATE = new Set(["SessionStart", "SessionEnd", "UserPromptSubmit", "Stop", "StopFailure"])
const SIDE_AGENTS = new Set(["title", "summary", "compaction"]) // model calls beside the conversation

const states = () =>
  STATE
    ? [STATE]
    : [
        process.env.LIFESIGNS_STATE,
        process.env.XDG_STATE_HOME && join(process.env.XDG_STATE_HOME, "lifesigns"),
        join(homedir(), ".local/state/lifesigns"),
        join(homedir(), "Library/Application Support/lifesigns"),
      ]

const read = (path) => {
  try {
    return readFileSync(path, "utf8").trim()
  } catch {
    return ""
  }
}

/** When this process started, in ticks since boot: a pid alone may be somebody else's tomorrow. */
const started = () => read("/proc/self/stat").split(") ").pop().split(" ")[19] ?? ""

const leave = (folder, origin, event) => {
  if (!LATE.has(event.hook_event_name)) return
  try {
    const spool = join(folder, "hooks/spool")
    mkdirSync(spool, { recursive: true, mode: 0o700 })
    if (readdirSync(spool).length >= 1000) return
    const name = `${(Date.now() / 1000).toFixed(6)}-${process.pid}${Math.floor(performance.now() * 1000)}`
    writeFileSync(join(spool, `.${name}`), `${origin}\n${JSON.stringify(event)}`, { mode: 0o600 })
    renameSync(join(spool, `.${name}`), join(spool, `${name}@opencode`))
  } catch {
    // A spool that cannot be written is no reason to disturb anybody.
  }
}

export const Lifesigns = async ({ client, directory }) => {
  const folder = states().find((one) => one && existsSync(join(one, "hooks/token")))
  if (!folder) return {}
  const project = basename(directory).replace(/[^A-Za-z0-9._-]/g, "-")
  const origin = `pid=${process.pid}&started=${started()}&project=${project}`
  const parents = new Map() // subagents: the session each was started by
  const types = new Map()
  const running = new Map() // open calls, by id
  const known = new Set() // sessions whose start was told
  const failed = new Set() // sessions whose turn ended in an error
  let leftAloneUntil = 0
  let line = Promise.resolve() // events are said in their order

  const post = async (event) => {
    const url = read(join(folder, "hub.url"))
    if (Date.now() < leftAloneUntil || !url.startsWith("http://")) return leave(folder, origin, event)
    const patience = event.hook_event_name === "SessionStart" ? START_PATIENCE : PATIENCE
    // What the hub would answer when nobody waits any more, it keeps for the next event.
    const givesUp = ((Date.now() + (patience * 7) / 8) / 1000).toFixed(3)
    try {
      const answer = await fetch(`${url}/hooks/opencode?${origin}&gives_up_at=${givesUp}`, {
        method: "POST",
        headers: { "Content-Type": "application/json", Authorization: `Bearer ${read(join(folder, "hooks/token"))}` },
        body: JSON.stringify(event),
        signal: AbortSignal.timeout(patience),
      })
      if (answer.status === 408 || answer.status === 429 || answer.status >= 500) leave(folder, origin, event)
      return answer.ok ? await answer.json() : undefined
    } catch (error) {
      if (error?.name === "TimeoutError") leftAloneUntil = Date.now() + LEFT_ALONE
      leave(folder, origin, event)
    }
  }

  /** Say something after all that was said before; what is answered. */
  const say = (session, name, fields = {}) => {
    let root = session
    while (parents.has(root)) root = parents.get(root)
    const child = root === session ? {} : { agent_id: session, agent_type: types.get(session) ?? "agent" }
    const event = { session_id: root, hook_event_name: name, cwd: directory, ...child, ...fields }
    line = line.then(() => post(event)).catch(() => undefined)
    return line
  }

  const begin = (session) => {
    if (known.has(session) || parents.has(session)) return
    known.add(session)
    say(session, "SessionStart", { source: "startup" })
  }

  const end = async (session) => {
    await client.session.abort({ path: { id: session } }).catch(() => undefined)
  }

  const heard = {
    "session.created": ({ info }) => {
      if (!info?.parentID) return begin(info.id)
      parents.set(info.id, info.parentID)
      types.set(info.id, info.agent ?? "agent")
      say(info.id, "SubagentStart")
    },
    "session.status": ({ sessionID, status }) => {
      if (status?.type === "retry") say(sessionID, "ModelRetry", { message: String(status.message ?? "") })
    },
    "session.idle": ({ sessionID }) => {
      if (parents.has(sessionID)) {
        say(sessionID, "SubagentStop")
        parents.delete(sessionID)
      } else if (!failed.delete(sessionID)) say(sessionID, "Stop")
    },
    "session.error": ({ sessionID, error }) => {
      if (!sessionID || error?.name === "MessageAbortedError") return
      const status = error?.data?.statusCode ? `${error.data.statusCode} ` : ""
      failed.add(sessionID)
      say(sessionID, "StopFailure", { error: `${status}${error?.data?.message ?? error?.name ?? "failed"}` })
    },
    "session.compacted": ({ sessionID }) => say(sessionID, "PostCompact"),
    "permission.asked": ({ sessionID, permission, patterns }) =>
      say(sessionID, "PermissionRequest", { message: `may it use ${permission}: ${(patterns ?? []).join(", ")}?` }),
    "permission.replied": ({ sessionID }) => say(sessionID, "PermissionAnswered"),
    "question.asked": ({ sessionID, questions }) =>
      say(sessionID, "PermissionRequest", { message: questions?.[0]?.question ?? "it asks you something" }),
    "question.replied": ({ sessionID }) => say(sessionID, "PermissionAnswered"),
    "message.part.updated": ({ sessionID, part }) => {
      if (part.type === "step-finish") {
        const { input = 0, output = 0 } = part.tokens ?? {}
        say(sessionID, "PostModelRequest", { token_usage: { input_tokens: input, output_tokens: output } })
      } else if (part.type === "tool" && part.state?.status === "error" && running.has(part.callID)) {
        const call = running.get(part.callID)
        running.delete(part.callID)
        // A call that we denied, or that its user refused, has not failed.
        const refused = call.denied || /rejected permission|permission to use/i.test(part.state.error ?? "")
        const how = refused ? { tool_response: "denied" } : { error: part.state.error ?? "failed" }
        say(sessionID, refused ? "PostToolUse" : "PostToolUseFailure", { ...call.event, ...how })
      }
    },
  }

  return {
    event: async ({ event }) => heard[event.type]?.(event.properties ?? {}),
    "chat.message": async ({ sessionID }) => {
      begin(sessionID)
      say(sessionID, "UserPromptSubmit")
    },
    "chat.params": async ({ sessionID, agent }) => {
      if (!SIDE_AGENTS.has(agent)) say(sessionID, "PreModelRequest")
    },
    "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
      const call = { event: { tool_name: tool, tool_input: args, tool_use_id: callID }, at: Date.now() }
      running.set(callID, call)
      const answer = await say(sessionID, "PreToolUse", call.event)
      const no = answer?.deny ?? answer?.stop
      if (!no) return
      call.denied = true
      if (answer.stop) await end(sessionID)
      throw new Error(no)
    },
    "tool.execute.after": async ({ tool, sessionID, callID, args }, output) => {
      const call = running.get(callID) ?? { event: { tool_name: tool, tool_input: args, tool_use_id: callID } }
      running.delete(callID)
      const exit = output?.metadata?.exit
      const fields = { ...call.event, duration_ms: call.at && Date.now() - call.at }
      const text = typeof output?.output === "string" ? output.output : ""
      const answer = exit
        ? await say(sessionID, "PostToolUseFailure", { ...fields, error: `Exit code ${exit}\n${text}` })
        : await say(sessionID, "PostToolUse", { ...fields, tool_response: text })
      if (answer?.context && typeof output?.output === "string") output.output += `\n\n${answer.context}`
      if (answer?.stop) await end(sessionID)
    },
    dispose: async () => {
      for (const session of known) say(session, "SessionEnd", { reason: "exit" })
      await line
    },
  }
}
