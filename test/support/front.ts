/** A server in front of a deployment, which treats requests in a way that a limiter cannot see. */
import { createServer, request as send } from 'node:http'
import { listen } from './node-servers.ts'

export interface FrontOptions {
  /** Where a request goes. */
  to: (path: string) => string
  /** Request fields to remove. */
  strips?: string[]
  /** Request fields to add. */
  adds?: Record<string, string>
  /** True to answer a repeated path from a cache. */
  caches?: boolean
  /** Response fields to change. */
  answers?: Record<string, string>
}

/** Starts the server until the test finishes. Returns its URL. */
export function startFront({ to, strips = [], adds = {}, caches, answers = {} }: FrontOptions) {
  const cache = new Map<string, [number, Record<string, unknown>, Buffer]>()
  const server = createServer((incoming, outgoing) => {
    const path = incoming.url!
    const known = cache.get(path)
    if (known && caches) {
      outgoing.writeHead(known[0], known[1] as never).end(known[2])
      return
    }
    const headers = { ...incoming.headers, ...adds }
    for (const name of strips) delete headers[name]
    const target = new URL(to(path))
    const { method } = incoming
    const forwarded = send({ host: target.hostname, port: target.port, method, path, headers })
    forwarded.on('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('end', () => {
        const body = Buffer.concat(chunks)
        const { 'transfer-encoding': _, ...kept } = response.headers
        const fields = { ...kept, ...(response.headers['retry-after'] && answers) }
        // The report of sluice verify is not cached, as nothing is that says no-store and has a field of its own.
        if (!path.startsWith('/_sluice/')) cache.set(path, [response.statusCode!, fields, body])
        outgoing.writeHead(response.statusCode!, fields).end(body)
      })
    })
    incoming.pipe(forwarded)
  })
  return listen(server)
}
