import { Connection } from './connection.ts'
import { addressOf, type Order, type Outcome } from './order.ts'
import { Record } from './record.ts'

/** A request that has no answer by then has none: longer than any deadline of the limiters. */
const PATIENCE_MS = 15_000

/** Every connection asks, waits for the answer, and asks again. */
export async function closedLoop(order: Order): Promise<Outcome> {
  const { ports, network, clients, connections = 1, ms = 60_000, hangUps = 0 } = order
  const record = new Record()
  const until = performance.now() + ms
  let left = order.requests ?? Number.POSITIVE_INFINITY
  const next = () =>
    addressOf(network, order.requests ? left % clients : Math.floor(Math.random() * clients))

  const one = (connection: Connection) =>
    new Promise<void>((resolve) => {
      const start = performance.now()
      const late = setTimeout(() => {
        connection.hangUp()
        record.answered(0, PATIENCE_MS)
        resolve()
      }, PATIENCE_MS)
      const leave = hangUps > 0 && Math.random() < hangUps
      const leaving = leave
        ? setTimeout(() => {
            clearTimeout(late)
            connection.hangUp()
            record.hangUps++
            resolve()
          }, Math.random() * 15)
        : undefined
      connection.ask(next(), (status) => {
        clearTimeout(late)
        clearTimeout(leaving)
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
      while (left > 0 && performance.now() < until) {
        left--
        await one(connection)
      }
      connection.hangUp()
    }),
  )
  return record.end()
}
