/** Serves a built site as Workers static assets do: without the ending of pages, compressed, with a page for what is missing. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname } from 'node:path'
import { gzipSync } from 'node:zlib'
import { fileAt } from './check.ts'
import type { SiteFiles } from './pages.ts'

const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.txt': 'text/plain; charset=utf-8',
}

export interface ServedSite {
  url: string
  close(): Promise<void>
}

/** @param port 0 takes a free port. @throws Error with the code `EADDRINUSE` if it is in use */
export async function serveSite(files: SiteFiles, port: number): Promise<ServedSite> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url!, 'http://127.0.0.1')
    const name = fileAt(files, pathname)
    const shown = name ?? '404.html'
    const body = files.get(shown) ?? ''
    response
      .writeHead(name ? 200 : 404, {
        'Content-Type': types[extname(shown)] ?? 'application/octet-stream',
        'Content-Encoding': 'gzip',
      })
      .end(gzipSync(body))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
