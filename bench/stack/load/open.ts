import { Connection } from './connection.ts'
import { addressOf, type Order, type Outcome } from './order.ts'
import { Record } from './record.ts'
import { poisson } from './schedule.ts'

/** More would say that the Worker cannot follow, and not how long it takes. */
const MAX_CONNECTIONS = 1000
const PATIENCE_MS = 15_000

/** Requests come when they come. Latency counts from when one was due, so that a stalled Worker is not forgiven those that waited. */
export async function openLoop(order: Order): Promise<Outcome> {
  const { ports, network, clients, rate = 1, ms = 1000 } = order
  const times = poisson(rate, ms)
  const idle: Connection[] = []
  let connections = 0
  let answered = 0
  const record = new Record()
  const start = performance.now()

  const connection = () => {
    const free = idle.pop()
    if (free) return free
    if (connections === MAX_CONNECTIONS) return undefined
    return new Connection(ports[connections++ % ports.length]!)
  }
  const send = (due: number) => {
    const one = connection()
    const settle = (status: number) => {
      answered++
      record.answered(status, performance.now() - due)
      if (one) idle.push(one)
    }
    record.sent(performance.now() - due)
    if (!one) return settle(0)
    one.ask(addressOf(network, Math.floor(Math.random() * clients)), settle)
  }

  let next = 0
  while (answered < times.length && performance.now() < start + ms + PATIENCE_MS) {
    while (next < times.length && start + times[next]! <= performance.now()) {
      send(start + times[next++]!)
    }
    nap(next < times.length ? start + times[next]! - performance.now() : 0.1)
    await new Promise(setImmediate) // reads what has come
  }
  for (let lost = answered; lost < times.length; lost++) record.answered(0, PATIENCE_MS)
  for (const one of idle) one.hangUp()
  return record.end()
}

const nobody = new Int32Array(new SharedArrayBuffer(4))

/** Timers know whole milliseconds, which would send requests in bunches. This is exact to some 50 µs, and spins on no processor. */
function nap(ms: number): void {
  if (ms > 0) Atomics.wait(nobody, 0, 0, Math.min(ms, 0.1))
}
