/** A Node server with `store: redis(client)`, which client-stack.ts starts. */
import { createServer } from 'node:http'
import { createClient } from 'redis'
import { rateLimiter } from '../../../src/hosts/node/node.ts'
import { redis } from '../../../src/stores/redis.ts'
import { config } from './policies.ts'

const client = createClient({ url: process.env.REDIS_URL! }).on('error', () => {})
await client.connect()
const limit = rateLimiter({ ...config, store: redis(client) })
const server = createServer((request, response) =>
  limit(request, response, (error) => {
    response.statusCode = error ? 500 : 200
    response.end('Welcome.')
  }),
)
server.listen(0, '127.0.0.1', () => {
  process.send!((server.address() as { port: number }).port)
})
