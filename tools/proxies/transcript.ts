import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { freePort, type ServerBinary } from 'sluice-upstash-bridge'
import type { ConfigOptions } from '../../src/core/config/options.ts'
import { startStack } from '../stack.ts'
import type { ProxyName } from './binaries.ts'
import { type Answer, ask } from './client.ts'
import type { Settings } from './example.ts'
import { runProxy } from './run.ts'

const token = 'a-token-for-the-transcripts'
const config: ConfigOptions = {
  deny: { name: 'closed', path: '/internal/*' },
  policies: [
    { name: 'per-ip', algorithm: 'fixed-window', limit: 2, window: '1h', match: { path: '/' } },
  ],
}

/** The header fields to show. Leaves out those without interest for the reader, such as date, server and length. */
const INTERESTING = /^(retry-after|ratelimit|ratelimit-policy|content-type|cache-control)$/i

/**
 * Records what a client receives from a proxy that runs its example, in front of an app, with the Worker for the
 * decisions. Values that differ between runs are replaced by `…`, so that each run gives the same text.
 */
export async function record(name: ProxyName, binary: ServerBinary): Promise<string> {
  for (let attempt = 1; ; attempt++) {
    const text = await recordOnce(name, binary)
    // Repeat if the requests took more than a second: the remaining time would differ.
    if (!/t=(?!3600)|Retry-After: (?!3600)/.test(text)) return text
    if (attempt === 5) throw new Error(`This machine is too slow to record a transcript:\n${text}`)
  }
}

async function recordOnce(name: ProxyName, binary: ServerBinary): Promise<string> {
  const stack = await startStack({ config, env: { SLUICE_API_TOKEN: token } })
  const app = await startApp()
  const scenes: string[] = []
  /** Sends requests through a proxy with these settings, each with a comment. */
  const through = async (
    settings: Partial<Settings>,
    requests: [path: string, remark: string][],
  ) => {
    const proxy = await runProxy(name, binary, {
      api: stack.url,
      token,
      app: app.url,
      undecided: 'pass',
      patience: '10s',
      ...settings,
    })
    try {
      for (const [path, remark] of requests) {
        const answer = await ask(proxy.url + path, { headers: { Host: 'www.example.com' } })
        scenes.push(`$ curl -i http://www.example.com${path}  # ${remark}\n${show(answer)}`)
      }
    } finally {
      await proxy.stop()
    }
  }
  try {
    await through({}, [
      ['/', 'the first of two requests per hour'],
      ['/', 'the second'],
      ['/', 'the third'],
      ['/internal/', 'an entry of deny matches'],
    ])
    const unreachable = `http://127.0.0.1:${await freePort()}`
    await through({ api: unreachable }, [['/', 'Sluice is down; requests pass']])
    await through({ api: unreachable, undecided: 'refuse' }, [
      ['/', 'Sluice is down; requests are refused'],
    ])
  } finally {
    await Promise.all([stack.stop(), app.close()])
  }
  return scenes.join('\n')
}

async function startApp() {
  const server = createServer((_, response) =>
    response.writeHead(200, { 'Content-Type': 'text/plain' }).end('Hello from the app.\n'),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** A response as curl prints it. */
function show({ status, statusText, rawHeaders, body }: Answer): string {
  const lines = [`HTTP/1.1 ${status} ${statusText}`]
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (INTERESTING.test(rawHeaders[i]!)) lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`)
  }
  lines.push('')
  // Replaces the remaining milliseconds.
  const text = body.trimEnd().replace(/\b\d{4,}(?=[ ,}]| ms)/g, '…')
  if (text) lines.push(text, '')
  return lines.join('\n')
}
