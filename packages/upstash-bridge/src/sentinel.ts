import { setTimeout as sleep } from 'node:timers/promises'
import { ErrorReply } from 'redis'
import { type Backend, type Call, isNotSent, isRaised, runsCode, type Sent } from './backend.ts'
import {
  type Address,
  type Command,
  Connection,
  type Format,
  RedisDown,
  type Reply,
  settled,
} from './connection.ts'
import { within } from './within.ts'

export type SentinelOptions = {
  /** The name of the master in the configuration of the sentinels. */
  name: string
  sentinels: Address[]
  /** Credentials of Redis, such as `user:password@`; empty if it needs none. */
  credentials: string
  /** How long a call may take, in ms. */
  timeout: number
}

/** How often the sentinels are asked while the master responds, and while it does not, in ms. */
const CHECK_MS = 1000
const RETRY_MS = 50

/**
 * The master that sentinels name, as one database. After a failover all commands go to the new master. The package
 * `redis` has a client for sentinels, too, but that client sends a command again after it has lost the connection.
 */
export class Sentinel implements Backend {
  readonly #options: SentinelOptions
  readonly #sentinels: Connection[]
  #master: Connection | undefined
  #checking: Promise<void> | undefined
  readonly #timer: NodeJS.Timeout

  private constructor(options: SentinelOptions) {
    this.#options = options
    this.#sentinels = options.sentinels.map((address) => Connection.start(address, false))
    this.#timer = setInterval(() => this.#check(), CHECK_MS).unref()
  }

  /** @throws Error when no sentinel names a master that responds. */
  static async open(options: SentinelOptions): Promise<Sentinel> {
    const sentinel = new Sentinel(options)
    try {
      const call = { until: performance.now() + 3000, isOver: () => false, turns: new Map() }
      await sentinel.ready(call)
      return sentinel
    } catch (cause) {
      sentinel.close()
      throw new Error(`The sentinels name no master "${options.name}" that responds`, { cause })
    }
  }

  async ready(call: Call): Promise<void> {
    while (!this.isUp()) {
      if (call.isOver() || performance.now() > call.until - RETRY_MS) {
        throw new RedisDown('Redis is not reachable')
      }
      await this.#check()
      if (!this.isUp()) await sleep(RETRY_MS)
    }
  }

  sendRaw(command: Command, format: Format): Promise<Reply> {
    return this.#master!.sendRaw(command, format)
  }

  again(sent: Sent, outcome: unknown, call: Call): Promise<Reply> | undefined {
    if (hasNotRun(sent, outcome)) return this.#follow(sent, outcome, call)
  }

  async transaction(commands: Command[], scripts: Buffer[], call: Call): Promise<Reply[]> {
    for (;;) {
      await this.ready(call)
      const replies = await this.#master!.transaction(commands, scripts)
      if (Array.isArray(replies[0]) || !replies.some(isReadOnly)) return replies
      await this.#wait(call, replies.find(isReadOnly))
    }
  }

  giveUp(endsScripts: boolean): void {
    this.#master?.restart(endsScripts)
  }

  addresses(): Address[] {
    return this.#master?.addresses() ?? []
  }

  isUp(): boolean {
    return this.#master?.isUp() ?? false
  }

  close(): void {
    clearInterval(this.#timer)
    for (const connection of [...this.#sentinels, this.#master]) connection?.close()
  }

  async #follow(sent: Sent, first: unknown, call: Call): Promise<Reply> {
    let outcome = first
    while (hasNotRun(sent, outcome)) {
      await this.#wait(call, outcome)
      await this.ready(call)
      outcome = await this.sendRaw(sent.command, sent.format).catch((error) => error)
    }
    return settled(outcome)
  }

  /** @throws RedisDown at the deadline */
  async #wait(call: Call, outcome: unknown): Promise<void> {
    if (call.isOver() || performance.now() > call.until - RETRY_MS) {
      throw new RedisDown(isReadOnly(outcome) ? outcome.message : 'Redis is not reachable')
    }
    await sleep(RETRY_MS)
    await this.#check()
  }

  #check(): Promise<void> {
    this.#checking ??= this.#switch().finally(() => {
      this.#checking = undefined
    })
    return this.#checking
  }

  /** Connects to the master that most sentinels name, if it is another one. */
  async #switch(): Promise<void> {
    const address = await this.#named()
    if (!address || address.url === this.#master?.address.url) return
    const next = Connection.start(address)
    const role = await next
      .ready()
      .then(() => within(next.send(['ROLE']), CHECK_MS))
      .catch(() => null)
    if (!Array.isArray(role) || String(role[0]) !== 'master') return next.close()
    const former = this.#master
    this.#master = next
    // It may still receive replies.
    setTimeout(() => former?.close(), this.#options.timeout).unref()
  }

  async #named(): Promise<Address | undefined> {
    const { name, credentials, sentinels } = this.#options
    const replies = await Promise.all(
      this.#sentinels.map(async (sentinel) => {
        if (!sentinel.isUp()) return
        const command = ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name]
        const reply = await within(
          sentinel.send(command).catch(() => null),
          CHECK_MS,
        )
        return Array.isArray(reply) ? reply.map(String) : undefined
      }),
    )
    const named = replies
      .flatMap((reply) => (reply ? [reply] : []))
      .map(([host, port]) => `${host?.includes(':') ? `[${host}]` : host}:${port}`)
    const votesOf = (address: string) => named.filter((one) => one === address).length
    const [winner] = named.toSorted((one, other) => votesOf(other) - votesOf(one))
    if (!winner) return
    const [scheme] = sentinels[0]!.url.split('://')
    return { url: `${scheme}://${credentials}${winner}`, tls: sentinels[0]?.tls }
  }
}

/** A former master refuses writes with READONLY. A script with that error may have run. */
function hasNotRun({ command, trusted }: Sent, outcome: unknown): boolean {
  return isNotSent(outcome) || (isReadOnly(outcome) && (trusted || !runsCode(command)))
}

function isReadOnly(outcome: unknown): outcome is ErrorReply {
  if (!(outcome instanceof ErrorReply) || isRaised(outcome)) return false
  return outcome.message.startsWith('READONLY ')
}
