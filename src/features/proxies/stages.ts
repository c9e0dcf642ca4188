import type { Feature } from '../../core/feature.ts'
import { networks } from './networks.ts'

/** What it does, without what it adds to configurations. */
export const compile: Feature['compile'] = () => ({ networks })
