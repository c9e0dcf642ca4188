/** Servers of several runtimes and frameworks, each in a project of its own. */
import { freePort, startBridge, startRedis } from 'sluice-upstash-bridge'
import { expect, onTestFinished, test } from 'vitest'
import { read } from '../support/pages.ts'
import { type ConsumerOptions, createConsumer } from './support/consumer.ts'
import { expectOneRefusal } from './support/eleven.ts'
import { placeOf } from './support/guide.ts'
import { listening } from './support/listening.ts'

interface ServerProject extends ConsumerOptions {
  /** A program that must print nothing, or one that builds the app. */
  prepare?: { command: string[]; isSilent: boolean }
  /** A program of the project's node_modules/.bin, and its arguments. The server listens on the port of the variable `PORT`. */
  command: string[]
  /** A proxy of the test sends the address of the client. */
  behindProxy?: boolean
  /** What the server does besides. */
  also?: (url: string) => Promise<void>
}

/**
 * The source of a Hono app with a limit of ten.
 * @param clientAddress the setting, as code
 * @param serve the last line, which starts the server
 */
const honoApp = (clientAddress: string, serve: string, imports = '') =>
  `${imports}import { Hono } from 'hono'
import { rateLimiter } from 'sluice'

const app = new Hono()
app.use(
  rateLimiter({
    clientAddress: ${clientAddress},
    deadline: '10s',
    policies: [{ name: 'ten', limit: 10, window: '1m', onMissingKey: 'refuse' }],
  }),
)
app.get('/', (c) => c.text(\`\${c.var.rateLimit.limits[0]?.remaining} left\`))
${serve}
`

/** Deno with the permissions that the guide names. */
const DENO = [
  ...['deno', 'run', '--node-modules-dir=manual', '--allow-net'],
  /--allow-env=\S+/.exec(read('docs/guides/deno.md'))![0],
]

/** The setting for a server behind a proxy on this machine, as code. */
const LOCAL_PROXY = "{ forwardedFor: { trustedProxies: ['127.0.0.0/8'] } }"

const manifest = (...scripts: string[]) =>
  JSON.stringify({
    type: 'module',
    allowScripts: Object.fromEntries(scripts.map((name) => [name, true])),
  })

const projects: Record<string, ServerProject> = {
  'A Hono app on Bun limits requests by the address that a trusted proxy sends.': {
    packages: ['hono@4.13.19', 'bun@1.4.5'],
    files: {
      'package.json': manifest('bun'),
      'main.ts': honoApp(
        LOCAL_PROXY,
        "export default { fetch: app.fetch, port: Number(process.env.PORT), hostname: '127.0.0.1' }",
      ),
    },
    command: ['bun', 'main.ts'],
    behindProxy: true,
  },
  'A Hono app on Deno limits requests by the address that a trusted proxy sends.': {
    packages: ['hono@4.13.19', 'deno@2.9.6'],
    files: {
      'package.json': manifest('deno'),
      'main.ts': honoApp(
        LOCAL_PROXY,
        "Deno.serve({ port: Number(Deno.env.get('PORT')), hostname: '127.0.0.1' }, app.fetch)",
      ),
    },
    command: [...DENO, 'main.ts'],
    behindProxy: true,
  },
  'A Hono app on Node 24 with @hono/node-server limits requests by the address of the connection.':
    {
      packages: ['hono@4.13.19', '@hono/node-server@2.1.8', 'node@24.21.0'],
      files: {
        'package.json': manifest('node'),
        'main.js': honoApp(
          "'socket'",
          "serve({ fetch: app.fetch, port: Number(process.env.PORT), hostname: '127.0.0.1' })",
          "import { serve } from '@hono/node-server'\n",
        ),
      },
      command: ['node', 'main.js'],
    },
  'An Express app in TypeScript compiles, and limits requests with sluice/node.': {
    packages: [
      'express@5.3.0',
      '@types/express@5.0.6',
      '@types/node@24.19.2',
      'node@24.21.0',
      'typescript@7.0.2',
    ],
    files: {
      'package.json': manifest('node'),
      'tsconfig.json': JSON.stringify({
        compilerOptions: { target: 'ES2022', module: 'NodeNext', types: ['node'], strict: true },
      }),
      'main.ts': `import express from 'express'
import { rateLimiter } from 'sluice/node'

const app = express()
app.use(
  rateLimiter({
    clientAddress: 'socket',
    deadline: '10s',
    policies: [{ name: 'ten', limit: 10, window: '1m', onMissingKey: 'refuse' }],
  }),
)
app.get('/', (req, res) => {
  res.json({ remaining: req.rateLimit?.limits[0]?.remaining })
})
app.listen(Number(process.env.PORT), '127.0.0.1')
`,
    },
    prepare: { command: ['tsc'], isSilent: true },
    command: ['node', 'main.js'],
  },
  'A Next.js 16 app compiles and builds. It limits requests with sluice/next, and a server action with sluice/limits.':
    {
      packages: [
        'next@16.4.6',
        'react@19.3.1',
        'react-dom@19.3.1',
        'typescript@5.9.3',
        '@types/node@24.19.2',
        '@types/react@19',
      ],
      files: {
        'package.json': '{ "private": true }',
        'proxy.ts': `import { type NextRequest, NextResponse } from 'next/server'
import { rateLimitProxy } from 'sluice/next'

export const proxy = rateLimitProxy(
  {
    clientAddress: { forwardedFor: { trustedProxies: 1 } },
    deadline: '10s',
    policies: [{ name: 'ten', limit: 10, window: '1m', onMissingKey: 'refuse' }],
  },
  (request: NextRequest) => {
    if (request.nextUrl.pathname === '/old') return NextResponse.redirect(new URL('/', request.url))
  },
)

export const config = { matcher: '/((?!_next/static|_next/image|favicon.ico).*)' }
`,
        'app/layout.tsx': `export default function Layout({ children }: { children: React.ReactNode }) {
  return (
    <html lang="en">
      <body>{children}</body>
    </html>
  )
}
`,
        'app/page.tsx': `export default function Page() {
  return <p>Welcome.</p>
}
`,
        'app/invite/server-action.ts': placeOf('server-action.ts'),
        'app/invite/users.ts': `export const currentUser = async () => ({ id: 'ann' })
export const sendInvitation = async (_: { id: string }, email: string) => console.log(email)
`,
        'app/invite/page.tsx': `'use client'
import { useActionState } from 'react'
import { invite } from './server-action'

export default function Page() {
  const [answer, action] = useActionState(invite, '')
  return (
    <form action={action}>
      <input name="email" />
      <output>{answer}</output>
    </form>
  )
}
`,
      },
      prepare: { command: ['next', 'build'], isSilent: false },
      command: ['next', 'start', '-H', '127.0.0.1'],
      behindProxy: true,
      also: expectLimitedForm,
    },
}

