import type { Feature } from '../../core/feature.ts'
import { compilePlan } from './compile.ts'

/** What it does, without what it adds to configurations. */
export const compile: Feature['compile'] = () => ({ compilePlan })
