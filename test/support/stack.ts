import { type StackOptions, startStack as start } from '../../tools/stack.ts'
import { borrowRedis } from './borrow-redis.ts'

/** Starts the bridge, the demo origin, and the Worker in workerd, with a Redis that other tests use before and after. */
export const startStack = (options?: StackOptions) => start(options, borrowRedis)
