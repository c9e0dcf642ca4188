/** Exports for the tests of the product. */
export { startChaosStack } from './chaos/stack.ts'
export { type StallMeter, watchStall } from './chaos/stall.ts'
export { FLOOD_ADDRESS } from './stack/load/order.ts'
export { type Load, startLoad } from './stack/load.ts'
export { LIMIT, OTHERS, scenarios, startCountingOrigin } from './stack/overload.ts'
