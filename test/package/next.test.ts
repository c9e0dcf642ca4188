import { expect, test } from 'vitest'
import { createConsumer } from './support/consumer.ts'
import { expectLimitedServer } from './support/server-project.ts'

test('A Next.js 16 app with proxy.ts compiles, builds and limits requests with sluice/next.', {
  timeout: 120_000,
}, async () => {
  const project = await createConsumer({
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
    },
  })
  await project.run('next', 'build')
  const client = { 'x-forwarded-for': '203.0.113.7' }
  const send = await expectLimitedServer(project, ['next', 'start', '-H', '127.0.0.1'], client)
  const other = await send({ 'x-forwarded-for': '203.0.113.8' })
  expect(await other.text()).toContain('Welcome.')
})
