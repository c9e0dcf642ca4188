import { isUsed } from '../../core/config/feature.ts'
import type { Feature } from '../../core/feature.ts'
import { compilePlan } from './compile.ts'

/** What it does, without what it adds to configurations. */
export const compile: Feature['compile'] = ({ config }) =>
  isUsed(config, ({ plan }) => plan) ? { compilePlan } : {}
