import { setTimeout as sleep } from 'node:timers/promises'
import { type Address, Connection, type Reply } from './connection.ts'
import { SLOTS } from './slot.ts'
import { within } from './within.ts'

/** How often the topology is read when nothing indicates a change, in ms. Finds a failover while a master hangs. */
const REFRESH_MS = 1000
/** How long to wait for a node to return the topology, in ms. */
const REPLY_MS = 1000

/** The masters of a Redis Cluster, with one connection to each, and the slots that each one owns. */
export class Topology {
  readonly #seeds: Address[]
  /** Time in ms after which the connection to an unused node is closed. Until then it may receive replies. */
  readonly #retireMs: number
  /** By `host:port`. */
  readonly #nodes = new Map<string, Connection>()
  /** Since when a node is neither a master with slots nor named by ASK, in ms of `performance.now()`. */
  readonly #unused = new Map<Connection, number>()
  #owners: (Connection | undefined)[] = []
  /** In the order of their first slots. */
  #masters: Connection[] = []
  #refreshing: Promise<boolean> | undefined
  readonly #timer: NodeJS.Timeout

  private constructor(seeds: Address[], retireMs: number) {
    this.#seeds = seeds
    this.#retireMs = retireMs
    this.#timer = setInterval(() => this.refresh(), REFRESH_MS).unref()
  }

  /** Connects to the first seed that responds, and to all masters. @throws Error when no seed responds. */
  static async open(seeds: Address[], retireMs: number): Promise<Topology> {
    const topology = new Topology(seeds, retireMs)
    try {
      await topology.#connect()
    } catch (error) {
      topology.close()
      throw error
    }
    return topology
  }

  owner(slot: number): Connection | undefined {
    return this.#owners[slot]
  }

  /** The masters that own slots, in the order of their first slots. */
  get masters(): Connection[] {
    return this.#masters
  }

  /** The first slot of each master, in order. */
  get firstSlots(): number[] {
    return this.#masters.map((master) => this.#owners.indexOf(master))
  }

  /** The connection to the node `host:port`, as MOVED and ASK name it. A missing or unknown host is that of `from`. */
  node(name: string, from: Connection | undefined): Connection {
    const at = name.lastIndexOf(':')
    const named = /^(\?|null)?$/.test(name.slice(0, at)) ? undefined : name.slice(0, at)
    const host = named ?? hostOf(from?.address ?? this.#seeds[0]!)
    const key = `${host}:${name.slice(at + 1)}`
    const known = this.#nodes.get(key)
    if (known) {
      this.#unused.delete(known)
      return known
    }
    const node = Connection.start(this.#address(host, name.slice(at + 1)))
    this.#nodes.set(key, node)
    return node
  }

  /** Follows a MOVED before the next refresh. */
  assign(slot: number, node: Connection): void {
    this.#owners[slot] = node
  }

  /** Reads the slots from a node. Resolves with false if no node responds. @param avoid a node to ask last */
  refresh(avoid?: Connection): Promise<boolean> {
    // An invalid address is an error.
    this.#refreshing ??= this.#refresh(avoid)
      .catch(() => false)
      .finally(() => {
        this.#refreshing = undefined
      })
    return this.#refreshing
  }

  close(): void {
    clearInterval(this.#timer)
    for (const node of this.#nodes.values()) node.close()
    this.#nodes.clear()
  }

  async #connect(): Promise<void> {
    let cause: unknown
    for (const seed of this.#seeds) {
      const first = await Connection.open(seed).catch((error) => {
        cause = error
      })
      if (!first) continue
      const read = this.#read(await first.send(['CLUSTER', 'SLOTS']), first)
      first.close()
      if (read) return await this.#allReady()
      cause = new Error(`${hostOf(seed)} is not a node of a Redis Cluster that serves slots`)
    }
    throw cause
  }

  /** Waits up to 3 s for the connections to all masters, so that the first commands need not wait. */
  async #allReady(): Promise<void> {
    const until = performance.now() + 3000
    for (const node of this.#masters) {
      while (!node.isUp() && performance.now() < until) await sleep(20)
    }
  }

  async #refresh(avoid: Connection | undefined): Promise<boolean> {
    const up = [...this.#nodes.values()].filter((node) => node.isUp())
    const order = new Map(up.map((node) => [node, node === avoid ? 1 : Math.random()]))
    for (const node of up.sort((one, other) => order.get(one)! - order.get(other)!)) {
      const reply = await within(
        node.send(['CLUSTER', 'SLOTS']).catch(() => null),
        REPLY_MS,
      )
      if (this.#read(reply ?? null, node)) return true
    }
    // The masters may all have new addresses. Connects to the seeds in the background.
    for (const { url } of this.#seeds) this.node(new URL(url).host, undefined)
    return false
  }

  /** Reads the reply to CLUSTER SLOTS. @returns false if it contains no slots */
  #read(reply: Reply, from: Connection): boolean {
    if (!Array.isArray(reply) || reply.length === 0) return false
    const owners = new Array<Connection | undefined>(SLOTS).fill(undefined)
    for (const range of reply) {
      if (!Array.isArray(range) || !Array.isArray(range[2])) return false
      const [host, port] = range[2].map(String)
      const node = this.node(`${host}:${port}`, from)
      owners.fill(node, Number(range[0]), Number(range[1]) + 1)
    }
    this.#owners = owners
    this.#masters = [...new Set(owners)].filter((node) => node !== undefined)
    this.#retire()
    return true
  }

  /** Closes the connections to nodes that have been unused for long. */
  #retire(): void {
    const now = performance.now()
    for (const [name, node] of this.#nodes) {
      if (this.#masters.includes(node)) continue
      const since = this.#unused.get(node) ?? now
      this.#unused.set(node, since)
      if (now - since < this.#retireMs) continue
      this.#unused.delete(node)
      this.#nodes.delete(name)
      node.close()
    }
  }

  #address(host: string, port: string): Address {
    const { url, tls } = this.#seeds[0]!
    const [, scheme = '', credentials = ''] = /^(\w+:\/\/)([^@/]*@)?/.exec(url) ?? []
    return { url: `${scheme}${credentials}${host.includes(':') ? `[${host}]` : host}:${port}`, tls }
  }
}

function hostOf({ url }: Address): string {
  return new URL(url).hostname.replace(/^\[(.*)\]$/, '$1')
}
