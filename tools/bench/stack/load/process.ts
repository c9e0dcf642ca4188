/** The process of the load generator. Receives orders and sends outcomes. */
import { closedLoop } from './closed.ts'
import { flood } from './flood.ts'
import { openLoop } from './open.ts'
import type { FloodOrder, Order } from './order.ts'

process.on('message', async (order: Order | FloodOrder) => {
  const outcome = await ('others' in order
    ? flood(order)
    : order.rate
      ? openLoop(order)
      : closedLoop(order))
  process.send!(outcome)
})
// The parent process has ended.
process.on('disconnect', () => process.exit())
