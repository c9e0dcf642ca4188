import type { ConfigOptions } from '../../src/core/config/options.ts'
import type { StoreRequest } from '../../src/core/connection/store.ts'
import { decideEach } from '../../src/core/decide/decide.ts'
import { start } from './ask.ts'
import { createMatcher } from './create-matcher.ts'
import type { Server } from './server.ts'
import { newSubject } from './subjects.ts'

/** A limiter of one subject in front of a server. Its clock stands still until a test moves it. */
export function clockedLimiter(server: Server, config: ConfigOptions) {
  const describe = createMatcher(config)
  const subject = newSubject()
  const clock = { now: start }
  const decide = (requests: StoreRequest[]) => server.decide(requests, clock.now)
  const parts = {
    store: { decide, decideEach: (lists: StoreRequest[][]) => Promise.all(lists.map(decide)) },
    nameSubject: async () => subject,
    onStoreError() {},
  }
  const request = async (headers: Record<string, string> = {}) => {
    const matched = await describe('/', { headers })
    return (await decideEach([{ matched }], parts))[0]!.decision
  }
  return { clock, request }
}
