import { Connection, type RequestOptions } from './connection.ts'
import {
  type ClientOutcome,
  FLOOD_ADDRESS,
  type FloodOrder,
  type FloodOutcome,
  otherAddress,
} from './order.ts'

/** One client floods in a closed loop; other clients send at a fixed rate. */
export async function flood(order: FloodOrder): Promise<FloodOutcome> {
  const { port, connections, ms, others } = order
  const began = performance.now()
  const until = began + ms
  let refusedAt = Number.POSITIVE_INFINITY
  let passedAfterRefusal = 0
  let sent = 0

  const varied = (): RequestOptions => {
    const unique = `${++sent}-${Math.random()}`
    return {
      ...(order.vary === 'query' && { target: `/?q=${unique}` }),
      ...(order.vary === 'header' && { headers: `X-Key: ${unique}\r\n` }),
    }
  }

  function send(
    connection: Connection,
    address: string,
    outcome: ClientOutcome,
    options: RequestOptions = {},
  ): Promise<{ status: number; byStore: boolean; sentAt: number }> {
    const sentAt = performance.now()
    return new Promise((resolve) => {
      // A request without a response at the end of the run counts as failed.
      const late = setTimeout(() => connection.hangUp(), until - sentAt + 5_000)
      connection.ask(
        address,
        (status, text) => {
          clearTimeout(late)
          const byStore = /\r\nratelimit:/i.test(text)
          if (status === 200) outcome.passed++
          else if (status === 429) outcome.refused++
          else outcome.failed++
          watch(outcome, byStore)
          resolve({ status, byStore, sentAt })
        },
        options,
      )
    })
  }

  /** The time of the first of several consecutive fallbacks, by client. */
  const since = new Map<ClientOutcome, number>()
  function watch(outcome: ClientOutcome, byStore: boolean) {
    if (!byStore) {
      outcome.fallbacks++
      if (!since.has(outcome)) since.set(outcome, performance.now())
    }
    const start = since.get(outcome)
    if (start === undefined) return
    outcome.longestFallbackMs = Math.max(outcome.longestFallbackMs, performance.now() - start)
    if (byStore) since.delete(outcome)
  }

  async function floodOver(connection: Connection, outcome: ClientOutcome) {
    while (performance.now() < until) {
      const { status, byStore, sentAt } = await send(connection, FLOOD_ADDRESS, outcome, varied())
      if (status === 429 && byStore) refusedAt = Math.min(refusedAt, performance.now())
      // Requests that the store admits are within the limit: it may have refunded units of requests that it had charged too late.
      if (status === 200 && !byStore && sentAt > refusedAt) passedAfterRefusal++
    }
    connection.hangUp()
  }

  async function sendAtPace(address: string, perSecond: number, outcome: ClientOutcome) {
    const pending: Promise<unknown>[] = []
    const idle: Connection[] = []
    for (let due = began; due < until; due += 1000 / perSecond) {
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())))
      const connection = idle.pop() ?? new Connection(port)
      pending.push(send(connection, address, outcome).then(() => idle.push(connection)))
    }
    await Promise.all(pending)
    for (const connection of idle) connection.hangUp()
  }

  const floods = Array.from({ length: connections }, none)
  const paced = others.map(none)
  await Promise.all([
    ...floods.map((outcome) => floodOver(new Connection(port), outcome)),
    ...others.map((rate, index) => sendAtPace(otherAddress(index), rate, paced[index]!)),
  ])
  return { flood: floods.reduce(sum), passedAfterRefusal, others: paced }
}

const none = (): ClientOutcome => ({
  passed: 0,
  refused: 0,
  failed: 0,
  fallbacks: 0,
  longestFallbackMs: 0,
})

const sum = (one: ClientOutcome, other: ClientOutcome): ClientOutcome => ({
  passed: one.passed + other.passed,
  refused: one.refused + other.refused,
  failed: one.failed + other.failed,
  fallbacks: one.fallbacks + other.fallbacks,
  longestFallbackMs: Math.max(one.longestFallbackMs, other.longestFallbackMs),
})
