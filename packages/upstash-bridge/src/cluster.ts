import { setTimeout as sleep } from 'node:timers/promises'
import { ClientOfflineError, ErrorReply } from 'redis'
import { type Backend, type Call, isNotSent, isUnserved, runsCode, type Sent } from './backend.ts'
import {
  type Address,
  type Command,
  type Connection,
  type Format,
  RedisDown,
  type Reply,
  settled,
} from './connection.ts'
import { BadRequest } from './request.ts'
import { firstKey, type Routes, readRoutes, routeOf } from './routes.ts'
import { scanAll } from './scan.ts'
import { slotOf } from './slot.ts'
import { Topology } from './topology.ts'
import { within } from './within.ts'

/** How many scripts to remember as loaded on a node. */
const PREPARED = 10_000
/** Pause between attempts while a slot moves or has no master, in ms. */
const RETRY_MS = 25

/**
 * A Redis Cluster as one database. Sends each command to the master that owns the slot of its first key, and follows
 * MOVED, ASK and failovers until the deadline of the call.
 *
 * The package `redis` has a client for clusters, too. The bridge uses that package for the connections only: its
 * cluster client sends a command again whenever an error begins with MOVED or ASK, even if a script returned that text.
 */
export class Cluster implements Backend {
  readonly #topology: Topology
  readonly #routes: Routes
  /** The SHA-1 of the scripts that this bridge has loaded. */
  readonly #prepared = new WeakMap<Connection, Set<string>>()
  /** Loads in progress, by the SHA-1 of the script. */
  readonly #loading = new WeakMap<Connection, Map<string, Promise<boolean>>>()
  /** The node that has received a command that runs code last. */
  readonly #sentTo = new WeakMap<Command, Connection>()

  /** The nodes that have to answer a PING. */
  readonly #checked = new Set<Connection>()

  private constructor(topology: Topology, routes: Routes) {
    this.#topology = topology
    this.#routes = routes
  }

  /** @param timeout the deadline of calls, in ms. @throws Error when no seed responds. */
  static async open(seeds: Address[], timeout: number): Promise<Cluster> {
    const topology = await Topology.open(seeds, timeout)
    try {
      const node = topology.masters.find((one) => one.isUp()) ?? topology.masters[0]!
      const routes = readRoutes(await node.send(['COMMAND']))
      if (routes.get('get')?.key !== undefined) return new Cluster(topology, routes)
      throw new Error('The bridge needs a cluster of Redis 7.0 or later')
    } catch (error) {
      topology.close()
      throw error
    }
  }

  /** Each command waits for its own node. */
  async ready(): Promise<void> {}