/** Sends a form as a browser without JavaScript does, six times. The server action admits five. */
async function expectLimitedForm(url: string): Promise<void> {
  const headers = { 'x-forwarded-for': '203.0.113.9' }
  const page = await (await fetch(`${url}/invite`, { headers })).text()
  const answers: string[] = []
  for (let sent = 0; sent < 6; sent++) {
    const body = new FormData()
    body.set('email', 'ben@example.com')
    for (const [, name, value = ''] of page.matchAll(
      /<input type="hidden" name="([^"]+)"(?: value="([^"]*)")?/g,
    )) {
      body.set(name!, value.replaceAll('&quot;', '"'))
    }
    const response = await fetch(`${url}/invite`, { method: 'POST', headers, body })
    answers.push(/<output>([^<]*)/.exec(await response.text())![1]!)
  }
  expect(answers.slice(0, 5)).toEqual(Array(5).fill('The invitation is on its way.'))
  expect(answers[5]).toMatch(/^Try again in \d+ minutes\.$/)
}

test.each(Object.entries(projects))('%s', async (_, options) => {
  const { prepare, command, behindProxy, also } = options
  const { run, start } = await createConsumer(options)
  if (prepare) {
    const output = await run(...(prepare.command as [string]))
    if (prepare.isSilent) expect(output).toBe('')
  }
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  const bridge = await startBridge({ redis: redis.url, token: 'a-local-token' })
  onTestFinished(() => bridge.close())
  const port = await freePort()
  const [name, ...args] = command
  const server = start(name!, args, {
    PORT: String(port),
    UPSTASH_REDIS_REST_URL: bridge.url,
    UPSTASH_REDIS_REST_TOKEN: bridge.token,
  })
  await listening(port, server)
  const send = (client: string) =>
    fetch(`http://127.0.0.1:${port}/`, {
      headers: behindProxy ? { 'x-forwarded-for': client } : {},
    })
  await expectOneRefusal(() => send('203.0.113.7'))
  expect(bridge.stats()[bridge.token]!.http).toBeGreaterThanOrEqual(11)
  await also?.(`http://127.0.0.1:${port}`)
  if (!behindProxy) return
  const other = await send('203.0.113.8')
  expect(other.status).toBe(200)
  if (name === 'next') expect(await other.text()).toContain('Welcome.')
})
