import { ErrorReply } from 'redis'
import { inTheirWords, isPlain, isSetInfo, nameOf, refusal } from './commands.ts'
import { type Command, Connection, type Format, type Reply, settled } from './connection.ts'
import { Functions } from './functions.ts'
import { BadRequest } from './request.ts'
import { Scripts } from './scripts.ts'
import { readTable } from './table.ts'
import { Throughput } from './throughput.ts'
import type { Counted, Translated } from './translated.ts'

/** What Upstash would bill. */
export type Bill = {
  /** HTTP requests. */
  http: number
  /** Commands: those sent, and those that ran inside scripts and functions. */
  commands: number
  /** How many of these ran inside. */
  inner: number
}

export type DatabaseOptions = {
  url: string
  /** Whether undeclared keys are refused under the flag, and commands inside scripts counted. */
  checkKeys: boolean
  /** How long Redis may take for a request, in ms. */
  timeout: number
  /** The most that it takes in a second, as it bills them; by default as many as come. */
  maxCommands?: number | undefined
}

/** How many commands of one pipeline are under way at once. */
const BATCH = 5000

/** One Redis as Upstash would show it: what it refuses, how it takes scripts, what its errors say. */
export class Database {
  readonly bill: Bill = { http: 0, commands: 0, inner: 0 }
  readonly url: string
  readonly #timeout: number
  readonly #throughput: Throughput
  readonly #connection: Connection
  readonly #scripts = new Scripts()
  readonly #functions = new Functions()

  private constructor(connection: Connection, options: DatabaseOptions) {
    this.#connection = connection
    this.#timeout = options.timeout
    this.#throughput = new Throughput(options.maxCommands)
    this.url = options.url
  }

  /** Rejects when Redis does not answer. */
  static async open(options: DatabaseOptions): Promise<Database> {
    const database = new Database(await Connection.open(options.url), options)
    await database.#learn(options.checkKeys)
    return database
  }

  /** Runs commands in order, each with its own outcome. Rejects with RedisDown only. */
  async run(commands: Command[], format: Format): Promise<Reply[]> {
    const replies: Reply[] = []
    for (let start = 0; start < commands.length; start += BATCH) {
      const batch = commands.slice(start, start + BATCH)
      replies.push(...(await this.#inTime(() => this.#batch(batch, format))))
      this.#charge(batch.filter((command) => isPlain(command) || !refusal(command)).length)
    }
    await this.#throughput.turn()
    return replies
  }

  /** Runs all commands in MULTI/EXEC, or none. @throws BadRequest when it is discarded. */
  async transaction(commands: Command[]): Promise<Reply[]> {
    for (const command of commands) {
      const reason = refusal(command)
      if (reason) throw new BadRequest(reason)
    }
    const translated = commands.map((command) => this.#translate(command))
    const sent = commands.map((command, index) =>
      isSetInfo(command) ? ['ECHO', 'OK'] : (translated[index]?.command ?? command),
    )
    const [outcome = null, ...queued] = await this.#inTime(async () => {
      const replies = await Promise.all(this.#connection.transaction(sent))
      if (commands.some((command) => this.#functions.changes(nameOf(command), command))) {
        await this.#learnFunctions()
      }
      return replies
    })
    if (Array.isArray(outcome)) {
      this.#charge(commands.length)
      const replies = outcome.map((reply, index) =>
        this.#inner(translated[index]?.read(reply) ?? bare(reply)),
      )
      await this.#throughput.turn()
      return replies
    }
    const cause = queued.find((place) => place instanceof ErrorReply)
    const told = outcome instanceof ErrorReply ? outcome.message : 'EXECABORT'
    throw new BadRequest(
      cause instanceof ErrorReply ? inTheirWords(`${told} ${cause.message}`) : told,
    )
  }

  close(): void {
    this.#connection.close()
  }

  /** Sends all of them in this tick. */
  #batch(commands: Command[], format: Format): Promise<Reply[]> {
    return new Promise((resolve, reject) => {
      const replies: Reply[] = []
      let missing = commands.length
      const settle = (index: number, outcome: unknown) => {
        try {
          replies[index] = settled(outcome)
        } catch (error) {
          reject(error)
        }
        if (--missing === 0) resolve(replies)
      }
      commands.forEach((command, index) => {
        const take = (outcome: unknown) => settle(index, outcome)
        if (isPlain(command)) this.#connection.sendRaw(command, format).then(take, take)
        else this.#special(command, format).then(take, take)
      })
    })
  }

  async #special(command: Command, format: Format): Promise<Reply> {
    const reason = refusal(command)
    if (reason) return new ErrorReply(reason)
    if (isSetInfo(command)) return format === 'json' ? Buffer.from('OK') : 'OK'
    let translated = this.#translate(command)
    let reply = await this.#connection.send(translated?.command ?? command, format)
    // Redis's own word, not what a script returned: that one ran, and must not run again.
    if (translated?.unguarded && isCompileError(reply)) {
      // The author's own mistake, which Redis explains better without the guard, or code that bears none.
      translated = translated.unguarded()
      reply = await this.#connection.send(translated?.command ?? command, format)
    }
    if (this.#functions.changes(nameOf(command), command)) await this.#learnFunctions()
    return this.#inner(translated?.read(reply) ?? bare(reply))
  }

  #translate(command: Command): Translated | undefined {
    const name = nameOf(command)
    return this.#scripts.translate(name, command) ?? this.#functions.translate(name, command)
  }

  /** Waits for Redis, but not for ever: a Redis that stands still costs a request its timeout. */
  async #inTime<Result>(work: () => Promise<Result>): Promise<Result> {
    await this.#connection.ready()
    const timer = setTimeout(() => this.#connection.restart(), this.#timeout)
    return work().finally(() => clearTimeout(timer))
  }

  /** Bills what ran inside. */
  #inner({ reply, inner }: Counted): Reply {
    this.#charge(inner)
    this.bill.inner += inner
    return reply
  }

  #charge(commands: number) {
    this.bill.commands += commands
    this.#throughput.add(commands)
  }

  /** Asks Redis what it is. */
  async #learn(checkKeys: boolean): Promise<void> {
    const [info, commands] = await Promise.all([
      this.#connection.send(['INFO', 'server']),
      this.#connection.send(['COMMAND']),
    ])
    this.#scripts.shebangs = Number(/redis_version:(\d+)/.exec(String(info))?.[1] ?? 7) >= 7
    if (!this.#scripts.shebangs) return
    const table = readTable(commands)
    this.#scripts.table = checkKeys ? table : undefined
    this.#functions.table = table
    this.#functions.checkKeys = checkKeys
    await this.#learnFunctions()
  }

  async #learnFunctions(): Promise<void> {
    this.#functions.learn(await this.#connection.send(['FUNCTION', 'LIST', 'WITHCODE']))
  }
}

function bare(reply: Reply): Counted {
  return { reply, inner: 0 }
}

function isCompileError(reply: Reply): boolean {
  if (!(reply instanceof ErrorReply) || reply.message.includes('\x01')) return false // \x01: a note of the guard
  return /^ERR Error compiling (script|function)/.test(reply.message)
}
