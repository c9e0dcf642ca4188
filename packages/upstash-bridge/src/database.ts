import { ErrorReply } from 'redis'
import { type Backend, type Call, isRaised, runsCode, type Sent } from './backend.ts'
import { inTheirWords, isPlain, isSetInfo, nameOf, refusal } from './commands.ts'
import { type Command, type Format, RedisDown, type Reply, settled } from './connection.ts'
import { deviation } from './deviations.ts'
import { Functions } from './functions.ts'
import { Permissions } from './permissions.ts'
import { ReplySize } from './reply-size.ts'
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
  /** Refuse undeclared keys under the flag, and count commands inside scripts. */
  checkKeys: boolean
  /** A read-only token may run scripts that cannot write. */
  readOnlyScripts: boolean
  /** Maximum size of the replies to a request, in bytes. */
  maxReply: number
  /** Time limit for Redis to execute a request, in ms. */
  timeout: number
  /** See `BridgeOptions.pipelineTimeout`. */
  pipelineTimeout?: number | undefined
  /** Maximum billed commands per second. Defaults to no maximum. */
  maxCommands?: number | undefined
  /** See `BridgeOptions.clock`. */
  clock?: (() => number) | undefined
}

/** The client of a request. */
export type Caller = {
  readOnly: boolean
  /** True if it has disconnected. Then commands that wait for a node are not sent. */
  isOver(): boolean
}

/** Maximum commands of one pipeline in flight. */
const BATCH = 5000
/** How often a script is loaded for one EVALSHA: a slot may move to another node meanwhile. */
const LOADS = 3

/** Makes one Redis behave like Upstash: refused commands, script flags and error messages. */
export class Database {
  readonly bill: Bill = { http: 0, commands: 0, inner: 0 }
  readonly backend: Backend
  readonly permissions: Permissions
  readonly #maxReply: number
  readonly #timeout: number
  readonly #pipelineTimeout: number
  readonly #throughput: Throughput
  readonly #scripts = new Scripts()
  readonly #functions = new Functions()

  private constructor(backend: Backend, options: DatabaseOptions) {
    this.backend = backend
    this.permissions = new Permissions(options.readOnlyScripts)
    this.#maxReply = options.maxReply
    this.#timeout = options.timeout
    this.#pipelineTimeout = options.pipelineTimeout ?? options.timeout
    this.#scripts.clock = options.clock
    this.#throughput = new Throughput(options.maxCommands)
  }

  /** Rejects when Redis does not respond. */
  static async open(backend: Backend, options: DatabaseOptions): Promise<Database> {
    const database = new Database(backend, options)
    await database.#learn(options.checkKeys)
    return database
  }

  /**
   * Runs commands in order and returns a reply or an error for each. Rejects only with RedisDown, or with BadRequest if the
   * replies are too large.
   */
  async run(commands: Command[], format: Format, caller: Caller): Promise<Reply[]> {
    const replies: Reply[] = []
    const size = new ReplySize(this.#maxReply)
    for (let start = 0; start < commands.length; start += BATCH) {
      const batch = commands.slice(start, start + BATCH)
      replies.push(
        ...(await this.#inTime(batch, caller, (call) =>
          this.#batch(batch, format, caller, call, size),
        )),
      )
      this.#charge(batch.filter((command) => isPlain(command) || !refusal(command)).length)
    }
    await this.#throughput.turn()
    return replies
  }

