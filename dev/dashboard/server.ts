/** The local server of the dashboard: it serves the page, and forwards the page's calls to the Worker with the token of an operator. */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { About } from './about.ts'
import { type Answer, forward, problem, type WatchedWorker } from './forward.ts'
import { headers, refusalOf } from './guard.ts'
import { pageFiles } from './page-files.ts'

export const DASHBOARD_PORT = 8780

export interface DashboardOptions extends WatchedWorker {
  /** The port on 127.0.0.1; 0 takes a free port. */
  port: number
  /** Returns the findings of the linter for the project on this machine, if there is one. */
  findings?(): About['findings']
}

export interface RunningDashboard {
  url: string
  close(): Promise<void>
}

/** Starts the server. @throws Error with the code `EADDRINUSE` if the port is in use */
export async function startDashboard(options: DashboardOptions): Promise<RunningDashboard> {
  const server = createServer(async (request, response) => {
    const answer = await answerTo(request, options).catch((error: Error) =>
      problem(500, error.message),
    )
    const { status, type, body, retryAfter } = answer
    response
      .writeHead(status, {
        ...headers,
        'Content-Type': type,
        ...(retryAfter && { 'Retry-After': retryAfter }),
        ...(!request.complete && { Connection: 'close' }),
      })
      .end(request.method === 'HEAD' ? undefined : body)
    // Ends an upload that is too large.
    if (!request.complete) response.once('finish', () => request.destroy())
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, '127.0.0.1', resolve)
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function answerTo(request: IncomingMessage, options: DashboardOptions): Promise<Answer> {
  const refusal = refusalOf(request)
  if (refusal) return problem(403, refusal)
  const { method, url = '' } = request
  if (method === 'GET' && url === '/about') {
    const about: About = { worker: options.url, findings: options.findings?.() }
    return { status: 200, type: 'application/json', body: JSON.stringify(about) }
  }
  const file = method === 'GET' && (await pageFiles()).get(url)
  if (file) return { status: 200, ...file }
  return (await forward(request, options)) ?? problem(404, 'The dashboard has no such page.')
}
