/** Serves files from memory, as Workers static assets do. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname } from 'node:path'

const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.txt': 'text/plain; charset=utf-8',
}

export interface StaticSite {
  url: string
  close(): Promise<void>
}

/** @param read returns the file of a path without a leading slash, or undefined */
export async function serveFiles(
  read: (path: string) => Promise<string | Uint8Array | undefined> | string | undefined,
): Promise<StaticSite> {
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url!, 'http://site')
    const path = decodeURIComponent(pathname).replace(/\/$/, '/index.html').slice(1)
    const body = await read(path)
    if (body === undefined) return void response.writeHead(404).end()
    const type = types[extname(path)] ?? 'application/octet-stream'
    response.writeHead(200, { 'Content-Type': type }).end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
