import { createHash } from 'node:crypto'
import { ErrorReply } from 'redis'
import type { Command, Reply } from './connection.ts'
import { guardScript } from './guard.ts'
import { takeApart } from './source.ts'
import type { CommandTable } from './table.ts'
import { openReply, type Translated } from './translated.ts'

type Script = {
  /** SHA-1 of the client's text, and of the translated text. */
  theirs: string
  ours: string
  guarded: boolean
  onlyLine: string
  /**
   * Set if the script takes the time as its first argument, or as the end of it after a colon, and reads the clock if it is empty; with
   * `absent` also if there is no argument.
   */
  timed: 'empty' | 'absent' | undefined
}

/** Maximum number of scripts to remember. Evicts the least recently used. */
const CAPACITY = 10_000
/** Maximum number of translated texts to cache, and the maximum size of each in bytes. */
const TEXTS = 200
const TEXT_SIZE = 65_536

/** Lua code that compares the first argument with an empty text, also if it is absent. */
const ABSENT_TIME = /\(ARGV\s*\[\s*1\s*\]\s*or\s*(''|"")\s*\)\s*==\s*\1/
/**
 * Lua code that compares the first argument with an empty text, or matches it with a pattern whose last part is a number that may be
 * empty, and code that reads the clock.
 */
const EMPTY_TIME =
  /\bARGV\s*\[\s*1\s*\]\s*(==\s*(''|"")|(or\s*(''|"")\s*)?,\s*(['"])\^[^'"\n]*:\(%d\*\)\$\5)/
const CLOCK = /\bredis\s*\.\s*call\s*\(\s*(['"])TIME\1/i

/**
 * Runs scripts with `#!lua flags=allow-key-locking`, which stock Redis refuses, on any Redis. Sends them without the flag
 * and behind a guard (guard/script.lua), and maps the SHA-1 of the client's text to that of the translated text. Redis
 * alone decides if a script is loaded: after SCRIPT FLUSH or a restart EVALSHA fails with NOSCRIPT until the next EVAL.
 */
export class Scripts {
  /** The key positions of each command. Without it (Redis 6, or `checkKeys: false`) scripts run without a guard. */
  table: CommandTable | undefined
  /** True if Redis supports the shebang line (7.0 and later). */
  shebangs = true
  /** See `BridgeOptions.clock`. */
  clock: (() => number) | undefined

  readonly #known = new Map<string, Script>()
  readonly #texts = new Map<string, Buffer>()
  readonly #unguardable = new Map<string, true>()

  /** @returns `undefined` for a command that needs no translation */
  translate(name: string, command: Command): Translated | undefined {
    const [word = '', second = '', ...rest] = command
    if (name === 'eval' || name === 'eval_ro') {
      const { script, text } = this.#prepare(second)
      const read = reader(script)
      const unguarded = () => this.#withoutGuard(script, name, command)
      const args = this.#withTime(script, rest)
      const { guarded } = script
      return { command: [word, text, ...args], read, guarded, ...(guarded && { unguarded }) }
    }
    if (name === 'evalsha' || name === 'evalsha_ro') {
      const script = this.#known.get(String(second).toLowerCase())
      if (!script) return
      remember(this.#known, script.theirs, script, CAPACITY)
      return {
        command: [word, script.ours, ...this.#withTime(script, rest)],
        read: reader(script),
        guarded: script.guarded,
        text: this.#texts.get(script.theirs),
      }
    }
    const sub = name === 'script' ? String(second).toLowerCase() : ''
    if (sub === 'load' && rest[0] !== undefined) {
      const [source, ...more] = rest
      const { script, text } = this.#prepare(source)
      const read = (reply: Reply) => ({
        reply: reply instanceof ErrorReply ? reply : Buffer.from(script.theirs),
        inner: 0,
      })
      const unguarded = () => this.#withoutGuard(script, name, command)
      return { command: [word, second, text, ...more], read, ...(script.guarded && { unguarded }) }
    }
    if (sub === 'flush') {
      this.#texts.clear() // from now on EVALSHA fails with NOSCRIPT, on each node of a cluster
      return
    }
    if (sub === 'exists') {
      const shas = rest.map((sha) => this.#known.get(String(sha).toLowerCase())?.ours ?? sha)
      return { command: [word, second, ...shas], read: (reply) => ({ reply, inner: 0 }) }
    }
  }

  /** Fills in an empty time. @param rest the number of keys, the keys and the arguments */
  #withTime(script: Script, rest: Command): Command {
    const index = 1 + Number(rest[0])
    const first = rest[index]?.toString() ?? (script.timed === 'absent' ? '' : '-')
    if (!this.clock || !script.timed || !/^([\w:]*:)?$/.test(first)) return rest
    return rest.toSpliced(index, 1, `${first}${this.clock()}`)
  }

  /** Translates a script and remembers it by the SHA-1 of the client's text. */
  #prepare(source: string | Buffer): { script: Script; text: Buffer } {
    const theirs = sha1(source)
    const kept = this.#texts.get(theirs)
    const known = this.#known.get(theirs)
    if (kept && known) {
      remember(this.#known, theirs, known, CAPACITY)
      remember(this.#texts, theirs, kept, TEXTS)
      return { script: known, text: kept }
    }
    // latin1 maps each byte to one character: a script may contain any bytes.
    const original = Buffer.from(source as string).toString('latin1')
    const { first, code, locking, onlyLine } = takeApart(original, this.shebangs)
    const guarded = this.table !== undefined && !this.#unguardable.has(theirs)
    const ours = guarded ? guardScript(first, code, locking, this.table!) : first + code
    const text = Buffer.from(ours, 'latin1')
    const form = ABSENT_TIME.test(code) ? 'absent' : EMPTY_TIME.test(code) ? 'empty' : undefined
    const timed = CLOCK.test(code) ? form : undefined
    const script: Script = { theirs, ours: sha1(text), guarded, onlyLine, timed }
    remember(this.#known, theirs, script, CAPACITY)
    if (text.length <= TEXT_SIZE) remember(this.#texts, theirs, text, TEXTS)
    return { script, text }
  }

  /** Runs a script without a guard from now on, because the guard would exceed a limit of Lua. */
  #withoutGuard(script: Script, name: string, command: Command): Translated | undefined {
    remember(this.#unguardable, script.theirs, true, CAPACITY)
    this.#texts.delete(script.theirs)
    return this.translate(name, command)
  }
}

function reader(script: Script) {
  return (reply: Reply) =>
    script.guarded ? openReply(reply, script.theirs, script.onlyLine) : { reply, inner: 0 }
}

function sha1(text: string | Buffer): string {
  return createHash('sha1').update(text).digest('hex')
}

function remember<Value>(map: Map<string, Value>, key: string, value: Value, capacity: number) {
  map.delete(key)
  map.set(key, value)
  if (map.size > capacity) map.delete(map.keys().next().value!)
}
