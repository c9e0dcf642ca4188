/** `sluice/ban-list`: who is banned now. */
import { ConfigError } from '../../core/base/errors.ts'
import type { Feature } from '../../core/feature.ts'
import { bansEndpoint } from './endpoint.ts'
import { withBanList } from './watch.ts'

export type { BanPage, BanReport } from './endpoint.ts'

/**
 * Lists the keys that are banned now, for operators: `GET /_sluice/v1/policies/{name}/bans`, and a table of `sluice dashboard`. It lists the
 * bans of policies with `penalty.list: true` or `penalty: 'manual'`, from its deployment on. Not with `durableObjects()`.
 * @example
 * defineConfig({
 *   policies: [{ name: 'login', limit: 5, window: '1m', penalty: { after: 10, within: '10m', ban: '1h', list: true } }],
 *   use: [banList()],
 * })
 */
export const banList = (): Feature => ({
  name: 'banList',
  compile({ config: { namespace, store }, log }) {
    if (store?.own) {
      const expected = 'no banList() with durableObjects(), which have no common list'
      throw new ConfigError([{ path: 'use', expected, got: 'banList()' }])
    }
    return {
      watch: (inner, database) => withBanList(inner, database, { namespace, log }),
      endpoints: [bansEndpoint],
    }
  },
})
