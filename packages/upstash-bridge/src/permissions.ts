import { nameOf } from './commands.ts'
import type { Command, Reply } from './connection.ts'

/** Commands that a read-only token may send in addition to those that Redis lists in the category `@read`. */
const HARMLESS = ['ping', 'echo', 'time', 'command', 'client']
/** Scripts that cannot write. They can keep Redis busy. */
const SCRIPTS = ['eval_ro', 'evalsha_ro', 'fcall_ro']

/** The commands that a read-only token may send, as `command` or `command|subcommand`. */
export class Permissions {
  readonly #known = new Set<string>()
  readonly #readable: Set<string>

  /** @param scripts a read-only token may run scripts that cannot write */
  constructor(scripts: boolean) {
    this.#readable = new Set(scripts ? [...HARMLESS, ...SCRIPTS] : HARMLESS)
  }

  /** Reads the reply to COMMAND. Upstash's read-only user has the categories `+@read -@dangerous`. */
  learn(reply: Reply): void {
    for (const entry of Array.isArray(reply) ? reply : []) {
      if (!Array.isArray(entry)) continue
      const categories = Array.isArray(entry[6]) ? entry[6].map(String) : []
      const isReadable = categories.includes('@read') && !categories.includes('@dangerous')
      const name = String(entry[0]).toLowerCase()
      this.#known.add(name)
      if (isReadable) this.#readable.add(name)
      this.learn(entry[9] ?? null)
    }
  }

  /** True if Redis has a command with this lower-case name. */
  knows(name: string): boolean {
    return this.#known.has(name)
  }

  /** The error with which a read-only token is refused; `undefined` if it may send the command. */
  refusal(command: Command): string | undefined {
    const name = nameOf(command)
    if (this.#readable.has(name) || this.#readable.has(`${name}|${command[1]}`.toLowerCase()))
      return
    return `NOPERM this user has no permissions to run the '${name.slice(0, 64)}' command`
  }
}
