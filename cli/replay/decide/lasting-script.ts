import { script } from './script-parts.ts'

/**
 * The script with a day of additional TTL. Redis expires keys by its own clock, and a second of virtual time may take minutes by that
 * clock.
 */
export const lastingScript = script.replace('and 0 or 60000', 'and 0 or 86400000')
if (lastingScript === script)
  throw new Error(
    'The text that sets the TTL is not in the script: update cli/replay/decide/lasting-script.ts',
  )
