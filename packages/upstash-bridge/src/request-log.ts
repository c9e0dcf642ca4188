import type { Command } from './connection.ts'

/** The fields of a log line, for one request. */
export type Entry = {
  /** How the commands arrived; `other` for health checks, metrics and refused requests. */
  kind: 'command' | 'pipeline' | 'multi-exec' | 'stream' | 'other'
  commands: Command[]
}

/** Maximum names of commands on one line. */
const NAMES = 10

/**
 * One line of JSON for a request. It contains no keys, arguments, URLs or tokens: of each command only the name, if
 * Redis knows a command with this name.
 */
export function logLine(
  { kind, commands }: Entry,
  status: number,
  ms: number,
  isCommand: (name: string) => boolean,
): string {
  const counts = new Map<string, number>()
  for (const [word] of commands) {
    const known = String(word).toLowerCase()
    const name = isCommand(known) ? known : 'unknown'
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return JSON.stringify({
    time: new Date().toISOString(),
    kind,
    status,
    ms: Math.round(ms * 10) / 10,
    commands: commands.length,
    names: Object.fromEntries([...counts].slice(0, NAMES)),
  })
}
