export type { Aim } from './aim.ts'
export { FaultError, type FaultText } from './fault.ts'
export { type Counts, type Faults, type FaultsOptions, startFaults } from './faults.ts'
export { kinds } from './kinds.ts'
