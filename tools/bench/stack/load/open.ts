import { Connection } from './connection.ts'
import { addressOf, type Order, type Outcome } from './order.ts'
import { Record } from './record.ts'
import { poisson } from './schedule.ts'

/** With more connections the Worker is overloaded, and latency has no meaning. */
const MAX_CONNECTIONS = 1000
const TIMEOUT_MS = 15_000

/** Open loop: sends requests at scheduled times. Latency counts from the scheduled time, so that it includes the wait for a stalled Worker. */
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
  while (answered < times.length && performance.now() < start + ms + TIMEOUT_MS) {
    while (next < times.length && start + times[next]! <= performance.now()) {
      send(start + times[next++]!)
    }
    nap(next < times.length ? start + times[next]! - performance.now() : 0.1)
    await new Promise(setImmediate) // lets Node read responses
  }
  for (let lost = answered; lost < times.length; lost++) record.answered(0, TIMEOUT_MS)
  for (const one of idle) one.hangUp()
  return record.end()
}

const neverNotified = new Int32Array(new SharedArrayBuffer(4))

/** Waits at most 0.1 ms without using CPU, exact to about 50 µs. Timers have a resolution of 1 ms, which would group requests. */
function nap(ms: number): void {
  if (ms > 0) Atomics.wait(neverNotified, 0, 0, Math.min(ms, 0.1))
}
