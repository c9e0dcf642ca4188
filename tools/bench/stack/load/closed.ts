import { Connection } from './connection.ts'
import { addressOf, type Order, type Outcome } from './order.ts'
import { Record } from './record.ts'

/** Timeout of a request in ms, longer than any deadline of the limiters. */
const TIMEOUT_MS = 15_000

/** Closed loop: each connection sends a request, waits for the response, and sends the next one. */
export async function closedLoop(order: Order): Promise<Outcome> {
  const { ports, network, clients, connections = 1, ms = 60_000, hangUps = 0 } = order
  const record = new Record()
  const until = performance.now() + ms
  let remaining = order.requests ?? Number.POSITIVE_INFINITY
  const next = () =>
    addressOf(network, order.requests ? remaining % clients : Math.floor(Math.random() * clients))

  const one = (connection: Connection) =>
    new Promise<void>((resolve) => {
      const start = performance.now()
      const late = setTimeout(() => {
        connection.hangUp()
        record.answered(0, TIMEOUT_MS)
        resolve()
      }, TIMEOUT_MS)
      const hangsUp = hangUps > 0 && Math.random() < hangUps
      const hangUpTimer = hangsUp
        ? setTimeout(() => {
            clearTimeout(late)
            connection.hangUp()
            record.hangUps++
            resolve()
          }, Math.random() * 15)
        : undefined
      connection.ask(next(), (status) => {
        clearTimeout(late)
        clearTimeout(hangUpTimer)
        record.answered(status, performance.now() - start)
        resolve()
      })
    })

  const open = Array.from(
    { length: connections },
    (_, n) => new Connection(ports[n % ports.length]!),
  )
  await Promise.all(
    open.map(async (connection) => {
      while (remaining > 0 && performance.now() < until) {
        remaining--
        await one(connection)
      }
      connection.hangUp()
    }),
  )
  return record.end()
}
