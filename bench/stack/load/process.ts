/** The load, in a process of its own: takes orders, tells outcomes. */
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
// Whoever gave the orders is gone.
process.on('disconnect', () => process.exit())
