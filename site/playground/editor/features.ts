/** The features that a configuration in the playground may call. */
import { bodies } from '../../../src/features/bodies/index.ts'
import { defaults } from '../../../src/features/defaults.ts'
import { observe } from '../../../src/features/observe/index.ts'
import { turns } from '../../../src/features/turns/index.ts'

// biome-ignore lint/suspicious/noExplicitAny: each checks its arguments
export const features: Record<string, (...given: any[]) => unknown> = {
  ...Object.fromEntries(defaults().map((one) => [one.name, () => one])),
  bodies,
  turns,
  observe,
}
