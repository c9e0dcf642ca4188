/** Rate limit headers for clients that do not read draft-11. */
import type { Feature } from '../../core/feature.ts'
import { declaration } from './declaration.ts'

/** Lets `headers` have sets other than `'draft-11'`: older drafts, GitHub's headers, and those with a prefix of your own. */
export const headerSets = (): Feature => ({ ...declaration, compile: () => ({}) })
