import type { Command, Reply } from './connection.ts'
import { guardLibrary, isGuarded, SECRET, unguardLibrary } from './guard.ts'
import type { CommandTable } from './table.ts'
import { openReply, type Translated } from './translated.ts'

/** Subcommands of FUNCTION that change the loaded functions. Call `Functions.learn` after them. */
const CHANGES = ['load', 'delete', 'flush', 'restore']

/**
 * Runs function libraries with the flag `allow-key-locking`, which stock Redis refuses. The bridge loads them behind a
 * guard (guard/library.lua), which removes the flag.
 */
export class Functions {
  /** The key positions of each command. Without it (Redis 6) libraries are loaded unchanged. */
  table: CommandTable | undefined
  /** Refuse undeclared keys under the flag. */
  checkKeys = true
  /** The functions that count their commands: those of libraries loaded through a bridge. */
  #counting = new Set<string>()

  /** @returns `undefined` for a command that needs no translation */
  translate(name: string, command: Command): Translated | undefined {
    const [word = '', second = '', ...rest] = command
    if (name === 'fcall' || name === 'fcall_ro') {
      const known = String(second)
      if (!this.#counting.has(known)) return
      const read = (reply: Reply) => openReply(reply, known, '')
      return { command: [...command, SECRET], read, guarded: true }
    }
    const sub = name === 'function' ? String(second).toLowerCase() : ''
    const code = rest.at(-1)
    if (sub === 'load' && code !== undefined && this.table) {
      const guarded = Buffer.from(guardLibrary(latin1(code), this.checkKeys, this.table), 'latin1')
      return {
        command: [word, second, ...rest.slice(0, -1), guarded],
        read: asItIs,
        unguarded: () => ({ command, read: asItIs }),
      }
    }
    if (sub === 'list') return { command, read: (reply) => asItIs(withoutGuards(reply)) }
  }

  changes(name: string, command: Command): boolean {
    return name === 'function' && CHANGES.includes(String(command[1]).toLowerCase())
  }

  /** Reads the reply of FUNCTION LIST WITHCODE. */
  learn(libraries: Reply): void {
    const names = items(libraries).flatMap((library) => {
      const code = field(library, 'library_code')
      if (code === null || !isGuarded(latin1(code as Buffer))) return []
      return items(field(library, 'functions')).map((one) => String(field(one, 'name')))
    })
    this.#counting = new Set(names)
  }
}

function withoutGuards(libraries: Reply): Reply {
  if (!Array.isArray(libraries)) return libraries
  return libraries.map((library) =>
    items(library).map((value, index, all) => {
      const isCode = value instanceof Buffer && String(all[index - 1]) === 'library_code'
      return isCode ? Buffer.from(unguardLibrary(latin1(value)), 'latin1') : value
    }),
  )
}

/** A field of a RESP2 map, which is an array of alternating names and values. */
function field(map: Reply, name: string): Reply {
  const all = items(map)
  const at = all.findIndex((item, index) => index % 2 === 0 && String(item) === name)
  return at === -1 ? null : (all[at + 1] ?? null)
}

function items(reply: Reply): Reply[] {
  return Array.isArray(reply) ? reply : []
}

/** One character per byte: code may hold any bytes. */
function latin1(code: string | Buffer): string {
  return Buffer.from(code as string).toString('latin1')
}

function asItIs(reply: Reply) {
  return { reply, inner: 0 }
}
