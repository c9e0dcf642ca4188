import { RedisClient } from 'redis'

const create = RedisClient.factory({ RESP: 2 })

/** Creates a client of one server. `createClient` makes the functions of all commands again for each URL, which takes 20 ms. */
export const newClient = (options: Parameters<typeof create>[0]) => {
  const all = { ...options, RESP: 2 }
  return create(all)
}
