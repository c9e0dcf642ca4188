import { ErrorReply } from 'redis'
import { inTheirWords, isPlain, isSetInfo, nameOf, refusal } from './commands.ts'
import { type Command, Connection, type Format, type Reply, settled } from './connection.ts'
import { Functions } from './functions.ts'
import { BadRequest } from './request.ts'
import { Scripts } from './scripts.ts'
import { readTable } from './table.ts'
import { Throughput } from './throughput.ts'
import type { Counted, Translated } from './translated.ts'

/** The commands and requests that Upstash would bill. */
export type Bill = {
  /** HTTP requests. */
  http: number
  /** Commands, including those that ran inside scripts and functions. */
  commands: number
  /** The commands that ran inside scripts and functions. */
  inner: number
}

export type DatabaseOptions = {
  url: string
  /** Refuse undeclared keys under the flag, and count commands inside scripts. */
  checkKeys: boolean
  /** Time limit for Redis to execute a request, in ms. */
  timeout: number
  /** Maximum billed commands per second. Defaults to no maximum. */
  maxCommands?: number | undefined
  /** See `BridgeOptions.clock`. */
  clock?: (() => number) | undefined
}

/** Maximum commands of one pipeline in flight. */
const BATCH = 5000

/** Makes one Redis behave like Upstash: refused commands, script flags and error messages. */
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
    this.#scripts.clock = options.clock
    this.#throughput = new Throughput(options.maxCommands)
    this.url = options.url
  }

  /** Rejects when Redis does not respond. */
  static async open(options: DatabaseOptions): Promise<Database> {
    const database = new Database(await Connection.open(options.url), options)
    await database.#learn(options.checkKeys)
    return database
  }

  /** Runs commands in order and returns a reply or an error for each. Rejects only with RedisDown. */
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

  /** Runs all commands in MULTI/EXEC, or none. @throws BadRequest when the transaction is discarded. */
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
        this.#billInner(translated[index]?.read(reply) ?? bare(reply)),
      )
      await this.#throughput.turn()
      return replies
    }
    const cause = queued.find((reply) => reply instanceof ErrorReply)
    const message = outcome instanceof ErrorReply ? outcome.message : 'EXECABORT'
    throw new BadRequest(
      cause instanceof ErrorReply ? inTheirWords(`${message} ${cause.message}`) : message,
    )
  }

  close(): void {
    this.#connection.close()
  }

  /** Sends all commands in one tick. */
  #batch(commands: Command[], format: Format): Promise<Reply[]> {
    return new Promise((resolve, reject) => {
      const replies: Reply[] = []
      let pending = commands.length
      const settle = (index: number, outcome: unknown) => {
        try {
          replies[index] = settled(outcome)
        } catch (error) {
          reject(error)
        }
        if (--pending === 0) resolve(replies)
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
    // Only for a compile error of Redis: a script that ran must not run again.
    if (translated?.unguarded && isCompileError(reply)) {
      // Either a syntax error, which Redis explains better without the guard, or code that is too large for the guard.
      translated = translated.unguarded()
      reply = await this.#connection.send(translated?.command ?? command, format)
    }
    if (this.#functions.changes(nameOf(command), command)) await this.#learnFunctions()
    return this.#billInner(translated?.read(reply) ?? bare(reply))
  }

  #translate(command: Command): Translated | undefined {
    const name = nameOf(command)
    return this.#scripts.translate(name, command) ?? this.#functions.translate(name, command)
  }

  /** Runs `work` and drops the connection after the timeout, which rejects the commands in flight. */
  async #inTime<Result>(work: () => Promise<Result>): Promise<Result> {
    await this.#connection.ready()
    const timer = setTimeout(() => this.#connection.restart(), this.#timeout)
    return work().finally(() => clearTimeout(timer))
  }

  /** Bills the commands inside a script and returns its reply. */
  #billInner({ reply, inner }: Counted): Reply {
    this.#charge(inner)
    this.bill.inner += inner
    return reply
  }

  #charge(commands: number) {
    this.bill.commands += commands
    this.#throughput.add(commands)
  }

  /** Detects the version, the commands and the functions of Redis. */
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
  if (!(reply instanceof ErrorReply) || reply.message.includes('\x01')) return false // \x01 marks an error that the guard annotated
  return /^ERR Error compiling (script|function)/.test(reply.message)
}