  sendRaw(command: Command, format: Format): Promise<Reply> {
    const route = routeOf(this.#routes, command)
    if (route.all) return this.#sendToAll(command, format).then(route.all)
    if (/^scan$/i.test(String(command[0]))) return scanAll(this.#topology, command, format)
    const node = this.#nodeOf(command)
    if (!node) return Promise.reject(new ClientOfflineError())
    if (runsCode(command)) this.#sentTo.set(command, node)
    return node.sendRaw(command, format)
  }

  again(sent: Sent, outcome: unknown, call: Call): Promise<Reply> | undefined {
    const route = routeOf(this.#routes, sent.command)
    if (!isUnserved(outcome) || route.all) return
    const key = firstKey(route, sent.command)
    if (key === undefined) return this.#follow(sent, outcome, call)
    const slot = slotOf(key)
    const turn = call.turns.get(slot) ?? Promise.resolve()
    const reply = turn.then(() => this.#follow(sent, outcome, call))
    call.turns.set(
      slot,
      reply.catch(() => {}),
    )
    return reply
  }

  async transaction(commands: Command[], scripts: Buffer[], call: Call): Promise<Reply[]> {
    const sample = this.#inOneSlot(commands)
    let node = this.#nodeOf(sample)
    for (let [asking, attempt] = [false, 0]; ; attempt++) {
      let refusal: unknown = new ClientOfflineError()
      if (node?.isUp()) {
        const replies = await node.sendTransaction(commands, scripts, asking)
        // EXEC without an array has discarded the transaction. The reason is its error, or that of a queued command.
        refusal = Array.isArray(replies[0]) ? undefined : replies.find(isUnserved)
        if (!refusal) return replies
      }
      ;({ node, asking } = await this.#redirect(sample, refusal, call, attempt))
    }
  }

  /** The load and the command travel on one connection, so that a command after it in a pipeline does not run before it. */
  prepare(command: Command, text: Buffer): void {
    const node = this.#nodeOf(command)
    if (!node?.isUp()) return
    const loaded = this.#prepared.get(node) ?? new Set()
    this.#prepared.set(node, loaded)
    const sha = String(command[1])
    if (loaded.has(sha)) return
    if (loaded.size === PREPARED) loaded.clear()
    loaded.add(sha)
    node.send(['SCRIPT', 'LOAD', text]).catch(() => {}) // then the command fails, too
  }

  /** After a restart or SCRIPT FLUSH. Each node loads a script once, even if many commands need it at the same time. */
  async load({ command, trusted }: Sent, text: Buffer): Promise<boolean> {
    const node = this.#sentTo.get(command)
    if (!node) return false
    const sha = String(command[1])
    const loading = this.#loading.get(node) ?? new Map<string, Promise<boolean>>()
    this.#loading.set(node, loading)
    const load = async () => {
      // A script can return the error NOSCRIPT itself. Then the node has it, and it must not run again.
      if (!trusted && String(await node.send(['SCRIPT', 'EXISTS', sha])) === '1') return false
      await node.send(['SCRIPT', 'LOAD', text])
      return true
    }
    const loaded = loading.get(sha) ?? load().finally(() => loading.delete(sha))
    loading.set(sha, loaded)
    return loaded
  }

  /** Reconnects to each master that does not respond within a second. */
  giveUp(endsScripts: boolean): void {
    for (const node of this.#topology.masters) {
      if (!node.isUp() || this.#checked.has(node)) continue
      this.#checked.add(node)
      const pong = node.send(['PING']).catch(() => null)
      within(pong, 1000).then((reply) => {
        this.#checked.delete(node)
        if (reply === undefined) node.restart(endsScripts)
      })
    }
  }

  addresses(): Address[] {
    return this.#topology.masters.map(({ address }) => address)
  }

  isUp(): boolean {
    return this.#topology.masters.every((node) => node.isUp())
  }

  close(): void {
    this.#topology.close()
  }

  /** The owner of the slot of the first key. Any master for a command without keys. */
  #nodeOf(command: Command): Connection | undefined {
    const key = firstKey(routeOf(this.#routes, command), command)
    if (key !== undefined) return this.#topology.owner(slotOf(key))
    const { masters } = this.#topology
    return masters.find((node) => node.isUp()) ?? masters[0]
  }

  #sendToAll(command: Command, format: Format): Promise<Reply[]> {
    const { masters } = this.#topology
    return Promise.all(masters.map((node) => node.send(command, format)))
  }

  /** Sends a command that has not run until a node runs it. */
  async #follow(sent: Sent, first: unknown, call: Call): Promise<Reply> {
    const { command, format, trusted } = sent
    let outcome = first
    let node = this.#sentTo.get(command) ?? this.#nodeOf(command)
    for (let attempt = 0; isUnserved(outcome); attempt++) {
      if (!trusted && runsCode(command) && !isNotSent(outcome)) {
        if (!(await this.#refuses(node, command))) return settled(outcome)
      }
      const next = await this.#redirect(command, outcome, call, attempt)
      node = next.node
      if (node && runsCode(command)) this.#sentTo.set(command, node)
      if (next.asking) node?.send(['ASKING']).catch(() => {}) // the command rejects, too
      const sending = node?.sendRaw(command, format) ?? Promise.reject(new ClientOfflineError())
      outcome = await sending.catch((error) => error)
    }
    return settled(outcome)
  }

  /** True if the node refuses to read the keys of a script, so that it has not run the script. */
  async #refuses(node: Connection | undefined, command: Command): Promise<boolean> {
    const keys = command.slice(3, 3 + Number(command[2]))
    if (!node || keys.length === 0) return false
    return isUnserved(await node.send(['EXISTS', ...keys]))
  }

  /**
   * Returns the next node for a command that has not run. Pauses, except before the first attempt: nodes that disagree
   * may send a command to each other. @throws RedisDown at the deadline
   */
  async #redirect(
    command: Command,
    refusal: unknown,
    call: Call,
    attempt: number,
  ): Promise<{ node: Connection | undefined; asking: boolean }> {
    const message = refusal instanceof ErrorReply ? refusal.message : 'Redis is not reachable'
    if (call.isOver() || performance.now() > call.until - RETRY_MS) throw new RedisDown(message)
    const [word, slot, name = ''] = message.split(' ')
    const from = this.#nodeOf(command)
    if (word === 'ASK') {
      if (attempt > 0) await sleep(RETRY_MS)
      return { node: this.#topology.node(name, from), asking: true }
    }
    if (word === 'MOVED') {
      const node = this.#topology.node(name, from)
      this.#topology.assign(Number(slot), node)
      this.#topology.refresh(from)
      // Not the owner of the slot: the refresh may have read it from a node that does not know the new one yet.
      if (attempt > 0 || !node.isUp()) await sleep(RETRY_MS)
      return { node, asking: false }
    }
    if (word !== 'TRYAGAIN') await this.#topology.refresh(from)
    await sleep(RETRY_MS)
    return { node: this.#nodeOf(command), asking: false }
  }

  /** The first command with a key. @throws BadRequest if the commands of a transaction do not belong to one node */
  #inOneSlot(commands: Command[]): Command {
    const slots = new Map<number, Command>()
    for (const command of commands) {
      const route = routeOf(this.#routes, command)
      const [name, sub] = command.map((part) => String(part).toUpperCase())
      if (route.all && !(name === 'SCRIPT' && sub === 'LOAD')) {
        const where = 'runs on all nodes of the cluster and cannot be part of a transaction'
        throw new BadRequest(`ERR ${name} ${where}`)
      }
      const key = firstKey(route, command)
      if (key !== undefined) slots.set(slotOf(key), command)
    }
    if (slots.size > 1) {
      throw new BadRequest("CROSSSLOT Keys in request don't hash to the same slot")
    }
    return slots.values().next().value ?? ['PING']
  }
}