  /** Runs all commands in MULTI/EXEC, or none. @throws BadRequest when the transaction is discarded. */
  async transaction(commands: Command[], caller: Caller): Promise<Reply[]> {
    for (const command of commands) {
      const reason = this.#refusal(command, caller)
      if (reason) throw new BadRequest(reason)
    }
    const translated = commands.map((command) => this.#translate(command))
    const sent = commands.map((command, index) =>
      isSetInfo(command) ? ['ECHO', 'OK'] : (translated[index]?.command ?? command),
    )
    const scripts = this.backend.load ? translated.flatMap((one) => one?.text ?? []) : []
    const [outcome = null, ...queued] = await this.#inTime(commands, caller, async (call) => {
      const replies = await this.backend.transaction(sent, scripts, call)
      if (commands.some((command) => this.#functions.changes(nameOf(command), command))) {
        await this.#learnFunctions()
      }
      return replies
    })
    if (Array.isArray(outcome)) {
      this.#charge(commands.length)
      const replies = outcome.map((reply, index) =>
        this.#billInner(translated[index]?.read(reply, 'json') ?? bare(reply)),
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

  /** True if Redis has a command with this lower-case name. */
  knows(name: string): boolean {
    return this.permissions.knows(name)
  }

  close(): void {
    this.backend.close()
  }

  /**
   * Sends all commands in one tick. On a cluster each command waits for its own node: if some of them have no answer in time, they get
   * errors, and the others get their replies.
   */
  #batch(
    commands: Command[],
    format: Format,
    caller: Caller,
    whole: Call,
    size: ReplySize,
  ): Promise<Reply[]> {
    const isSplit = commands.length > 1 && this.backend.load !== undefined
    return new Promise((resolve, reject) => {
      const replies = new Array<Reply | undefined>(commands.length)
      let unanswered = commands.length
      let failures = 0
      let timer: NodeJS.Timeout | undefined
      const call = { ...whole, isOver: () => unanswered === 0 || whole.isOver() }
      const answer = (index: number, reply: Reply) => {
        if (replies[index] !== undefined) return
        try {
          size.add(reply)
        } catch (error) {
          // The replies that are still to arrive are dropped one by one.
          replies.fill(null)
          unanswered = 0
          clearTimeout(timer)
          return reject(error)
        }
        replies[index] = reply
        unanswered -= 1
        if (unanswered > 0) return
        clearTimeout(timer)
        resolve(replies as Reply[])
      }
      const fail = (index: number, error: Error) => {
        if (replies[index] !== undefined) return
        failures += 1
        if (!isSplit || failures === commands.length) reject(error)
        answer(index, new ErrorReply(`ERR ${error.message}`))
      }
      const settle = (index: number, outcome: unknown) => {
        if (outcome instanceof Error && isPlain(commands[index]!)) {
          const sent = { command: commands[index]!, format, trusted: true }
          const later = this.backend.again(sent, outcome, call)
          const take = (last: unknown) => settle(index, last)
          if (later) return void later.then(take, take)
        }
        try {
          answer(index, settled(outcome))
        } catch (error) {
          fail(index, error as Error)
        }
      }
      const watch = () => {
        timer = setTimeout(() => {
          if (performance.now() > whole.until) return
          if (unanswered === commands.length) return watch()
          this.backend.giveUp(commands.some(runsCode))
          const late = new Error(`Redis did not respond within ${this.#pipelineTimeout} ms`)
          for (const index of replies.keys()) fail(index, late)
        }, this.#pipelineTimeout)
      }
      if (isSplit && this.#pipelineTimeout < this.#timeout) watch()
      commands.forEach((command, index) => {
        const take = (outcome: unknown) => settle(index, outcome)
        const reason = caller.readOnly && this.#refusal(command, caller)
        if (reason) take(new ErrorReply(reason))
        else if (isPlain(command)) this.backend.sendRaw(command, format).then(take, take)
        else this.#special(command, format, call).then(take, take)
      })
    })
  }

  async #special(command: Command, format: Format, call: Call): Promise<Reply> {
    const reason = refusal(command)
    if (reason) return new ErrorReply(reason)
    if (isSetInfo(command)) return format === 'json' ? Buffer.from('OK') : 'OK'
    let translated = this.#translate(command)
    let reply = await this.#send(command, translated, format, call)
    // Only for a compile error of Redis: a script that ran must not run again.
    if (translated?.unguarded && isCompileError(reply)) {
      // Either a syntax error, which Redis explains better without the guard, or code that is too large for the guard.
      translated = translated.unguarded()
      reply = await this.#send(command, translated, format, call)
    }
    if (this.#functions.changes(nameOf(command), command)) await this.#learnFunctions()
    return this.#billInner(translated?.read(reply, format) ?? bare(reply))
  }

  /** Sends a command, again only while it has not run. Loads the script of an EVALSHA on a node that lacks it. */
  async #send(
    command: Command,
    translated: Translated | undefined,
    format: Format,
    call: Call,
  ): Promise<Reply> {
    const trusted = translated?.guarded ?? false
    const sent: Sent = { command: translated?.command ?? command, format, trusted }
    for (let attempt = 0; ; attempt++) {
      if (translated?.text) this.backend.prepare?.(sent.command, translated.text)
      const reply = await this.backend
        .sendRaw(sent.command, format)
        .catch((error) => this.backend.again(sent, error, call) ?? settled(error))
      if (!isNoScript(reply) || !translated?.text || !this.backend.load || attempt === LOADS) {
        return reply
      }
      if (!(await this.backend.load(sent, translated.text))) return reply
    }
  }

  #translate(command: Command): Translated | undefined {
    const name = nameOf(command)
    return (
      this.#scripts.translate(name, command) ??
      this.#functions.translate(name, command) ??
      deviation(name, command)
    )
  }

  #refusal(command: Command, { readOnly }: Caller): string | undefined {
    return refusal(command) ?? (readOnly ? this.permissions.refusal(command) : undefined)
  }

  /** Runs `work`. After the timeout it rejects, and the backend drops connections that do not respond and ends their scripts. */
  async #inTime<Result>(
    commands: Command[],
    { isOver }: Caller,
    work: (call: Call) => Promise<Result>,
  ): Promise<Result> {
    const call = { until: performance.now() + this.#timeout, isOver, turns: new Map() }
    await this.backend.ready(call)
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.backend.giveUp(commands.some(runsCode))
        reject(new RedisDown(`Redis did not respond within ${this.#timeout} ms`))
      }, this.#timeout)
      work(call)
        .then(resolve, reject)
        .finally(() => clearTimeout(timer))
    })
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
      this.backend.sendRaw(['INFO', 'server'], 'json'),
      this.backend.sendRaw(['COMMAND'], 'json'),
    ])
    this.permissions.learn(commands)
    this.#scripts.shebangs = Number(/redis_version:(\d+)/.exec(String(info))?.[1] ?? 7) >= 7
    if (!this.#scripts.shebangs) return
    const table = readTable(commands)
    this.#scripts.table = checkKeys ? table : undefined
    this.#functions.table = table
    this.#functions.checkKeys = checkKeys
    await this.#learnFunctions()
  }

  async #learnFunctions(): Promise<void> {
    const reply = this.backend.sendRaw(['FUNCTION', 'LIST', 'WITHCODE'], 'json')
    this.#functions.learn(settled(await reply.catch((error) => error)))
  }
}

function bare(reply: Reply): Counted {
  return { reply, inner: 0 }
}

function isCompileError(reply: Reply): boolean {
  if (!(reply instanceof ErrorReply) || isRaised(reply)) return false
  return /^ERR Error compiling (script|function)/.test(reply.message)
}

function isNoScript(reply: Reply): boolean {
  return reply instanceof ErrorReply && reply.message.startsWith('NOSCRIPT ') && !isRaised(reply)
}
