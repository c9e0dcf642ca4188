/** `sluice/outbound`: calls that go out wait for their turn in the limits of the other side. */
export type { OutboundCooldown } from './cooldowns.ts'
export { OutboundError, type OutboundErrorCode } from './error.ts'
export type { OutboundOptions, OutboundPolicy } from './options.ts'
export { type Outbound, type OutboundCooldowns, type OutboundStatus, outbound } from './outbound.ts'
