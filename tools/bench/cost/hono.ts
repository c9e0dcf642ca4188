import { RedisStore } from 'hono-rate-limiter'
import { type Contender, LIMIT, WINDOW_MS } from './contender.ts'

/** The store of `hono-rate-limiter`, with a client that forwards its scripts. It counts units one by one. */
export const hono: Contender = {
  by: 'hono-rate-limiter',
  algorithm: 'fixed window',
  decisions: 1,
  async ask(send, { client, units = 1, peek }) {
    const texts: string[] = []
    const store = new RedisStore({
      client: {
        scriptLoad: async (text) => `${texts.push(text) - 1}`,
        evalsha: async <_Args, Reply>(sha: string, keys: string[], args: unknown[]) => {
          const reply = await send({ script: texts[Number(sha)]!, keys, args: args.map(String) })
          return (reply as unknown[]).slice(0, 2) as Reply // `record` returns three values
        },
        decr: () => Promise.reject(new Error('not supported')),
        del: () => Promise.reject(new Error('not supported')),
      },
    })
    store.windowMs = WINDOW_MS
    if (peek) return Boolean(await store.get(client))
    let hits = 0
    for (let unit = 0; unit < units; unit++) hits = (await store.increment(client)).totalHits
    return hits <= LIMIT
  },
}
