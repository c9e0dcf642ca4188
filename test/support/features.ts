/** Features without parameters, for limiters without those of a host. */
import { defaults } from '../../src/features/defaults.ts'

const feature = (name: string) => defaults().find((one) => one.name === name)!

export const bans = () => feature('bans')
export const concurrency = () => feature('concurrency')
export const distinct = () => feature('distinct')
export const headerSets = () => feature('headerSets')
export const leases = () => feature('leases')
export const live = () => feature('live')
export const overrides = () => feature('overrides')
export const plans = () => feature('plans')
export const proxies = () => feature('proxies')
export const refusals = () => feature('refusals')
export const shield = () => feature('shield')
export const slidingLog = () => feature('slidingLog')
