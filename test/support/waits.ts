import { allParts } from '../../cli/replay/decide/script-parts.ts'
import type { CommandAnswer } from '../../src/core/base/commands.ts'
import type { Limit, StoreReply, StoreRequest, Terms } from '../../src/core/connection/store.ts'
import { createUpstashStore } from '../../src/core/connection/upstash/upstash.ts'
import type { Server } from './server.ts'

export type WaitTerms = Omit<Terms, 'localShare'>

/** A store on Redis whose requests may wait, with the time of the caller. */
export function waitingStore(server: Pick<Server, 'send'>) {
  const store = createUpstashStore({
    lua: allParts,
    send: async (commands) =>
      Promise.all(
        commands.map(async ([name, text, ...rest]): Promise<CommandAnswer> => {
          // Stock Redis refuses Upstash's flag, so a script is sent whole.
          const script = name === 'eval' ? String(text).replace(/^#!lua[^\n]*\n/, '') : undefined
          if (script === undefined) return { error: 'NOSCRIPT' }
          try {
            const result = await server.send('EVAL', script, ...rest.map(String))
            return { result }
          } catch (error) {
            return { error: (error as Error).message }
          }
        }),
      ),
  })
  return {
    decide: (requests: StoreRequest[], now: number): Promise<StoreReply> =>
      store.decide(requests, { now }),
    store,
  }
}

export const limit = (subject: string, terms: WaitTerms, cost = 1): Limit => ({
  subject,
  terms: { ...terms, localShare: 1 },
  cost,
})
