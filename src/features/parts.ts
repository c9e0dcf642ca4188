/** The parts of the core that only some configurations run. Each is compiled as a feature without parameters is. */
export { apiKeys } from '../core/parts/api-keys.ts'
export { clientValues } from '../core/parts/client-values.ts'
export { conditions } from '../core/parts/conditions.ts'
export { denialCache } from '../core/parts/denial-cache.ts'
export { forwarded } from '../core/parts/forwarded.ts'
export { local } from '../core/parts/local.ts'
export { settling } from '../core/parts/settling.ts'
