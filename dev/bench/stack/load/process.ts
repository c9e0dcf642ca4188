/** The load, in a process of its own: takes orders, tells outcomes. */
import { closedLoop } from './closed.ts'
import { openLoop } from './open.ts'
import type { Order } from './order.ts'

process.on('message', async (order: Order) => {
  const outcome = await (order.rate ? openLoop(order) : closedLoop(order))
  process.send!(outcome)
})
// Whoever gave the orders is gone.
process.on('disconnect', () => process.exit())
